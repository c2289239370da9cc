"""What a reader is. Any object with these members can be audited; nothing needs to be inherited."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from evidep.types import BoolArray, FloatArray, IntArray, PairTable, ReaderInfo


@runtime_checkable
class Reader(Protocol):
    """A model that scores the labels of (query, evidence) pairs.

    `info` says what it is; `fingerprint` names the reader and every setting that changes its predictions (it is a
    part of the cache key, so two readers with one fingerprint must predict the same). A reader never sees labels
    after `fit`.
    """

    @property
    def info(self) -> ReaderInfo: ...

    @property
    def fingerprint(self) -> str: ...

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Learn from true pairs. A table may lack queries or evidence (index NULL): a partial-input ablation."""
        ...

    def encode(self, table: PairTable) -> Any:
        """Do the work that depends on single texts once (tokenise, vectorise, embed) and return it, opaque."""
        ...

    def scores(self, encoded: Any, rows: IntArray, donors: IntArray) -> FloatArray:
        """Scores [len(rows), C] of the query of rows[t] with the evidence of donors[t].

        Scores are unnormalised natural-log probabilities: softmax over C is the prediction, ties go to the smaller
        label. rows may hold NULL (no query), donors NULL (no evidence) or EMPTY (the empty string).
        """
        ...


@runtime_checkable
class AdditiveReader(Reader, Protocol):
    """A reader with scores(encoded, r, d) == query_scores(encoded)[r] + evidence_scores(encoded)[d].

    The exact expectation over all shuffles then costs no further reader calls.
    """

    def query_scores(self, encoded: Any) -> FloatArray:
        """[n, C], the intercept included."""
        ...

    def evidence_scores(self, encoded: Any) -> FloatArray:
        """[n, C]."""
        ...


@runtime_checkable
class OuterReader(Reader, Protocol):
    """A reader that scores all pairs of two sets cheaply (bilinear ones by matrix products)."""

    def outer_scores(self, encoded: Any, rows: IntArray, donors: IntArray) -> FloatArray:
        """Scores [len(rows), len(donors), C] of every query of `rows` with every evidence of `donors`."""
        ...


@runtime_checkable
class TruncatingReader(Reader, Protocol):
    """A reader that cuts long texts, and can say what that does to pairs."""

    def truncation(self, encoded: Any, rows: IntArray, donors: IntArray) -> tuple[BoolArray, BoolArray] | None:
        """[t] whether a text of the pair is cut, and [t] whether its input is the same as with its own evidence.

        None where the reader does not know.
        """
        ...


@runtime_checkable
class PreparingReader(Reader, Protocol):
    """A reader with work per text that does not depend on the fit: done once for a table that is fitted in parts."""

    def prepare(self, table: PairTable) -> None:
        """Do that work for every text of the table."""
        ...


@runtime_checkable
class WorkdirReader(Reader, Protocol):
    """A reader whose fit is long: it keeps checkpoints in `workdir` and resumes from there after a kill."""

    workdir: Path | None
