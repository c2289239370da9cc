"""Metadata Prior Dominance Score (Shao 2026, arXiv 2605.23701): how far metadata alone reach the full accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special

from evidep.errors import DataError, SettingError
from evidep.stats.accuracy import label_codes
from evidep.stats.checks import check_alpha, check_count, codes, group_codes, same_length, zero_one
from evidep.stats.paired import cluster_mean, effective_df
from evidep.types import FloatArray, IntArray, Interval

STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Back-off strengths to choose from: how many items of its own a cell needs to outweigh the coarser cell around it."""

_ELEMENTS = 1 << 22


@dataclass(frozen=True, slots=True)
class Mpds:
    """The Metadata Prior Dominance Score with its interval.

    Attributes:
        accuracy_metadata: Accuracy of the predictor that sees metadata alone.
        accuracy_full: Accuracy of the reader that sees query and evidence.
        majority_rate: Accuracy of the constant answer.
        mpds: accuracy_metadata / accuracy_full. Above 1 where metadata alone do better; not clipped.
        mpds_chance_corrected: (accuracy_metadata - majority_rate) / (accuracy_full - majority_rate): 0 where metadata
            add nothing to the constant answer, 1 where they add as much as the texts. nan where the full reader is
            within noise of the constant answer.
        ci: Interval of `mpds`.
        n_cells: Number of distinct metadata tuples, where the caller knows it.
        reasons: For each value that is nan or degenerate, why.
    """

    accuracy_metadata: float
    accuracy_full: float
    majority_rate: float
    mpds: float
    mpds_chance_corrected: float
    ci: Interval
    n_cells: int | None = None
    reasons: dict[str, str] = field(default_factory=dict)


def mpds(
    correct_metadata: ArrayLike,
    correct_full: ArrayLike,
    majority_rate: float,
    *,
    correct_majority: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    alpha: float = 0.05,
    n_resamples: int = 2000,
    seed: int,
    n_cells: int | None = None,
) -> Mpds:
    """MPDS from per-item right/wrong values of both predictors on the same items.

    The interval resamples groups with replacement, both predictors together, and takes percentiles widened for the
    number of groups (Hesterberg 2015). Groups with equal counts are interchangeable, so whole resamples are drawn as
    multinomial counts over distinct groups: exact, and quick for half a million items.

    Args:
        correct_metadata: [n] True where the metadata predictor is right; it must not have been fitted on these items.
        correct_full: [n] True where the full reader is right.
        majority_rate: Accuracy of the constant answer on these items, in [0, 1].
        correct_majority: [n] True where the constant answer is right. With it the test of accuracy_full against the
            majority rate is paired; without it the rate counts as known.
        groups: [n] cluster of each item; None: each item is its own.
        alpha: 1 - alpha is the level of the interval, and of the test that allows the chance-corrected score: the
            cluster interval of accuracy_full - majority_rate must lie above 0.
        n_resamples: Bootstrap resamples, at least 100.
        seed: Seed of the resamples.
        n_cells: Passed through to the result.

    Raises:
        DataError: If values are not True/False, lengths differ, or correct_majority contradicts majority_rate.
        SettingError: If majority_rate, alpha or n_resamples is out of range.
    """
    check_alpha(alpha)
    check_count(n_resamples, "n_resamples", 100)
    metadata, full = zero_one(correct_metadata, "correct_metadata"), zero_one(correct_full, "correct_full")
    n = len(metadata)
    same_length(len(full), n, "correct_full")
    group, n_groups = group_codes(groups, n)
    level = 1.0 - alpha
    if n == 0:
        nan = Interval(math.nan, math.nan, level, "no items")
        why = dict.fromkeys(("mpds", "mpds_chance_corrected", "ci"), "no items")
        return Mpds(math.nan, math.nan, math.nan, math.nan, math.nan, nan, n_cells, why)
    if not 0.0 <= majority_rate <= 1.0:
        raise SettingError(f"majority_rate: expected a share between 0 and 1, got {majority_rate}")
    majority_rate = float(majority_rate)
    majority = None if correct_majority is None else _majority(correct_majority, majority_rate, n)
    accuracy_metadata, accuracy_full = float(metadata.mean()), float(full.mean())
    reasons: dict[str, str] = {}
    score, corrected = math.nan, math.nan
    if accuracy_full == 0.0:
        reasons["mpds"] = "the full reader is never right: the ratio has no denominator"
        ci = Interval(math.nan, math.nan, level, reasons["mpds"])
    else:
        score = accuracy_metadata / accuracy_full
        ci = _ratio_interval(metadata, full, group, n_groups, alpha, n_resamples, seed)
    if ci.reason:
        reasons["ci"] = ci.reason
    gain = cluster_mean(full - (majority_rate if majority is None else majority), group, alpha)
    if gain.ci.low > 0.0:
        corrected = (accuracy_metadata - majority_rate) / (accuracy_full - majority_rate)
    elif math.isnan(gain.ci.low):
        reasons["mpds_chance_corrected"] = f"no noise level for accuracy_full - majority_rate: {gain.reason}"
    else:
        reasons["mpds_chance_corrected"] = (
            f"accuracy_full - majority_rate = {gain.estimate:.4f}, interval [{gain.ci.low:.4f}, {gain.ci.high:.4f}],"
            " is not above noise: the corrected ratio has no denominator"
        )
    return Mpds(accuracy_metadata, accuracy_full, majority_rate, score, corrected, ci, n_cells, reasons)


