"""TF-IDF and logistic regression on two separate fields: the light reader. It adds, it cannot match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from evidep.errors import ReaderError
from evidep.readers.linear import fit_logistic, stack_rows, training_rows
from evidep.readers.ngrams import (
    CharacterTrigrams,
    NgramCoder,
    Vocabulary,
    WordNgrams,
    counted_chunks,
    distinct_index,
    learn_vocabulary,
    row_chunks,
    used_chunks,
)
from evidep.readers.settings import check_counts, check_flags, check_positive
from evidep.types import FloatArray, IntArray, PairTable, ReaderInfo, StringColumn


@dataclass(frozen=True, slots=True, eq=False)
class FieldScores:
    """What each item's query and evidence contribute to the scores.

    Attributes:
        query: [n + 2, C], the intercept included; the last two rows stand for EMPTY and NULL, whose negative index
            finds them.
        evidence: [n + 2, C] likewise, without the intercept.
    """

    query: FloatArray
    evidence: FloatArray


class FieldReader:
    """What the additive reader and the one with overlap features share: vocabularies, fit, scores of each field.

    Args:
        C: Inverse strength of the L2 regularisation.
        evidence_weight: Length of the evidence vector beside the query's of 1: less of it is a stronger regularisation.
            Evidence is shared by several items, so its weights rest on fewer texts and fit noise. How the default was
            chosen, and on which data: readers/tfidf_lr/README.md.
        min_df: A feature must occur in this many training texts.
        max_features: Largest number of features of each vocabulary; the most widespread ones are kept.
        char_trigrams: Also character trigrams inside words, as a second vector of length 1. Held-out log-loss falls by
            0.01 to 0.02 nats; the fit takes four times the time and memory.
        max_train_rows: Largest number of training items used.
        max_train_mb: Largest total length of the training texts used, in millions of bytes.
        name: Name in reports; None: the reader's registry name.

    Raises:
        SettingError: A setting is out of its range.
    """

    _registry_name: ClassVar[str]
    _version: ClassVar[int]
    _interaction: ClassVar[bool]

    def __init__(
        self,
        *,
        C: float = 1.0,
        evidence_weight: float = 0.5,
        min_df: int = 2,
        max_features: int = 100_000,
        char_trigrams: bool = False,
        max_train_rows: int = 100_000,
        max_train_mb: float = 8.0,
        name: str | None = None,
    ) -> None:
        check_positive(C=C, evidence_weight=evidence_weight, max_train_mb=max_train_mb)
        check_counts(min_df=min_df, max_features=max_features, max_train_rows=max_train_rows)
        check_flags(char_trigrams=char_trigrams)
        self.name = name or self._registry_name
        self.notes: tuple[str, ...] = ()
        self._c, self._evidence_weight, self._char_trigrams = float(C), float(evidence_weight), bool(char_trigrams)
        self._min_df, self._max_features = min_df, max_features
        self._max_train_rows, self._max_train_mb = max_train_rows, float(max_train_mb)
        self._fields: tuple[_Field, _Field] | None = None
        self._coefficients: tuple[FloatArray, ...] = ()
        self._intercept: FloatArray = np.empty(0)

    @property
    def info(self) -> ReaderInfo:
        """Name, and a place on the lowest rung of readers that read the texts."""
        return ReaderInfo(self.name, "light", interaction=self._interaction)

    @property
    def fingerprint(self) -> str:
        """Algorithm and settings."""
        settings = {
            "C": self._c,
            "evidence_weight": self._evidence_weight,
            "min_df": self._min_df,
            "max_features": self._max_features,
            "char_trigrams": self._char_trigrams,
            "max_train_rows": self._max_train_rows,
            "max_train_mb": self._max_train_mb,
        }
        return (
            f"{self._registry_name}/{self._version} {','.join(f'{key}={value!r}' for key, value in settings.items())}"
        )

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Learn vocabularies and weights; `notes` tells of a sample, a missing label or an empty vocabulary.

        Raises:
            ReaderError: There is no item.
        """
        rows, sampled = training_rows(
            train, max_rows=self._max_train_rows, max_bytes=self._max_train_mb * 1e6, seed=seed
        )
        columns = train.queries.take(rows), train.evidence.take(rows)
        self._fields = self._learn(columns[0]), self._learn(columns[1])
        query, evidence = self._fields
        features = stack_rows(
            (
                _side_by_side([query.vectors(texts[0]), evidence.vectors(texts[1]) * self._evidence_weight])
                for texts in row_chunks(*columns)
            ),
            (len(rows), sum(field.width for field in self._fields)),
            sum(vocabulary.stored for field in self._fields for vocabulary in field.vocabularies),
        )
        widths = [query.width, features.shape[1]]
        features = _side_by_side([features, *self._pair_blocks(*columns)])
        model = fit_logistic(features, train.labels[rows], train.label_names, c=self._c)
        self._coefficients = tuple(np.split(model.coefficients, widths))
        self._coefficients[1][:] *= self._evidence_weight
        self._intercept = model.intercept
        self.notes = (*([sampled] if sampled else []), *model.notes)
        return self

    def _field_scores(self, table: PairTable) -> FieldScores:
        if self._fields is None:
            raise ReaderError(f"reader {self.name}: encode was called before fit")
        query, evidence = (
            field.scores(column, coefficients)
            for field, column, coefficients in zip(
                self._fields, (table.queries, table.evidence), self._coefficients, strict=False
            )
        )
        query += self._intercept
        return FieldScores(query, evidence)

    def _learn(self, column: StringColumn) -> _Field:
        coders: list[NgramCoder] = [WordNgrams()]
        if self._char_trigrams:
            coders.append(CharacterTrigrams())
        return _Field(
            tuple(
                learn_vocabulary(
                    coder,
                    counted_chunks(column),
                    min_df=self._min_df,
                    max_features=self._max_features,
                )
                for coder in coders
            )
        )

    def _pair_blocks(self, queries: StringColumn, evidence: StringColumn) -> list[Any]:
        """Further features of the training pairs, [n, P] each."""
        return []


