"""Room of the interval, of equivalence and of the minimum detectable effect, by hand: see docs/validity.md."""

import math

import numpy as np
import pytest
from scipy import stats

from evidep.stats.delta_evi import delta_evi
from evidep.stats.resampling import cluster_error, t_interval


def of_differences(full, shuffled, groups=None, **more):
    """ΔEvi of one shuffle without donors: the interval is that of the paired differences alone."""
    donors = np.full((1, len(full)), -2)
    return delta_evi(full, shuffled[None], donors, groups=groups, unchanged_rate=0.0, **more)


def flipped_once():
    """80 items, right in the first half. Each of 20 shuffles flips four others, two of them from right to wrong."""
    full = np.arange(80) < 40
    shuffled = np.tile(full, (20, 1))
    shuffled[np.arange(80) % 20, np.arange(80)] = ~full
    return full, shuffled, np.full((20, 80), -2)


def test_equivalence_is_not_claimed_from_few_groups_that_hardly_differ():
    # Differences are +-1/20, so SE = 0.05 / sqrt(79) = 0.0056.
    found = delta_evi(*flipped_once(), unchanged_rate=0.0, margin=0.02)
    assert found.mean == pytest.approx(0.0)
    assert found.standard_error == pytest.approx(0.05 / math.sqrt(79))
    half = stats.t.ppf(0.95, 79) * 0.05 / math.sqrt(79)
    assert half < 0.02  # without the room this would be equivalence
    unseen = 1 - 0.05 ** (1 / 80)
    assert (found.ci_equivalence.low, found.ci_equivalence.high) == pytest.approx((-unseen, unseen))
    assert found.verdict == "inconclusive"


def test_minimum_detectable_effect_has_the_same_floor():
    found = delta_evi(*flipped_once(), unchanged_rate=0.0)
    error = 0.05 / math.sqrt(79)
    # The interval must clear its own floor of 1 - 0.025^(1/80) in 80 % of samples.
    assert found.minimum_detectable_effect == pytest.approx(1 - 0.025 ** (1 / 80) + stats.norm.ppf(0.8) * error)
    assert found.minimum_detectable_effect > 3 * error


def test_the_interval_holds_that_of_the_items_outside_a_large_group():
    # 5 of 105 items are one group that no shuffle changes; every tenth of the other 100 items loses.
    groups = np.concatenate([np.zeros(5), np.arange(1, 101)]).astype(int)
    shuffled = np.concatenate([np.ones(5), np.tile([0] + [1] * 9, 10)]).astype(bool)
    full = np.ones(105, dtype=bool)
    whole, others = of_differences(full, shuffled, groups), of_differences(full[5:], shuffled[5:])
    differences = full.astype(float) - shuffled
    alone = t_interval(float(differences.mean()), cluster_error(differences, groups), 0.95)
    assert others.ci.high > alone.high
    assert whole.ci.high == others.ci.high
    assert whole.ci_equivalence.high == others.ci_equivalence.high
    assert "outside the largest group" in whole.ci.reason


def test_equivalence_must_hold_outside_the_large_group_too():
    # 40 of 640 items are one group; 5 of the other 600 lose. With the group: 5/640, without: 5/600.
    groups = np.concatenate([np.zeros(40), np.arange(1, 601)]).astype(int)
    shuffled = np.ones(640, dtype=bool)
    shuffled[-5:] = False
    full = np.ones(640, dtype=bool)
    ends = [
        of_differences(full[rows], shuffled[rows], groups[rows]).ci_equivalence.high
        for rows in (np.arange(640), np.arange(40, 640))
    ]
    between = (of_differences(full, shuffled).ci_equivalence.high + ends[1]) / 2
    assert of_differences(full, shuffled, margin=between).verdict == "equivalent"
    assert ends[0] >= ends[1] > between
    assert of_differences(full, shuffled, groups, margin=between).verdict != "equivalent"
