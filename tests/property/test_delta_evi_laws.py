"""Laws of ΔEvi and of the pair sums that hold for every input."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evidep.stats.delta_evi import delta_evi
from evidep.stats.exact import PairSums, additive_pair_sums, matrix_pair_sums, outer_pair_sums
from evidep.types import DeltaEvi

FEW = settings(max_examples=60, deadline=None)


@st.composite
def scored(draw: st.DrawFn) -> dict[str, Any]:
    """An additive reader on a small table; scores from a narrow range of dyadic fractions, so ties are common."""
    n, n_classes = draw(st.integers(1, 24)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    width = draw(st.sampled_from([1, 3, 50]))
    scale = draw(st.sampled_from([0.25, 1.0, 3.0e5]))
    return {
        "query_scores": rng.integers(-width, width + 1, (n, n_classes)) * scale,
        "evidence_scores": rng.integers(-width, width + 1, (n, n_classes)) * scale,
        "labels": rng.integers(0, n_classes, n),
        "evidence_codes": rng.integers(-3, draw(st.integers(-2, 30)), n),
        "strata": rng.integers(0, draw(st.integers(1, 5)), n) * 1000 - 7,
    }


@st.composite
def shuffled(draw: st.DrawFn) -> dict[str, Any]:
    """Answers under K uniform permutations of an arbitrary matrix h."""
    n, k = draw(st.integers(2, 40)), draw(st.integers(19, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    h = rng.random((n, n)) < rng.random((n, 1)) * draw(st.sampled_from([0.2, 1.0, 5.0]))
    donors = np.array([rng.permutation(n) for _ in range(k)])
    answers = h[np.arange(n), donors]
    return {
        "correct_full": np.diagonal(h).copy(),
        "correct_shuffled": answers,
        "donors": donors,
        "groups": rng.integers(0, n, n),
        "movable": rng.random(n) < draw(st.sampled_from([0.3, 1.1])),
        "correct_uniform": answers,
        "unchanged_rate": 0.0,
    }


def assert_same(a: PairSums, b: PairSums) -> None:
    for field in dataclasses.fields(PairSums):
        first, second = (np.asarray(getattr(sums, field.name), dtype=float) for sums in (a, b))
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-12, err_msg=field.name)


def assert_equal(a: DeltaEvi, b: DeltaEvi) -> None:
    for name in ("mean", "sd_population", "standard_error", "p_value", "accuracy_full", "minimum_detectable_effect"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose((a.ci.low, a.ci.high), (b.ci.low, b.ci.high), rtol=1e-9, atol=1e-12)
    assert (a.verdict, a.n_items, a.n_groups) == (b.verdict, b.n_items, b.n_groups)


@FEW
@given(scored())
def test_counting_equals_visiting_all_pairs(case: dict[str, Any]) -> None:
    scores = case["query_scores"][:, None] + case["evidence_scores"]
    h = scores.argmax(axis=2) == case["labels"][:, None]
    matrix = matrix_pair_sums(h, case["evidence_codes"], case["strata"])
    assert_same(additive_pair_sums(**case), matrix)
    everyone = np.arange(len(h))
    outer = outer_pair_sums(
        lambda rows, donors: scores[np.ix_(rows, donors)],
        case["labels"],
        case["evidence_codes"],
        everyone,
        everyone,
        case["strata"],
        block=5,
    )
    assert_same(outer, matrix)


@FEW
@given(scored(), st.randoms(use_true_random=False))
def test_pair_sums_follow_the_items(case: dict[str, Any], random: Any) -> None:
    n = len(case["labels"])
    order = np.array(random.sample(range(n), n))
    sums, moved = additive_pair_sums(**case), additive_pair_sums(**{name: v[order] for name, v in case.items()})
    taken = {name: getattr(sums, name)[order] for name in PairSums.__slots__ if not name.startswith("permutation")}
    assert_same(moved, dataclasses.replace(sums, **taken))


@FEW
@given(scored())
def test_pair_sums_are_consistent(case: dict[str, Any]) -> None:
    sums = additive_pair_sums(**case)
    moves = sums.n_donors > 0
    np.testing.assert_array_equal(np.isnan(sums.row_mean), ~moves)
    np.testing.assert_array_equal(np.isnan(sums.column_mean), ~moves)
    # Rows and columns count the same pairs.
    pairs = sums.n_donors[moves]
    assert math.isclose(pairs @ sums.row_mean[moves], pairs @ sums.column_mean[moves], abs_tol=1e-9)
    assert abs(sums.donor_effect.sum()) < 1e-9
    shifted = case | {"query_scores": case["query_scores"] + np.arange(len(moves))[:, None]}
    assert_same(additive_pair_sums(**shifted), sums)
    # A wider grouping of texts never gives an item more donors.
    merged = additive_pair_sums(**(case | {"evidence_codes": case["evidence_codes"] // 2}))
    assert (merged.n_donors <= sums.n_donors).all()


@FEW
@given(shuffled())
def test_delta_evi_is_bounded_and_adds_up(case: dict[str, Any]) -> None:
    result = delta_evi(**case)
    if result.verdict == "not_applicable":
        assert not case["movable"].any()
        assert math.isnan(result.mean)
        return
    k = len(case["correct_shuffled"])
    assert -1.0 <= result.mean <= 1.0
    assert math.isclose(result.mean, result.accuracy_full - np.mean(result.accuracy_shuffled), abs_tol=1e-12)
    if math.isnan(result.p_value):
        assert (result.n_groups, result.p_method) == (1, "cluster")
    else:
        assert 1 / (k + 1) <= result.p_value <= 1.0
    if result.p_method == "permutation":
        assert math.isclose(result.p_value * (k + 1), round(result.p_value * (k + 1)), abs_tol=1e-9)
    else:
        assert result.n_groups < result.n_items
    assert 0.0 <= result.sd_population <= 0.5
    if not math.isnan(result.ci.low):
        assert result.n_groups >= 10
        assert -1.0 <= result.ci.low <= result.mean <= result.ci.high <= 1.0
        if result.standard_error > 0:
            assert result.ci.low <= max(result.ci_equivalence.low, -1.0)
            assert min(result.ci_equivalence.high, 1.0) <= result.ci.high
    else:
        assert result.n_groups < 10 or "one group holds" in str(result.ci.reason)
        assert math.isnan(result.standard_error)
        assert result.verdict == "inconclusive"
    if result.verdict == "equivalent":
        assert -0.02 < result.ci_equivalence.low <= result.ci_equivalence.high < 0.02
    if result.verdict == "sensitive":
        assert result.ci.low > 0
        assert result.p_value <= 0.05


@FEW
@given(shuffled(), st.randoms(use_true_random=False))
def test_order_of_items_and_shuffles_and_names_of_groups_do_not_matter(case: dict[str, Any], random: Any) -> None:
    n, k = len(case["correct_full"]), len(case["donors"])
    order, shuffle_order = np.array(random.sample(range(n), n)), random.sample(range(k), k)
    place = np.argsort(order)
    moved = case | {
        "correct_full": case["correct_full"][order],
        "correct_shuffled": case["correct_shuffled"][:, order],
        "donors": place[case["donors"][:, order]][shuffle_order],
        "groups": 5 - 3 * case["groups"][order],
        "movable": case["movable"][order],
        "correct_uniform": case["correct_uniform"][:, order],
    }
    moved["correct_shuffled"] = moved["correct_shuffled"][shuffle_order]
    assert_equal(delta_evi(**moved), delta_evi(**case))


@FEW
@given(shuffled())
def test_items_that_cannot_move_change_nothing(case: dict[str, Any]) -> None:
    n, k = len(case["correct_full"]), len(case["donors"])
    more = case | {
        "correct_full": np.append(case["correct_full"], [True, False, True]),
        "correct_shuffled": np.hstack([case["correct_shuffled"], np.zeros((k, 3), dtype=bool)]),
        "donors": np.hstack([case["donors"], np.tile(np.arange(n, n + 3), (k, 1))]),
        "groups": np.append(case["groups"], [0, 1, 99]),
        "movable": np.append(case["movable"], [False] * 3),
        "correct_uniform": np.hstack([case["correct_uniform"], np.zeros((k, 3), dtype=bool)]),
    }
    assert_equal(delta_evi(**more), delta_evi(**case))


@FEW
@given(shuffled())
def test_answers_that_ignore_the_evidence_give_zero(case: dict[str, Any]) -> None:
    same = np.tile(case["correct_full"], (len(case["donors"]), 1))
    blind = case | {"correct_shuffled": same, "correct_uniform": same, "movable": None}
    result = delta_evi(**blind)
    assert result.mean == 0.0
    assert result.sd_population == 0.0
    assert result.p_value == 1.0
    assert result.verdict == "inconclusive"