def n_cells(columns: Sequence[ArrayLike]) -> int:
    """Number of distinct metadata tuples; a missing value (-1) is a value of its own.

    Raises:
        DataError: If there are no columns or they differ in length.
    """
    return int(_cells(_dense(columns, "columns")).max(initial=-1)) + 1


def metadata_predictions(
    train_columns: Sequence[ArrayLike],
    train_labels: ArrayLike,
    eval_columns: Sequence[ArrayLike],
    n_classes: int,
) -> IntArray:
    """Predict each evaluation item's label from its metadata alone, as learnt on the training items.

    The prediction is the commonest training label of the item's metadata cell, with a chain of ever coarser cells
    behind it: all columns, one column fewer, ..., no column (the training majority). Every choice is made on the
    training items alone, is deterministic, and reads:

    - Order of the chain. From all columns on, the column is dropped whose absence leaves the best leave-one-out
      log-loss on the training items (ties: the later column is dropped). So identifiers and noise go first, and at
      most m(m + 1)/2 subsets of m columns are ever looked at.
    - Small cells. A cell seen once is a noisy vote, so label shares are smoothed towards the coarser cell:
      P(label | cell) = (count + strength * P(label | coarser cell)) / (items + strength). An unseen cell thus takes
      the answer of the coarser one. `STRENGTHS` lists the strengths; leave-one-out log-loss picks one (ties: the
      smallest). At 0.5 and 1 every seen cell answers its commonest label; higher ones let a decided coarser cell
      outvote a few items.
    - Equal shares go to the smaller label.

    Args:
        train_columns: m arrays [n_train] of integer codes, one per metadata column; -1 stands for a missing value.
        train_labels: [n_train] labels in [0, n_classes).
        eval_columns: m arrays [n_eval], coded alike.
        n_classes: Number of classes C.

    Returns:
        [n_eval] predicted labels.

    Raises:
        DataError: If columns are missing, differ in number or length, or a label is outside [0, n_classes).
        SettingError: If n_classes is below 1.
    """
    check_count(n_classes, "n_classes")
    if len(train_columns) != len(eval_columns):
        raise DataError(
            f"eval_columns: expected {len(train_columns)} columns as in train_columns, got {len(eval_columns)}"
        )
    labels = label_codes(train_labels, n_classes, "train_labels")
    n_train = len(labels)
    if n_train == 0:
        raise DataError("train_labels: expected at least one training item, got none")
    train = [codes(column, f"train_columns[{at}]", length=n_train) for at, column in enumerate(train_columns)]
    held_out = [codes(column, f"eval_columns[{at}]") for at, column in enumerate(eval_columns)]
    columns = _dense([np.concatenate(pair) for pair in zip(train, held_out, strict=True)], "train_columns")
    for at, column in enumerate(held_out):
        same_length(len(column), len(held_out[0]), f"eval_columns[{at}]")
    if len(held_out[0]) == 0:
        return np.empty(0, dtype=np.int64)
    chain = [_cells(subset) for subset in _chain([column[:n_train] for column in columns], columns, labels, n_classes)]
    strength = _best_strength([cells[:n_train] for cells in chain], labels, n_classes)
    return _predict(chain, labels, n_classes, strength)


