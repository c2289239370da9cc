"""What truncation does to a condition, and whether its inputs still differ from the true ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from evidep.errors import ReaderError
from evidep.readers.layout import Ids
from evidep.readers.pairing import EncodedPairs, pair_lengths, put_text
from evidep.types import NULL, BoolArray, IntArray

FEW: Final = 10
"""Fewer swapped pairs than this may all be equal by chance."""


def seen(encoded: EncodedPairs, rows: IntArray, donors: IntArray) -> tuple[BoolArray, BoolArray]:
    """What truncation does to pairs: [t] whether evidence (or a lone text) is cut, and [t] as `same_input`."""
    query, evidence = encoded.texts(rows, donors)
    return pair_lengths(encoded, query, evidence)[2] > 0, same_input(encoded, rows, donors)


def same_input(encoded: EncodedPairs, rows: IntArray, donors: IntArray) -> BoolArray:
    """[t] whether the input of (rows[t], donors[t]) is the same as that of (rows[t], rows[t]) after truncation."""
    query, given = encoded.texts(rows, donors)
    _, true = encoded.texts(rows, rows)
    shown, true_shown = pair_lengths(encoded, query, given)[1], pair_lengths(encoded, query, true)[1]
    same: BoolArray = (shown == true_shown) & ((given == NULL) == (true == NULL))
    open_cases = np.flatnonzero(same & (given != true) & (shown > 0))
    for block in np.array_split(open_cases, max(1, len(open_cases) // 4096)):
        left = _tokens(encoded, given[block], shown[block])
        right = _tokens(encoded, true[block], shown[block])
        same[block] = (left == right).all(axis=1)
    return same


def _tokens(encoded: EncodedPairs, evidence: IntArray, shown: IntArray) -> Ids:
    width = int(shown.max(initial=0))
    ids = np.full((len(evidence), width), -1, dtype=np.int64)
    chosen = np.arange(len(evidence))
    put_text(
        ids, np.zeros_like(ids), chosen, np.zeros_like(chosen), encoded.evidence, evidence, shown, 0, encoded.keep_end
    )
    return ids


def check_shuffled(encoded: EncodedPairs, rows: IntArray, donors: IntArray, evidence: IntArray) -> None:
    """Refuse to score swapped pairs that are all the same to the model as the true ones.

    Raises:
        ReaderError: So much is cut that the swap changes nothing.
    """
    true = np.where(rows >= 0, encoded.evidence_index[np.maximum(rows, 0)], NULL)
    swapped = np.flatnonzero((rows >= 0) & (donors >= 0) & (true >= 0) & (evidence >= 0) & (evidence != true))
    if len(swapped) >= FEW and same_input(encoded, rows[swapped], donors[swapped]).all():
        raise ReaderError(
            f"after truncation to max_length={encoded.max_length} all {len(swapped)} swapped pairs equal the pairs "
            "with the true evidence, so the shuffle tests nothing; raise max_length"
        )
