"""A short version of the validity study (scripts/validate.py), with exact binomial bounds."""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evidep.data.synthetic import planted_world
from evidep.stats import delta_evi as statistic
from evidep.stats import information, resampling
from evidep.stats.exact import matrix_pair_sums
from evidep.types import Interval

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def script(name: str) -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return script("validity_checks")


@pytest.fixture(scope="module")
def rare_study() -> ModuleType:
    return script("validity_rare")


def test_counted_sums_are_the_sums_over_all_pairs(study: ModuleType) -> None:
    for size, coherent in study.GROUPINGS.values():
        design = study.design_of("mismatch_detector", size, coherent)
        sample = study.draw(design, 60, np.random.default_rng(0))
        h = design.hits[sample.query[:, None], sample.evidence[None], sample.label[:, None]]
        counted, visited = study.pair_sums(design.hits, sample), matrix_pair_sums(h, sample.group)
        for field in dataclasses.fields(visited):
            expected = np.asarray(getattr(visited, field.name), dtype=float)
            np.testing.assert_allclose(np.asarray(getattr(counted, field.name), dtype=float), expected, atol=1e-12)


def test_counted_sums_hold_inside_strata_and_for_near_miss_donors(study: ModuleType) -> None:
    for _, _, design in study.shuffle_designs()[::3]:
        sample = study.draw(design, 60, np.random.default_rng(1))
        h = design.hits[sample.query[:, None], sample.evidence[None], sample.label[:, None]]
        counted = study.pair_sums(design.hits, sample)
        if sample.near is None:
            visited = matrix_pair_sums(h, sample.group, sample.stratum)
            for field in dataclasses.fields(visited):
                expected = np.asarray(getattr(visited, field.name), dtype=float)
                np.testing.assert_allclose(np.asarray(getattr(counted, field.name), dtype=float), expected, atol=1e-12)
        else:
            assert (sample.group[sample.near] != sample.group[:, None]).all()
            np.testing.assert_allclose(counted.row_mean, h[np.arange(60)[:, None], sample.near].mean(axis=1))


def test_effect_inside_strata_by_hand(study: ModuleType) -> None:
    shortcut = study.design_of("evidence_only_shortcut")
    assert shortcut.delta_evi == pytest.approx(0.5)
    # Evidence names the label, so exchanging it among items of one label changes nothing.
    assert study.stratified(shortcut, np.eye(2)).delta_evi == pytest.approx(0.0)
    # Strata that name the label in half of the items hold 3/4 of one label: wrong in 2 * 3/4 * 1/4.
    half = study.stratified(shortcut, (np.eye(2) + 0.5) / 2)
    assert half.delta_evi == pytest.approx(2 * 0.75 * 0.25)
    assert study.dealt(half, 0.1).delta_evi == pytest.approx(0.1 * 0.375)
    # With 0.8 of one label: wrong in 2 * 0.8 * 0.2.
    assert study.skewed(shortcut, 0.8).delta_evi == pytest.approx(0.32)


def test_designs_are_those_of_the_planted_worlds(study: ModuleType) -> None:
    for world in ("matching", "mismatch_detector", "triviaqa", "latent_coupling"):
        truth = planted_world(world, n_train=5, n_eval=5, seed=0).truth
        assert study.design_of(world).delta_evi == pytest.approx(truth["delta_evi"])
    matching = study.design_of("matching")
    # A tenth of 1/2, whichever way.
    assert study.dealt(matching, 0.1).delta_evi == pytest.approx(0.05)
    assert study.rare(matching, 0.1).delta_evi == pytest.approx(0.05)
    sample = study.draw(matching, 40_000, np.random.default_rng(0))
    same = np.mean(matching.hits[sample.query, sample.evidence, sample.label])
    assert same == 1.0
    swapped = np.mean(matching.hits[sample.query, np.roll(sample.evidence, 1), sample.label])
    assert swapped == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / 40_000))


