from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from evidep.stats.aggregate import Task, score_table
from evidep.stats.aggregate.methods import all_methods
from evidep.stats.aggregate.resample import plan
from evidep.stats.aggregate.stability import (
    leave_one_out,
    rank_interval,
    ranks_of,
    replicate,
    smallest_flip,
    winners,
)


def named(table, name, **more):
    return next(method for method in all_methods(table, **more) if method.name == name)


def test_leave_one_out_is_the_table_without_the_task(table):
    scores = np.random.default_rng(0).uniform(size=(5, 4))
    whole = table(scores)
    for method in all_methods(whole):
        if method.values is None or method.name.endswith("_weighted"):
            continue
        for t, left in enumerate(leave_one_out(method, whole)):
            rest = whole.select(tasks=np.delete(np.arange(4), t))
            alone = named(rest, method.name)
            from evidep.stats.aggregate.stability import observed_values

            assert left.winners == winners(rest, ranks_of(alone, observed_values(alone, rest))), method.name


def test_leave_one_out_shift_by_hand(table):
    # All tasks: A 0.65, B 0.5. Without t0: A 0.4, B 0.5: the two swap places.
    got = leave_one_out(named(table([[0.9, 0.4], [0.5, 0.5]]), "macro"), table([[0.9, 0.4], [0.5, 0.5]]))
    assert [(left.task, left.winners, left.moved) for left in got] == [("t0", ("B",), 1.0), ("t1", ("A",), 0.0)]


def test_flip_by_hand(table):
    # A leads by 0.4 on t0 and trails by 0.1 on t1, mean lead 0.15. Moving w: 0.15 = w (0.4 + 0.1), w = 0.3.
    flip, reason = smallest_flip(named(table([[0.9, 0.4], [0.5, 0.5]]), "macro"), table([[0.9, 0.4], [0.5, 0.5]]))
    assert reason is None
    assert flip.rival == "B"
    assert flip.moved_share == pytest.approx(0.3)
    assert flip.weights == {"t0": pytest.approx(0.2), "t1": pytest.approx(0.8)}


@pytest.mark.parametrize("seed", range(6))
def test_flip_is_the_linear_programme(table, seed):
    scores = np.random.default_rng(seed).uniform(size=(4, 5))
    flip, _ = smallest_flip(named(table(scores), "macro"), table(scores))
    share = np.full(5, 0.2)
    first = int(np.argmax(scores.mean(axis=1)))
    best = math.inf
    for rival in set(range(4)) - {first}:
        lead = scores[first] - scores[rival]
        # w = share + p - m with p, m >= 0: minimise sum p, subject to sum p = sum m, w >= 0, lead . w <= 0.
        eye = np.eye(5)
        program = linprog(
            np.r_[np.ones(5), np.zeros(5)],
            A_ub=np.r_[np.c_[lead, -lead].reshape(1, -1, order="F"), np.c_[-eye, eye]],
            b_ub=np.r_[-lead @ share, share],
            A_eq=np.r_[np.ones(5), -np.ones(5)][None],
            b_eq=[0.0],
        )
        if program.success:
            best = min(best, program.fun)
    assert (flip.moved_share if flip else math.inf) == pytest.approx(best, abs=1e-9)


def test_no_flip_where_the_winner_leads_everywhere_or_ties(table):
    flip, reason = smallest_flip(named(table([[0.9, 0.8], [0.5, 0.5]]), "macro"), table([[0.9, 0.8], [0.5, 0.5]]))
    assert flip is None
    assert "leads on every task" in reason
    flip, reason = smallest_flip(named(table([[0.5, 0.5], [0.5, 0.5]]), "macro"), table([[0.5, 0.5], [0.5, 0.5]]))
    assert flip is None
    assert "level with the winner already" in reason
    flip, reason = smallest_flip(named(table([[0.9, 0.8], [0.5, 0.5]]), "kemeny"), table([[0.9, 0.8], [0.5, 0.5]]))
    assert "not a weighted mean" in reason


