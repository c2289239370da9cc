"""Gold labels as integers, aligned between splits by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evidep.data.cells import factor, number_text
from evidep.data.sources import Source
from evidep.errors import DataError
from evidep.types import NULL, BoolArray, IntArray

_SHOWN: Final = 12


@dataclass(frozen=True, slots=True, eq=False)
class RawLabels:
    """The label column of one split, before it is aligned with another.

    Attributes:
        names: Distinct label names, in order of first appearance.
        index: [n] position in `names`; NULL where the row has no label.
        dropped: Reason to number of rows without a label.
        declared: Names in the order of the ClassLabel feature, or None.
    """

    names: tuple[str, ...]
    index: IntArray
    dropped: Mapping[str, int]
    declared: tuple[str, ...] | None = None

    def used(self) -> set[str]:
        """Names that some row has."""
        return {self.names[at] for at in np.unique(self.index[self.index >= 0])}

    def within(self, keep: BoolArray) -> RawLabels:
        """The labels of the rows where `keep` is true."""
        return RawLabels(self.names, self.index[keep], self.dropped, self.declared)


def read_labels(source: Source, column: str) -> RawLabels:
    """Read labels given as ClassLabel, integers, whole floats, strings or booleans.

    No label: None, NaN, "", "-" (SNLI without a majority) and the integer -1 (unlabelled by the convention of
    datasets). The *text* "-1" counts as that integer only in a column whose other labels are all whole numbers >= 0,
    as in a CSV file; elsewhere it is a label name. Names are stripped of surrounding whitespace, otherwise kept:
    "null" and "None" are names.

    Raises:
        DataError: If a label is a fraction, a list, a record, or outside the names of its ClassLabel.
    """
    declared = source.class_names.get(column)
    seen: dict[str, int] = {}
    dropped: Counter[str] = Counter()
    parts: list[IntArray] = [np.empty(0, dtype=np.int64)]
    start = 0
    for cells in source.chunks(column):
        distinct, position = factor(cells)
        at = np.full(len(distinct) + 1, NULL, dtype=np.int64)
        reasons: list[str | None] = [None] * len(distinct) + ["label missing"]
        for t, value in enumerate(distinct):
            try:
                name, reasons[t] = _name(value) if declared is None else _declared_name(value, declared)
            except ValueError as error:
                row = start + int(np.flatnonzero(position == t)[0])
                raise DataError(f"label column {column!r}, {source.where(row)}: {error}") from error
            if name is not None:
                at[t] = seen.setdefault(name, len(seen))
        counts = np.bincount(np.where(position < 0, len(distinct), position), minlength=len(distinct) + 1)
        for reason, count in zip(reasons, counts.tolist(), strict=True):
            if reason is not None and count:
                dropped[reason] += count
        parts.append(at[position])
        start += len(cells)
    names, index = tuple(seen), np.concatenate(parts)
    if "-1" in seen and all(re.fullmatch(r"\d+", name) for name in names if name != "-1"):
        unlabelled = index == seen["-1"]
        dropped["label -1"] += int(unlabelled.sum())
        index = np.where(unlabelled, NULL, index)
    return RawLabels(names, index, dict(dropped), declared)


def align_labels(
    splits: Sequence[RawLabels], split_names: Sequence[str | None]
) -> tuple[tuple[str, ...], list[IntArray], list[str]]:
    """One list of classes for all splits, and each split's labels as positions in it.

    The classes are the names that occur in the train split (without one: in the evaluation), in the order of a
    ClassLabel feature (the train split's before the evaluation's), else sorted, numbers by their value.

    Args:
        splits: The evaluation's labels, then the train split's if there is one.
        split_names: Their names, for messages.

    Returns:
        The class names, [n] integer labels for each split, and notes for the report.

    Raises:
        DataError: If the evaluation has a label that the train split lacks, or a split has fewer than two labels.
    """
    for raw, name, role in zip(splits, split_names, ("evaluation", "train"), strict=False):
        _check_classes(raw, name, role)
    evaluation, train = splits[0], splits[-1]
    known, used = train.used(), evaluation.used()
    if unknown := used - known:
        raise DataError(_mismatch(evaluation, train, unknown))
    notes = []
    if absent := known - used:
        notes.append(f"Labels of the train split that the evaluation never has: {listed(absent)}.")
    declared = train.declared or evaluation.declared or ()
    names = tuple([name for name in declared if name in known] + ordered(known.difference(declared)))
    position = {name: at for at, name in enumerate(names)}
    return names, [_positions(raw, position) for raw in splits], notes


def ordered(names: Collection[str]) -> list[str]:
    """Names sorted: by value where all are whole numbers, else by code point."""
    if all(re.fullmatch(r"-?\d+", name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def listed(names: Collection[str]) -> str:
    """Names for a message, at most a dozen of them."""
    shown = ordered(names)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(repr(name) if len(name) <= 40 else repr(name[:37] + "...") for name in shown[:_SHOWN]) + more


def has_labels(source: Source, column: str) -> bool:
    """Whether any row of the split has a label."""
    return bool((read_labels(source, column).index >= 0).any())


def _name(value: Any) -> tuple[str | None, str | None]:
    """The label's name, or None and the reason why it is none."""
    if isinstance(value, str):
        name = value.strip()
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise ValueError(
                f"the label {name!a} holds half of a surrogate pair and is no valid Unicode; repair the row"
            )
        return {"": (None, "label blank"), "-": (None, "label '-'")}.get(name, (name, None))
    if isinstance(value, bool):
        return number_text(value), None
    if isinstance(value, int | float):
        number = number_text(value)
        if number is None or value == -1:
            return None, "label missing" if number is None else "label -1"
        if isinstance(value, float) and not value.is_integer():
            raise ValueError(f"expected a class, got the fraction {value}; cut the scores into classes first")
        return number, None
    if value is None:
        return None, "label missing"
    raise ValueError(
        f"expected one class per row, got {type(value).__name__} ({value!r:.60}); map it to one label first, for "
        "example with dataset.map"
    )


