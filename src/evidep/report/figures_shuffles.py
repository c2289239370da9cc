"""The K accuracies under swapped evidence, beside the accuracy with the items' own evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evidep.audit.packet import AuditPacket
from evidep.report import facts
from evidep.report.style import FAINT, FAMILIES, GREY, INK, WIDTH, label, sheet, styled
from evidep.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW: Final = 0.36
"""Inches for one line of the figure."""
LEFT: Final = 1.75
BINS: Final = 90
HALF_ROW: Final = 0.36


@styled
def shuffle_distribution(packet: AuditPacket) -> Figure:
    """One dot per shuffle, for every reader (first seed) and shuffle family.

    A black bar is the accuracy with the own evidence on the same items, a hollow diamond the mean over all allowed
    donors where the reader gives it exactly, the dotted line the majority rate. An arm that could not be run says why.
    """
    lines = _lines(packet)
    page = sheet(
        0.85 + ROW * len(lines),
        f"{label(packet['data']['name'], 60)}: accuracy under {packet['settings']['k']} evidence shuffles",
        "Each dot is one shuffle. The gap to the black bar (own evidence, same items) is ΔEvi. The spread of the dots "
        "is no standard error: it says how much one shuffle differs from the next.",
    )
    axes = page.figure.add_axes(
        (LEFT / WIDTH, page.bottom + page.inches(0.45), 0.985 - LEFT / WIDTH, page.top - page.bottom - page.inches(0.8))
    )
    for at, (reader, row) in enumerate(lines):
        if row is None:
            axes.text(
                -0.262, at, label(reader, 60), transform=axes.get_yaxis_transform(), va="center", ha="left",
                fontweight="bold",
            )  # fmt: skip
        else:
            _line(axes, packet, row, at)
    axes.axvline(packet["majority_rate"], color=GREY, lw=1.2, ls=":", zorder=1)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_yticks(
        [at for at, (_, row) in enumerate(lines) if row is not None],
        labels=[row["shuffle"] for _, row in lines if row is not None],
    )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(*_span(packet, lines))
    axes.grid(axis="x", color=FAINT, lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel("accuracy")
    _legend(axes)
    return page.figure


def _lines(packet: AuditPacket) -> list[tuple[str, facts.Row | None]]:
    """The lines from top to bottom: a reader's name, then its families."""
    lines: list[tuple[str, facts.Row | None]] = []
    for reader in facts.readers(packet):
        rows = facts.delta_rows(packet, reader=reader["reader"], seed=reader["seed"])
        if rows:
            name = reader["reader"] if reader["works"] else f"{reader['reader']} (does not beat the majority rate)"
            lines.append((name, None))
            lines.extend((reader["reader"], row) for row in rows)
    return lines


def _values(row: facts.Row) -> FloatArray:
    return np.array([value for value in row.get("accuracy_shuffled") or () if value is not None], dtype=np.float64)


def _span(packet: AuditPacket, lines: Sequence[tuple[str, facts.Row | None]]) -> tuple[float, float]:
    values = [float(packet["majority_rate"])]
    for _, row in lines:
        if row is not None:
            values.extend(_values(row).tolist())
            values.extend(value for value in (facts.accuracy_full(packet, row),) if value is not None)
    pad = max(0.03, 0.05 * (max(values) - min(values)))
    return min(values) - pad, max(values) + pad


def _line(axes: Axes, packet: AuditPacket, row: facts.Row, at: int) -> None:
    colour, marker = FAMILIES.get(row["shuffle"], (INK, "o"))
    values, full = _values(row), facts.accuracy_full(packet, row)
    if not len(values) or full is None:
        reason = label(row.get("reason") or "no value", 88)
        axes.text(0.01, at, f"not applicable: {reason}", transform=axes.get_yaxis_transform(), va="center", color=GREY,
                  fontsize=8.5)  # fmt: skip
        return
    size = 5.0 if len(values) <= 40 else 3.2 if len(values) <= 200 else 2.0
    axes.plot(values, at + stacked(values), marker, color=colour, ms=size, mew=0, alpha=0.75, zorder=3)
    axes.plot([full, full], [at - HALF_ROW, at + HALF_ROW], color=INK, lw=2.4, zorder=4)
    if row["exact"] is not None:
        axes.plot([full - row["exact"]], [at], "D", mfc="white", mec=INK, ms=6, mew=1.3, zorder=5)


def stacked(values: FloatArray) -> FloatArray:
    """Heights that keep dots of like value apart: the dots of a narrow bin are stacked about 0, at most half a row."""
    width = max(float(np.ptp(values)) / BINS, 1e-9)
    bins = np.floor((values - values.min()) / max(width, 0.0025)).astype(np.int64)
    heights = np.zeros(len(values))
    for one in np.unique(bins):
        members = np.flatnonzero(bins == one)
        heights[members] = np.arange(len(members)) - (len(members) - 1) / 2
    tallest = float(np.abs(heights).max(initial=0.0))
    return heights * min(0.16, HALF_ROW / tallest) if tallest else heights


def _legend(axes: Axes) -> None:
    from matplotlib.lines import Line2D

    def key(name: str, **how: Any) -> Line2D:
        return Line2D([], [], label=name, **how)

    handles = [
        key("one shuffle", ls="", marker="o", color=FAMILIES["global"][0], ms=5),
        key("own evidence", ls="", marker="|", color=INK, ms=11, mew=2.4),
        key("mean over all donors (exact)", ls="", marker="D", mfc="white", mec=INK, ms=6, mew=1.3),
        key("majority rate", color=GREY, ls=":", lw=1.2),
    ]
    axes.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=9, handletextpad=0.4,
        columnspacing=1.4, borderaxespad=0.2,
    )  # fmt: skip