def test_bounds_are_the_exact_ones(study: ModuleType) -> None:
    # 20 of 100 where 0.05 is promised cannot be chance; 8 of 100 can.
    assert study.at_least(20, 100) == pytest.approx(stats.beta.ppf(0.001, 20, 81))
    assert study.at_least(20, 100) > 0.05 > study.at_least(8, 100)
    assert study.at_most(80, 100) < 0.95 < study.at_most(92, 100)


def hard_cells(study: ModuleType) -> dict[str, tuple[Any, int, int]]:
    """(design, items, samples) of the cells in which each repair of docs/validity.md matters most."""
    large = study.GROUPINGS["a fifth of the items one text and label"]
    matching, shortcut = study.design_of("matching"), study.design_of("evidence_only_shortcut")

    def few_items(design: Any) -> Any:
        return study.rare(design, study.MARGIN / design.delta_evi)

    return {
        "no effect": (study.dealt(matching, 0.0), 300, 1000),
        "no effect, twelve items, many ties": (study.dealt(matching, 0.0), 12, 300),
        "groups share text and label": (study.dealt(study.design_of("matching", 4, True), 0.0), 120, 300),
        "few items carry the effect": (few_items(matching), 60, 400),
        "one large group": (few_items(study.design_of("matching", *large)), 700, 400),
        "evidence alone, skewed labels": (study.skewed(shortcut, 0.8), 100, 300),
        "an effect that all items carry": (study.design_of("mismatch_detector"), 200, 500),
    }


def faults(study: ModuleType, name: str) -> list[str]:
    """The rates of a hard cell that are worse than nominal by more than chance."""
    design, n, samples = hard_cells(study)[name]
    found = study.errors_and_coverage(design, n, samples, seed=5)
    truth = design.delta_evi
    errors = ("p", "nonzero") if abs(truth) < 1e-9 else ("equivalent",)
    wrong = [error for error in errors if study.at_least(found[error], samples) > 0.05]
    for way in ("exact", "shuffles"):
        assert found[f"given_{way}"] > samples / 2
        if study.at_most(found[f"covers_{way}"], found[f"given_{way}"]) < 0.95:
            wrong.append(f"coverage, {way}")
    return wrong


@pytest.mark.parametrize(
    "name",
    [
        "no effect", "no effect, twelve items, many ties", "groups share text and label", "few items carry the effect",
        "one large group", "evidence alone, skewed labels", "an effect that all items carry",
    ],
)  # fmt: skip
def test_hard_cells_hold(study: ModuleType, name: str) -> None:
    assert faults(study, name) == []


def test_the_other_shuffles_hold(study: ModuleType) -> None:
    for kind, grouping, design in study.shuffle_designs()[:10]:
        found = study.errors_and_coverage(design, 120, 80, seed=6)
        errors = {"null": ("p", "nonzero"), "margin": ("equivalent",), "effect": ()}[kind]
        for error in errors:
            assert study.at_least(found[error], 80) <= 0.05, (grouping, design.name, found)
        assert study.at_most(found["covers_exact"], found["given_exact"]) >= 0.95, (grouping, design.name, found)
    assert {kind for kind, _, _ in study.shuffle_designs()[:10]} == {"null", "margin", "effect"}


def test_coverage_of_the_other_intervals(study: ModuleType, rare_study: ModuleType) -> None:
    grouping = study.GROUPINGS["4 items a text, one label"]
    found = study.other_intervals(240, 200, 8, grouping)
    for name in ("accuracy", "mpds", "contrast", "information"):
        assert found[f"given_{name}"] == 200
        assert study.at_most(found[f"covers_{name}"], 200) >= 0.95, (name, found)
    few = study.other_intervals(100, 3, 8, grouping)
    assert "given_information" not in few  # 25 groups: too few for bits
    rare = rare_study.rare_intervals(400, 300, 8, (1, True))
    for name in rare_study.RARE:
        assert rare[f"given_{name}"] + rare.get(f"degenerate_{name}", 0) == 300
        assert study.at_most(rare[f"covers_{name}"], rare[f"given_{name}"]) >= 0.95, (name, rare)
    none = rare_study.rare_intervals(36, 20, 8, grouping)
    assert not [key for key in none if key.startswith(("given", "covers"))]  # nine groups