def _declared_name(value: Any, declared: tuple[str, ...]) -> tuple[str | None, str | None]:
    if isinstance(value, str) and value in declared:
        return value, None
    name, reason = _name(value)
    if name is None:
        return None, reason
    if not name.isdigit() or int(name) >= len(declared):
        raise ValueError(f"expected one of the {len(declared)} classes {listed(declared)} by position, got {value!r}")
    return _name(declared[int(name)])


def _positions(raw: RawLabels, position: Mapping[str, int]) -> IntArray:
    table = np.array([position.get(name, NULL) for name in raw.names] + [NULL], dtype=np.int64)
    return table[raw.index]


def _check_classes(raw: RawLabels, name: str | None, role: str) -> None:
    place = f"the {role} split" if name is None else f"the {role} split {name!r}"
    used = raw.used()
    if not used:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in raw.dropped.items()) or "no rows"
        raise DataError(
            f"{place} has no labelled row ({reasons}); choose another split, for example --split validation"
        )
    if len(raw.index) == 1:
        raise DataError(f"{place} has one row; an audit needs at least two, and many more to say anything")
    if len(used) == 1:
        dropped = "".join(f"; {count} rows were dropped: {reason}" for reason, count in raw.dropped.items())
        raise DataError(
            f"{place} has the one label {listed(used)} in all {len(raw.index)} rows, so there is nothing to predict"
            f"{dropped}; check --label, or take rows of every class"
        )


def _mismatch(evaluation: RawLabels, train: RawLabels, unknown: set[str]) -> str:
    known = train.used()
    folded = {name.casefold() for name in known}
    if all(name.isdigit() for name in unknown) and train.declared:
        fix = "give the evaluation's integers their names with cast_column(label, ClassLabel(names=...))"
    elif evaluation.declared and all(name.isdigit() for name in known):
        fix = "give the train split's integers their names with cast_column(label, ClassLabel(names=...))"
    elif all(name.casefold() in folded for name in unknown):
        fix = "they differ in case only: spell them alike"
    else:
        fix = "rename or drop them so that both splits use one set of names"
    share = "all of its labels" if not evaluation.used() & known else "labels"
    return (
        f"the evaluation has {share} that the train split never has: {listed(unknown)}; the train split has "
        f"{listed(known)}; {fix}"
    )
