"""Readers that read neither text: the floor under every other reader."""

from __future__ import annotations

from typing import Self

import numpy as np

from evidep.errors import ReaderError
from evidep.types import FloatArray, IntArray, PairTable, ReaderInfo


class _ItemReader:
    """Scores that depend on the item alone: the query's item, or the item at the position where no query is shown."""

    def __init__(self, *, name: str) -> None:
        self.name = name
        self._train: PairTable | None = None

    @property
    def info(self) -> ReaderInfo:
        """Name and rung."""
        return ReaderInfo(self.name, "baseline", interaction=False)

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Keep the training labels and metadata; there is no randomness.

        Raises:
            ReaderError: There is no item.
        """
        if len(train) == 0:
            raise ReaderError(f"reader {self.name}: train has no items; it needs at least one")
        self._train = train
        return self

    def scores(self, encoded: FloatArray, rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), C]; the evidence plays no part.

        Raises:
            ReaderError: A row is NULL and the rows are not one per item, so that its item is unknown.
        """
        if (rows < 0).any():
            if len(rows) != len(encoded):
                raise ReaderError(
                    f"reader {self.name}: rows without a query need one row per item ({len(encoded)}), got {len(rows)}"
                )
            rows = np.where(rows < 0, np.arange(len(rows)), rows)
        return np.take(encoded, rows, axis=0)

    def query_scores(self, encoded: FloatArray) -> FloatArray:
        """[n, C], all there is."""
        return encoded

    def evidence_scores(self, encoded: FloatArray) -> FloatArray:
        """[n, C] zeros."""
        return np.zeros_like(encoded)

    def _fitted(self) -> PairTable:
        if self._train is None:
            raise ReaderError(f"reader {self.name}: encode was called before fit")
        return self._train


class MajorityReader(_ItemReader):
    """Always answers the commonest training label (the smaller one of equals), with the label shares as probabilities.

    Shares are smoothed by one item spread over the classes, so that no label has probability 0.
    """

    def __init__(self, *, name: str = "majority") -> None:
        super().__init__(name=name)

    @property
    def fingerprint(self) -> str:
        """There is nothing to set."""
        return "majority/1"

    def encode(self, table: PairTable) -> FloatArray:
        """[n, C] logarithms of the training shares, the same for every item."""
        train = self._fitted()
        counts = np.bincount(train.labels, minlength=table.n_classes) + 1.0 / table.n_classes
        return np.tile(np.log(counts / counts.sum()), (len(table), 1))


class MetadataReader(_ItemReader):
    """Answers what `stats.mpds.metadata_predictions` says of the item's metadata, so its accuracy is accuracy_metadata.

    It names a label and no probabilities (`probabilistic` is False).
    """

    probabilistic = False

    def __init__(self, *, name: str = "metadata") -> None:
        super().__init__(name=name)

    @property
    def fingerprint(self) -> str:
        """There is nothing to set."""
        return "metadata/1"

    def encode(self, table: PairTable) -> FloatArray:
        """[n, C] scores of each item.

        Raises:
            ReaderError: The table has no metadata columns.
            DataError: The training table lacks one of them.
        """
        from evidep.data.table import aligned_codes
        from evidep.stats.mpds import metadata_predictions

        train = self._fitted()
        if not table.metadata:
            raise ReaderError(
                f"reader {self.name}: the data declare no metadata columns; name them (metadata=, --metadata) or leave "
                "this reader out"
            )
        train_codes, codes = aligned_codes(train.metadata, table.metadata)
        assert train_codes is not None
        return answer_scores(metadata_predictions(train_codes, train.labels, codes, table.n_classes), table.n_classes)


def answer_scores(answers: IntArray, n_classes: int) -> FloatArray:
    """[n, C] scores for a reader that names labels and no probabilities: 0 for the answer, -10 for all others."""
    scores = np.full((len(answers), n_classes), -10.0)
    scores[np.arange(len(answers)), answers] = 0.0
    return scores
