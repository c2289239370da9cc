"""From a reader to predictions, cell by cell. Nothing here knows what the predictions are used for."""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from evidep.audit.cache import Arrays, CellStore, cell_key, smallest_integers
from evidep.data.conditions import arm_strata
from evidep.errors import ReaderError
from evidep.readers.protocol import AdditiveReader, OuterReader, Reader, TruncatingReader, WorkdirReader
from evidep.stats.exact import PairSums, additive_pair_sums, donor_set_sums, outer_pair_sums
from evidep.types import EMPTY, NULL, BoolArray, Condition, FloatArray, IntArray, PairTable, PredictionCell

ALGORITHM_VERSION: Final = 1
"""Raised when a change makes old cells wrong (donor drawing, sums, prediction rule)."""
LIGHT_PACKAGES: Final = ("numpy", "scipy", "scikit-learn")
HEAVY_PACKAGES: Final = (*LIGHT_PACKAGES, "torch", "transformers")
PAIRS_AT_ONCE: Final = 1 << 20
"""Pairs that are compared after truncation at once."""


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveScores:
    """All that an additive reader will ever say of a table: scores of a pair are query[i] + evidence[j].

    All arrays are [n, C]. `no_query` replaces a query that is not shown, `empty_evidence` an evidence shown as "".
    """

    query: FloatArray
    evidence: FloatArray
    no_query: FloatArray
    empty_evidence: FloatArray

    @classmethod
    def of(cls, reader: AdditiveReader, encoded: Any, n: int) -> AdditiveScores:
        """Ask a fitted reader once."""
        nothing = np.full(n, NULL, dtype=np.int64)
        intercept = reader.scores(encoded, nothing, nothing)
        empty = reader.scores(encoded, nothing, np.full(n, EMPTY, dtype=np.int64)) - intercept
        return cls(reader.query_scores(encoded), reader.evidence_scores(encoded), intercept, empty)

    def scores(self, rows: IntArray, donors: IntArray) -> FloatArray:
        """Scores [len(rows), C]; the position in `rows` stands in where a row is NULL or a donor EMPTY."""
        position = np.arange(len(rows)) % len(self.query)
        if len(rows) == len(self.query) and np.array_equal(rows, position):
            of_query = self.query
        elif (rows >= 0).all():
            of_query = self.query[rows]
        else:
            of_query = np.where((rows < 0)[:, None], self.no_query[position], self.query[np.maximum(rows, 0)])
        if (donors >= 0).all():
            return of_query + self.evidence[donors]
        of_evidence = np.where((donors == EMPTY)[:, None], self.empty_evidence[position], 0.0)
        there = donors >= 0
        of_evidence[there] = self.evidence[donors[there]]
        return of_query + of_evidence


