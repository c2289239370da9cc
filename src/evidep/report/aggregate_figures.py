"""Figures of an aggregation result: radar, critical difference, rank intervals, score profiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from evidep.errors import SettingError
from evidep.report.aggregate_critical import critical_difference
from evidep.report.aggregate_looks import LOOKS, MOST_SYSTEMS, by_mean_rank
from evidep.report.aggregate_radar import radar
from evidep.report.numerals import confidence
from evidep.report.style import (
    FAINT,
    FORMATS,
    WIDTH,
    label,
    save,
    sheet,
    styled,
)
from evidep.stats.aggregate.results import AggregateResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_figures(result: AggregateResult, folder: str | Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write every figure that the result allows into a folder.

    Raises:
        SettingError: An unknown format.
        CacheError: A file cannot be written.
    """
    for kind in formats:
        if kind not in FORMATS:
            raise SettingError(f"formats: {kind!r} is unknown; choose from {', '.join(FORMATS)}")
    written: list[Path] = []
    for name, draw in FIGURES.items():
        if unavailable(result, name) is None:
            figure = draw(result)
            written.extend(save(figure, Path(folder) / f"{name}.{kind}") for kind in formats)
    return written


def unavailable(result: AggregateResult, name: str) -> str | None:
    """Why a figure cannot be drawn, or None where it can."""
    if name == "radar" and int((~np.isnan(result.profiles)).any(axis=0).sum()) < 3:
        return "a radar needs at least three tasks with a common scale"
    if name == "critical_difference" and math.isnan(result.nemenyi.critical_difference):
        return str(result.nemenyi.reason)
    if name == "rank_intervals" and len(result.table.systems) < 2:
        return "one system has no ranks"
    if name == "score_profiles" and np.isnan(result.score_profiles.share).all():
        return "no task has a common scale"
    return None


@styled
def rank_intervals(result: AggregateResult) -> Figure:
    """Rank of every system under several aggregates, with bootstrap intervals."""
    wanted = [name for name in ("macro", "chance_normalised", "iqm", "mean_rank", "kemeny") if _has(result, name)]
    if "macro" in wanted and "chance_normalised" in wanted:
        wanted.remove("chance_normalised")
    order = by_mean_rank(result)[:MOST_SYSTEMS]
    lane = 0.13
    row = lane * len(wanted) + 0.12
    cut = (
        f" The first {len(order)} of {len(result.table.systems)} systems by mean rank."
        if len(order) < len(result.table.systems)
        else ""
    )
    intervals = any(
        not math.isnan(standing.rank_ci.low) for name in wanted for standing in result.aggregate(name).standings
    )
    level = f"Whiskers: {confidence(result.settings.alpha)} bootstrap intervals." if intervals else "No intervals."
    legend = 0.5 + 0.2 * math.ceil(len(wanted) / 3)
    page = sheet(
        row * len(order) + legend + 0.15,
        "How firm is each system's rank",
        f"Rank under {len(wanted)} aggregates (1 = best). {level}{cut}",
        result.covers,
    )
    bottom = page.bottom + page.inches(legend)
    axes: Axes = page.figure.add_axes((2.5 / WIDTH, bottom, 1 - 2.5 / WIDTH - 0.03, page.top - bottom))
    most = 1.0
    for at, name in enumerate(wanted):
        colour, marker, _ = LOOKS[at]
        aggregate = result.aggregate(name)
        heights, ranks, lows, highs = [], [], [], []
        for line, s in enumerate(order):
            standing = aggregate.standing(result.table.systems[s])
            if math.isnan(standing.rank):
                continue
            heights.append(line * row + lane * (at - (len(wanted) - 1) / 2))
            ranks.append(standing.rank)
            lows.append(standing.rank if math.isnan(standing.rank_ci.low) else standing.rank_ci.low)
            highs.append(standing.rank if math.isnan(standing.rank_ci.high) else standing.rank_ci.high)
        axes.hlines(heights, lows, highs, color=colour, linewidth=1.4)
        axes.plot(ranks, heights, linestyle="none", marker=marker, color=colour, markersize=4.5, label=aggregate.title)
        most = max([most, *highs])
    axes.set_ylim(row * (len(order) - 0.5), -row * 0.5)
    axes.set_xlim(0.5, most + 0.5)
    axes.set_yticks([line * row for line in range(len(order))], [label(result.table.systems[s], 29) for s in order])
    axes.tick_params(axis="y", labelsize=8.5, length=0)
    for line in range(len(order) - 1):
        axes.axhline((line + 0.5) * row, color=FAINT, linewidth=0.6)
    axes.set_xlabel("rank", labelpad=2)
    axes.set_xticks(range(1, math.ceil(most) + 1, max(1, math.ceil(most / 12))))
    page.figure.legend(
        *axes.get_legend_handles_labels(),
        loc="lower center",
        bbox_to_anchor=(0.5, page.bottom),
        ncols=min(3, len(wanted)),
        fontsize=8.5,
        handletextpad=0.3,
    )
    return page.figure


