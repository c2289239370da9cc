"""Multinomial logistic regression on sparse features, and the bounded sample of training items that it is fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from evidep.errors import ReaderError
from evidep.types import FloatArray, IntArray, PairTable, StringColumn

_TOLERANCE: Final = 1e-7
"""On the largest gradient of the mean loss. A weight may be off by n * C times as much: at scikit-learn's 1e-4 some are
off by 0.01 on SNLI (n = 36,377), here by 4e-6, for two more Newton steps."""
_MAX_ITERATIONS: Final = 200


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Scores x @ coefficients + intercept, as unnormalised log-probabilities.

    Attributes:
        coefficients: [F, C].
        intercept: [C].
        notes: What the caller should know of the fit.
    """

    coefficients: FloatArray
    intercept: FloatArray
    notes: tuple[str, ...] = ()


def fit_logistic(features: Any, labels: IntArray, label_names: tuple[str, ...], *, c: float) -> LinearModel:
    """Fit L2-regularised multinomial logistic regression with newton-cg, BLAS on one thread.

    The scores of the classes that occur in `labels` sum to 0 for every pair. A class that does not occur scores
    -ln(n + C) whatever the features say: it is never predicted, since some other class scores at least 0, and its
    log-probability stays finite. Without features, or with one class alone, the label shares are predicted.

    Args:
        features: CSR matrix [n, F].
        labels: [n] in [0, C).
        label_names: The C names.
        c: Inverse strength of the regularisation, as scikit-learn's `C`.

    Raises:
        ReaderError: There is no item to fit on.
    """
    n, n_classes = len(labels), len(label_names)
    if n == 0:
        raise ReaderError("train has no items; a reader needs at least one to be fitted on")
    counts = np.bincount(labels, minlength=n_classes)
    present = np.flatnonzero(counts)
    notes = []
    if len(present) < n_classes:
        absent = ", ".join(repr(label_names[label]) for label in np.flatnonzero(counts == 0))
        notes.append(f"the training items lack the label {absent}, which is therefore never predicted")
    if features.shape[1] == 0 or len(present) == 1:
        if features.shape[1] == 0:
            notes.append("no n-gram occurs often enough to be a feature: the label shares alone are predicted")
        weights = np.zeros((len(present), features.shape[1]))
        shares = np.log(counts[present] / n)
    else:
        weights, shares, iterations = _newton(features, labels, c)
        if iterations >= _MAX_ITERATIONS:
            notes.append(f"the fit had not converged after {iterations} iterations")
    coefficients = np.zeros((features.shape[1], n_classes))
    coefficients[:, present] = (weights - weights.mean(axis=0)).T
    intercept = np.full(n_classes, -np.log(n + n_classes))
    intercept[present] = shares - shares.mean()
    return LinearModel(coefficients, intercept, tuple(notes))


def _newton(features: Any, labels: IntArray, c: float) -> tuple[FloatArray, FloatArray, int]:
    """Weights [present, F], intercepts [present] and the number of iterations."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    # With BLAS on all cores the small dense products between sparse ones cost more than they give.
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=c, solver="newton-cg", tol=_TOLERANCE, max_iter=_MAX_ITERATIONS)
        model.fit(features, labels)
    weights, intercept = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        weights, intercept = np.vstack([-weights / 2, weights / 2]), np.concatenate([-intercept / 2, intercept / 2])
    return weights, intercept, int(np.max(model.n_iter_))


def stack_rows(blocks: Iterable[Any], shape: tuple[int, int], stored: int) -> Any:
    """CSR matrix of blocks of rows, one below the other, written into place: no second copy is ever held.

    Args:
        blocks: CSR matrices [rows, shape[1]].
        shape: Rows and columns of the whole.
        stored: Number of values that all blocks store together.
    """
    from scipy import sparse

    data, indices = np.empty(stored), np.empty(stored, dtype=np.int32)
    ends = np.zeros(shape[0] + 1, dtype=np.int32)
    row = at = 0
    for block in blocks:
        stop = at + block.nnz
        data[at:stop], indices[at:stop] = block.data, block.indices
        ends[row + 1 : row + 1 + block.shape[0]] = at + block.indptr[1:]
        row, at = row + block.shape[0], stop
    return sparse.csr_array((data, indices, ends), shape=shape)


def training_rows(train: PairTable, *, max_rows: int, max_bytes: float, seed: int) -> tuple[IntArray, str | None]:
    """The items that a fit of bounded memory uses: all of them, or a label-stratified sample.

    The sample has the label shares of the whole to within one item a label, and at least one item of every label. It is
    a function of the labels and the seed.

    Args:
        train: The training items.
        max_rows: Largest number of items.
        max_bytes: Largest total length of their texts, estimated by the mean length.
        seed: Seed of the draw.

    Returns:
        Ascending item indices, and a sentence where items were left out.
    """
    n = len(train)
    mean_bytes = (_total_bytes(train.queries) + _total_bytes(train.evidence)) / max(n, 1)
    m = max(1, int(min(max_rows, max_bytes / max(mean_bytes, 1e-9))))
    if m >= n:
        return np.arange(n), None
    order = np.random.default_rng(seed).permutation(n)
    order = order[np.argsort(train.labels[order], kind="stable")]
    chosen = order[((np.arange(m) + 0.5) * (n / m)).astype(np.int64)]
    first = order[np.unique(train.labels[order], return_index=True)[1]]
    unseen = first[~np.isin(train.labels[first], train.labels[chosen])]
    rows = np.sort(np.concatenate([chosen, unseen]))
    return rows, f"fitted on {len(rows)} of {n} training items (label-stratified sample, seed {seed})"


def _total_bytes(column: StringColumn) -> int:
    lengths = pc.binary_length(column.texts).to_numpy()
    return int(lengths[column.index[column.index >= 0]].sum())
