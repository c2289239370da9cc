"""More training items for tasks that have few: declared, reversible, never from or into evaluation items.

Only the query is touched, so that evidence, groups and metadata stay what they were. Operations are those of Wei & Zou
(2019, "EDA"), which keep most words; none of them is sure to keep the label, and the record says what was done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from evidep.errors import DataError, SettingError
from evidep.types import BoolArray, IntArray, PairTable, StringColumn

Operation = Literal["copy", "swap", "delete"]
MARK: Final = "#augmented-"
"""In the id of every augmented item; `refuse_augmented` looks for it."""

PROTECTED: Final = frozenset(
    {"no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "cannot", "without"}
    | {"hardly", "barely", "few", "only", "all", "every", "any", "some"}
)
"""English words that "delete" never removes, because a label often turns on them."""


@dataclass(frozen=True, slots=True)
class AugmentationRecord:
    """What was done, to be published with every result.

    Attributes:
        operation: "copy", "swap" or "delete".
        target: Items that a task should have in training.
        seed: Seed of the random choices.
        before: Training items before.
        after: Training items after.
        sentence: The same in words.
    """

    operation: Operation
    target: int
    seed: int
    before: int
    after: int
    sentence: str


@dataclass(frozen=True, slots=True, eq=False)
class AugmentedTraining:
    """A training table with added items.

    Attributes:
        table: Original items first, in their order, then the added ones.
        source: [m] position in the unsplit table of the item that each one is or was made from.
        added: [m] True for added items.
        record: What was done.
    """

    table: PairTable
    source: IntArray
    added: BoolArray
    record: AugmentationRecord

    def original(self) -> PairTable:
        """The training table as it was before: the operation undone."""
        return self.table.select(np.flatnonzero(~self.added))


def augment_training(
    table: PairTable,
    train: IntArray,
    evaluation: IntArray,
    *,
    operation: Operation = "swap",
    target: int = 200,
    seed: int,
    most: int = 10,
) -> AugmentedTraining:
    """Add items to a training fold with few items, label shares unchanged.

    Every label is multiplied by the same factor, target / n but at most `most`, up to rounding.

    - "copy" repeats items (oversampling).
    - "swap" exchanges two neighbouring words of the query, once per ten words.
    - "delete" drops each word of the query with probability 0.1, except `PROTECTED` ones and never all.

    Args:
        table: The unsplit table.
        train: Positions of the training fold.
        evaluation: Positions of the evaluation fold; nothing is made from them.
        operation: What to do.
        target: Training items wanted; a fold that has as many is returned as it is.
        seed: Seed of the random choices.
        most: Greatest number of items that may come from one, itself included.

    Raises:
        SettingError: If a setting is out of range.
        DataError: If the folds overlap, share a component, or training is empty.
    """
    operations: Mapping[str, Callable[[list[str], np.random.Generator], list[str]]] = {
        "copy": lambda words, _: words,
        "swap": _swap,
        "delete": _delete,
    }
    if operation not in operations:
        raise SettingError(f"operation: expected one of {', '.join(operations)}, got {operation!r}")
    if target < 1 or most < 1:
        raise SettingError(f"target and most: expected at least 1, got {target} and {most}")
    _check_folds(table, train, evaluation)
    rng = np.random.default_rng(seed)
    extra = _sources(table.labels[train], min(target, most * len(train)), rng)
    source = np.concatenate([train, train[extra]]).astype(np.int64)
    added = np.arange(len(source)) >= len(train)
    grown = table.select(source)
    change = operations[operation]
    made = [
        " ".join(change((grown.queries[at] or "").split(), rng)) if operation != "copy" else grown.queries[at]
        for at in np.flatnonzero(added).tolist()
    ]
    queries = StringColumn.from_list([*(grown.queries[at] for at in range(len(train))), *made])
    ids = grown.ids.to_pylist()
    number: dict[int, int] = {}
    for at in np.flatnonzero(added).tolist():
        number[source[at]] = number.get(source[at], 0) + 1
        ids[at] = f"{ids[at]}{MARK}{number[source[at]]}"
    digest = hashlib.sha256("\n".join(str(text) for text in made).encode()).hexdigest()[:16]
    grown = replace(
        grown,
        queries=queries,
        ids=pa.array(ids, pa.large_string()),
        fingerprint=f"{grown.fingerprint}|augmented:{operation}:{seed}:{digest}",
    )
    n = len(source)
    sentence = (
        f"Training items: {len(train)}, with {n - len(train)} more made from them by {operation!r} (seed {seed}, "
        f"target {target}); evaluation items untouched."
    )
    return AugmentedTraining(grown, source, added, AugmentationRecord(operation, target, seed, len(train), n, sentence))


def refuse_augmented(table: PairTable) -> None:
    """Guard of evaluation: refuse a table that holds augmented items.

    Raises:
        DataError: If it does.
    """
    for at, name in enumerate(table.ids.to_pylist()):
        if MARK in name:
            raise DataError(f"evaluation item {at} ({name!r}) is augmented; augmented items are for training only")


def _check_folds(table: PairTable, train: IntArray, evaluation: IntArray) -> None:
    if len(train) == 0:
        raise DataError("train: expected at least one item, got none")
    for name, rows in (("train", train), ("evaluation", evaluation)):
        if len(rows) and (rows.min() < 0 or rows.max() >= len(table)):
            raise DataError(f"{name}: expected positions from 0 to {len(table) - 1}, got {rows.min()} to {rows.max()}")
    both = np.intersect1d(train, evaluation)
    if len(both):
        raise DataError(f"item {both[0]} is in train and in evaluation; augmentation would leak it")
    shared = np.intersect1d(table.components[train], table.components[evaluation])
    if len(shared):
        raise DataError(
            f"train and evaluation share component {shared[0]} (the same query, evidence or group); split by component"
        )


def _sources(labels: IntArray, wanted: int, rng: np.random.Generator) -> IntArray:
    """Positions in train to make items from: per label in proportion, each item as often as any other of its label."""
    n = len(labels)
    if wanted <= n:
        return np.empty(0, dtype=np.int64)
    values, counts = np.unique(labels, return_counts=True)
    share = (wanted - n) * counts / n
    more = np.floor(share).astype(np.int64)
    # The largest remainders take what rounding left over.
    more[np.argsort(more - share, kind="stable")[: wanted - n - int(more.sum())]] += 1
    parts = []
    for value, count in zip(values, more.tolist(), strict=True):
        rows = np.flatnonzero(labels == value)
        rounds, rest = divmod(count, len(rows))
        parts += [rows] * rounds + [rng.permutation(rows)[:rest]]
    return np.concatenate(parts)


def _swap(words: list[str], rng: np.random.Generator) -> list[str]:
    out = list(words)
    if len(out) > 1:
        for _ in range(max(1, len(out) // 10)):
            at = int(rng.integers(len(out) - 1))
            out[at], out[at + 1] = out[at + 1], out[at]
    return out


def _delete(words: list[str], rng: np.random.Generator) -> list[str]:
    keep = [
        word
        for word, draw in zip(words, rng.random(len(words)), strict=True)
        if draw >= 0.1 or word.strip(".,;:!?\"'").lower() in PROTECTED or word.lower().endswith("n't")
    ]
    return keep or list(words)
