"""Out-of-fold reading: each item is scored by a reader that was fitted on the other folds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from evidep.errors import ReaderError
from evidep.readers.protocol import (
    AdditiveReader,
    OuterReader,
    PreparingReader,
    Reader,
    TruncatingReader,
    WorkdirReader,
)
from evidep.readers.watched import named
from evidep.types import BoolArray, FloatArray, IntArray, PairTable, ReaderInfo


@dataclass(frozen=True, slots=True, eq=False)
class FoldEncodings:
    """What each fold's reader made of the fold's own items.

    Attributes:
        parts: One encoding per fold.
        position: [n] number of each item among the items of its fold.
        n_classes: C.
    """

    parts: tuple[Any, ...]
    position: IntArray
    n_classes: int


class CrossFitReader:
    """One reader per fold, fitted on the items of all other folds; built by `cross_fit`.

    Fit and encode take the same n items, in the same order, as the folds. Query and evidence of a pair must come from
    one fold: the reader of the query's fold would have been trained on evidence of any other.
    """

    def __init__(self, make_reader: Callable[[], Reader], folds: IntArray, prototype: Reader) -> None:
        self._make_reader = make_reader
        self._prototype = prototype
        self._fold = np.unique(folds, return_inverse=True)[1].astype(np.int64)
        self._members = [np.flatnonzero(self._fold == fold) for fold in range(int(self._fold.max()) + 1)]
        self._readers: list[Reader] = []
        for name in ("pairs_per_call", "trainable"):
            if hasattr(prototype, name):
                setattr(self, name, getattr(prototype, name))

    @property
    def info(self) -> ReaderInfo:
        """That of the reader in each fold."""
        return self._prototype.info

    @property
    def fingerprint(self) -> str:
        """The reader's and the folds'."""
        import hashlib

        return f"{self._prototype.fingerprint}|folds:{hashlib.sha256(self._fold.tobytes()).hexdigest()[:24]}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the fold's readers noted. Notes that differ in numbers only are given once, the first of them."""
        found: dict[str, tuple[str, set[int]]] = {}
        for fold, reader in enumerate(self._readers):
            for note in getattr(reader, "notes", ()):
                found.setdefault(re.sub(r"\d+", "#", note), (note, set()))[1].add(fold)
        lines = []
        for note, folds in found.values():
            if len(folds) < len(self._readers):
                note = f"fold {', '.join(map(str, sorted(folds)))}: {note}"
            lines.append(note)
        return tuple(lines)

    @property
    def probabilistic(self) -> bool:
        """Whether scores are log-probabilities in all folds."""
        return all(getattr(reader, "probabilistic", True) for reader in self._readers or [self._prototype])

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Fit each fold's reader on the items of the other folds.

        Raises:
            ReaderError: The table has another number of items than there are folds.
        """
        self._check(train, "fit")
        if isinstance(self._prototype, PreparingReader):
            self._prototype.prepare(train)
        readers = []
        for fold, members in enumerate(self._members):
            reader = self._make_reader()
            if isinstance(reader, WorkdirReader):
                workdir = getattr(self, "workdir", None)
                reader.workdir = None if workdir is None else workdir / f"fold-{fold}"
            others = np.delete(np.arange(len(train)), members)
            with named(f"fold {fold + 1} of {len(self._members)}"):
                readers.append(reader.fit(train.select(others), seed=seed))
        self._readers = readers
        return self

    def encode(self, table: PairTable) -> FoldEncodings:
        """Encode the items of each fold with the fold's reader.

        Raises:
            ReaderError: The table has another number of items than there are folds, or fit was not called.
        """
        self._check(table, "encode")
        if not self._readers:
            raise ReaderError(f"reader {self.info.name}: encode was called before fit")
        position = np.empty(len(table), dtype=np.int64)
        for members in self._members:
            position[members] = np.arange(len(members))
        parts = tuple(
            reader.encode(table.select(members)) for reader, members in zip(self._readers, self._members, strict=True)
        )
        return FoldEncodings(parts, position, table.n_classes)

    def scores(self, encoded: FoldEncodings, rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), C] of each pair by its fold's reader.

        The fold is the query's; without a query the evidence's; without either, that of the item at the position.

        Raises:
            ReaderError: Query and evidence of a pair come from different folds, or a pair has neither and the pairs are
                not one per item.
        """
        fold = self._route(rows, donors)
        result = np.empty((len(rows), encoded.n_classes))
        for number, (reader, part) in enumerate(zip(self._readers, encoded.parts, strict=True)):
            at = np.flatnonzero(fold == number)
            if len(at):
                with named(f"fold {number + 1} of {len(self._members)}"):
                    result[at] = reader.scores(part, _local(encoded, rows[at]), _local(encoded, donors[at]))
        return result

    def _route(self, rows: IntArray, donors: IntArray) -> IntArray:
        fold = np.full(len(rows), -1, dtype=np.int64)
        for side in (donors, rows):
            there = side >= 0
            fold[there] = self._fold[side[there]]
        both = (rows >= 0) & (donors >= 0)
        crossing = np.flatnonzero(both & (self._fold[np.maximum(donors, 0)] != fold))
        if len(crossing):
            t = int(crossing[0])
            raise ReaderError(
                f"reader {self.info.name}: pair {t} has the query of item {int(rows[t])} (fold {int(fold[t])}) and the "
                f"evidence of item {int(donors[t])} (fold {int(self._fold[donors[t]])}); shuffle within folds"
            )
        nowhere = fold < 0
        if nowhere.any():
            if len(rows) != len(self._fold):
                raise ReaderError(
                    f"reader {self.info.name}: pairs of neither query nor evidence must be one per item "
                    f"({len(self._fold)}), got {len(rows)}"
                )
            fold[nowhere] = self._fold[nowhere]
        return fold

    def _check(self, table: PairTable, step: str) -> None:
        if len(table) != len(self._fold):
            raise ReaderError(
                f"reader {self.info.name}: folds are given for {len(self._fold)} items, {step} got a table of "
                f"{len(table)}; an out-of-fold reader is fitted on the items that it scores"
            )


