"""The calibration ladder: does a reader work at all, and do stronger readers change the answer?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evidep.stats.checks import check_alpha, codes, numbers, zero_one
from evidep.stats.paired import cluster_mean, paired_difference, sign_flip_p
from evidep.types import Interval

FEW_SEEDS: Final = 5
"""Fewest seeds whose SD is reported without a warning: for five its 95 % interval still reaches 2.9 times as high."""
_NO_SPREAD: Final = Interval(math.nan, math.nan, 0.95, "fewer than two seeds")


@dataclass(frozen=True, slots=True)
class Works:
    """Whether a reader has learnt its task. The ΔEvi of one that has not says nothing about the benchmark.

    Attributes:
        works: True where the reader beats the constant answer by more than noise.
        p_value: One-sided sign-flip p-value, by group, of "no better than the constant answer"; nan for no items.
        gain: accuracy_full - majority_rate.
        gain_ci: Cluster t interval of `gain`.
        labels_permuted_suspected: True where the reader is significantly worse than its own answers dealt out at
            random: label names or their order probably differ between training and evaluation. False where the
            labels were not given.
        reason: Why the reader counts as failed, or the suspicion, in words; None for a working reader.
    """

    works: bool
    p_value: float
    gain: float
    gain_ci: Interval
    labels_permuted_suspected: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ReaderContrast:
    """Difference in ΔEvi between two readers on the same items and shuffles (first minus second).

    Attributes:
        mean: Mean over items of the paired difference.
        standard_error: Cluster-robust standard error of it.
        ci: Cluster t interval.
        p_value: Two-sided sign-flip p-value by group.
        reason: Why values are nan or the interval is degenerate; else None.
    """

    mean: float
    standard_error: float
    ci: Interval
    p_value: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """How far training seeds alone move a value. It belongs beside the interval over items, not in its place.

    Attributes:
        mean: Mean over seeds.
        sd: Sample standard deviation (divisor n - 1) over seeds; nan for one seed.
        n_seeds: Number of seeds.
        reason: Why a value is nan, or that fewer than `FEW_SEEDS` seeds leave the SD open; else None.
        sd_ci: 95 % interval of the SD of normal values (chi-square): for two seeds from 0.45 to 32 times `sd`.
    """

    mean: float
    sd: float
    n_seeds: int
    reason: str | None = None
    sd_ci: Interval = _NO_SPREAD


def reader_works(
    correct_full: ArrayLike,
    correct_majority: ArrayLike,
    predictions: ArrayLike,
    groups: ArrayLike | None = None,
    alpha: float = 0.05,
    *,
    labels: ArrayLike | None = None,
    seed: int = 0,
) -> Works:
    """Test a reader against the constant answer on the same items.

    A reader fails that predicts one class for every item, or whose gain over the constant answer is not above noise
    (one-sided sign-flip test by group, p > alpha). With labels it is also tested against chance, the accuracy that
    its own predictions would have if they were dealt out to the items at random; an interval of accuracy minus chance
    that lies below 0 raises the suspicion that labels are permuted.

    Args:
        correct_full: [n] True where the reader, given query and evidence, is right.
        correct_majority: [n] True where the constant answer is right.
        predictions: [n] the reader's answers.
        groups: [n] cluster of each item; None: each item is its own.
        alpha: Error rate of both tests.
        labels: [n] gold labels; None leaves the test against chance out.
        seed: Seed of the sign-flip patterns.

    Raises:
        DataError: If arrays are not of the same items.
        SettingError: If alpha is not in (0, 1).
    """
    check_alpha(alpha)
    full, majority = zero_one(correct_full, "correct_full"), zero_one(correct_majority, "correct_majority")
    answers = codes(predictions, "predictions", length=len(full))
    difference = paired_difference(full, majority, groups, alpha)
    gain, ci = difference.estimate, difference.ci
    if len(full) == 0:
        return Works(False, math.nan, math.nan, ci, reason="no items")
    p_value = sign_flip_p(full - majority, groups, seed=seed)
    if labels is not None:
        suspicion = _below_chance(answers, codes(labels, "labels", length=len(full)), groups, alpha)
        if suspicion is not None:
            return Works(False, p_value, gain, ci, labels_permuted_suspected=True, reason=suspicion)
    numbers_in_words = f"accuracy {full.mean():.4f}, majority rate {majority.mean():.4f}, p = {p_value:.3g}"
    if (answers == answers[0]).all():
        return Works(False, p_value, gain, ci, reason=f"answers class {answers[0]} for every item ({numbers_in_words})")
    if not p_value <= alpha:
        return Works(
            False, p_value, gain, ci, reason=f"not above the majority rate by more than noise ({numbers_in_words})"
        )
    return Works(True, p_value, gain, ci)


def reader_contrast(
    differences_a: ArrayLike,
    differences_b: ArrayLike,
    groups: ArrayLike | None = None,
    alpha: float = 0.05,
    *,
    seed: int = 0,
) -> ReaderContrast:
    """Paired difference in ΔEvi of reader a minus reader b, on the same items under the same shuffles.

    Args:
        differences_a: [n] per-item effect of reader a: right with its own evidence minus the share of shuffles in
            which it is right (or any other per-item values whose mean is its ΔEvi).
        differences_b: [n] the same of reader b.
        groups: [n] cluster of each item; None: each item is its own.
        alpha: 1 - alpha is the level of the interval.
        seed: Seed of the sign-flip patterns.

    Raises:
        DataError: If arrays are not of the same items.
        SettingError: If alpha is not in (0, 1).
    """
    # Each difference lies in [-1, 1].
    result = paired_difference(differences_a, differences_b, groups, alpha, bound=2.0)
    difference = numbers(differences_a, "differences_a") - numbers(differences_b, "differences_b")
    p_value = sign_flip_p(difference, groups, seed=seed, alternative="two-sided")
    return ReaderContrast(result.estimate, result.standard_error, result.ci, p_value, result.reason)


def seed_spread(values: ArrayLike) -> SeedSpread:
    """Mean and standard deviation of one value over training seeds.

    Args:
        values: [s] the value under each seed; nan where a seed gave none (not counted).
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    known = array[~np.isnan(array)]
    if len(known) == 0:
        return SeedSpread(math.nan, math.nan, 0, "no seed gave a value")
    if len(known) == 1:
        return SeedSpread(float(known[0]), math.nan, 1, "one seed: the spread between seeds is unknown")
    sd, df = float(known.std(ddof=1)), len(known) - 1
    # chdtri is the upper quantile.
    low, high = (sd * math.sqrt(df / float(special.chdtri(df, tail))) for tail in (0.025, 0.975))
    reason = None
    if len(known) < FEW_SEEDS:
        reason = f"too few seeds: {len(known)}, at least {FEW_SEEDS} are needed"
        if sd > 0.0:
            reason += f"; with these the SD may be anything from {low:.2g} to {high:.2g} (95 %)"
    ci = Interval(low, high, reason=None if sd > 0.0 else "degenerate: all seeds give the same value")
    return SeedSpread(float(known.mean()), sd, len(known), reason, ci)


def _below_chance(answers: ArrayLike, labels: ArrayLike, groups: ArrayLike | None, alpha: float) -> str | None:
    """The suspicion in words, where accuracy minus chance is significantly negative; else None."""
    names, both = np.unique(np.concatenate([answers, labels]), return_inverse=True)
    answer, gold = both[: len(both) // 2], both[len(both) // 2 :]
    answer_share = np.bincount(answer, minlength=len(names)) / len(answer)
    gold_share = np.bincount(gold, minlength=len(names)) / len(gold)
    chance = float(answer_share @ gold_share)
    # Influence values of mean(hit) - sum_c share(answer c) share(label c): both shares are estimated on these items.
    influence = (answer == gold) - gold_share[answer] - answer_share[gold] + chance
    excess = cluster_mean(influence, groups, alpha, bound=2.0)
    if not excess.ci.high < 0.0:
        return None
    return (
        f"labels permuted? Accuracy {np.mean(answer == gold):.4f} is significantly below {chance:.4f}, what these"
        " answers would reach at random: check the names and the order of the labels in training and evaluation"
    )
