"""A short version of the validity study (scripts/validate.py), with exact binomial bounds."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from evidep.data.synthetic import planted_world
from evidep.stats import delta_evi as statistic
from evidep.stats.exact import matrix_pair_sums

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="module")
def study() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module("validity_checks")
    finally:
        sys.path.remove(str(SCRIPTS))


def test_counted_sums_are_the_sums_over_all_pairs(study: ModuleType) -> None:
    for size, coherent in study.GROUPINGS.values():
        design = study.design_of("mismatch_detector", size, coherent)
        sample = study.draw(design, 60, np.random.default_rng(0))
        h = design.hits[sample.query[:, None], sample.evidence[None], sample.label[:, None]]
        counted, visited = study.pair_sums(design.hits, sample), matrix_pair_sums(h, sample.group)
        for field in dataclasses.fields(visited):
            expected = np.asarray(getattr(visited, field.name), dtype=float)
            np.testing.assert_allclose(np.asarray(getattr(counted, field.name), dtype=float), expected, atol=1e-12)


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


@pytest.mark.parametrize("n", [60, 240])
def test_errors_under_the_null_hypothesis(study: ModuleType, n: int) -> None:
    for grouping, design in study.null_designs()[::2]:
        found = study.errors_and_coverage(design, n, 60, seed=5)
        for error in ("p", "sensitive"):
            assert study.at_least(found.get(error, 0), 60) <= 0.05, (grouping, design.name, found)
        assert study.at_most(found["covers_exact"], found["given_exact"]) >= 0.95, (grouping, design.name, found)
        assert study.at_most(found["covers_shuffles"], found["given_shuffles"]) >= 0.95


def test_equivalence_at_the_margin_is_rarely_claimed(study: ModuleType) -> None:
    for grouping, design in study.margin_designs()[1::2]:
        assert design.delta_evi == pytest.approx(0.02)
        found = study.errors_and_coverage(design, 400, 60, seed=6)
        assert study.at_least(found.get("equivalent", 0), 60) <= 0.05, (grouping, design.name, found)


def test_coverage_of_planted_effects(study: ModuleType) -> None:
    for grouping, design in study.effect_designs()[1::3]:
        found = study.errors_and_coverage(design, 100, 60, seed=7)
        assert study.at_most(found["covers_exact"], found["given_exact"]) >= 0.95, (grouping, design.name, found)


def test_coverage_of_the_other_intervals(study: ModuleType) -> None:
    found = study.other_intervals(240, 60, 8, study.GROUPINGS["4 items a text, one label"])
    for name in ("accuracy", "mpds", "contrast", "information"):
        assert found[f"given_{name}"] == 60
        assert study.at_most(found[f"covers_{name}"], 60) >= 0.95, (name, found)
    few = study.other_intervals(100, 3, 8, study.GROUPINGS["4 items a text, one label"])
    assert "given_information" not in few  # 25 groups: too few for bits


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
    design = study.dealt(study.design_of("matching", 4, True), 0.0)
    found = study.errors_and_coverage(design, 120, 120, seed=5)
    assert study.at_least(found["p"], 120) > 0.05
