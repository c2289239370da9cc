"""TF-IDF and logistic regression on the joined text of query and evidence, computed from its two parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from evidep.errors import ReaderError
from evidep.readers.linear import fit_logistic, stack_rows, training_rows
from evidep.readers.ngrams import Vocabulary, WordNgrams, chunk_size, distinct_index, learn_vocabulary, row_chunks
from evidep.readers.settings import check_counts, check_positive
from evidep.types import FloatArray, IntArray, PairTable, ReaderInfo, StringColumn

SEPARATOR: Final = "evidepseparator"
"""A word between the two texts, so that no word pair reaches from one into the other."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One column's share of the joined text, per distinct text; the last text is the empty one.

    Attributes:
        index: [n + 2] item to distinct text; EMPTY and NULL lead to the empty text.
        scores: [distinct, C] weighted counts times coefficients.
        squares: [distinct] squared length of the weighted counts.
        shared: CSR matrix [distinct, S] of the weighted counts of n-grams that both columns have.
    """

    index: IntArray
    scores: FloatArray
    squares: FloatArray
    shared: Any


class JoinedTfidfReader:
    """scikit-learn's `TfidfVectorizer` (1-2-grams) and `LogisticRegression` on "query SEPARATOR evidence".

    The usual quick baseline. Shuffled text is never built: counts of the two parts add, and the length of the sum is
    |u + v|² = |u|² + |v|² + 2 u·v, where u·v needs the n-grams that both texts have. Scores equal those of the pipeline

        TfidfVectorizer(ngram_range=(1, 2), token_pattern=ngrams.TOKEN_PATTERN, min_df=min_df)
        LogisticRegression(C=C, solver="newton-cg")

    up to a constant per pair. One weight serves a word wherever it stands, so the reader is weaker than `TfidfReader`
    and no better at matching; only the common length ties the texts together. A missing text counts as empty.

    Args:
        C: Inverse strength of the L2 regularisation.
        min_df: An n-gram must occur in this many joined training texts.
        max_train_rows: Largest number of training items used (a label-stratified sample; `notes` says so).
        max_train_mb: Largest total length of the training texts used, in millions of bytes.
        name: Name in reports.

    Raises:
        SettingError: A setting is out of its range.
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        min_df: int = 2,
        max_train_rows: int = 100_000,
        max_train_mb: float = 8.0,
        name: str = "tfidf_lr_joined",
    ) -> None:
        check_positive(C=C, max_train_mb=max_train_mb)
        check_counts(min_df=min_df, max_train_rows=max_train_rows)
        self.name = name
        self.notes: tuple[str, ...] = ()
        self._c, self._min_df = float(C), min_df
        self._max_train_rows, self._max_train_mb = max_train_rows, float(max_train_mb)
        self._vocabulary: Vocabulary | None = None
        self._coefficients: FloatArray = np.empty((0, 0))
        self._intercept: FloatArray = np.empty(0)

    @property
    def info(self) -> ReaderInfo:
        """Name and rung. Not additive, but without any feature of the pair: it cannot match."""
        return ReaderInfo(self.name, "light", interaction=False)

    @property
    def fingerprint(self) -> str:
        """Algorithm and settings."""
        return (
            f"tfidf_lr_joined/1 C={self._c!r},min_df={self._min_df},max_train_rows={self._max_train_rows},"
            f"max_train_mb={self._max_train_mb!r}"
        )

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Learn the vocabulary and the weights of the joined training texts.

        Raises:
            ReaderError: There is no item.
        """
        rows, sampled = training_rows(
            train, max_rows=self._max_train_rows, max_bytes=self._max_train_mb * 1e6, seed=seed
        )
        sample = train.queries.take(rows), train.evidence.take(rows)
        vocabulary = learn_vocabulary(
            WordNgrams(),
            ((texts, np.ones(len(texts), dtype=np.int64)) for texts in _joined(*sample)),
            min_df=self._min_df,
        ).alphabetical()
        features = stack_rows(map(vocabulary.tfidf, _joined(*sample)), (len(rows), len(vocabulary)), vocabulary.stored)
        model = fit_logistic(features, train.labels[rows], train.label_names, c=self._c)
        self._vocabulary = vocabulary
        self._coefficients, self._intercept = model.coefficients, model.intercept
        self.notes = (*([sampled] if sampled else []), *model.notes)
        return self

    def encode(self, table: PairTable) -> tuple[_Part, _Part]:
        """Weighted counts of each distinct text."""
        if self._vocabulary is None:
            raise ReaderError(f"reader {self.name}: encode was called before fit")
        columns = table.queries.compact(), table.evidence.compact()
        matrices = [
            self._weighted(columns[0], f"{{}} {SEPARATOR}", both=False),
            self._weighted(columns[1], f"{SEPARATOR} {{}}", both=True),
        ]
        used = [np.bincount(matrix.indices, minlength=len(self._vocabulary)) > 0 for matrix in matrices]
        shared = np.flatnonzero(used[0] & used[1])
        query, evidence = (
            _Part(
                index=distinct_index(column),
                scores=matrix @ self._coefficients,
                squares=np.asarray(matrix.multiply(matrix).sum(axis=1)),
                shared=matrix[:, shared],
            )
            for column, matrix in zip(columns, matrices, strict=True)
        )
        return query, evidence

    def scores(self, encoded: tuple[_Part, _Part], rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), C]; see `Reader.scores`."""
        query, evidence = encoded
        q, e = query.index[rows], evidence.index[donors]
        common = np.asarray(query.shared[q].multiply(evidence.shared[e]).sum(axis=1))
        length = _length(query.squares[q] + evidence.squares[e] + 2 * common)
        return (query.scores[q] + evidence.scores[e]) / length[:, None] + self._intercept

    def outer_scores(self, encoded: tuple[_Part, _Part], rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), len(donors), C]; see `OuterReader.outer_scores`."""
        query, evidence = encoded
        q, e = query.index[rows], evidence.index[donors]
        common = (query.shared[q] @ evidence.shared[e].T).toarray()
        length = _length(query.squares[q][:, None] + evidence.squares[e] + 2 * common)
        return (query.scores[q][:, None] + evidence.scores[e]) / length[:, :, None] + self._intercept

    def _weighted(self, column: StringColumn, template: str, *, both: bool) -> Any:
        """CSR matrix [distinct + 1, F] of count times idf of each part; the separator is counted in one part only."""
        from scipy import sparse

        assert self._vocabulary is not None
        chunks = [*column.chunks(chunk_size(column)), [""]]
        matrix = sparse.vstack(
            [self._vocabulary.weighted([template.format(text) for text in texts]) for texts in chunks], format="csr"
        )
        if both:
            matrix.data[matrix.indices == self._vocabulary.word_positions([SEPARATOR])[0]] = 0.0
            matrix.eliminate_zeros()
        return matrix


def _joined(queries: StringColumn, evidence: StringColumn) -> Iterator[list[str]]:
    """The joined texts of all items, in order, some megabytes at a time."""
    for query_texts, evidence_texts in row_chunks(queries, evidence):
        yield [f"{query} {SEPARATOR} {text}" for query, text in zip(query_texts, evidence_texts, strict=True)]


def _length(squares: FloatArray) -> FloatArray:
    """Square root, 1 where it is 0 (a text without a known n-gram scores the intercept)."""
    length: FloatArray = np.sqrt(squares)
    length[length == 0] = 1.0
    return length
