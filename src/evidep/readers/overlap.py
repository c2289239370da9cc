"""What a pair of texts has in common, as numbers; computed for any pairs by products of sparse rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evidep.readers.ngrams import WordNgrams, count_matrix, distinct_index, occurrences, used_chunks
from evidep.types import BoolArray, FloatArray, IntArray, StringColumn

FEATURES: Final = (
    "share of the query's words that the evidence has",
    "share of the evidence's words that the query has",
    "share of the query's words that the evidence has, weighted by idf",
    "share of the query's word pairs that the evidence has",
    "cosine of the idf-weighted word sets",
    "all words of the query are in the evidence",
    "ln(1 + query words that the evidence lacks)",
    "the evidence has a number of the query",
    "the evidence lacks a number of the query",
    "one of the two is negated",
)
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|cannot|without)\b|n['’]t\b", re.IGNORECASE
)
"""English only; in other languages the feature is constant."""
_PAIRS_AT_ONCE: Final = 1 << 16
_SINGLE: Final = 1 << 32
"""Word codes below are single words (see `WordNgrams`)."""


@dataclass(frozen=True, slots=True, eq=False)
class OverlapSide:
    """One column of texts; the last distinct text is the empty one.

    Attributes:
        index: [n + 2] item to distinct text; EMPTY and NULL lead to the empty text.
        shared: CSR matrix [distinct, S] over the n-grams that both columns have, 1 where the text has it.
        totals: [distinct, 5] sums over all n-grams of each text, of the kinds of `_kinds`.
        negated: [distinct] whether the text holds a negation.
    """

    index: IntArray
    shared: Any
    totals: FloatArray
    negated: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class PairOverlap:
    """Two columns of texts, prepared for the features of any pairs of their items.

    Attributes:
        query: The queries.
        evidence: The evidence texts.
        weights: [S, 5] `_kinds` of the shared n-grams.
    """

    query: OverlapSide
    evidence: OverlapSide
    weights: FloatArray

    def features(self, rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), 10] `FEATURES` of the query of rows[t] with the evidence of donors[t]."""
        queries, evidence = self.query.index[rows], self.evidence.index[donors]
        result = np.empty((len(rows), len(FEATURES)))
        for start in range(0, len(rows), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            result[part] = self._features(queries[part], evidence[part])
        return result

    def _features(self, q: IntArray, e: IntArray) -> FloatArray:
        common = self.query.shared[q].multiply(self.evidence.shared[e]) @ self.weights
        of_query, of_evidence = self.query.totals[q], self.evidence.totals[e]
        words, numbers = common[:, 0], common[:, 4]
        cosine = _share(common[:, 2], np.sqrt(of_query[:, 2] * of_evidence[:, 2]))
        return np.column_stack(
            [
                _share(words, of_query[:, 0]),
                _share(words, of_evidence[:, 0]),
                _share(common[:, 1], of_query[:, 1]),
                _share(common[:, 3], of_query[:, 3]),
                cosine,
                (words == of_query[:, 0]) & (words > 0),
                np.log1p(of_query[:, 0] - words),
                numbers > 0,
                of_query[:, 4] > numbers,
                self.query.negated[q] != self.evidence.negated[e],
            ]
        )


def pair_overlap(queries: StringColumn, evidence: StringColumn, idf: Callable[[list[str]], FloatArray]) -> PairOverlap:
    """Prepare two columns.

    Args:
        queries: The queries.
        evidence: The evidence texts.
        idf: Weight of each word, learnt on training texts.
    """
    coder = WordNgrams()
    parts = [_ngrams(column, coder) for column in (queries, evidence)]
    words = list(coder.words)
    weight = np.concatenate([[0.0], idf(words)])
    numeric = np.concatenate([[False], np.fromiter(map(_is_number, words), bool, len(words))])
    known = [np.unique(codes) for _, codes, _ in parts]
    shared = np.intersect1d(known[0], known[1], assume_unique=True)
    sides = []
    for column, (docs, codes, negated) in zip((queries, evidence), parts, strict=True):
        at = pc.index_in(pa.array(codes), value_set=pa.array(shared)).fill_null(-1).to_numpy()
        kinds = _kinds(codes, weight, numeric)
        totals = np.column_stack([np.bincount(docs, weights=kind, minlength=len(negated)) for kind in kinds.T])
        matrix = count_matrix(docs[at >= 0], at[at >= 0], (len(negated), len(shared)))
        sides.append(OverlapSide(distinct_index(column), matrix, totals.astype(np.float64), negated))
    return PairOverlap(sides[0], sides[1], _kinds(shared, weight, numeric))


def _ngrams(column: StringColumn, coder: WordNgrams) -> tuple[IntArray, IntArray, BoolArray]:
    """Text and code of each distinct n-gram of each distinct text; negation per text and, last, for an empty one."""
    docs, codes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    negated = np.zeros(len(column.texts) + 1, dtype=bool)
    for at, texts in used_chunks(column):
        doc, code = coder.codes(texts, grow=True)
        distinct, occurs = occurrences(doc, code, len(texts))
        docs.append(np.repeat(at, np.diff(occurs.indptr)))
        codes.append(distinct[occurs.indices])
        negated[at] = [_NEGATION.search(text) is not None for text in texts]
    return np.concatenate(docs), np.concatenate(codes), negated


def _kinds(codes: IntArray, idf: FloatArray, numeric: NDArray[np.bool_]) -> FloatArray:
    """[len(codes), 5]: is a word, idf of a word, squared idf, is a word pair, is a number."""
    single = codes < _SINGLE
    word = np.where(single, codes, 0)
    weight = idf[word]
    return np.column_stack([single, weight, weight**2, ~single, numeric[word]]).astype(np.float64)


def _is_number(word: str) -> bool:
    return any(character.isdecimal() for character in word)


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
