"""ΔEvi in planted worlds whose truth is known: coverage, power, type-one errors, large groups and the bootstrap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evidep.stats.delta_evi import bootstrap_delta_evi, delta_evi
from evidep.stats.exact import matrix_pair_sums
from evidep.stats.resampling import cluster_error


def shuffles(rng: np.random.Generator, h: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    donors = np.array([rng.permutation(len(h)) for _ in range(k)])
    return h[np.arange(len(h)), donors], donors


def world(rng: np.random.Generator, n: int, match: float, per_text: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """h and evidence codes: item, evidence text and pair each push the answer, `match` helps on the own evidence.

    P(h_ij) = Phi(a_i + b_e(j) + match 1[i = j]) with a ~ N(0, 1), b ~ N(0, 1/4), so that the true ΔEvi is
    Phi(match / 1.5) - 1/2.
    """
    codes = rng.integers(0, max(2, n // per_text), n)
    n_texts = codes.max() + 1
    level = rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=n_texts) + rng.normal(size=(n, n_texts))
    h = (level > 0)[:, codes]
    h[np.arange(n), np.arange(n)] = level[np.arange(n), codes] + match > 0
    return h, codes


def no_sign_flips(n: int) -> dict[str, Any]:
    """Settings that spare the sign-flip test where only the interval is looked at."""
    return {"correct_uniform": np.zeros((19, n), dtype=bool), "unchanged_rate": 0.0}


def truth(match: float) -> float:
    return float(stats.norm.cdf(match / 1.5)) - 0.5


def test_a_blind_reader_gives_exactly_zero() -> None:
    rng = np.random.default_rng(1)
    right = rng.random(400) < 0.7
    h = np.repeat(right[:, None], 400, axis=1)
    shuffled, donors = shuffles(rng, h, 19)
    sums = matrix_pair_sums(h, np.arange(400))
    result = delta_evi(right, shuffled, donors, correct_uniform=shuffled, sums=sums, unchanged_rate=0.0)
    assert (result.mean, result.exact, result.sd_population, result.sd_permutation) == (0.0, 0.0, 0.0, 0.0)
    assert (result.standard_error, result.ci.low, result.ci.high) == (0.0, 0.0, 0.0)
    assert str(result.ci.reason).startswith("degenerate")
    assert result.p_value == 1.0
    assert (result.verdict, result.negligible) == ("equivalent", False)
    # 40 items that never change leave room for 1 - 0.05^(1/40) = 7 % that would: not equivalent to zero within 2 %;
    # ln 0.05 / ln 0.98 = 148.3 items would be.
    few = delta_evi(right[:40], shuffled[:, :40], None, unchanged_rate=0.0)
    assert (few.verdict, few.items_needed) == ("inconclusive", 149)


def test_a_perfect_matcher_gives_exactly_one() -> None:
    h = np.eye(30, dtype=bool)
    donors = np.array([np.roll(np.arange(30), k) for k in range(1, 20)])
    shuffled = h[np.arange(30), donors]
    sums = matrix_pair_sums(h, np.arange(30))
    result = delta_evi(np.diagonal(h), shuffled, donors, correct_uniform=shuffled, sums=sums, unchanged_rate=0.0)
    assert (result.mean, result.exact, result.p_value) == (1.0, 1.0, 1 / 20)
    # No first-order variance. Permutation variance 29 / (30^2 * 29) = 1/900; sum of w_g^2 w_h^2 over pairs 29/27000:
    # SE^2 = 2 * 30 / 900 * 29 / 27000.
    assert result.standard_error == pytest.approx(math.sqrt(2 * 30 / 900 * 29 / 27000))
    # t SE = 0.017, but 30 items may have missed a share of up to 1 - 0.025^(1/30) = 0.116 that behaves otherwise.
    assert result.ci.low == pytest.approx(0.025 ** (1 / 30))
    assert result.ci.high == 1.0
    assert result.verdict == "sensitive"


def test_minimum_detectable_effect_is_found_with_the_stated_power() -> None:
    rng = np.random.default_rng(2)
    found, effects = 0, []
    for _ in range(400):
        h, codes = world(rng, 150, 0.41)
        shuffled, donors = shuffles(rng, h, 1)
        sums = matrix_pair_sums(h, codes)
        result = delta_evi(np.diagonal(h), shuffled, donors, groups=codes, sums=sums, **no_sign_flips(150))
        effects.append(result.minimum_detectable_effect)
        found += result.ci.low > 0
    power = found / 400
    # The planted effect, Phi(0.41 / 1.5) - 1/2 = 0.108, is close to what the design says it finds in 80 % of samples.
    assert np.median(effects) == pytest.approx(truth(0.41), rel=0.12)
    assert 0.68 < power < 0.92


@pytest.mark.parametrize("n_shuffles", [0, 1, 3, 20])
def test_interval_covers_the_planted_effect(n_shuffles: int) -> None:
    """0 shuffles: exact sums. Items share evidence texts; every world is drawn anew."""
    rng = np.random.default_rng(100 + n_shuffles)
    repeats, hits, estimates, errors = 400, 0, [], []
    for _ in range(repeats):
        h, codes = world(rng, 120, 1.0)
        shuffled, donors = shuffles(rng, h, max(1, n_shuffles))
        sums = matrix_pair_sums(h, codes) if n_shuffles == 0 else None
        # An unrepaired permutation leaves 1 item in 40 with its own text; the planted effect is for other texts.
        keep = codes[donors] != codes
        donors = np.where(keep, donors, (donors + 1) % 120)
        shuffled = h[np.arange(120), donors]
        result = delta_evi(np.diagonal(h), shuffled, donors, groups=codes, sums=sums, **no_sign_flips(120))
        hits += result.ci.low <= truth(1.0) <= result.ci.high
        estimates.append(result.mean if sums is None else result.exact)
        errors.append(result.standard_error)
    noise = math.sqrt(0.95 * 0.05 / repeats)
    assert hits / repeats >= 0.95 - 3 * noise
    ratio = np.mean(errors) / np.std(estimates)
    assert 0.9 < ratio < (1.45 if n_shuffles == 1 else 1.2)


def test_permutation_sd_over_sqrt_k_would_be_far_too_small() -> None:
    rng = np.random.default_rng(4)
    h, codes = world(rng, 300, 1.0)
    shuffled, donors = shuffles(rng, h, 20)
    result = delta_evi(np.diagonal(h), shuffled, donors, groups=codes, unchanged_rate=0.0)
    assert result.standard_error > 2 * result.sd_population / math.sqrt(20)


def test_one_large_group_widens_the_interval() -> None:
    rng = np.random.default_rng(5)
    h, codes = world(rng, 300, 1.0)
    big = np.where(np.arange(300) < 75, 0, codes + 1)
    h[:75, :75] |= np.eye(75, dtype=bool)
    shuffled, donors = shuffles(rng, h, 20)
    result = delta_evi(np.diagonal(h), shuffled, donors, groups=big, unchanged_rate=0.0)
    alone = delta_evi(np.diagonal(h), shuffled, donors, unchanged_rate=0.0)
    assert result.standard_error > 2 * alone.standard_error
    error = cluster_error(np.diagonal(h) - shuffled.mean(axis=0), big)
    assert error.degrees_of_freedom < 10


def test_one_text_in_a_third_of_the_items_gives_no_interval() -> None:
    right, groups = np.arange(300) % 2 == 0, np.maximum(np.arange(300) - 99, 0)
    result = delta_evi(right, ~right[None], None, groups=groups, **no_sign_flips(300))
    assert str(result.ci.reason).startswith("one group holds 33% of the items (more than 25%)")
    assert math.isnan(result.standard_error)
    assert result.verdict == "inconclusive"


def test_type_one_errors_of_p_value_and_equivalence() -> None:
    rng = np.random.default_rng(6)
    repeats, rejected, claimed = 800, 0, 0
    for _ in range(repeats):
        # No pairing: the answers to own and other evidence have one distribution.
        h = rng.random((40, 1)) + rng.random((40, 40)) > 0.9
        uniform, donors = shuffles(rng, h, 19)
        result = delta_evi(np.diagonal(h), uniform, donors, correct_uniform=uniform, unchanged_rate=0.0)
        rejected += result.p_value <= 0.05
        # A true effect as large as the margin, carried by rare items: 4 % lost and 2 % won, margin 0.02.
        full = rng.random(300) < 0.5
        draw = rng.random(300)
        shuffled = np.where(draw < 0.08, False, np.where(draw > 0.96, True, full))
        claimed += delta_evi(full, shuffled[None], None, **no_sign_flips(300)).verdict == "equivalent"
    noise = math.sqrt(0.05 * 0.95 / repeats)
    assert rejected / repeats <= 0.05 + 3 * noise
    assert rejected / repeats >= 0.01
    assert claimed / repeats <= 0.05 + 3 * noise


def test_bootstrap_agrees_with_the_influence_error() -> None:
    rng = np.random.default_rng(7)
    h, codes = world(rng, 400, 1.0)
    shuffled, donors = shuffles(rng, h, 20)
    full = np.diagonal(h)
    interval = bootstrap_delta_evi(full, shuffled, donors, groups=codes, n_resamples=1500, seed=3)
    result = delta_evi(full, shuffled, donors, groups=codes, unchanged_rate=0.0)
    width = (interval.high - interval.low) / (2 * 1.96)
    assert width == pytest.approx(result.standard_error, rel=0.12)
    assert (interval.low + interval.high) / 2 == pytest.approx(result.mean, abs=0.3 * width)
    assert interval == bootstrap_delta_evi(full, shuffled, donors, groups=codes, n_resamples=1500, seed=3)
    assert interval != bootstrap_delta_evi(full, shuffled, donors, groups=codes, n_resamples=1500, seed=4)
