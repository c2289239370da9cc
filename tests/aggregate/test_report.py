"""Text, page and pictures come from one object: what they show must be its numbers."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

from evidep.report.aggregate_figures import (
    FIGURES,
    critical_difference,
    radar,
    rank_intervals,
    save_figures,
    score_profiles,
    unavailable,
)
from evidep.report.aggregate_sections import sections
from evidep.report.aggregate_text import markdown, render
from evidep.report.aggregate_words import digits_of, rank_text
from evidep.report.style import save
from evidep.stats.aggregate import Settings, Task, analyse, score_table

QUICK = Settings(n_draws=300)


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    base = np.array([0.8, 0.7, 0.75, 0.2])[:, None, None]
    cubes = [np.clip(base + rng.normal(0, 0.04, (4, 5, 1)), 0, 1) for _ in range(5)]
    scores = np.stack([cube.mean(axis=(1, 2)) for cube in cubes], axis=1)
    tasks = [Task(f"suite/t{t}", True, 0, 1, 0.0) for t in range(5)]
    table = score_table(scores, ["A", "B", "C", "D"], tasks, samples=cubes, units=["seeds"] * 5)
    return analyse(table, QUICK, {"suite/t0": ("latent_coupling", "x")})


def text_of(result, width=100):
    from rich.console import Console

    buffer = io.StringIO()
    render(result, Console(file=buffer, width=width, color_system=None, force_terminal=False))
    return buffer.getvalue()


def words_of(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts] + [text.get_text() for text in figure.texts]


def test_text_and_page_show_the_same_numbers(result):
    text, page = text_of(result), markdown(result)
    for standing in result.aggregate("mean_rank").standings:
        assert f"{standing.value:.3f}" in text
        assert f"{standing.value:.3f}" in page
    for section in sections(result):
        assert section.heading in text
    assert "Without tasks that failed their audit" in page
    assert "suite/t0: latent" in page.replace("\\", "")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_number_is_cut_in_a_narrow_terminal(result, width):
    text = text_of(result, width)
    ci = result.aggregate("macro").standings[0].ci
    assert f"[{ci.low:.3f}, {ci.high:.3f}]" in text


def test_radar_draws_the_profiles_of_the_front(result):
    figure = radar(result)
    lines = figure.axes[0].get_lines()
    assert len(lines) == min(6, max(2, int(result.agreement.pareto.sum())))
    first = next(line for line in lines if line.get_label() == "A")
    row = result.table.systems.index("A")
    assert np.allclose(np.asarray(first.get_ydata())[:-1], result.profiles[row])
    assert "t0" in words_of(figure)
    assert any("without 'suite/'" in text for text in words_of(figure))


def test_critical_difference_shows_the_tested_ranks(result):
    words = " ".join(words_of(critical_difference(result)))
    assert f"critical difference {result.nemenyi.critical_difference:.2f}" in words
    for standing in result.aggregate("mean_rank").standings:
        assert f"{standing.value:.2f}" in words


def test_rank_intervals_are_the_standings(result):
    figure = rank_intervals(result)
    axes = figure.axes[0]
    points = {line.get_label(): list(line.get_xdata()) for line in axes.get_lines() if line.get_linestyle() == "None"}
    by_rank = [standing.system for standing in result.aggregate("mean_rank").standings]
    assert points["macro mean"] == [result.aggregate("macro").standing(name).rank for name in by_rank]
    assert [label.get_text() for label in axes.get_yticklabels()] == by_rank
    ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    macro = [result.aggregate("macro").standing(name).rank_ci for name in by_rank]
    assert ends == [[ci.low, ci.high] for ci in macro]


def test_score_profiles_are_shares_of_runs(result):
    found = result.score_profiles
    at = found.systems.tolist().index(0)
    cubes = result.table.samples
    for threshold in (0.5, 0.78):
        k = int(np.argmin(np.abs(found.thresholds - threshold)))
        by_hand = np.mean([(cube[0] > found.thresholds[k]).mean() for cube in cubes])
        assert found.share[at, k] == pytest.approx(by_hand)
    assert (found.low <= found.share).all()
    assert (found.high >= found.share).all()
    assert len(score_profiles(result).axes[0].get_lines()) == 4


def test_files_are_written_and_repeatable(result, tmp_path):
    paths = save_figures(result, tmp_path, ("png",))
    assert [path.stem for path in paths] == list(FIGURES)
    assert all(path.stat().st_size > 5000 for path in paths)
    for name in ("a", "b"):
        save(rank_intervals(result), tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_degenerate_tables_say_why_there_is_no_figure(table):
    one = analyse(table([[0.5, 0.6]]), QUICK)
    assert "at least 2 systems" in unavailable(one, "critical_difference")
    assert unavailable(one, "rank_intervals") == "one system has no ranks"
    assert "at least three tasks" in unavailable(one, "radar")
    equal = analyse(table(np.full((3, 4), 0.5)), QUICK)
    for name, draw in FIGURES.items():
        if unavailable(equal, name) is None:
            draw(equal)
    assert "tied under every aggregate" in text_of(equal)


def test_gaps_and_unknown_scales_still_draw():
    scores = [[1.0, 200.0, math.nan], [2.0, 100.0, 3.0], [3.0, 150.0, 1.0]]
    tasks = [Task("a", True), Task("b", False), Task("c", True)]
    result = analyse(score_table(scores, ["$x$", "_y_", "z" * 80], tasks), QUICK)
    for name, draw in FIGURES.items():
        assert unavailable(result, name) is None
        draw(result)
    assert "position between the worst" in result.profile_scale
    assert "–" in text_of(result)
    # a: 1..3 -> 0, 0.5, 1. b, lower is better: 200, 100, 150 -> 0, 1, 0.5.
    assert result.profiles[:, 0].tolist() == [0.0, 0.5, 1.0]
    assert result.profiles[:, 1].tolist() == [0.0, 1.0, 0.5]


def test_many_systems_and_tasks_stay_readable():
    rng = np.random.default_rng(0)
    tasks = [Task(f"task number {t}", True, 0, 1) for t in range(30)]
    result = analyse(score_table(rng.uniform(size=(70, 30)), [f"system {s}" for s in range(70)], tasks), QUICK)
    assert len(radar(result).axes[0].get_lines()[0].get_xdata()) == 21
    assert "first 20 of 70 systems" in " ".join(words_of(critical_difference(result)))
    text = text_of(result)
    assert "The first 20 of 70 systems by mean rank" in text
    assert len(text.splitlines()) < 220


def test_number_forms():
    assert (rank_text(3.0), rank_text(2.5), rank_text(1.25), rank_text(math.nan)) == ("3", "2.5", "1.25", "–")
    assert (digits_of([0.5]), digits_of([88.0, 2.0]), digits_of([700.0]), digits_of([math.nan])) == (3, 2, 1, 3)
