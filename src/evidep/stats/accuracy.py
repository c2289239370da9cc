"""Accuracy, its intervals, and the majority rate that every accuracy must be read against."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evidep.errors import DataError, SettingError
from evidep.stats.checks import check_alpha, check_count, codes, group_codes, zero_one
from evidep.stats.paired import cluster_mean, effective_df
from evidep.types import IntArray, Interval


@dataclass(frozen=True, slots=True)
class MajorityRate:
    """How far constant answers get on the evaluation items.

    Attributes:
        train_majority_label: Commonest training label; the commonest evaluation label where there is no training split.
        train_majority: Accuracy of always answering it.
        evaluation_majority_label: Commonest evaluation label.
        evaluation_majority: Its share: the best that any constant answer can reach on these items.
        reason: Why values are nan, or that the constant answer was chosen on the evaluation items; else None.
    """

    train_majority_label: int
    train_majority: float
    evaluation_majority_label: int
    evaluation_majority: float
    reason: str | None = None


def accuracy(predictions: ArrayLike, labels: ArrayLike) -> float:
    """Share of items whose prediction equals the label, in [0, 1]; nan for no items.

    Args:
        predictions: [n] predicted classes.
        labels: [n] gold classes.

    Raises:
        DataError: If they are not whole numbers or differ in length.
    """
    gold = codes(labels, "labels")
    predicted = codes(predictions, "predictions", length=len(gold))
    return float(np.mean(predicted == gold)) if len(gold) else math.nan


def wilson_interval(successes: int, n: int, alpha: float = 0.05) -> Interval:
    """Wilson's score interval of a share of independent items (Wilson 1927); never outside [0, 1].

    Args:
        successes: Items that are right, 0 to n.
        n: Items.
        alpha: 1 - alpha is the level.

    Returns:
        nan with a reason for n = 0. With all or no items right the interval still has a width.

    Raises:
        SettingError: If the counts are impossible or alpha is not in (0, 1).
    """
    check_alpha(alpha)
    check_count(n, "n", 0)
    if not 0 <= successes <= n:
        raise SettingError(f"successes: expected a count between 0 and n = {n}, got {successes}")
    if n == 0:
        return Interval(math.nan, math.nan, 1.0 - alpha, "no items")
    return _wilson(successes / n, n, float(special.ndtri(1.0 - alpha / 2.0)), 1.0 - alpha)


def accuracy_interval(correct: ArrayLike, groups: ArrayLike | None = None, alpha: float = 0.05) -> Interval:
    """Interval of an accuracy: Wilson's for independent items, a widened Wilson interval where items share a group.

    Where groups repeat, n is replaced by the effective sample size: n over the design effect (the cluster-robust
    variance over the binomial one, never below 1), corrected for the degrees of freedom (Korn & Graubard 1998; Dean &
    Pagano 2015 compare such intervals). Where every group agrees with itself and all are right, or all wrong, no
    design effect can be measured, and the effective number of groups takes its place.

    Args:
        correct: [n] True where the prediction is right.
        groups: [n] cluster of each item; None: each item is its own.
        alpha: 1 - alpha is the level.

    Returns:
        An interval inside [0, 1]; of nan with a reason for no items and, where items share groups, for fewer than
        `MIN_GROUPS` groups or one group with more than `MAX_SHARE` of the items.

    Raises:
        DataError: If values are not True/False or the groups do not fit them.
        SettingError: If alpha is not in (0, 1).
    """
    check_alpha(alpha)
    right = zero_one(correct, "correct")
    n = len(right)
    group, n_groups = group_codes(groups, n)
    if n_groups == n:
        return wilson_interval(int(right.sum()), n, alpha)
    level = 1.0 - alpha
    mean = cluster_mean(right, group, alpha)
    if math.isnan(mean.ci.low):
        return mean.ci
    z, t = float(special.ndtri(1.0 - alpha / 2.0)), float(special.stdtrit(mean.df, 1.0 - alpha / 2.0))
    if mean.standard_error == 0.0:
        effective_n = effective_df(np.bincount(group)) + 1.0
    else:
        effective_n = min(float(n), mean.estimate * (1.0 - mean.estimate) / mean.standard_error**2)
    return _wilson(mean.estimate, effective_n * (z / t) ** 2, z, level)


def majority_rate(labels: ArrayLike, n_classes: int, train_labels: ArrayLike | None = None) -> MajorityRate:
    """How far a constant answer gets. A reader's accuracy means nothing without this number beside it.

    Ties go to the smaller label.

    Args:
        labels: [n] evaluation labels in [0, n_classes).
        n_classes: Number of classes C.
        train_labels: [m] training labels, from which a fair constant answer is chosen; None where there are none.

    Returns:
        nan rates with a reason for no evaluation items.

    Raises:
        DataError: If a label is not in [0, n_classes), or train_labels is empty.
        SettingError: If n_classes is below 1.
    """
    check_count(n_classes, "n_classes")
    gold = label_codes(labels, n_classes, "labels")
    if len(gold) == 0:
        return MajorityRate(-1, math.nan, -1, math.nan, "no items")
    counts = np.bincount(gold, minlength=n_classes)
    best = int(counts.argmax())
    share = int(counts[best]) / len(gold)
    if train_labels is None:
        reason = "no training labels: the constant answer was chosen on the evaluation items themselves"
        return MajorityRate(best, share, best, share, reason)
    train = label_codes(train_labels, n_classes, "train_labels")
    if len(train) == 0:
        raise DataError("train_labels: expected at least one training label, got none; pass None if there is no split")
    label = int(np.bincount(train, minlength=n_classes).argmax())
    return MajorityRate(label, int(counts[label]) / len(gold), best, share)


def label_codes(labels: ArrayLike, n_classes: int, name: str) -> IntArray:
    """Labels as integers, each in [0, n_classes).

    Raises:
        DataError: If one is not.
    """
    array = codes(labels, name)
    outside = (array < 0) | (array >= n_classes)
    if outside.any():
        at = int(np.argmax(outside))
        raise DataError(
            f"{name}: expected labels from 0 to {n_classes - 1}, got {array[at]} at item {at}; drop unlabelled items"
        )
    return array


def _wilson(share: float, n: float, z: float, level: float) -> Interval:
    scale = 1.0 / (1.0 + z * z / n)
    centre = (share + z * z / (2.0 * n)) * scale
    half_width = z * math.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n)) * scale
    low = 0.0 if share == 0.0 else max(0.0, centre - half_width)
    high = 1.0 if share == 1.0 else min(1.0, centre + half_width)
    return Interval(low, high, level)
