"""The diagnostic map in characters: MPDS to the right, ΔEvi upwards."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Sequence
from dataclasses import dataclass

from evidep.report.facts import Point

HEIGHT = 13
STRIP = 11
AXIS = 7
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
LEAST_SPAN = 0.3
"""The map never zooms in further, so that what is near zero also looks near zero."""


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    cells: int

    def cell(self, value: float) -> int:
        """The cell of a value, 0-based; values outside the scale land in the outermost cell."""
        share = (value - self.low) / (self.high - self.low)
        return min(self.cells - 1, max(0, round(share * (self.cells - 1))))


def letters(points: Sequence[Point]) -> list[tuple[str, Point]]:
    """The letter that stands for each reader on the map (# after Z): small where the reader does not work."""
    names = itertools.chain(string.ascii_uppercase, itertools.repeat("#"))
    main = [point for point in points if point.main]
    return [(letter if point.works else letter.lower(), point) for letter, point in zip(names, main, strict=False)]


def character_map(points: Sequence[Point], *, mpds_high: float, width: int = 72) -> list[str]:
    """Lines of at most `width` characters, or none where no reader has a ΔEvi.

    Intervals are drawn with | and -, two readers in one cell as *. Readers without an MPDS stand in a strip of their
    own, never at 0.
    """
    drawn = [(letter, point) for letter, point in letters(points) if point.effect is not None]
    if not drawn:
        return []
    strip = any(point.mpds is None for _, point in drawn)
    plotted = [point for _, point in drawn if point.mpds is not None]
    columns = max(20, width - AXIS - (STRIP + 1 if strip else 0))
    right = max([1.0, mpds_high, *(_top(point.mpds, point.mpds_ci) for point in plotted)])
    across = _Scale(0.0, math.ceil(right * 10 + 0.5) / 10, columns)
    up = _vertical([point for _, point in drawn])
    grid = [[" "] * columns for _ in range(HEIGHT)]
    side = [" "] * HEIGHT
    _rule(grid, across.cell(mpds_high), up.cell(0.0))
    for _, point in drawn:
        _intervals(grid, point, across, up)
    for letter, point in drawn:
        row = up.cell(point.effect or 0.0)
        if point.mpds is None:
            side[row] = _occupied(side[row], letter)
        else:
            column = across.cell(point.mpds)
            grid[row][column] = _occupied(grid[row][column], letter)
    below = up.cell(0.0) - 1
    _write(grid[HEIGHT - 1], 1, "evidence-sensitive")
    _write(grid[below], 1, "latent coupling or question-dominant")
    _write(grid[below], across.cell(mpds_high) + 2, "direct")
    return _framed(grid, side if strip else None, across, up)


def _top(value: float | None, ci: Sequence[float] | None) -> float:
    return ci[1] if ci is not None else value or 0.0


def _vertical(points: Sequence[Point]) -> _Scale:
    ends = [end for point in points for end in (point.effect_ci or (point.effect or 0.0,))]
    values = [*ends, *(point.effect or 0.0 for point in points), 0.0]
    span = max(max(values) - min(values), LEAST_SPAN)
    step = next((step for step in STEPS if span / step <= HEIGHT - 3), STEPS[-1])
    low = math.floor(min(values) / step - 1e-9) * step
    return _Scale(low, low + step * (HEIGHT - 1), HEIGHT)


def _rule(grid: list[list[str]], column: int, row: int) -> None:
    for line in grid:
        line[column] = ":"
    grid[row] = ["." if character == " " else character for character in grid[row]]


def _write(line: list[str], start: int, text: str) -> None:
    """The name of a region, where nothing else is drawn."""
    text = text[: max(0, len(line) - start)]
    if all(character == " " for character in line[start : start + len(text)]):
        line[start : start + len(text)] = text


def _intervals(grid: list[list[str]], point: Point, across: _Scale, up: _Scale) -> None:
    if point.mpds is None:
        return
    row, column = up.cell(point.effect or 0.0), across.cell(point.mpds)
    if point.mpds_ci is not None:
        for at in range(across.cell(point.mpds_ci[0]), across.cell(point.mpds_ci[1]) + 1):
            grid[row][at] = "-"
    if point.effect_ci is not None:
        for at in range(up.cell(point.effect_ci[0]), up.cell(point.effect_ci[1]) + 1):
            grid[at][column] = "|"


def _occupied(character: str, letter: str) -> str:
    return "*" if character.isalpha() or character == "*" else letter


def _framed(grid: list[list[str]], side: list[str] | None, across: _Scale, up: _Scale) -> list[str]:
    step = (up.high - up.low) / (up.cells - 1)
    lines = []
    for row in reversed(range(HEIGHT)):
        value = up.low + row * step
        label = f"{0.0 if abs(value) < 1e-9 else value:.2f}"
        edge = "" if side is None else "|" + side[row].center(STRIP)
        lines.append(f"{label:>{AXIS - 2}} |{''.join(grid[row])}{edge}".rstrip())
    lines.append(" " * (AXIS - 1) + "+" + "-" * across.cells + ("" if side is None else "+" + "-" * STRIP))
    ticks = [" "] * (across.cells + 4)
    for tenth in range(0, int(across.high * 10) + 1, 2):
        at = across.cell(tenth / 10)
        if at + 3 <= across.cells:
            ticks[at : at + 3] = f"{tenth / 10:.1f}"
    foot = "".join(ticks)[: across.cells].ljust(across.cells)
    lines.append((" " * AXIS + foot + ("" if side is None else " " + "no MPDS".center(STRIP))).rstrip())
    return lines