class TfidfReader(FieldReader):
    """Scores are intercept + W_q x_q + W_e x_e, where x_q and x_e are TF-IDF vectors of the query and the evidence.

    Features are lower-cased words and pairs of neighbouring words (characters, where a script has no spaces between
    words); each field has its own vocabulary, each vector a fixed length. Being additive the reader cannot compare the
    two texts: it sees what each alone tells of the label. A text that is missing, empty or without a known feature
    contributes nothing.

    The memory of the fit is bounded: of a larger training table a label-stratified sample is used. A label that no
    training item has is never predicted (`linear.fit_logistic`). Settings: see `FieldReader`.
    """

    _registry_name = "tfidf_lr"
    _version = 1
    _interaction = False

    def encode(self, table: PairTable) -> FieldScores:
        """Scores of each distinct text, half a megabyte of text at a time."""
        return self._field_scores(table)

    def scores(self, encoded: FieldScores, rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), C]; see `Reader.scores`."""
        return np.take(encoded.query, rows, axis=0) + np.take(encoded.evidence, donors, axis=0)

    def query_scores(self, encoded: FieldScores) -> FloatArray:
        """[n, C], the intercept included."""
        return encoded.query[:-2]

    def evidence_scores(self, encoded: FieldScores) -> FloatArray:
        """[n, C]."""
        return encoded.evidence[:-2]


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """The vocabularies of one field; their vectors stand side by side."""

    vocabularies: tuple[Vocabulary, ...]

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(len(vocabulary) for vocabulary in self.vocabularies)

    def vectors(self, texts: list[str]) -> Any:
        """CSR matrix [len(texts), F]."""
        return _side_by_side([vocabulary.tfidf(texts) for vocabulary in self.vocabularies])

    def scores(self, column: StringColumn, coefficients: FloatArray) -> FloatArray:
        """[n + 2, C]: the score of each item's text, and zeros for EMPTY and NULL."""
        distinct = np.zeros((len(column.texts) + 1, coefficients.shape[1]))
        for at, texts in used_chunks(column):
            distinct[at] = self.vectors(texts) @ coefficients
        return np.take(distinct, distinct_index(column), axis=0)


def _side_by_side(blocks: list[Any]) -> Any:
    from scipy import sparse

    return blocks[0] if len(blocks) == 1 else sparse.hstack(blocks, format="csr")
