"""Gaps between two sets of items: arithmetic, coverage, and when no interval is given."""

import math

import numpy as np
import pytest
from scipy import stats

from evidep.stats.diagnostics import side_difference


def coverage(draw, truth, runs=600):
    """Share of the given intervals that hold the truth, and how many were given with a width."""
    found = [draw() for _ in range(runs)]
    given = [side.ci for side in found if side.reason is None]
    return np.mean([ci.low <= truth <= ci.high for ci in given]), len(given)


@pytest.mark.parametrize(
    ("n", "outside", "inner", "outer"),
    [(200, 10, 0.9, 0.7), (200, 10, 0.95, 0.9), (1000, 50, 0.98, 0.98), (400, 200, 0.9, 0.7)],
)
def test_a_small_side_is_covered(n, outside, inner, outer):
    rng = np.random.default_rng(n + outside)
    inside = np.arange(n) >= outside
    rate, given = coverage(
        lambda: side_difference(rng.random(n) < np.where(inside, inner, outer), inside), inner - outer
    )
    assert given > 590
    assert rate >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / given)


def test_groups_on_both_sides_are_covered():
    rng = np.random.default_rng(5)
    group, inside = np.arange(240) // 4, np.arange(240) % 4 > 0
    ends = stats.norm.ppf(np.where(inside, 0.9, 0.7))

    def draw():
        latent = 0.8 * rng.normal(size=60)[group] + 0.6 * rng.normal(size=240)
        return side_difference(latent < ends, inside, group)

    rate, given = coverage(draw, 0.2)
    assert given == 600
    assert rate >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / given)


def test_a_side_without_errors_still_has_room_by_hand():
    # 20 items outside, all right; 40 of 80 inside.
    values, inside = np.arange(100) % 2 == 0, np.arange(100) < 80
    values = values | ~inside
    found = side_difference(values, inside)
    assert (found.mean_inside, found.mean_outside, found.difference) == (0.5, 1.0, -0.5)
    # Outside may be lower by 1 - .025^(1/20), not higher; inside is ±t(79) SE, SE^2 = .25 / 79.
    unseen = 1 - 0.025 ** (1 / 20)
    half = stats.t.ppf(0.975, 79) * math.sqrt(0.25 / 79)
    assert found.ci.high == pytest.approx(-0.5 + math.hypot(half, unseen))
    assert found.ci.low == pytest.approx(-0.5 - half, abs=2e-3)  # the joint interval: 79 of 99 degrees of freedom


def test_an_empty_side_leaves_nothing_to_compare():
    empty = side_difference(np.tile([1.0, 0.0], 30), np.zeros(60, bool))
    assert math.isnan(empty.difference)
    assert empty.mean_outside == 0.5
    assert "no item is inside" in empty.reason


def test_few_groups_on_a_side_give_no_interval():
    inside = np.arange(60) >= 9
    nine = side_difference(np.arange(60) % 2 == 0, inside)
    assert math.isnan(nine.ci.low)
    assert nine.reason == nine.ci.reason == "outside the set: too few groups: 9, at least 10 are needed"
    assert math.isfinite(nine.difference)
    assert math.isfinite(side_difference(np.arange(60) % 2 == 0, np.arange(60) >= 10).ci.low)
    # 30 items outside, but 9 groups
    grouped = side_difference(
        np.arange(60) % 2 == 0,
        np.arange(60) >= 30,
        np.where(np.arange(60) < 30, 100 + np.arange(60) % 9, np.arange(60)),
    )
    assert "outside the set: too few groups: 9" in grouped.reason
    large = side_difference(
        np.arange(60) % 2 == 0, np.arange(60) >= 30, np.where(np.arange(60) < 12, 100, np.arange(60))
    )
    assert large.reason.startswith("outside the set: one group holds 40% of the items")


def test_interval_stays_in_the_possible_range():
    # 1 of 12 wrong on one side, all wrong on the other
    values, inside = np.arange(24) < 11, np.arange(24) < 12
    right = side_difference(values, inside)
    assert right.ci.high <= 1.0
    # Differences of right/wrong lie in [-1, 1], their gap in [-2, 2].
    change = side_difference(np.where(inside, 1.0, -1.0) - (np.arange(24) == 3), inside)
    assert 1.0 < change.ci.high <= 2.0


def test_no_variance_on_either_side_is_degenerate():
    found = side_difference(np.arange(40) < 20, np.arange(40) < 20)
    assert (found.ci.low, found.ci.high) == (1.0, 1.0)
    assert found.reason.startswith("degenerate")
