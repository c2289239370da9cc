"""The two-field TF-IDF reader with what the two texts have in common as further features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evidep.readers.overlap import PairOverlap, pair_overlap
from evidep.readers.tfidf import FieldReader, FieldScores
from evidep.types import FloatArray, IntArray, PairTable, StringColumn

_SPREAD: Final = 0.3
"""Standard deviation of the pair features: near the size of TF-IDF values, which keeps the solver quick."""


@dataclass(frozen=True, slots=True, eq=False)
class OverlapEncoding:
    """The additive part of the scores, and what the pair features are computed from."""

    fields: FieldScores
    overlap: PairOverlap


class TfidfOverlapReader(FieldReader):
    """`TfidfReader` plus the numbers in `overlap.FEATURES`: shared words, numbers and word pairs, negation of one side.

    It can match on the surface, so its scores are not additive. Encoding keeps the n-grams of every distinct text in
    memory (about 10 bytes a word). Settings: see `FieldReader`.
    """

    _registry_name = "tfidf_lr_overlap"
    _version = 1
    _interaction = True

    def encode(self, table: PairTable) -> OverlapEncoding:
        """Scores and n-grams of each distinct text."""
        return OverlapEncoding(self._field_scores(table), pair_overlap(table.queries, table.evidence, self._idf))

    def scores(self, encoded: OverlapEncoding, rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), C]; see `Reader.scores`."""
        fields = encoded.fields
        scores = np.take(fields.query, rows, axis=0) + np.take(fields.evidence, donors, axis=0)
        pair: FloatArray = self._scaled(encoded.overlap.features(rows, donors)) @ self._coefficients[2]
        return scores + pair

    def _pair_blocks(self, queries: StringColumn, evidence: StringColumn) -> list[Any]:
        from scipy import sparse

        everyone = np.arange(len(queries))
        features = pair_overlap(queries, evidence, self._idf).features(everyone, everyone)
        self._mean, spread = features.mean(axis=0), features.std(axis=0)
        self._scale = _SPREAD / np.where(spread > 0, spread, 1.0)
        return [sparse.csr_array(self._scaled(features))]

    def _scaled(self, features: FloatArray) -> FloatArray:
        scaled: FloatArray = (features - self._mean) * self._scale
        return scaled

    def _idf(self, words: list[str]) -> FloatArray:
        """[len(words)] as learnt on evidence, else on queries, else as for a word never seen."""
        assert self._fields is not None
        vocabularies = [field.vocabularies[0] for field in self._fields]
        idf = np.full(len(words), max(float(vocabulary.idf.max(initial=1.0)) for vocabulary in vocabularies))
        for vocabulary in vocabularies:
            at = vocabulary.word_positions(words)
            idf[at >= 0] = vocabulary.idf[at[at >= 0]]
        return idf
