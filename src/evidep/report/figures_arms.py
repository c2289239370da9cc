"""What each arm of the audit scores: constant answer, metadata, full input, swapped evidence, partial input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evidep.audit.packet import AuditPacket
from evidep.report import facts
from evidep.report.numerals import confidence, number
from evidep.report.style import FAMILIES, GREY, INK, NAVY, ORANGE, WIDTH, label, sheet, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW: Final = 0.27
LEFT: Final = 2.05
COLUMNS: Final = 4
"""Most readers side by side; further ones go below."""
_PARTIAL: Final = (
    ("query-only", "retrained", "query only, retrained", ORANGE, ""),
    ("query-only", "masked", "query only, masked", "#f3cf85", "////"),
    ("evidence-only", "retrained", "evidence only, retrained", "#8c6bb1", ""),
    ("evidence-only", "masked", "evidence only, masked", "#cbbfe0", "////"),
    ("empty", "masked", "empty evidence", "#e8e8e8", "...."),
    ("shuffled-training", "retrained", "trained on swapped", "#b8b8b8", "\\\\\\\\"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: an accuracy with its interval, or None with the reason."""

    name: str
    value: float | None
    ci: Sequence[float] | None
    colour: str
    hatch: str = ""


@styled
def arms(packet: AuditPacket) -> Figure:
    """Accuracy of every arm with its interval, one panel per reader (first seed).

    Whiskers of swapped-evidence bars are the interval of ΔEvi, laid off from the full accuracy: where such a whisker
    stays left of the full bar's end, the drop is above noise. An arm that was not run or not applicable shows a dash.
    """
    readers = facts.readers(packet)
    panels = [arm_bars(packet, reader) for reader in readers]
    names = list(dict.fromkeys(bar.name for bars in panels for bar in bars))
    columns = min(COLUMNS, len(panels))
    bands = math.ceil(len(panels) / columns)
    band = ROW * len(names) + 0.75
    page = sheet(
        band * bands,
        f"{label(packet['data']['name'], 60)}: accuracy of every arm",
        f"Whiskers: {confidence(packet['settings']['alpha'])} intervals; on swapped evidence the interval of the drop "
        "from the full accuracy (on the items whose evidence can change). Dotted line: majority rate.",
    )
    grid = page.figure.add_gridspec(
        bands, columns, left=LEFT / WIDTH, right=0.985, bottom=page.bottom + page.inches(0.45),
        top=page.top - page.inches(0.3), wspace=0.08, hspace=0.75 / (band - 0.75),
    )  # fmt: skip
    for at, (reader, bars) in enumerate(zip(readers, panels, strict=True)):
        axes = page.figure.add_subplot(grid[at // columns, at % columns])
        _panel(axes, packet, names, bars, first=at % columns == 0)
        title = label(reader["reader"], 56 // columns)
        axes.set_title(title if reader["works"] else f"{title} (fails)", fontsize=10, pad=4)
    return page.figure


def arm_bars(packet: AuditPacket, reader: facts.Row) -> list[Bar]:
    """The arms of one reader from top to bottom, as they are drawn; undefined ones have no value."""
    name, seed = reader["reader"], reader["seed"]
    bars = [Bar("majority rate", packet["majority_rate"], None, "#9a9a9a")]
    if packet["metadata"]["schema"]:
        bars.append(Bar("metadata alone", packet["metadata"]["accuracy"], None, "#c9c9c9", "xxxx"))
    bars.append(Bar("query and evidence", reader["accuracy_full"], reader["ci"], NAVY))
    for row in facts.delta_rows(packet, reader=name, seed=seed):
        full, ci = facts.accuracy_full(packet, row), row["ci"]
        ends = None if full is None or ci is None else (full - ci[1], full - ci[0])
        colour = FAMILIES.get(row["shuffle"], (INK, "o"))[0]
        bars.append(Bar(f"swapped, {row['shuffle']}", facts.accuracy_shuffled(packet, row), ends, colour))
    for arm, how, title, colour, hatch in _PARTIAL:
        found = facts.ablation(packet, name, seed, arm, how)
        if found is not None:
            bars.append(Bar(title, found["accuracy"], found["ci"], colour, hatch))
    return bars


def _panel(axes: Axes, packet: AuditPacket, names: Sequence[str], bars: Sequence[Bar], *, first: bool) -> None:
    found = {bar.name: bar for bar in bars}
    for at, name in enumerate(names):
        bar = found.get(name)
        if bar is None or bar.value is None:
            axes.text(0.02, at, "–", va="center", color=GREY)
            continue
        axes.barh(at, bar.value, height=0.72, color=bar.colour, hatch=bar.hatch, edgecolor="white", lw=0, zorder=2)
        end = bar.value
        if bar.ci is not None:
            low, high = bar.ci
            axes.plot([low, high], [at, at], color="white", lw=3.2, solid_capstyle="butt", zorder=3)
            axes.plot([low, high], [at, at], color=INK, lw=1.4, solid_capstyle="butt", zorder=4)
            end = max(end, high)
        axes.text(end + 0.02, at, number(bar.value), va="center", fontsize=8.5, zorder=5)
    axes.axvline(packet["majority_rate"], color=GREY, lw=1, ls=":", zorder=3)
    axes.set_xlim(0, 1.22)
    axes.set_xticks([0, 0.5, 1], labels=["0", "0.5", "1"])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), labels=list(names) if first else [""] * len(names))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("accuracy")
