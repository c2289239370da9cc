"""Figures of an aggregation result: radar, critical difference, rank intervals, score profiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evidep.errors import SettingError
from evidep.report.numerals import confidence
from evidep.report.style import (
    BLUE,
    FAINT,
    FORMATS,
    GREEN,
    GREY,
    INK,
    NAVY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
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

MOST_SYSTEMS: Final = 20
MOST_LINES: Final = 6
MOST_SPOKES: Final = 20
LOOKS: Final = (
    (BLUE, "o", "-"),
    (VERMILION, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
    (ORANGE, "v", (0, (5, 1, 1, 1))),
    (SKY, "P", (0, (3, 1))),
    (NAVY, "X", (0, (1, 1))),
    (GREY, "*", (0, (6, 2))),
)
"""Colour, marker and line of each system, so that the figures also work in grey."""


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
def radar(result: AggregateResult) -> Figure:
    """Scores of the leading systems on every task: which system for which use?

    Shown are systems of the Pareto front (no other is as good everywhere), at most six, by mean rank. Every spoke is
    one task, outwards is better. A gap in a system's line is a missing score.
    """
    order = _by_mean_rank(result)
    front = [s for s in order if result.agreement.pareto[s]]
    systems = (front + [s for s in order if s not in front])[: min(MOST_LINES, max(len(front), 2))]
    tasks = np.flatnonzero((~np.isnan(result.profiles)).any(axis=0))
    cut = len(tasks) > MOST_SPOKES
    if cut:
        spread = np.nan_to_num(np.nanstd(result.profiles[systems][:, tasks], axis=0))
        tasks = np.sort(tasks[np.argsort(-spread, kind="stable")[:MOST_SPOKES]])
    values = result.profiles[systems][:, tasks]
    title = "Systems over tasks" if result.single_order else "Tasks conflict: no single order"
    left_out = f" The {MOST_SPOKES} tasks that differ most are shown." if cut else ""
    names, prefix = _without_prefix([result.table.task_names[t] for t in tasks])
    page = sheet(
        6.0,
        title,
        f"Systems of the Pareto front ({len(front)} of {len(result.table.systems)}"
        + (f", {len(systems)} shown" if len(systems) < len(front) else "")
        + "); outwards is better.",
        f"Scale: {label(result.profile_scale)}.{left_out}"
        + (f" Task names without {label(prefix)!r}." if prefix else ""),
    )
    height = page.top - page.bottom
    axes: Any = page.figure.add_axes((0.18, page.bottom + 0.2 * height, 0.64, 0.74 * height), projection="polar")
    angles = np.linspace(0.0, 2.0 * np.pi, len(tasks), endpoint=False)
    # The shape starts at the worst value shown, or differences between good systems are invisible.
    floor = _nice_floor(values)
    for at, s in enumerate(systems):
        colour, marker, line = LOOKS[at % len(LOOKS)]
        axes.plot(
            np.append(angles, angles[:1]),
            np.append(values[at], values[at, :1]),
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=4,
            linewidth=1.6,
            label=label(result.table.systems[s], 46),
        )
    axes.set_theta_offset(np.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(floor, 1.0)
    rings = np.linspace(floor, 1.0, 5)
    axes.set_yticks(rings, [f"{ring:.2f}" for ring in rings], fontsize=7.5, color=GREY)
    axes.set_rlabel_position(180.0 / len(tasks))
    axes.set_xticks(angles, [""] * len(tasks))
    axes.grid(color=FAINT, linewidth=0.8)
    axes.spines["polar"].set_color(FAINT)
    for angle, name in zip(angles, [label(name, 24) for name in names], strict=True):
        side = math.sin(angle)
        axes.annotate(
            name,
            (angle, 1.0),
            xytext=(9 * side, 9 * math.cos(angle)),
            textcoords="offset points",
            ha="center" if abs(side) < 0.1 else "left" if side > 0 else "right",
            va="center" if abs(side) > 0.5 else "bottom" if math.cos(angle) > 0 else "top",
            fontsize=8.5,
            annotation_clip=False,
        )
    page.figure.legend(
        *axes.get_legend_handles_labels(),
        loc="lower center",
        bbox_to_anchor=(0.5, page.bottom),
        ncols=2 if len(systems) > 2 else 1,
        fontsize=8.5,
        handlelength=3,
    )
    return page.figure


@styled
def critical_difference(result: AggregateResult) -> Figure:
    """Mean ranks with bars over runs of systems that are not told apart (Demsar 2006).

    Upper bars: Nemenyi, all pairs closer than the critical difference. Lower bars: Wilcoxon signed-rank with Holm.
    """
    names = result.table.systems
    ranks = _mean_ranks(result)
    order = np.argsort(ranks, kind="stable")[:MOST_SYSTEMS]
    shown = set(order.tolist())
    place = {int(s): ranks[s] for s in order}
    nemenyi = [kept for group in result.nemenyi.groups if len(kept := [s for s in group if s in shown]) > 1]
    wilcoxon = [kept for group in result.wilcoxon_groups if len(kept := [s for s in group if s in shown]) > 1]
    n_left = (len(order) + 1) // 2
    rows = max(n_left, len(order) - n_left)
    bars = len(nemenyi) + len(wilcoxon)
    body = 1.2 + 0.2 * bars + 0.24 * rows
    cut = f" The first {len(order)} of {len(names)} systems are shown." if len(order) < len(names) else ""
    alpha = result.settings.alpha
    holm = f" Dashed: Wilcoxon signed-rank with Holm at {alpha:g}." if len(result.wilcoxon.p_value) else ""
    page = sheet(
        body,
        "Which systems are told apart over tasks",
        f"Mean rank over {len(result.test_tasks)} tasks (1 = best). Solid bars join systems that Nemenyi's test at "
        f"{alpha:g} does not tell apart (closer than the critical difference).{holm}",
        f"Tests take the tasks as a sample of tasks like these.{cut}",
    )
    axes: Axes = page.figure.add_axes((0.02, page.bottom, 0.96, page.top - page.bottom))
    axes.set_axis_off()
    low, high = math.floor(min(place.values())), math.ceil(max(place.values()))
    high = max(high, low + 1)
    left, right = 0.33, 0.67
    scale = (right - left) / (high - low)

    def x(rank: float) -> float:
        return float(left + (rank - low) * scale)

    axes.set_xlim(0, 1)
    axes.set_ylim(-body, 0)
    top = -0.75
    axes.plot([left, right], [top, top], color=INK, linewidth=1.2)
    step = max(1, math.ceil((high - low) / 10))
    for tick in range(low, high + 1, step):
        axes.plot([x(tick)] * 2, [top, top + 0.08], color=INK, linewidth=1.0)
        axes.text(x(tick), top + 0.12, str(tick), ha="center", va="bottom", fontsize=9)
    width = result.nemenyi.critical_difference * scale
    if width <= right - left + 0.2:
        axes.plot([left, left + width], [-0.28, -0.28], color=VERMILION, linewidth=2.2, marker="|", markersize=9)
        axes.text(
            left + width + 0.012,
            -0.28,
            f"critical difference {result.nemenyi.critical_difference:.2f}",
            va="center",
            fontsize=9,
            color=VERMILION,
        )
    else:
        text = f"critical difference {result.nemenyi.critical_difference:.2f}: wider than the whole axis"
        axes.text(left, -0.28, text, va="center", fontsize=9, color=VERMILION)
    y = top - 0.16
    for groups, style in ((nemenyi, "-"), (wilcoxon, (0, (4, 1.5)))):
        for group in groups:
            ends = [x(place[s]) for s in group]
            pad = 0.006
            axes.plot(
                [min(ends) - pad, max(ends) + pad],
                [y, y],
                color=INK if style == "-" else BLUE,
                linewidth=3.4 if style == "-" else 2.4,
                linestyle=style,
                solid_capstyle="butt",
                dash_capstyle="butt",
            )
            y -= 0.2
    start = y - 0.1
    for at, s in enumerate(order.tolist()):
        first_half = at < n_left
        row = at if first_half else len(order) - 1 - at
        height = start - 0.24 * row
        edge = left - 0.02 if first_half else right + 0.02
        axes.plot([x(place[s])] * 2 + [edge], [top, height, height], color=GREY, linewidth=0.8)
        axes.plot([x(place[s])], [top], marker="o", color=NAVY, markersize=4)
        text = f"{label(names[s], 25)}  {place[s]:.2f}" if first_half else f"{place[s]:.2f}  {label(names[s], 25)}"
        axes.text(edge, height, f" {text} ", ha="right" if first_half else "left", va="center", fontsize=8.5)
    return page.figure


@styled
def rank_intervals(result: AggregateResult) -> Figure:
    """Rank of every system under several aggregates, with bootstrap intervals."""
    wanted = [name for name in ("macro", "chance_normalised", "iqm", "mean_rank", "kemeny") if _has(result, name)]
    if "macro" in wanted and "chance_normalised" in wanted:
        wanted.remove("chance_normalised")
    order = _by_mean_rank(result)[:MOST_SYSTEMS]
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


def _by_mean_rank(result: AggregateResult) -> list[int]:
    place = {name: s for s, name in enumerate(result.table.systems)}
    return [place[standing.system] for standing in result.aggregate("mean_rank").standings]


def _mean_ranks(result: AggregateResult) -> np.ndarray:
    """Mean ranks over the tasks of the tests (those that every system has)."""
    from evidep.stats.aggregate.ranks import average_ranks

    columns = result.table.columns(result.test_tasks)
    gain = result.table.scores[:, columns] * result.table.sign[columns]
    return np.asarray(average_ranks(gain.T).mean(axis=0))


def _without_prefix(names: list[str]) -> tuple[list[str], str]:
    """Names without what all of them begin with, up to a separator; and that beginning."""
    first, last = min(names), max(names)
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    common = first[:same]
    cut = max(common.rfind(separator) for separator in "/_- :.") + 1
    if len(names) < 2 or cut < 4:
        return names, ""
    return [name[cut:] for name in names], common[:cut]


def _nice_floor(values: np.ndarray) -> float:
    """A round number a little below the least value, at least 0 where all values are."""
    least = float(np.nanmin(values))
    floor = math.floor((least - 0.05) * 10) / 10
    return min(0.9, max(0.0, floor) if least >= 0 else floor)


def _many_runs(result: AggregateResult) -> bool:
    """Whether there is more than one score in a cell, so that a system's runs are more than its tasks."""
    return any(unit in ("seeds", "items and seeds") for unit in result.table.units)


def _has(result: AggregateResult, name: str) -> bool:
    return any(aggregate.name == name and aggregate.standings for aggregate in result.aggregates)