def test_rank_interval_counts_from_both_ends():
    # 99 replicates of 2 systems: rank 1 in 3, rank 1.5 in 90, rank 2 in 6; k = floor(0.025 * 100) = 2.
    got = rank_interval(np.array([3, 90, 6]), 1.5, math.inf, 0.95)
    assert (got.low, got.high) == (1.0, 2.0)
    got = rank_interval(np.array([1, 97, 1]), 1.5, math.inf, 0.95)
    assert (got.low, got.high) == (1.5, 1.5)
    assert "one side" in rank_interval(np.array([0, 99, 0]), 1.0, math.inf, 0.95).reason


def test_p_first_matches_exhaustive_resampling(table):
    """Three tasks, two of three drawn: nine equally likely draws, listed in full."""
    scores = np.array([[0.9, 0.2, 0.6], [0.5, 0.7, 0.5]])
    whole = table(scores)
    macro = named(whole, "macro")
    lead = scores[0] - scores[1]
    totals = [lead[i] + lead[j] for i, j in itertools.product(range(3), repeat=2)]
    expected = sum(total > 1e-9 for total in totals) / 9
    got = replicate(whole, (macro,), plan(whole), 20_000, 0)[0]["macro"]
    assert got.p_first[0] == pytest.approx(expected, abs=0.012)
    assert got.p_first.sum() == pytest.approx(1.0)
    assert got.rank_counts.sum(axis=1).tolist() == [20_000, 20_000]


def test_ties_at_the_top_share(table):
    whole = table(np.full((4, 3), 0.5))
    got = replicate(whole, (named(whole, "macro"),), plan(whole), 200, 0)[0]["macro"]
    assert got.p_first.tolist() == [0.25] * 4
    assert ranks_of(named(whole, "macro"), np.array([0.1 + 0.2, 0.3, 0.2])).tolist() == [1.5, 1.5, 3.0]


def test_limited_methods_are_resampled_less(table):
    whole = table(np.random.default_rng(0).uniform(size=(12, 3)))
    got = replicate(whole, all_methods(whole), plan(whole), 500, 0)[0]
    assert len(got["kemeny"].values) == 200
    assert len(got["macro"].values) == 500


def test_systems_with_gaps_are_never_first():
    tasks = [Task(name, True, 0, 1) for name in "ab"]
    whole = score_table([[0.9, math.nan], [0.5, 0.5], [0.4, 0.4]], list("ABC"), tasks)
    got = replicate(whole, (named(whole, "macro"),), plan(whole), 200, 0)[0]["macro"]
    assert got.first.tolist() == [0.0, 200.0, 0.0]


def test_rank_intervals_hold_the_true_rank_near_ties(sampled_table):
    """Systems 1.5 points apart, 5 seeds of SD 5 points, 4 tasks: 120 tables; Monte-Carlo error of 0.95 is 0.02."""
    rng = np.random.default_rng(2)
    mean = np.array([0.5, 0.515, 0.53, 0.545, 0.56])
    held, width = np.zeros(5), 0.0
    for trial in range(120):
        whole = sampled_table([rng.normal(mean[:, None, None], 0.05, (5, 5, 1)) for _ in range(4)], "seeds")
        macro = named(whole, "macro")
        how = plan(whole)
        counts = replicate(whole, (macro,), how, 200, trial)[0]["macro"].rank_counts
        ranks = ranks_of(macro, whole.scores.mean(axis=1))
        ends = [rank_interval(counts[s], ranks[s], how.df, 0.95) for s in range(5)]
        held += [ci.low <= 5 - s <= ci.high for s, ci in enumerate(ends)]
        width += sum(ci.high - ci.low for ci in ends)
    assert (held / 120 >= 0.95 - 3 * 0.02).all()
    assert 0.0 < width / 600 < 3.0
