"""How a tokenizer puts special tokens around one text and between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidep.errors import ReaderError

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The special tokens around one text or two, as (ids, token types); `a` and `b` are the types of the texts."""

    before: tuple[Ids, Ids]
    between: tuple[Ids, Ids]
    after: tuple[Ids, Ids]
    a: int
    b: int

    def __len__(self) -> int:
        return len(self.before[0]) + len(self.between[0]) + len(self.after[0])


def layouts(tokenizer: Any) -> tuple[Layout, Layout]:
    """How the tokenizer surrounds one text, and two: found by encoding a probe and cutting the known parts out.

    Raises:
        ReaderError: The parts do not appear in the pair, so pairs cannot be assembled from parts.
    """
    text = "a"
    part = plain_ids(tokenizer, [text])[0]
    size = len(part)
    one = tokenizer(text, return_token_type_ids=True, return_attention_mask=False)
    two = tokenizer(text, text, return_token_type_ids=True, return_attention_mask=False)
    at = _find(one["input_ids"], part, 0)
    first = _find(two["input_ids"], part, 0)
    second = _find(two["input_ids"], part, first + size)
    if not size or min(at, first, second) < 0:
        raise ReaderError(
            f"{type(tokenizer).__name__} does not build pairs by putting special tokens around its parts; "
            "use a tokenizer that does (BERT-, RoBERTa- or GPT-like)"
        )
    return _layout(one, at, at + size, None, size), _layout(two, first, first + size, second, size)


def _layout(probe: Any, start: int, end: int, second: int | None, size: int) -> Layout:
    ids = np.asarray(probe["input_ids"], dtype=np.int64)
    types = np.asarray(probe["token_type_ids"] if "token_type_ids" in probe else np.zeros(len(ids)), dtype=np.int64)
    stop = end if second is None else second + size

    def part(low: int, high: int) -> tuple[Ids, Ids]:
        return ids[low:high], types[low:high]

    b = 0 if second is None else int(types[second])
    return Layout(
        part(0, start), part(end, end if second is None else second), part(stop, len(ids)), int(types[start]), b
    )


def plain_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """The ids of each text alone, without special tokens."""
    if not texts:
        return []
    encoding = tokenizer(
        texts, add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False, verbose=False
    )
    ids: list[list[int]] = encoding["input_ids"]
    return ids


def _find(ids: Sequence[int], part: Sequence[int], start: int) -> int:
    size = len(part)
    return next((at for at in range(max(start, 0), len(ids) - size + 1) if list(ids[at : at + size]) == list(part)), -1)
