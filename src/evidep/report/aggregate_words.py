"""Sections, tables and number forms of an aggregation report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from evidep.report.escape import one_line
from evidep.report.numerals import UNDEFINED, number, p_value
from evidep.types import Interval

SHORT = {
    "macro": "macro",
    "micro": "micro",
    "chance_normalised": "chance",
    "z_score": "z",
    "difficulty_weighted": "diffic.",
    "spread_weighted": "spread",
    "precision_weighted": "precis.",
    "declared_weights": "declared",
    "iqm": "IQM",
    "optimality_gap": "gap",
    "mean_rank": "rank",
    "borda": "Borda",
    "kemeny": "Kemeny",
}
"""Heads of narrow columns."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table.

    Attributes:
        heads: Column heads.
        sides: One letter per column, "l" left and "r" right.
        rows: Cells as text.
        names: Columns that hold the name of a system or task (strangers' text).
        free: Columns of text in which such names occur.
    """

    heads: tuple[str, ...]
    sides: str
    rows: tuple[tuple[str, ...], ...]
    names: tuple[int, ...] = (0,)
    free: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, sentences, tables, and sentences below them."""

    heading: str
    sentences: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    after: tuple[str, ...] = ()


def digits_of(values: Iterable[float]) -> int:
    """Decimals for a column of scores: 3 for shares, 2 for per cent, 1 for large numbers."""
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return 3 if most <= 10 else 2 if most <= 100 else 1


def shown(value: float, digits: int = 3) -> str:
    """A number, or a dash where it is undefined."""
    return UNDEFINED if math.isnan(value) else number(value, digits)


def p_text(value: float) -> str:
    """A p-value within a sentence."""
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def short(name: str) -> str:
    """A name within a cell that holds several."""
    return one_line(name, 28)


def rank_text(rank: float) -> str:
    """A rank without needless decimals: 3, or 2.5 where tied; two decimals where it is a mean."""
    return UNDEFINED if math.isnan(rank) else f"{rank:.2f}".rstrip("0").rstrip(".")


def range_text(ci: Interval, digits: int) -> str:
    """An interval, or a dash where it is undefined."""
    return UNDEFINED if math.isnan(ci.low) else f"[{number(ci.low, digits)}, {number(ci.high, digits)}]"
