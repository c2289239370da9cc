"""The middle rung: frozen sentence embeddings u (query) and v (evidence) under a small classifier.

With the default features u, v and u∘v under logistic regression every score is bilinear in (u, v), so that all pairs
of two sets are scored by matrix products: the exact ΔEvi costs little more than one shuffle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np

from evidep.errors import ReaderError, SettingError
from evidep.readers.batching import Precision
from evidep.readers.linear import LinearModel, fit_logistic, training_rows
from evidep.readers.sentence_encoder import SentenceEncoder
from evidep.readers.settings import check_counts, check_model_settings, check_positive
from evidep.readers.weights import CONTAMINATION, require_transformers
from evidep.types import EMPTY, NULL, BoolArray, FloatArray, IntArray, PairTable, ReaderInfo, StringColumn

FEATURES: Final = ("u", "v", "u*v", "|u-v|")
VERSION: Final = 1
"""Raised when a change makes a reader with equal settings predict otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedEmbeddings:
    """A table's embedded texts; vectors are in float64, so that pair by pair and all-pairs scores agree.

    Attributes:
        query: [Uq, d] vectors of the distinct queries.
        query_index: [n] which of them each item has, or NULL.
        evidence: [Ue + 1, d] vectors of the distinct evidence texts; the last one is that of the empty string.
        evidence_index: [n] which of them each item has, or NULL.
        label_names: The table's labels.
        texts: The distinct queries and the distinct evidence texts.
    """

    query: FloatArray
    query_index: IntArray
    evidence: FloatArray
    evidence_index: IntArray
    label_names: tuple[str, ...]
    texts: tuple[StringColumn, StringColumn]

    def vectors(self, rows: IntArray, donors: IntArray) -> tuple[IntArray, IntArray]:
        """Positions of the query and evidence vectors of a condition; NULL where there is none."""
        query = np.where(rows < 0, NULL, _at(self.query_index, rows))
        evidence = np.where(donors < 0, NULL, _at(self.evidence_index, donors))
        return query, np.where(donors == EMPTY, len(self.evidence) - 1, evidence)


