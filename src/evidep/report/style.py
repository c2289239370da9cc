"""The look of the figures: colours, sizes, labels, saving. matplotlib's object-oriented API only.

Colours are Okabe and Ito's, which stay apart for colour-blind readers; every colour comes with a marker or a hatch of
its own, so that the figures also work in grey.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from evidep.errors import CacheError, SettingError
from evidep.report.escape import figure_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH: Final = 8.0
"""Inches; at 100 pixels an inch as wide as a card's column."""
DPI: Final = 160
FORMATS: Final = ("png", "svg")

INK, GREY, FAINT = "#1a1a1a", "#6b6b6b", "#d4d4d4"
BLUE, SKY, NAVY = "#0072B2", "#56B4E9", "#12305e"
VERMILION, GREEN, PURPLE, ORANGE = "#D55E00", "#009E73", "#AA4488", "#E69F00"

FAMILIES: Final[dict[str, tuple[str, str]]] = {
    "global": (BLUE, "o"),
    "within-label": (VERMILION, "s"),
    "within-metadata": (GREEN, "^"),
    "near-miss": (PURPLE, "D"),
}
"""Colour and marker of each shuffle family."""
RUNGS: Final[dict[str, tuple[str, str]]] = {
    "baseline": (GREY, "P"),
    "light": (SKY, "o"),
    "middle": (BLUE, "s"),
    "strong": (NAVY, "D"),
}
"""Colour and marker of each rung of the ladder, darker as readers get stronger."""

_RC: Final[dict[str, Any]] = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "svg.hashsalt": "evidep",
    "text.color": INK,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a function under this style and matplotlib's defaults, whatever the caller's own settings are."""

    @wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        from matplotlib import style

        with style.context(_RC, after_reset=True):
            return draw(*args, **kwargs)

    return inside


@dataclass(frozen=True, slots=True)
class Sheet:
    """A figure with its words set, and the band of it that is left for axes (fractions of the height)."""

    figure: Figure
    bottom: float
    top: float

    def inches(self, height: float) -> float:
        """A height in inches as a fraction of the figure."""
        return height / float(self.figure.get_size_inches()[1])


def sheet(body: float, title: str, subtitle: str, note: str = "") -> Sheet:
    """A figure of card width: title, subtitle, `body` inches for axes and their labels, and a note in small print.

    The texts are wrapped here and taken as they are: pass strangers' names through `label` first.
    """
    from matplotlib.figure import Figure

    titles, subtitles = textwrap.wrap(title, 74), textwrap.wrap(subtitle, 116)
    notes = textwrap.wrap(note, 122)
    top = 0.14 + 0.22 * len(titles) + 0.17 * len(subtitles)
    bottom = 0.06 + 0.155 * len(notes) if notes else 0.02
    height = top + body + bottom
    figure = Figure(figsize=(WIDTH, height), dpi=DPI)
    figure.text(0.015, 1 - 0.1 / height, "\n".join(titles), fontsize=12, fontweight="bold", va="top")
    figure.text(0.015, 1 - (0.1 + 0.22 * len(titles)) / height, "\n".join(subtitles), fontsize=9.5, va="top")
    figure.text(0.015, 0.05 / height, "\n".join(notes), fontsize=8.5, color=GREY, va="bottom")
    return Sheet(figure, bottom / height, 1 - top / height)


def label(text: object, limit: int | None = None) -> str:
    """A stranger's text as a label: on one line, no mathematics, unknown glyphs as U+FFFD, shortened in the middle."""
    safe = figure_text(text, limit)
    return "".join(character if ord(character) in _glyphs() else "\ufffd" for character in safe)


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib import font_manager

    return frozenset(font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap())


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions moved apart to at least `gap`, as little as possible, in their order and inside [low, high].

    Positions that would touch form a block, centred on the mean of where its members want to be. More than fit into
    [low, high] keep their gap and run over its upper end.
    """
    order = sorted(range(len(positions)), key=lambda at: positions[at])
    blocks: list[list[float]] = []
    for at in order:
        blocks.append([positions[at]])
        while len(blocks) > 1 and _start(blocks[-2], gap, low, high) + gap * len(blocks[-2]) > _start(
            blocks[-1], gap, low, high
        ):
            last = blocks.pop()
            blocks[-1].extend(last)
    placed = [_start(block, gap, low, high) + gap * at for block in blocks for at in range(len(block))]
    return [height for _, height in sorted(zip(order, placed, strict=True))]


def _start(block: Sequence[float], gap: float, low: float, high: float) -> float:
    """Where the first of a block of labels goes."""
    length = gap * (len(block) - 1)
    return max(low, min(high - length, sum(block) / len(block) - length / 2))


@styled
def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG or SVG (by its suffix), with no date or version in it.

    Raises:
        SettingError: Another suffix.
        CacheError: The file cannot be written.
    """
    kind = path.suffix.removeprefix(".")
    if kind not in FORMATS:
        raise SettingError(f"figures are written as {' or '.join(FORMATS)}, not as {kind!r} ({path.name})")
    metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format=kind, dpi=DPI, metadata=metadata)
    except OSError as error:
        raise CacheError(f"cannot write the figure {path}: {error.strerror or error}") from error
    return path
