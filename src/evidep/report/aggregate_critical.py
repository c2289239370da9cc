"""Critical-difference diagram (Demsar 2006): which systems are told apart over tasks?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from evidep.report.aggregate_looks import MOST_SYSTEMS
from evidep.report.style import (
    BLUE,
    GREY,
    INK,
    NAVY,
    VERMILION,
    label,
    sheet,
    styled,
)
from evidep.stats.aggregate.results import AggregateResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


def _mean_ranks(result: AggregateResult) -> np.ndarray:
    """Mean ranks over the tasks of the tests (those that every system has)."""
    from evidep.stats.aggregate.ranks import average_ranks

    columns = result.table.columns(result.test_tasks)
    gain = result.table.scores[:, columns] * result.table.sign[columns]
    return np.asarray(average_ranks(gain.T).mean(axis=0))
