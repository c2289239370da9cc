"""Figure of the validity study: six panels, each with exact binomial intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from validity_checks import ALPHA, GROUPINGS, at_least, at_most, predicted_power
from validity_text import INTERVALS, SHORT

from evidep.report.style import BLUE, GREEN, GREY, PURPLE, VERMILION, label, sheet, styled

COLOURS = dict(zip(GROUPINGS, ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^")), strict=True))
REGION_ITEMS = 200
"""Items a sample of the region panel: with 1,000 nearly all samples land where they should."""


@styled
def write_figure(found: dict[str, Any], path: Path) -> None:
    """Errors at zero and at the margin, coverage of ΔEvi and of the other intervals, power, regions."""
    page = sheet(
        11.3,
        "The audit audited: errors, coverage, power, regions",
        "Planted worlds with known truth, no reader fits. Grey lines: nominal values, which errors must not exceed and "
        "coverage must not fall below. Bars: exact 99 % binomial intervals of the share that the samples show.",
        "First three panels: of the designs of one way of grouping the one that looks worst, so that some "
        "points lie on the wrong side by chance (docs/validity.md draws the worst again). Colours of the first four "
        "panels: blue, each item has its own text; red, four items share text and label; green, a fifth of all do. "
        f"Regions: {REGION_ITEMS} items a sample, an additive and an ideal reader; rows true, columns found.",
    )
    figure = page.figure
    grid = figure.add_gridspec(
        3, 2, left=0.09, right=0.98, bottom=page.bottom + 0.06, top=page.top - 0.035, hspace=0.36, wspace=0.38
    )
    _panel_errors(figure.add_subplot(grid[0, 0]), found["null"], "ΔEvi is 0", ("p", "nonzero"))
    _panel_errors(figure.add_subplot(grid[0, 1]), found["margin"], "ΔEvi is 0.02, the margin", ("equivalent",))
    _panel_coverage(figure.add_subplot(grid[1, 0]), [*found["null"], *found["margin"], *found["effect"]])
    _panel_intervals(figure.add_subplot(grid[1, 1]), found["other"])
    _panel_power(figure.add_subplot(grid[2, 0]), found["power"])
    _panel_regions(figure.add_subplot(grid[2, 1]), found["regions"])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _panel_errors(axes: Any, rows: list[dict[str, Any]], title: str, errors: Sequence[str]) -> None:
    words = {"p": "p ≤ 0.05", "nonzero": "said not to be zero", "equivalent": "said to be equivalent to zero"}
    axes.set_title(f"{title}: worst design", fontsize=10)
    sizes = sorted({row["n"] for row in rows})
    for number, (grouping, (colour, marker)) in enumerate(COLOURS.items()):
        for step, error in enumerate(errors):
            worst = [max(_cells(rows, grouping, n), key=lambda r: r.get(error, 0) / r["repeats"]) for n in sizes]
            shift = 1.1 ** (number + 3.5 * step * (len(errors) > 1))
            _bars(axes, np.array(sizes) * shift, [(r.get(error, 0), r["repeats"]) for r in worst], color=colour,
                  marker=marker, ls=":" if step else "-", mfc="white" if step else colour)  # fmt: skip
    for step, error in enumerate(errors):
        axes.plot([], [], ":" if step else "-", color=GREY, marker="o", ms=4, mfc="white" if step else GREY,
                  label=label(words[error]))  # fmt: skip
    axes.axhline(ALPHA, color=GREY, lw=0.8)
    axes.set(ylabel="share of samples", ylim=(0, 0.2))
    _items(axes, sizes)
    axes.legend(fontsize=8, loc="upper left")


def _panel_coverage(axes: Any, rows: list[dict[str, Any]]) -> None:
    axes.set_title("Interval of ΔEvi: coverage, worst design", fontsize=10)
    sizes = sorted({row["n"] for row in rows})
    for number, (grouping, (colour, marker)) in enumerate(COLOURS.items()):
        given = [[row for row in _cells(rows, grouping, n) if row.get("given_exact")] for n in sizes]
        worst = [min(here, key=lambda r: r["covers_exact"] / r["given_exact"]) for here in given]
        _bars(axes, np.array(sizes) * 1.1**number, [(r["covers_exact"], r["given_exact"]) for r in worst],
              color=colour, marker=marker, label=label(grouping))  # fmt: skip
    axes.axhline(1 - ALPHA, color=GREY, lw=0.8)
    axes.set(ylim=(0.8, 1.005), ylabel="share of intervals")
    _items(axes, sizes)
    axes.legend(fontsize=8, loc="lower left")


def _panel_intervals(axes: Any, rows: list[dict[str, Any]]) -> None:
    axes.set_title("Other intervals: coverage, worst size", fontsize=10)
    for line, name in enumerate(INTERVALS):
        for number, (grouping, (colour, marker)) in enumerate(COLOURS.items()):
            here = [row for row in rows if row["grouping"] == grouping and row.get(f"given_{name}", 0) >= 20]
            if not here:
                continue
            worst = min(here, key=lambda r: r.get(f"covers_{name}", 0) / r[f"given_{name}"])
            covers, given = worst.get(f"covers_{name}", 0), worst[f"given_{name}"]
            low, high = _binomial(covers, given)
            at = line + 0.22 * (number - 1)
            axes.plot([low, high], [at, at], color=colour, lw=0.9)
            axes.plot(covers / given, at, color=colour, marker=marker, ms=4)
    axes.axvline(1 - ALPHA, color=GREY, lw=0.8)
    axes.set_yticks(range(len(INTERVALS)), [short for short, _ in INTERVALS.values()], fontsize=8)
    axes.set(xlim=(0.8, 1.005), ylim=(len(INTERVALS) - 0.5, -0.5), xlabel="share of intervals")
    axes.set_xticks([0.8, 0.85, 0.9, 0.95, 1.0])


def _panel_power(axes: Any, rows: list[dict[str, Any]]) -> None:
    axes.set_title("Effects found, by size in units of the MDE", fontsize=10)
    x = np.linspace(0, 1.6, 60)
    axes.plot(x, [predicted_power(v) for v in x], color=GREY, lw=1, label="predicted")
    styles = {(20, 50): (PURPLE, "D"), (20, 200): (BLUE, "o"), (20, 1000): (GREEN, "^"), (99, 1000): (VERMILION, "s")}
    for number, ((k, n), (colour, marker)) in enumerate(styles.items()):
        here = [r for r in rows if (r["k"], r["n"]) == (k, n)]
        _bars(axes, [r["ratio"] + 0.025 * (number - 1.5) for r in here], [(r["hits"], r["repeats"]) for r in here],
              color=colour, marker=marker, ls="", label=f"K = {k}, {n:,} items")  # fmt: skip
    axes.axvline(1, color=GREY, lw=0.5)
    axes.axhline(0.8, color=GREY, lw=0.5)
    axes.set(xlabel="true ΔEvi / minimum detectable effect", ylabel="share found", ylim=(0, 1.02), xlim=(0, 1.6))
    axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1.02, 0.0))


def _panel_regions(axes: Any, rows: list[dict[str, Any]]) -> None:
    axes.set_title("Regions found, with a strong reader", fontsize=10)
    table, true, seen = _confusion(rows, REGION_ITEMS, strong=True)
    axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i, j in np.ndindex(table.shape):
        if table[i, j] > 0:
            axes.text(j, i, f"{table[i, j]:.2f}", ha="center", va="center", fontsize=8,
                      color="white" if table[i, j] > 0.6 else "black")  # fmt: skip
    axes.set_xticks(range(len(seen)), [SHORT[name] for name in seen], rotation=20, ha="right", fontsize=8)
    axes.set_yticks(range(len(true)), [SHORT[name] for name in true], fontsize=8)


def _confusion(rows: list[dict[str, Any]], n: int, *, strong: bool) -> tuple[Any, list[str], list[str]]:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row["n"] == n and row["strong"] is strong:
            for name, number in row["found"].items():
                counts[row["true"]][name] += number
    true = [name for name in SHORT if name in counts]
    seen = [name for name in SHORT if any(name in found for found in counts.values())]
    table = np.array([[counts[t][s] / sum(counts[t].values()) for s in seen] for t in true])
    return table, true, seen


def _cells(rows: list[dict[str, Any]], grouping: str, n: int) -> list[dict[str, Any]]:
    return [row for row in rows if (row["grouping"], row["n"]) == (grouping, n)]


def _bars(axes: Any, x: Any, counts: Sequence[tuple[int, int]], **style: Any) -> None:
    """Shares with exact 99 % intervals."""
    rate = np.array([hits / n for hits, n in counts])
    bounds = np.array([_binomial(hits, n) for hits, n in counts]).T
    axes.errorbar(x, rate, np.abs(bounds - rate), **{"ms": 4, "lw": 1.2, "elinewidth": 0.8, **style})


def _items(axes: Any, sizes: Sequence[int]) -> None:
    axes.set(xscale="log", xlabel="items")
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()


def _binomial(hits: int, n: int) -> tuple[float, float]:
    return at_least(hits, n, 0.995), at_most(hits, n, 0.995)
