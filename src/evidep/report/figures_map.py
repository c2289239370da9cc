"""The diagnostic map: how far metadata alone goes (MPDS, to the right) against what evidence is worth (ΔEvi, up)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evidep.audit.packet import AuditPacket
from evidep.report import facts, words
from evidep.report.facts import Point
from evidep.report.landmarks import LANDMARKS, SOURCE, Landmark
from evidep.report.numerals import confidence
from evidep.report.style import FAINT, GREY, INK, RUNGS, WIDTH, Sheet, label, sheet, spread, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SENSITIVE_SHADE, DIRECT_SHADE, LATENT_SHADE = "#eef5fa", "#f6c9a8", "#f5e9b0"
DIRECT_INK, LATENT_INK, SENSITIVE_INK = "#8a3a00", "#6b5900", "#0b4a75"
BODY: Final = 4.3
STRIP: Final = 1.5
"""Inches of a side strip for readers or landmarks that have no MPDS."""
STRIP_AT: Final = 0.1
NAME_LIMIT: Final = 26


@styled
def diagnostic_map(packet: AuditPacket, landmarks: bool = True) -> Figure:
    """Every reader as MPDS against ΔEvi under the main shuffle family, with intervals, on shaded regions.

    Further seeds of a reader are small dots. A reader without an MPDS stands in a labelled strip at the side, never at
    0; so do published results whose MPDS is not known. A packet in which no shuffle applied gives a map that says so.

    Args:
        packet: The audit.
        landmarks: Whether to show published results as hollow diamonds.
    """
    settings = packet["settings"]
    points = [point for point in facts.points(packet) if point.effect is not None]
    shown = LANDMARKS if landmarks else ()
    page = sheet(
        BODY,
        f"{label(packet['data']['name'], 60)}: {words.region_title(packet)}",
        f"ΔEvi: accuracy lost when evidence is swapped ({facts.main_shuffle(packet) or 'no'} shuffle). MPDS: accuracy "
        f"of metadata alone over the reader's. Bars: {confidence(settings['alpha'])} intervals.",
        _note(points, landmarks, settings["margin"]),
    )
    board = _Board(settings["margin"], settings["mpds_high"])
    main, own, published = _axes(page, points, shown)
    board.limits(main, points, shown)
    for axes in (main, own, published):
        if axes is not None:
            board.regions(axes, split=axes is main)
    _region_names(main)
    board.landmarks(main, [mark for mark in shown if mark.mpds is not None])
    board.readers(main, [point for point in points if point.mpds is not None], strip=False)
    if published is not None:
        _strip(published, "published,\nMPDS unknown")
        board.strip_landmarks(published, [mark for mark in shown if mark.mpds is None])
    if own is not None:
        _strip(own, "no MPDS\nin this audit")
        board.readers(own, [point for point in points if point.mpds is None], strip=True)
    if not points:
        main.text(0.5, 0.5, "no reader has a ΔEvi in this audit", transform=main.transAxes, ha="center", color=GREY)
    return page.figure


def _note(points: Sequence[Point], landmarks: bool, margin: float) -> str:
    parts = [f"Band around 0: the declared margin ±{margin:g}. Circle: light reader, square: middle, diamond: strong."]
    if any(not point.works for point in points):
        parts.append("Grey cross: does not beat the majority rate, its ΔEvi says nothing.")
    if any(not point.main for point in points):
        parts.append("Small dots: further seeds.")
    if landmarks:
        parts.append(f"Hollow diamonds: published results ({SOURCE}).")
    return " ".join(parts)


def _axes(page: Sheet, points: Sequence[Point], shown: Sequence[Landmark]) -> tuple[Axes, Axes | None, Axes | None]:
    """The map and, where needed, the strip of readers and the strip of landmarks without an MPDS."""
    own = any(point.mpds is None for point in points)
    published = any(mark.mpds is None for mark in shown)
    strips = [STRIP] * (own + published)
    left = 0.72 / WIDTH
    main_width = WIDTH * (0.985 - left) - sum(strips)
    grid = page.figure.add_gridspec(
        1, 1 + len(strips), width_ratios=[main_width, *strips], wspace=0.03, left=left, right=0.985,
        bottom=page.bottom + page.inches(0.5), top=page.top - page.inches(0.1),
    )  # fmt: skip
    main = page.figure.add_subplot(grid[0])
    main.set_xlabel("MPDS")
    main.set_ylabel("ΔEvi")
    sides = [page.figure.add_subplot(grid[1 + at], sharey=main) for at in range(len(strips))]
    return main, sides[0] if own else None, sides[-1] if published else None


def _region_names(main: Axes) -> None:
    left, right = main.get_xlim()
    bottom, top = main.get_ylim()
    pad, indent = 0.015 * (top - bottom), 0.01 * (right - left)
    main.text(indent, top - pad, "evidence-sensitive", color=SENSITIVE_INK, va="top", fontweight="bold")
    for x, side, text, colour in (
        (indent, "left", "latent coupling or\nquestion-dominant", LATENT_INK),
        (right - indent, "right", "direct\ncoupling", DIRECT_INK),
    ):
        main.text(x, bottom + pad, text, color=colour, ha=side, va="bottom", fontsize=9, fontweight="bold")


def _strip(axes: Axes, text: str) -> None:
    axes.set_xlim(0, 1)
    axes.xaxis.set_visible(False)
    axes.tick_params(left=False, labelleft=False)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.text(0.5, -0.02, text, transform=axes.transAxes, ha="center", va="top", fontsize=9)


@dataclass(frozen=True, slots=True)
class _Name:
    """A name for the point (x, y), to stand left of `left` or right of `right`."""

    text: str
    x: float
    y: float
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class _Board:
    """Draws on the map; holds the two borders that every part of it must respect."""

    margin: float
    mpds_high: float

    def limits(self, main: Axes, points: Sequence[Point], shown: Sequence[Landmark]) -> None:
        """Set the limits so that everything is inside, with room for the regions' names below 0."""
        ends = [end for point in points for end in (*(point.effect_ci or ()), point.effect or 0.0)]
        rights = [end for point in points for end in (*(point.mpds_ci or ()), point.mpds or 0.0)]
        high = max([0.3, *ends, *(mark.delta_evi for mark in shown)]) * 1.1
        main.set_ylim(min([0.0, *ends]) - 0.2 * high, high)
        main.set_xlim(0, max([1.15, self.mpds_high + 0.2, *(end + 0.08 for end in rights)]))

    def regions(self, axes: Axes, *, split: bool) -> None:
        """Shade the regions; `split` tells direct coupling from the others at mpds_high."""
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        axes.axhspan(self.margin, top, color=SENSITIVE_SHADE, lw=0, zorder=0)
        if split:
            axes.fill_between([left, self.mpds_high], -self.margin, self.margin, color=LATENT_SHADE, lw=0, zorder=0)
            axes.fill_between([self.mpds_high, right], -self.margin, self.margin, color=DIRECT_SHADE, lw=0, zorder=0)
            axes.axvline(self.mpds_high, color=GREY, lw=0.8, ls=":", zorder=1)
        else:
            axes.axhspan(-self.margin, self.margin, color=FAINT, lw=0, zorder=0)
        axes.axhline(0, color=GREY, lw=0.8, zorder=1)
        axes.set_xlim(left, right)
        axes.set_ylim(bottom, top)

    def readers(self, axes: Axes, points: Sequence[Point], *, strip: bool) -> None:
        """Markers with intervals and names; in a strip all at one place, without an interval of MPDS."""
        named = []
        for point in points:
            x = STRIP_AT if strip or point.mpds is None else float(point.mpds)
            y = float(point.effect or 0.0)
            colour, marker = RUNGS.get(point.strength, RUNGS["light"]) if point.works else (GREY, "x")
            if not point.main:
                axes.plot([x], [y], ".", color=colour, ms=5, alpha=0.8, zorder=4)
                continue
            left = right = x
            if point.effect_ci is not None:
                axes.plot([x, x], list(point.effect_ci), color=colour, lw=1.6, solid_capstyle="butt", zorder=3)
            if point.mpds_ci is not None and not strip:
                left, right = point.mpds_ci
                axes.plot([left, right], [y, y], color=colour, lw=1.6, solid_capstyle="butt", zorder=3)
            edge, width = (colour, 1.8) if marker == "x" else ("white", 0.8)
            axes.plot([x], [y], marker, color=colour, ms=8, mec=edge, mew=width, zorder=5)
            named.append(_Name(label(point.reader, 16 if strip else NAME_LIMIT), x, y, left, right))
        self.names(axes, named, INK)

    def landmarks(self, axes: Axes, marks: Sequence[Landmark]) -> None:
        """Published results with an MPDS; their names stand below the band, out of the readers' way."""
        for mark in marks:
            x = float(mark.mpds or 0.0)
            axes.plot([x], [mark.delta_evi], "D", mfc="none", mec=GREY, ms=7, zorder=2)
            axes.annotate(
                mark.name, (x, mark.delta_evi - self.margin), (0, -3), textcoords="offset points", ha="center",
                va="top", fontsize=8, color=GREY,
            )  # fmt: skip

    def strip_landmarks(self, axes: Axes, marks: Sequence[Landmark]) -> None:
        """Published results without an MPDS."""
        heights = [mark.delta_evi for mark in marks]
        axes.plot([STRIP_AT] * len(marks), heights, "D", mfc="none", mec=GREY, ms=6, zorder=2)
        self.names(axes, [_Name(m.name, STRIP_AT, m.delta_evi, STRIP_AT, STRIP_AT) for m in marks], GREY)

    def names(self, axes: Axes, names: Sequence[_Name], colour: str) -> None:
        """Names beside their points: moved where they would cover one another, then with a line to the point."""
        bottom, top = axes.get_ylim()
        gap = (top - bottom) * 0.047
        middle = 0.62 * axes.get_xlim()[1]
        for rightward in (True, False):
            side = [name for name in names if (name.right < middle) == rightward]
            # A name inside the band around 0 would be struck through by its line: it is lifted above the band.
            lifted = [max(name.y, self.margin + 0.7 * gap) if name.y > -self.margin - gap else name.y for name in side]
            reach = max((name.right for name in side), default=0.0)
            for name, height in zip(side, spread(lifted, gap, bottom + gap / 2, top - gap / 2), strict=True):
                moved = abs(height - name.y) > 0.3 * gap and len(side) > 1
                x = (reach if moved else name.right) if rightward else name.left
                _name(axes, name, x, height, colour, rightward=rightward, line=moved)


def _name(axes: Axes, name: _Name, x: float, height: float, colour: str, *, rightward: bool, line: bool) -> None:
    from matplotlib.patheffects import withStroke

    if line:
        axes.plot([name.x, x], [name.y, height], color=GREY, lw=0.6, zorder=2)
    axes.annotate(
        name.text, (x, height), (8 if rightward else -8, 0), textcoords="offset points",
        ha="left" if rightward else "right", va="center", fontsize=9, color=colour, zorder=6, annotation_clip=False,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )  # fmt: skip