def metadata_predictions_out_of_fold(
    columns: Sequence[ArrayLike], labels: ArrayLike, folds: ArrayLike, n_classes: int
) -> IntArray:
    """`metadata_predictions` without a training split: each fold is predicted from the items of all other folds.

    Args:
        columns: m arrays [n] of integer codes.
        labels: [n] labels in [0, n_classes).
        folds: [n] fold of each item. Items that belong together must share a fold.
        n_classes: Number of classes C.

    Raises:
        DataError: As in `metadata_predictions`, or if there are fewer than two folds.
    """
    gold = label_codes(labels, n_classes, "labels")
    fold = codes(folds, "folds", length=len(gold))
    names = np.unique(fold)
    if len(names) < 2:
        raise DataError(f"folds: expected at least two folds, got {len(names)}; a predictor is never scored on its own")
    arrays = [codes(column, f"columns[{at}]", length=len(gold)) for at, column in enumerate(columns)]
    predictions = np.empty(len(gold), dtype=np.int64)
    for name in names:
        held_out = fold == name
        predictions[held_out] = metadata_predictions(
            [column[~held_out] for column in arrays],
            gold[~held_out],
            [column[held_out] for column in arrays],
            n_classes,
        )
    return predictions


def _majority(correct_majority: ArrayLike, majority_rate: float, n: int) -> FloatArray:
    majority = zero_one(correct_majority, "correct_majority")
    same_length(len(majority), n, "correct_majority")
    if abs(float(majority.mean()) - majority_rate) > 1e-9:
        raise DataError(
            f"correct_majority: its mean {majority.mean():.6f} is not majority_rate {majority_rate:.6f};"
            " both must describe the same constant answer on the same items"
        )
    return majority