class EmbeddingReader:
    """Frozen sentence embeddings with a classifier on u, v and u∘v.

    A side that is not shown has its features at their training mean, so that it says nothing.

    Args:
        name: Name in reports.
        model: Sentence encoder: folder, packaged model or Hub id.
        revision: Commit or tag on the Hub.
        features: Which of u, v, u*v and |u-v| the classifier sees.
        classifier: "logistic" regression or "mlp" (one hidden layer of `hidden` units).
        C: Inverse strength of the logistic regression's L2 penalty on standardised features.
        hidden: Units of the hidden layer.
        max_length: Most tokens of one text; None takes the encoder's own limit.
        precision: Arithmetic of the encoder.
        token_budget: Tokens per batch of the encoder; None takes 4,096.
        max_train_rows: Largest number of training items used (a label-stratified sample of more).
        contamination: What the encoder's training is known to have seen; None looks the model up.
        licence: Licence of the encoder's weights.

    Raises:
        SettingError: A setting out of its range.
        MissingExtraError: torch, transformers or accelerate is not installed.
        ReaderError: The encoder cannot be found.
    """

    def __init__(
        self,
        *,
        name: str = "minilm_lr",
        model: str = "sentence-transformers/all-MiniLM-L6-v2",
        revision: str | None = None,
        features: Sequence[str] = ("u", "v", "u*v"),
        classifier: Literal["logistic", "mlp"] = "logistic",
        C: float = 0.003,
        hidden: int = 128,
        max_length: int | None = None,
        precision: Precision = "auto",
        token_budget: int | None = None,
        max_train_rows: int = 100_000,
        contamination: str | None = None,
        licence: str | None = None,
    ) -> None:
        check_model_settings(
            name=name, model=model, revision=revision, max_length=max_length, precision=precision,
            token_budget=token_budget, contamination=contamination, licence=licence,
        )  # fmt: skip
        require_transformers(f"the reader {name!r}")
        self.features = tuple(features) if isinstance(features, list | tuple) else (features,)
        if not self.features or any(self.features.count(f) > 1 or f not in FEATURES for f in self.features):
            raise SettingError(f"features: expected some of {', '.join(FEATURES)}, each once, got {features!r}")
        if classifier not in ("logistic", "mlp"):
            raise SettingError(f"classifier: expected logistic or mlp, got {classifier!r}")
        check_positive(C=C)
        check_counts(hidden=hidden, max_train_rows=max_train_rows)
        self.classifier, self.C, self.hidden = classifier, float(C), int(hidden)
        self.max_train_rows = max_train_rows
        self.encoder = SentenceEncoder(
            model, revision=revision, max_length=max_length, precision=precision, token_budget=token_budget or 4096
        )
        interaction = classifier == "mlp" or bool({"u*v", "|u-v|"} & set(self.features))
        seen = contamination if contamination is not None else CONTAMINATION.get(model)
        self._info = ReaderInfo(name, "middle", interaction, seen, licence)
        self._fit: _Fit | None = None
        self._fit_notes: tuple[str, ...] = ()
        if type(self) is EmbeddingReader and classifier == "logistic" and "|u-v|" not in self.features:
            self.__class__ = BilinearReader  # only a bilinear reader has outer_scores, by which the audit knows it

    @property
    def info(self) -> ReaderInfo:
        """What the audit must know of this reader."""
        return self._info

    @property
    def fingerprint(self) -> str:
        """Names the encoder's weights and every setting that changes predictions."""
        own = [self.features, self.classifier, self.C, self.hidden, self.max_train_rows]
        settings = [VERSION, self.encoder.fingerprint, *own]
        return f"embedding:{hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:24]}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the fit, for reports."""
        return (f"sentence encoder in {self.encoder.precision}", *self._fit_notes)

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Embed the train texts once and fit the classifier.

        Raises:
            ReaderError: An empty table; for the MLP also items of one label only.
        """
        self._fit = None
        rows, sampled = training_rows(train, max_rows=self.max_train_rows, max_bytes=np.inf, seed=seed)
        train = train.select(rows) if sampled else train
        encoded = self.encode(train)
        everyone = np.arange(len(train))
        query, evidence = encoded.vectors(everyone, everyone)
        parts = [_feature(name, encoded, query, evidence) for name in self.features]
        for name, part in zip(self.features, parts, strict=True):
            shown = _shown(name, query, evidence)
            part[~shown] = part[shown].mean(axis=0) if shown.any() else 0.0  # says nothing, as at prediction time
        features = np.hstack(parts)
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale[scale < 1e-12] = 1.0
        features -= mean
        features /= scale
        notes: tuple[str, ...] = ()
        model: LinearModel | _Mlp
        if self.classifier == "logistic":
            model = linear = fit_logistic(features, train.labels, train.label_names, c=self.C)
            notes = linear.notes
        else:
            model = _fit_mlp(features, train.labels, train.n_classes, self.hidden, seed)
        self._fit_notes = (*([sampled] if sampled else []), *notes)
        self._fit = _Fit(model, mean, scale, parts[0].shape[1], train.label_names)
        return self

    def prepare(self, table: PairTable) -> None:
        """Embed each distinct text of a table that will be fitted and encoded in parts, so that no part does it again.

        Raises:
            ReaderError: The encoder cannot be loaded, or memory runs out.
        """
        for column in (table.queries, table.evidence):
            self.encoder.prepare(column.compact())

    def encode(self, table: PairTable) -> EncodedEmbeddings:
        """Embed each distinct text of the table once.

        Raises:
            ReaderError: The table's labels are not those of the fit.
        """
        if self._fit is not None and self._fit.label_names != table.label_names:
            raise ReaderError(
                f"reader {self.info.name} was fitted for labels {list(self._fit.label_names)}, the table has "
                f"{list(table.label_names)}; build both tables with one label order"
            )
        queries, evidence = table.queries.compact(), table.evidence.compact()
        empty = self.encoder.embed(StringColumn.from_list([""]))
        return EncodedEmbeddings(
            self._vectors(queries, empty),
            queries.index,
            np.vstack([self._vectors(evidence, empty), empty]).astype(np.float64),
            evidence.index,
            table.label_names,
            (queries, evidence),
        )

    def truncation(
        self, encoded: EncodedEmbeddings, rows: IntArray, donors: IntArray
    ) -> tuple[BoolArray, BoolArray] | None:
        """[t] whether the query or the evidence is cut, and [t] whether the evidence reads like the query's own one.

        None where the encoder's package cuts the texts itself.
        """
        queries, evidence = (self.encoder.windows(column) for column in encoded.texts)
        if queries is None or evidence is None:
            return None
        (query, given), own = encoded.vectors(rows, donors), encoded.vectors(rows, rows)[1]
        # The last vector is that of the empty string.
        query_cut, evidence_cut = np.append(queries[0], False), np.append(evidence[0], False)
        reads_as = np.append(evidence[1], NULL)
        cut = (query >= 0) & query_cut[query] | (given >= 0) & evidence_cut[given]
        same = (given == own) | ((given >= 0) & (own >= 0) & (reads_as[given] == reads_as[own]))
        return cut, same

    def _vectors(self, column: StringColumn, like: Any) -> FloatArray:
        if not len(column.texts):
            return np.empty((0, like.shape[1]))
        return self.encoder.embed(column).astype(np.float64)

    def scores(self, encoded: EncodedEmbeddings, rows: IntArray, donors: IntArray) -> FloatArray:
        """Log-probabilities [len(rows), C] up to a constant per pair."""
        fit = self._fitted()
        query, evidence = encoded.vectors(np.asarray(rows), np.asarray(donors))
        scores = np.empty((len(query), len(fit.label_names)))
        for start in range(0, len(query), 8192):
            block = slice(start, start + 8192)
            scores[block] = self._block(fit, encoded, query[block], evidence[block])
        return scores

    def _block(self, fit: _Fit, encoded: EncodedEmbeddings, query: IntArray, evidence: IntArray) -> FloatArray:
        features = np.zeros((len(query), fit.width * len(self.features)))
        for at, name in enumerate(self.features):
            columns = slice(at * fit.width, (at + 1) * fit.width)
            shown = _shown(name, query, evidence)
            part = _feature(name, encoded, query[shown], evidence[shown])
            features[shown, columns] = (part - fit.mean[columns]) / fit.scale[columns]
        if isinstance(fit.model, LinearModel):
            return np.asarray(features @ fit.model.coefficients + fit.model.intercept)
        return fit.model.scores(features)

    def _fitted(self) -> _Fit:
        if self._fit is None:
            raise ReaderError(f"reader {self.info.name} is not fitted; call fit(train, seed=...) first")
        return self._fit


class BilinearReader(EmbeddingReader):
    """An EmbeddingReader whose scores are bilinear: all pairs of two sets by one matrix product per class."""

    def outer_scores(self, encoded: EncodedEmbeddings, rows: IntArray, donors: IntArray) -> FloatArray:
        """Scores [len(rows), len(donors), C] of every query of `rows` with every evidence of `donors`."""
        fit = self._fitted()
        rows, donors = np.asarray(rows), np.asarray(donors)
        query, evidence = encoded.vectors(rows, np.full(len(rows), NULL))[0], encoded.vectors(donors, donors)[1]
        u = np.where((query == NULL)[:, None], 0.0, _pick(encoded.query, query, fit.width))
        v = np.where((evidence == NULL)[:, None], 0.0, _pick(encoded.evidence, evidence, fit.width))
        assert isinstance(fit.model, LinearModel)
        weight, bias = fit.model.coefficients.T, fit.model.intercept
        by_feature = dict(zip(self.features, np.split(weight / fit.scale, len(self.features), axis=1), strict=True))
        means = dict(zip(self.features, np.split(fit.mean, len(self.features)), strict=True))
        has_query, has_evidence = (query != NULL).astype(np.float64), (evidence != NULL).astype(np.float64)
        known = np.empty((len(bias), len(rows), len(donors)))
        for c in range(len(bias)):
            row_term, column_term = np.full(len(rows), bias[c]), np.zeros(len(donors))
            if "u" in by_feature:
                row_term += u @ by_feature["u"][c] - has_query * (means["u"] @ by_feature["u"][c])
            if "v" in by_feature:
                column_term += v @ by_feature["v"][c] - has_evidence * (means["v"] @ by_feature["v"][c])
            if "u*v" in by_feature:
                np.matmul(u * by_feature["u*v"][c], v.T, out=known[c])
                both = means["u*v"] @ by_feature["u*v"][c]
                known[c] += (row_term - both * has_query)[:, None] if has_evidence.all() else row_term[:, None]
                if not has_evidence.all():
                    known[c] -= both * has_query[:, None] * has_evidence
            else:
                known[c] = row_term[:, None]
            known[c] += column_term
        return np.moveaxis(known, 0, -1)


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    model: LinearModel | _Mlp
    mean: FloatArray
    scale: FloatArray
    width: int
    label_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Mlp:
    network: Any
    present: IntArray
    absent_score: float
    n_classes: int

    def scores(self, features: FloatArray) -> FloatArray:
        """Log-probabilities [n, C]; a label that training lacked scores too little ever to be the answer."""
        scores = np.full((len(features), self.n_classes), self.absent_score)
        scores[:, self.present] = np.log(np.maximum(self.network.predict_proba(features), 1e-300))
        return scores


def _fit_mlp(features: FloatArray, labels: IntArray, n_classes: int, hidden: int, seed: int) -> _Mlp:
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    present = np.unique(labels)
    if len(present) < 2:
        raise ReaderError(
            f"train has {len(labels)} items of {len(present)} label(s); classifier=mlp needs at least two"
        )
    network = MLPClassifier((hidden,), alpha=1.0, batch_size=min(64, len(labels)), max_iter=30, random_state=seed)
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is a setting, not a failure
        network.fit(features, labels)
    return _Mlp(network, present, -float(np.log(len(labels) + n_classes)), n_classes)


def _feature(name: str, encoded: EncodedEmbeddings, query: IntArray, evidence: IntArray) -> FloatArray:
    width = encoded.evidence.shape[1]
    u, v = _pick(encoded.query, query, width), _pick(encoded.evidence, evidence, width)
    if name == "u":
        return u
    if name == "v":
        return v
    return u * v if name == "u*v" else np.abs(u - v)


def _shown(name: str, query: IntArray, evidence: IntArray) -> Any:
    if name == "u":
        return query != NULL
    if name == "v":
        return evidence != NULL
    return (query != NULL) & (evidence != NULL)


def _pick(vectors: FloatArray, at: IntArray, width: int) -> FloatArray:
    if not len(vectors):
        return np.zeros((len(at), width))
    return vectors[np.maximum(at, 0)]


def _at(index: IntArray, items: IntArray) -> IntArray:
    return index[np.maximum(items, 0)] if len(index) else np.full(len(items), NULL, dtype=np.int64)
