from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from evidep.stats.aggregate.kemeny import exact_positions, kemeny, order_cost
from evidep.stats.aggregate.ranks import average_ranks, borda, pairwise_wins, pareto_front

small = arrays(np.float64, st.tuples(st.integers(2, 5), st.integers(1, 5)), elements=st.integers(0, 3).map(float))


@given(small)
def test_ranks_are_scipys(values):
    assert np.array_equal(average_ranks(values), stats.rankdata(-values, axis=-1))


def test_a_gap_has_no_rank_and_takes_none():
    # 0.9 > 0.5 = 0.5: ranks 1 and (2 + 3) / 2.
    assert np.array_equal(average_ranks(np.array([0.5, np.nan, 0.9, 0.5])), [2.5, np.nan, 1.0, 2.5], equal_nan=True)


def test_wins_by_hand_with_a_gap():
    # Task 0: A 3 > B 1, C has none. Task 1: A 2 = B 2 > C 0.
    gain = np.array([[[3.0, 2.0], [1.0, 2.0], [np.nan, 0.0]]])
    wins, shared = pairwise_wins(gain, np.ones((1, 2)))
    assert wins[0].tolist() == [[0, 1.5, 1], [0.5, 0, 1], [0, 0, 0]]
    assert shared[0].tolist() == [[2, 2, 1], [2, 2, 1], [1, 1, 1]]
    # A: (1.5 / 2 + 1 / 1) / 2 = 0.875; B: (0.5 / 2 + 1) / 2 = 0.625; C: 0.
    assert borda(wins, shared)[0].tolist() == [0.875, 0.625, 0.0]


@given(small)
def test_borda_without_gaps_is_the_mean_rank(values):
    wins, shared = pairwise_wins(values[None], np.ones((1, values.shape[1])))
    n = len(values)
    mean_rank = stats.rankdata(-values, axis=0).mean(axis=1)
    assert np.allclose(borda(wins, shared)[0], (n - mean_rank) / (n - 1))


def test_borda_is_undefined_without_a_common_task():
    gain = np.array([[[1.0, np.nan], [np.nan, 1.0]]])
    assert np.isnan(borda(*pairwise_wins(gain, np.ones((1, 2))))).all()


def slow_front(values):
    return [not any((other >= row).all() and (other > row).any() for other in values) for row in values]


@given(small)
def test_front_is_the_definition(values):
    assert pareto_front(values[None])[0].tolist() == slow_front(values)


def test_equal_systems_are_both_on_the_front_and_a_gap_cannot_be_beaten():
    assert pareto_front(np.array([[[1.0, 2.0], [1.0, 2.0], [0.0, 2.0]]]))[0].tolist() == [True, True, False]
    # B has no score on task 1, so A cannot be seen to be as good everywhere; A is better on the task that B has.
    assert pareto_front(np.array([[[1.0, 2.0], [0.0, np.nan]]]))[0].tolist() == [True, False]


def brute_force(wins):
    """All orders, by definition: mean position over the cheapest ones, their cost and number."""
    n = len(wins)
    orders = list(itertools.permutations(range(n)))
    costs = [
        sum(wins[order[later], order[first]] for first in range(n) for later in range(first + 1, n)) for order in orders
    ]
    least = min(costs)
    best = [order for order, cost in zip(orders, costs, strict=True) if cost == least]
    positions = np.mean([[order.index(s) + 1 for s in range(n)] for order in best], axis=0)
    return positions, least, len(best)


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.integers(0, 3).map(float)))
def test_kemeny_is_the_best_of_all_orders(values):
    wins = pairwise_wins(values[None], np.ones((1, values.shape[1])))[0][0]
    positions, cost, count = brute_force(wins)
    found = kemeny(wins)
    assert np.allclose(found.positions, positions)
    assert (found.cost, found.n_optimal, found.exact) == (cost, count, True)
    assert found.lower_bound <= cost
    batch = exact_positions(np.stack([wins, wins.T]))
    assert np.allclose(batch[0][0], positions)
    assert np.allclose(batch[0][1], brute_force(wins.T)[0])


def test_condorcet_cycle_has_three_best_orders():
    # A > B > C, B > C > A, C > A > B: every pair 2 to 1, so each rotation contradicts 1 + 1 + 2 = 4 comparisons.
    gain = np.array([[[3.0, 1, 2], [2, 3, 1], [1, 2, 3]]])
    found = kemeny(pairwise_wins(gain, np.ones((1, 3)))[0][0])
    assert (found.cost, found.n_optimal, found.lower_bound) == (4.0, 3.0, 3.0)
    assert found.positions.tolist() == [2.0, 2.0, 2.0]


def test_many_systems_are_exact_where_majorities_do_not_cycle():
    rng = np.random.default_rng(0)
    strength = np.arange(40.0)[:, None]
    gain = (strength + rng.normal(0, 1.2, (40, 9)))[None]
    found = kemeny(pairwise_wins(gain, np.ones((1, 9)))[0][0])
    assert found.exact
    assert found.cost == found.lower_bound or found.n_optimal >= 1
    order = np.argsort(found.positions)
    wins = pairwise_wins(gain, np.ones((1, 9)))[0][0]
    assert order_cost(wins, order) <= order_cost(wins, np.argsort(-wins.sum(axis=1)))


def test_large_cycles_are_approximate_and_said_so():
    rng = np.random.default_rng(1)
    wins = pairwise_wins(rng.normal(size=(1, 30, 3)), np.ones((1, 3)))[0][0]
    found = kemeny(wins)
    assert not found.exact
    assert np.isnan(found.n_optimal)
    assert found.cost > found.lower_bound
    assert sorted(found.positions.tolist()) == list(range(1, 31))
    # No single move improves it.
    order = np.argsort(found.positions)
    best = order_cost(wins, order)
    for at in range(30):
        rest = np.delete(order, at)
        for to in range(30):
            assert order_cost(wins, np.insert(rest, to, order[at])) >= best - 1e-9


@pytest.mark.parametrize("n", [1, 2])
def test_smallest_tables(n):
    found = kemeny(np.zeros((n, n)))
    assert found.positions.tolist() == [(n + 1) / 2] * n