class ReaderRun:
    """One reader, fitted one way with one seed, asked about one evaluation table.

    The reader is built, fitted and asked to encode only when a cell is missing, so a finished audit that is started
    again fits nothing.

    Args:
        make: Builds the unfitted reader.
        train: What it is fitted on (for an out-of-fold audit: the evaluation table, with a cross-fitting reader).
        evaluation: What it is asked about.
        seed: Seed of the fit.
        store: Where finished cells are kept.
        workdir: Folder for the checkpoints of readers that keep some, or None.
        context: Further values that decide the numbers (folds of a cross-fit).
    """

    def __init__(
        self,
        make: Callable[[], Reader],
        train: PairTable,
        evaluation: PairTable,
        *,
        seed: int,
        store: CellStore,
        workdir: Path | None = None,
        context: str = "",
    ) -> None:
        self.reader = make()
        self.info = self.reader.info
        self.seed = seed
        self._train = train
        self._table = evaluation
        self._store = store
        self._workdir = workdir
        self._ready: tuple[Reader, Any] | None = None
        self._scores: AdditiveScores | None = None
        packages = LIGHT_PACKAGES if self.info.strength in ("baseline", "light") else HEAVY_PACKAGES
        self._base = {
            "algorithm": ALGORITHM_VERSION,
            "evaluation": evaluation.fingerprint,
            "train": train.fingerprint,
            "reader": self.reader.fingerprint,
            "seed": seed,
            "context": context,
            "versions": _versions(packages),
        }

    @property
    def exact(self) -> bool:
        """Whether all pairs can be scored without a call per pair."""
        return isinstance(self.reader, AdditiveReader | OuterReader)

    def cells(self, conditions: Iterable[Condition], *, log_probability: bool = False) -> Iterator[PredictionCell]:
        """The predictions of each condition, in order.

        One call of the reader takes as many conditions as fit into its `pairs_per_call`, at least one; they are stored
        when it returns. Equal pairs are scored once within a call, not across calls: full evidence, each shuffle family
        and the masked inputs are calls of their own.
        """
        n = len(self._table)
        at_once = max(1, int(getattr(self.reader, "pairs_per_call", n)) // max(n, 1))
        pending = iter(conditions)
        while batch := list(islice(pending, at_once)):
            keys = [cell_key(**self._base, kind="predictions", **_describe(condition)) for condition in batch]
            found: list[Arrays | None] = [self._store.get(key) for key in keys]
            missing = [position for position, cell in enumerate(found) if cell is None]
            if missing:
                computed = self._predict([batch[position] for position in missing], log_probability)
                for position, fresh in zip(missing, computed, strict=True):
                    self._store.put(keys[position], fresh)
                    found[position] = fresh
            for condition, arrays in zip(batch, found, strict=True):
                assert arrays is not None
                yield _as_cell(self.info.name, self.seed, condition, arrays)

    def pair_sums(
        self, arm: str, folds: IntArray | None, full: BoolArray, neighbours: IntArray | None = None
    ) -> PairSums | None:
        """Sums over all allowed donors of a shuffle family, or None where only single pairs are cheap."""
        if not self.exact:
            return None
        table = self._table
        key = cell_key(**self._base, kind="pair-sums", arm=arm, neighbours=_hash(neighbours), folds=_hash(folds))
        stored = self._store.get(key)
        if stored is None:
            if arm == "near-miss":
                assert neighbours is not None
                rows = np.repeat(np.arange(len(table)), neighbours.shape[1])
                donors = neighbours.ravel()
                known = donors >= 0
                correct = np.zeros(len(rows), dtype=bool)
                correct[known] = self._correct(rows[known], donors[known])
                sums = donor_set_sums(correct.reshape(neighbours.shape), neighbours, full)
            else:
                strata = arm_strata(table, arm, folds)
                additive = self._additive()
                if additive is not None:
                    sums = additive_pair_sums(
                        additive.query, additive.evidence, table.labels, table.evidence_codes, strata
                    )
                else:
                    reader, encoded = self._fitted()
                    assert isinstance(reader, OuterReader)
                    sums = outer_pair_sums(
                        lambda rows, donors: reader.outer_scores(encoded, rows, donors),
                        table.labels,
                        table.evidence_codes,
                        table.evidence.index,
                        table.queries.index,
                        strata,
                    )
            stored = sums_to_arrays(sums)
            self._store.put(key, stored)
        return sums_from_arrays(stored)

    def truncation(
        self, conditions: Iterable[Condition], drawing: dict[str, Any], folds: IntArray | None, near: IntArray | None
    ) -> tuple[float, float]:
        """What truncation does to the shuffles of one family.

        Args:
            conditions: The shuffles; drawn only where the answer is not stored.
            drawing: What they follow from.
            folds: The folds that donors stay in, or None.
            near: The neighbours that donors are drawn from, or None.

        Returns:
            Share of the pairs in which a text is cut. And, of the movable pairs that show a text other than the item's
            own, the share whose input is nevertheless the one with its own evidence. Each is nan where there is no such
            pair, and both are where the reader does not say.
        """
        if not isinstance(self.reader, TruncatingReader):
            return math.nan, math.nan
        key = cell_key(**self._base, kind="truncation", neighbours=_hash(near), folds=_hash(folds), drawing=drawing)
        stored = self._store.get(key)
        if stored is None:
            stored = {"shares": np.array(self._truncation(conditions))}
            self._store.put(key, stored)
        cut, unchanged = stored["shares"].tolist()
        return cut, unchanged

    def _truncation(self, conditions: Iterable[Condition]) -> tuple[float, float]:
        reader, encoded = self._fitted()
        assert isinstance(reader, TruncatingReader)
        codes = self._table.evidence_codes
        n_cut = n_pairs = n_same = n_swapped = 0
        pending = iter(conditions)
        while some := list(islice(pending, max(1, PAIRS_AT_ONCE // max(len(self._table), 1)))):
            rows, donors = np.concatenate([c.rows for c in some]), np.concatenate([c.donors for c in some])
            found = reader.truncation(encoded, rows, donors)
            if found is None:
                return math.nan, math.nan
            swapped = np.concatenate([c.movable for c in some]) & (codes[donors] != codes[rows])
            n_cut, n_pairs = n_cut + int(found[0].sum()), n_pairs + len(rows)
            n_same, n_swapped = n_same + int(found[1][swapped].sum()), n_swapped + int(swapped.sum())
        return n_cut / n_pairs if n_pairs else math.nan, n_same / n_swapped if n_swapped else math.nan

    def notes(self) -> tuple[str, ...]:
        """What the reader says of its own fit and scoring (rows sampled, share truncated, precision), once it ran."""
        return tuple(getattr(self.reader, "notes", ()))

    def fit(self) -> Reader:
        """The fitted reader itself (for saving it); fits where that has not been done."""
        return self._fitted()[0]

    def _fitted(self) -> tuple[Reader, Any]:
        if self._ready is None:
            if isinstance(self.reader, WorkdirReader):
                self.reader.workdir = None if self._workdir is None else self._workdir / cell_key(**self._base)[:24]
            fitted = self.reader.fit(self._train, seed=self.seed)
            self._ready = fitted, fitted.encode(self._table)
        return self._ready

    def _additive(self) -> AdditiveScores | None:
        if self._scores is not None or not isinstance(self.reader, AdditiveReader):
            return self._scores
        key = cell_key(**self._base, kind="additive-scores")
        stored = self._store.get(key)
        if stored is None:
            reader, encoded = self._fitted()
            assert isinstance(reader, AdditiveReader)
            scores = AdditiveScores.of(reader, encoded, len(self._table))
            stored = {
                "query": scores.query,
                "evidence": scores.evidence,
                "no_query": scores.no_query,
                "empty_evidence": scores.empty_evidence,
            }
            self._store.put(key, stored)
            self._ready = None
        self._scores = AdditiveScores(**stored)
        return self._scores

    def _score(self, rows: IntArray, donors: IntArray) -> FloatArray:
        additive = self._additive()
        if additive is not None:
            return additive.scores(rows, donors)
        reader, encoded = self._fitted()
        scores = np.asarray(reader.scores(encoded, rows, donors), dtype=np.float64)
        expected = (len(rows), self._table.n_classes)
        if scores.shape != expected:
            raise ReaderError(f"reader {self.info.name}: scores must have shape {expected}, got {scores.shape}")
        if np.isnan(scores).any():
            bad = int(np.flatnonzero(np.isnan(scores).any(axis=1))[0])
            raise ReaderError(
                f"reader {self.info.name}: score of pair (query of item {int(rows[bad])}, evidence of item "
                f"{int(donors[bad])}) is nan; a reader must return finite scores"
            )
        return scores

    def _correct(self, rows: IntArray, donors: IntArray, block: int = 1 << 18) -> BoolArray:
        correct = np.empty(len(rows), dtype=bool)
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            correct[part] = self._score(rows[part], donors[part]).argmax(axis=1) == self._table.labels[rows[part]]
        return correct

    def _predict(self, conditions: list[Condition], log_probability: bool) -> list[Arrays]:
        differ = [
            np.flatnonzero(c.uniform_donors != c.donors) if c.uniform_donors is not None else None for c in conditions
        ]
        rows = [c.rows for c in conditions]
        donors = [c.donors for c in conditions]
        for condition, changed in zip(conditions, differ, strict=True):
            if changed is not None and condition.uniform_donors is not None:
                rows.append(condition.rows[changed])
                donors.append(condition.uniform_donors[changed])
        scores = self._score(*(arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for arrays in (rows, donors)))
        classes = scores.argmax(axis=1)
        n = len(self._table)
        results: list[Arrays] = []
        extra = n * len(conditions)
        for number, changed in enumerate(differ):
            part = slice(number * n, (number + 1) * n)
            arrays: Arrays = {"predictions": smallest_integers(classes[part])}
            if changed is not None:
                uniform = classes[part].copy()
                uniform[changed] = classes[extra : extra + len(changed)]
                extra += len(changed)
                arrays["uniform_predictions"] = smallest_integers(uniform)
            if log_probability and getattr(self.reader, "probabilistic", True):
                logits = scores[part] - scores[part].max(axis=1, keepdims=True)
                gold = np.take_along_axis(logits, self._table.labels[:, None], axis=1)[:, 0]
                arrays["log_probability"] = gold - np.log(np.exp(logits).sum(axis=1))
            results.append(arrays)
        return results


def sums_to_arrays(sums: PairSums) -> Arrays:
    """A PairSums as arrays, to be stored."""
    return {field.name: np.asarray(getattr(sums, field.name)) for field in fields(sums)}


def sums_from_arrays(arrays: Arrays) -> PairSums:
    """The inverse of `sums_to_arrays`."""
    values: dict[str, Any] = {name: array if array.ndim else float(array) for name, array in arrays.items()}
    return PairSums(**values)


def _describe(condition: Condition) -> dict[str, Any]:
    return {"condition": condition.name, "pairs": _hash(condition.rows, condition.donors, condition.uniform_donors)}


def _hash(*arrays: IntArray | None) -> str | None:
    import hashlib

    digest = hashlib.sha256()
    for array in arrays:
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]


def _as_cell(reader: str, seed: int, condition: Condition, arrays: Arrays) -> PredictionCell:
    uniform = arrays.get("uniform_predictions")
    return PredictionCell(reader, seed, condition.name, arrays["predictions"], uniform, arrays.get("log_probability"))


@cache
def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "none"
    return found