@styled
def score_profiles(result: AggregateResult) -> Figure:
    """Share of a system's runs above each score: how often is it good, not only how good on average."""
    found = result.score_profiles
    lines = min(len(found.systems), len(LOOKS) if _many_runs(result) else 5)
    # Tasks resampled give bands so wide that they hide the lines they belong to; the report has the intervals.
    bands = _many_runs(result) and not np.isnan(found.low).all()
    legend = 0.5 + 0.2 * math.ceil(lines / 2)
    band_text = (
        f"Bands: pointwise {confidence(result.settings.alpha)} bootstrap." if bands else "No bands: single scores."
    )
    page = sheet(
        3.7 + legend,
        "Score profiles",
        f"Share of runs above a threshold, tasks weighing the same; higher is better at every threshold. {band_text}",
        f"Threshold: {label(result.profile_scale)}." + (f" {result.covers}" if bands else ""),
    )
    bottom = page.bottom + page.inches(legend)
    axes: Axes = page.figure.add_axes((0.085, bottom, 0.89, page.top - bottom))
    for at, s in enumerate(found.systems[:lines].tolist()):
        colour, marker, line = LOOKS[at % len(LOOKS)]
        if bands:
            axes.fill_between(found.thresholds, found.low[at], found.high[at], color=colour, alpha=0.12, linewidth=0)
        axes.plot(
            found.thresholds,
            found.share[at],
            color=colour,
            linestyle=line,
            marker=marker,
            markevery=(2 * at, 14),
            markersize=4.5,
            linewidth=1.6,
            drawstyle="steps-post",
            label=label(result.table.systems[s], 44),
        )
    everywhere = np.flatnonzero((found.share[:lines] >= 1.0).all(axis=0))
    start = float(found.thresholds[everywhere[-1]]) if len(everywhere) else 0.0
    axes.set_xlim(max(0.0, math.floor(start * 20 - 1) / 20), 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("threshold", labelpad=2)
    axes.set_ylabel("share of runs above")
    page.figure.legend(
        *axes.get_legend_handles_labels(),
        loc="lower center",
        bbox_to_anchor=(0.5, page.bottom),
        ncols=2,
        fontsize=8.5,
        handlelength=3,
    )
    return page.figure


FIGURES: Final[dict[str, Callable[[AggregateResult], Figure]]] = {
    "radar": radar,
    "critical_difference": critical_difference,
    "rank_intervals": rank_intervals,
    "score_profiles": score_profiles,
}


def _many_runs(result: AggregateResult) -> bool:
    """Whether there is more than one score in a cell, so that a system's runs are more than its tasks."""
    return any(unit in ("seeds", "items and seeds") for unit in result.table.units)


def _has(result: AggregateResult, name: str) -> bool:
    return any(aggregate.name == name and aggregate.standings for aggregate in result.aggregates)