def _ratio_interval(
    above: FloatArray, below: FloatArray, group: IntArray, n_groups: int, alpha: float, n_resamples: int, seed: int
) -> Interval:
    """Percentile interval of sum(above) / sum(below) over resampled groups."""
    level = 1.0 - alpha
    if n_groups < 2:
        return Interval(math.nan, math.nan, level, "all items are one group: no interval can be given")
    size = np.bincount(group, minlength=n_groups)
    totals = np.column_stack([np.bincount(group, weights=values, minlength=n_groups) for values in (above, below)])
    kinds, counts = np.unique(totals, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    rows = max(1, _ELEMENTS // len(kinds))
    drawn = np.concatenate(
        [
            rng.multinomial(n_groups, counts / n_groups, size=min(rows, n_resamples - start)) @ kinds
            for start in range(0, n_resamples, rows)
        ]
    )
    drawn = drawn[drawn.any(axis=1)]
    with np.errstate(divide="ignore"):
        ratios = drawn[:, 0] / drawn[:, 1]
    df = effective_df(size)
    tail = float(special.ndtr(math.sqrt(n_groups / (n_groups - 1)) * special.stdtrit(df, alpha / 2.0)))
    low, high = (float(np.quantile(ratios, at, method="closest_observation")) for at in (tail, 1.0 - tail))
    if low == high:
        return Interval(low, high, level, "degenerate: every resample gives the same ratio")
    return Interval(low, high, level)


def _dense(columns: Sequence[ArrayLike], name: str) -> list[IntArray]:
    if len(columns) == 0:
        raise DataError(f"{name}: expected at least one metadata column, got none; MPDS is undefined without metadata")
    arrays = [codes(column, f"{name}[{at}]") for at, column in enumerate(columns)]
    for at, array in enumerate(arrays):
        same_length(len(array), len(arrays[0]), f"{name}[{at}]")
    return [np.unique(array, return_inverse=True)[1].astype(np.int64, copy=False) for array in arrays]


def _cells(columns: Sequence[IntArray]) -> IntArray:
    """[n] number of each item's tuple of codes, 0 .. cells - 1; columns are dense codes, at least one."""
    key, span = np.zeros_like(columns[0]), 1
    for column in columns:
        card = int(column.max(initial=0)) + 1
        if span > (1 << 62) // card:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64, copy=False)
            span = int(key.max()) + 1
        key = key * card + column
        span *= card
    return np.unique(key, return_inverse=True)[1].astype(np.int64, copy=False)


def _chain(
    train: list[IntArray], columns: list[IntArray], labels: IntArray, n_classes: int
) -> Iterator[list[IntArray]]:
    """Column subsets from the finest to a single column, in the order that `metadata_predictions` declares."""
    prior = _own_prior(labels, n_classes)
    kept = list(range(len(columns)))
    yield columns
    while len(kept) > 1:
        losses = [_loss([_cells([train[k] for k in kept if k != out])], labels, prior, 1.0) for out in kept]
        kept.pop(max(at for at, loss in enumerate(losses) if loss <= min(losses) + 1e-12))
        yield [columns[k] for k in kept]


def _own_prior(labels: IntArray, n_classes: int) -> FloatArray:
    """[n] share of each item's label among the other items, smoothed by one item spread over the classes."""
    counts = np.bincount(labels, minlength=n_classes)
    return np.asarray((counts[labels] - 1 + 1.0 / n_classes) / len(labels))


def _loss(chain: list[IntArray], labels: IntArray, prior: FloatArray, strength: float) -> float:
    """Leave-one-out log-loss: each item's own label is taken out of every cell of its chain (finest first)."""
    own = prior
    for cells in reversed(chain):
        own = (_same_label(cells, labels) - 1 + strength * own) / (np.bincount(cells)[cells] - 1 + strength)
    return -float(np.log(own).mean())


def _same_label(cells: IntArray, labels: IntArray) -> IntArray:
    """[n] items that share each item's cell and label, itself included."""
    key = cells * (int(labels.max()) + 1) + labels
    if int(key.max()) <= 4 * len(key):
        return np.asarray(np.bincount(key)[key])
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse])


def _best_strength(chain: list[IntArray], labels: IntArray, n_classes: int) -> float:
    prior = _own_prior(labels, n_classes)
    losses = [_loss(chain, labels, prior, strength) for strength in STRENGTHS]
    return next(s for s, loss in zip(STRENGTHS, losses, strict=True) if loss <= min(losses) + 1e-12)


def _predict(chain: list[IntArray], labels: IntArray, n_classes: int, strength: float) -> IntArray:
    """Predictions of the items after the training ones, worked out once for each distinct finest cell."""
    n_train = len(labels)
    ones = np.ones(n_train)
    tables = [
        sparse.csr_array((ones, (cells[:n_train], labels)), shape=(int(cells.max()) + 1, n_classes)) for cells in chain
    ]
    finest = chain[0][n_train:]
    _, first, inverse = np.unique(finest, return_index=True, return_inverse=True)
    item = first + n_train
    answer = np.empty(len(item), dtype=np.int64)
    prior = (np.bincount(labels, minlength=n_classes) + 1.0 / n_classes) / (n_train + 1)
    rows = max(1, _ELEMENTS // n_classes)
    for start in range(0, len(item), rows):
        part = item[start : start + rows]
        shares = np.broadcast_to(prior, (len(part), n_classes))
        for cells, table in zip(reversed(chain), reversed(tables), strict=True):
            counts = table[cells[part]].toarray()
            shares = (counts + strength * shares) / (counts.sum(axis=1, keepdims=True) + strength)
        answer[start : start + rows] = np.round(shares, 12).argmax(axis=1)
    return answer[inverse]
