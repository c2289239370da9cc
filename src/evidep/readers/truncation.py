"""What truncation does to a condition, and whether its inputs still differ from the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evidep.errors import ReaderError
from evidep.readers.layout import Ids
from evidep.readers.pairing import EncodedPairs, pair_lengths, put_text
from evidep.types import NULL, BoolArray, Condition, IntArray

FEW: Final = 10
"""Fewer swapped pairs than this may all be equal by chance."""


@dataclass(frozen=True, slots=True)
class ArmReport:
    """What truncation does to one condition.

    Attributes:
        condition: Name of the condition.
        truncated_share: Share of the pairs whose evidence (or lone text) is cut.
        mean_tokens_cut: Mean number of tokens cut, over all pairs.
        unchanged_share: Share of the movable pairs whose input, after truncation, is the one with the true evidence;
            nan where no pair is movable.
    """

    condition: str
    truncated_share: float
    mean_tokens_cut: float
    unchanged_share: float


def preflight(encoded: EncodedPairs, conditions: Sequence[Condition]) -> tuple[ArmReport, ...]:
    """What truncation does to each condition, and proof that the shuffled arms still differ from the full one.

    Raises:
        ReaderError: In a shuffle arm every movable pair is, after truncation, the input with the true evidence.
    """
    reports = []
    for condition in conditions:
        query, evidence = encoded.texts(condition.rows, condition.donors)
        cut = pair_lengths(encoded, query, evidence)[2]
        compared = np.flatnonzero(condition.movable & (condition.rows >= 0) & (condition.donors != NULL))
        shuffled = condition.arm not in ("full", "query-only", "evidence-only")
        share = float("nan")
        if shuffled and len(compared):
            share = float(same_input(encoded, condition.rows[compared], condition.donors[compared]).mean())
        if share == 1.0:
            raise ReaderError(
                f"arm {condition.name}: after truncation to max_length={encoded.max_length} all {len(compared)} "
                "shuffled pairs equal the pairs with the true evidence, so the arm tests nothing; raise max_length"
            )
        n = max(len(cut), 1)
        reports.append(ArmReport(condition.name, float((cut > 0).sum()) / n, float(cut.sum()) / n, share))
    return tuple(reports)


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