def test_an_interval_of_the_spread_over_seeds(study: ModuleType, rare_study: ModuleType) -> None:
    for row in rare_study.seed_coverage(400, 3):
        if row["world"] == "normal":
            assert study.at_most(row["covers_sd"], row["given_sd"]) >= 0.95 >= study.at_least(row["covers_sd"], 400)
        assert row["warned"] == (400 if row["seeds"] < 5 else 0)


def test_power_is_about_what_the_minimum_detectable_effect_promises(study: ModuleType) -> None:
    row = study.power_curve(300, 60, (1.0,), seed=9, k=99)[0]
    low, high = study.at_least(row["hits"], 60), study.at_most(row["hits"], 60)
    assert low <= study.predicted_power(1.0) <= high
    assert study.predicted_power(1.0) == pytest.approx(0.8)


def test_regions_of_the_worlds(study: ModuleType) -> None:
    for strong in (False, True):
        for world in ("direct_coupling", "latent_coupling", "question_dominant", "matching", "base_rate_collapse"):
            found = study.regions(world, 1000, 3, 0, strong=strong)
            assert found[study.true_region(world, strong=strong)] == 3, (world, found)


def test_the_study_sees_a_p_value_that_ignores_groups(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistic, "_cluster_p", lambda estimate, error: 0.0)
    assert "p" in faults(study, "groups share text and label")


def test_the_study_sees_intervals_without_room_for_rare_effects(
    study: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resampling, "unseen_share", lambda level, groups: 0.0)
    assert "coverage, exact" in faults(study, "few items carry the effect")


