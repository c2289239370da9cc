"""Radar chart: systems over tasks, which system for which use?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evidep.report.aggregate_looks import LOOKS, by_mean_rank
from evidep.report.style import (
    FAINT,
    GREY,
    label,
    sheet,
    styled,
)
from evidep.stats.aggregate.results import AggregateResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_LINES: Final = 6


MOST_SPOKES: Final = 20


@styled
def radar(result: AggregateResult) -> Figure:
    """Scores of the leading systems on every task: which system for which use?

    Shown are systems of the Pareto front (no other is as good everywhere), at most six, by mean rank. Every spoke is
    one task, outwards is better. A gap in a system's line is a missing score.
    """
    order = by_mean_rank(result)
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
