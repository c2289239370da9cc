"""ΔEvi along the calibration ladder: do stronger readers find what lighter ones miss?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from evidep.audit.packet import AuditPacket
from evidep.report import facts
from evidep.report.numerals import confidence
from evidep.report.style import FAINT, FAMILIES, GREY, INK, WIDTH, label, sheet, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE: Final = 0.21
"""Inches for one interval."""
LEFT: Final = 2.3


@styled
def ladder(packet: AuditPacket) -> Figure:
    """ΔEvi of every reader, weakest rung on top, one interval per shuffle family, with the margin as a band.

    Small dots are the further seeds of a reader. A reader that does not beat the majority rate is grey and says so;
    an arm that is not applicable is named, and no point is drawn for it.
    """
    settings, families, readers = packet["settings"], facts.shuffles(packet), facts.readers(packet)
    slot = LINE * max(len(families), 1) + 0.28
    seeds = " Small dots: further seeds." if len(packet["readers"]) > len(readers) else ""
    page = sheet(
        slot * len(readers) + 0.85,
        f"{label(packet['data']['name'], 60)}: ΔEvi along the ladder of readers",
        f"Accuracy lost when evidence is swapped, with {confidence(settings['alpha'])} intervals; weakest reader on "
        f"top. Shaded: the declared margin ±{settings['margin']:g}.{seeds}",
    )
    axes = page.figure.add_axes(
        (LEFT / WIDTH, page.bottom + page.inches(0.45), 0.985 - LEFT / WIDTH, page.top - page.bottom - page.inches(0.8))
    )
    axes.axvspan(-settings["margin"], settings["margin"], color=FAINT, lw=0, zorder=0)
    axes.axvline(0, color=GREY, lw=0.8, zorder=1)
    for at, reader in enumerate(readers):
        for number, family in enumerate(families):
            y = at + (number - (len(families) - 1) / 2) * LINE / slot
            _interval(axes, packet, reader, family, y)
        if at:
            axes.axhline(at - 0.5, color=FAINT, lw=0.6, zorder=0)
    axes.set_ylim(len(readers) - 0.5, -0.5)
    axes.set_yticks(range(len(readers)), labels=[_name(reader) for reader in readers])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("ΔEvi")
    _span(axes, packet)
    _legend(axes, families)
    return page.figure


def _name(reader: facts.Row) -> str:
    rung = reader.get("strength", "")
    state = f"{rung}, does not work" if not reader["works"] else rung
    return f"{label(reader['reader'], 24)}\n({state})"


def _interval(axes: Axes, packet: AuditPacket, reader: facts.Row, family: str, y: float) -> None:
    rows = facts.delta_rows(packet, reader=reader["reader"], shuffle=family)
    colour, marker = FAMILIES.get(family, (INK, "o"))
    if not reader["works"]:
        colour = "#a8a8a8"
    for row in rows:
        value = facts.effect(row)
        main = row["seed"] == reader["seed"]
        if value is None:
            if main:
                axes.annotate(
                    f"{family}: not applicable", (0, y), (6, 0), textcoords="offset points", va="center", fontsize=8,
                    color=GREY,
                )  # fmt: skip
        elif main:
            if row["ci"] is not None:
                axes.plot(list(row["ci"]), [y, y], color=colour, lw=2, solid_capstyle="butt", zorder=3)
            axes.plot([value], [y], marker, color=colour, ms=7, mec="white", mew=0.8, zorder=5)
        else:
            axes.plot([value], [y], ".", color=INK, ms=4.5, alpha=0.75, zorder=6)


def _span(axes: Axes, packet: AuditPacket) -> None:
    margin = packet["settings"]["margin"]
    ends = [-2 * margin, 2 * margin]
    for row in packet["delta_evi"]:
        value = facts.effect(row)
        ends.extend([*(row["ci"] or ()), *(() if value is None else (value,))])
    pad = 0.04 * (max(ends) - min(ends))
    axes.set_xlim(min(ends) - pad, max(ends) + pad)


def _legend(axes: Axes, families: list[str]) -> None:
    from matplotlib.lines import Line2D

    def key(family: str) -> Any:
        colour, marker = FAMILIES.get(family, (INK, "o"))
        return Line2D([], [], label=family, color=colour, marker=marker, lw=2, ms=7, mec="white", mew=0.8)

    if families:
        axes.legend(
            handles=[key(family) for family in families], loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=9,
            ncols=len(families), handletextpad=0.5, columnspacing=1.4, borderaxespad=0.2,
        )  # fmt: skip