def test_the_study_sees_equivalence_without_room_for_rare_effects(
    study: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_room = statistic.tost
    monkeypatch.setattr(statistic, "tost", lambda *given: with_room(*given[:6], None))
    assert "equivalent" in faults(study, "few items carry the effect")


def test_equivalence_needs_room_for_skewness(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """One item in 50 loses, so ΔEvi is the margin. The verdict depends on their number alone: its error is exact."""

    def claimed(n: int) -> float:
        full, error = np.ones(n, dtype=bool), 0.0
        for lost in range(n // 10):
            found = statistic.delta_evi(full, np.arange(n)[None] >= lost, None, unchanged_rate=0.0)
            error += float(stats.binom.pmf(lost, n, study.MARGIN)) * (found.verdict == "equivalent")
        return error

    assert 0.0 < max(claimed(n) for n in (400, 600, 800, 1000)) <= 0.05
    monkeypatch.setattr(resampling.ClusterError, "room_for_skewness", lambda self, t: (0.0, 0.0))
    assert claimed(600) > 0.08


def test_the_study_sees_that_the_largest_group_is_not_left_out(
    study: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistic, "without_largest", lambda groups: None)
    assert "equivalent" in faults(study, "one large group")


def test_the_study_sees_a_missing_second_order_part(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where evidence decides alone and labels are balanced, the second-order part is all there is.

    The room for rare effects would hide it in this cell, so it is taken away.
    """
    monkeypatch.setattr(resampling, "unseen_share", lambda level, groups: 0.0)
    design = study.design_of("evidence_only_shortcut", 4, True)

    def covers() -> float:
        found = study.errors_and_coverage(design, 100, 200, seed=5)
        return study.at_most(found["covers_exact"], found["given_exact"])

    assert covers() >= 0.95
    monkeypatch.setattr(statistic, "_second_order", lambda *given: 0.0)
    assert covers() < 0.95


def test_the_study_sees_intervals_in_bits_from_few_groups(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(information, "MIN_GROUPS_BITS", 10)
    monkeypatch.setattr(information, "t_interval", without_effective_groups(information.t_interval))
    found = study.other_intervals(20, 400, 8, (1, False))
    assert study.at_most(found["covers_information"], found["given_information"]) < 0.95


def without_effective_groups(interval: Callable[..., Interval]) -> Callable[..., Interval]:
    """The interval with G - 1 degrees of freedom, whichever groups carry the variance."""

    def changed(estimate: float, error: resampling.ClusterError, level: float, bound: float = 1.0) -> Interval:
        error = dataclasses.replace(error, degrees_of_freedom=error.n_groups - 1.0, skewness=0.0)
        return interval(estimate, error, level, bound)

    return changed


def test_the_study_sees_a_standard_error_that_is_too_small(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = statistic.cluster_error

    def smaller(*given: Any) -> resampling.ClusterError:
        error = whole(*given)
        return dataclasses.replace(error, standard_error=0.8 * error.standard_error)

    monkeypatch.setattr(statistic, "cluster_error", smaller)
    assert "coverage, exact" in faults(study, "an effect that all items carry")


def test_the_study_sees_that_items_are_donors_too(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    designs = sys.modules["validity_designs"]
    whole = designs.pair_sums

    def rows_alone(*given: Any) -> Any:
        sums = whole(*given)
        return dataclasses.replace(sums, donor_effect=np.zeros_like(sums.donor_effect))

    monkeypatch.setattr(designs, "pair_sums", rows_alone)
    assert "coverage, exact" in faults(study, "evidence alone, skewed labels")


def test_violations_are_named_and_fresh_samples_decide() -> None:
    report = script("validity_report")
    cell = {"kind": "null", "grouping": "g", "name": "world", "n": 50, "repeats": 100, "p": 4, "nonzero": 0,
            "given_exact": 100, "covers_exact": 96, "given_shuffles": 100, "covers_shuffles": 95}  # fmt: skip
    other = {"grouping": "g", "n": 50, "repeats": 100, "below": 0, "given_mpds": 100, "covers_mpds": 95}
    few = {"groups": 10, "repeats": 100, "given_accuracy": 100, "covers_accuracy": 95}
    seeds = {"seeds": 3, "world": "normal", "repeats": 100, "given_sd": 100, "covers_sd": 95}
    found = {"null": [cell], "margin": [], "effect": [], "shuffles": [], "other": [other], "few_groups": [few],
             "seeds": [seeds]}  # fmt: skip
    assert report.violations(found) == []
    # 20 of 100 where 5 % is promised, 80 of 100 where 95 % is: neither is chance.
    assert report.violations(found | {"null": [cell | {"p": 20}]}) == ["p ≤ 0.05 in 20 of 100: world, g, n = 50"]
    worse = [
        {"null": [cell | {"nonzero": 20}]},
        {"null": [cell | {"covers_shuffles": 80}]},
        {"margin": [cell | {"kind": "margin", "equivalent": 20}]},
        {"shuffles": [cell | {"p": 20}]},
        {"other": [other | {"covers_mpds": 80}]},
        {"other": [other | {"below": 20}]},
        {"few_groups": [few | {"covers_accuracy": 80}]},
        {"seeds": [seeds | {"covers_sd": 80}]},
    ]
    assert [len(report.violations(found | change)) for change in worse] == [1] * 8
    bad = found | {"null": [cell | {"p": 20}]}
    assert report.violations(bad | {"again": [cell | {"repeats": 1000, "p": 50}]}) == []
    assert len(report.violations(bad | {"again": [cell | {"repeats": 1000, "p": 90}]})) == 1


def test_bad_options_and_missing_results_are_refused_in_one_line(tmp_path: Path) -> None:
    validate = [sys.executable, str(SCRIPTS / "validate.py")]

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*validate, *options], capture_output=True, text=True, check=False)

    bad = run("measure", "--scale", "-1", "--out", str(tmp_path / "s.json"))
    assert (bad.returncode, "expected a number above 0" in bad.stderr) == (2, True)
    (tmp_path / "s.json").write_text(json.dumps({"null": []}))
    lacking = run("report", "--out", str(tmp_path / "s.json"), "--docs", str(tmp_path))
    assert lacking.returncode == 2
    assert "lacks margin, effect" in lacking.stderr
    assert "Traceback" not in lacking.stderr