class _Additive(CrossFitReader):
    def query_scores(self, encoded: FoldEncodings) -> FloatArray:
        """[n, C], the intercept of each item's fold included; sums are meant for pairs within a fold."""
        return self._gather(encoded, "query_scores")

    def evidence_scores(self, encoded: FoldEncodings) -> FloatArray:
        """[n, C]."""
        return self._gather(encoded, "evidence_scores")

    def _gather(self, encoded: FoldEncodings, method: str) -> FloatArray:
        result = np.empty((len(self._fold), encoded.n_classes))
        for reader, part, members in zip(self._readers, encoded.parts, self._members, strict=True):
            result[members] = getattr(reader, method)(part)
        return result


class _Outer(CrossFitReader):
    def outer_scores(self, encoded: FoldEncodings, rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), len(donors), C]; 0 where query and evidence come from different folds, which no reader scores."""
        result = np.zeros((len(rows), len(donors), encoded.n_classes))
        for number, (reader, part) in enumerate(zip(self._readers, encoded.parts, strict=True)):
            r, d = np.flatnonzero(self._fold[rows] == number), np.flatnonzero(self._fold[donors] == number)
            if len(r) and len(d):
                assert isinstance(reader, OuterReader)
                result[np.ix_(r, d)] = reader.outer_scores(part, encoded.position[rows[r]], encoded.position[donors[d]])
        return result


class _Truncating(CrossFitReader):
    def truncation(
        self, encoded: FoldEncodings, rows: IntArray, donors: IntArray
    ) -> tuple[BoolArray, BoolArray] | None:
        """As the readers of the folds say, each of its fold's pairs; None where one of them does not know."""
        fold = self._route(rows, donors)
        cut, same = np.empty(len(rows), dtype=bool), np.empty(len(rows), dtype=bool)
        for number, (reader, part) in enumerate(zip(self._readers, encoded.parts, strict=True)):
            at = np.flatnonzero(fold == number)
            assert isinstance(reader, TruncatingReader)
            found = reader.truncation(part, _local(encoded, rows[at]), _local(encoded, donors[at]))
            if found is None:
                return None
            cut[at], same[at] = found
        return cut, same


class _Workdir(CrossFitReader):
    workdir: Path | None = None


def cross_fit(make_reader: Callable[[], Reader], folds: IntArray) -> CrossFitReader:
    """An out-of-fold reader, with those abilities (additive, all pairs, checkpoints) that `make_reader`'s readers have.

    Args:
        make_reader: Builds an unfitted reader; called once per fold and once at the start.
        folds: [n] fold of each item, at least two different ones.

    Raises:
        ReaderError: There are fewer than two folds.
    """
    if folds.ndim != 1 or len(np.unique(folds)) < 2:
        raise ReaderError(
            f"folds: expected one fold per item and at least two folds, got shape {folds.shape} with "
            f"{len(np.unique(folds))} fold(s)"
        )
    prototype = make_reader()
    abilities: list[type[CrossFitReader]] = []
    for protocol, ability in (
        (AdditiveReader, _Additive),
        (OuterReader, _Outer),
        (TruncatingReader, _Truncating),
        (WorkdirReader, _Workdir),
    ):
        if isinstance(prototype, protocol):
            abilities.append(ability)
    kind = type("CrossFitReader", (*abilities, CrossFitReader), {}) if len(abilities) != 1 else abilities[0]
    return kind(make_reader, folds, prototype)  # type: ignore[no-any-return]


def _local(encoded: FoldEncodings, items: IntArray) -> IntArray:
    """Items as numbered within their fold; NULL and EMPTY stay."""
    return np.where(items < 0, items, encoded.position[np.maximum(items, 0)])
