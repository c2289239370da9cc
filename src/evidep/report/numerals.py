"""How numbers are written in every table, card and figure. Undefined is a dash, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

UNDEFINED: Final = "–"


def number(value: float | None, digits: int = 3) -> str:
    """A share or difference with a fixed number of decimals; a value that rounds to zero has no sign."""
    if value is None:
        return UNDEFINED
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def interval(ci: Sequence[float] | None, digits: int = 3) -> str:
    """[low, high]."""
    return UNDEFINED if ci is None else f"[{number(ci[0], digits)}, {number(ci[1], digits)}]"


def percent(share: float | None) -> str:
    """A share in per cent; 0 and 100 are printed only where the share is exactly that."""
    if share is None:
        return UNDEFINED
    if 0 < share < 0.001:
        return "<0.1 %"
    if 0.999 < share < 1:
        return ">99.9 %"
    text = f"{100 * share:.1f}".removesuffix(".0")
    return f"{text} %"


def p_value(value: float | None) -> str:
    """A p-value with three decimals, never printed as 0."""
    if value is None:
        return UNDEFINED
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def count(value: int | None) -> str:
    """A whole number with thousands separated."""
    return UNDEFINED if value is None else f"{value:,}"


def confidence(alpha: float) -> str:
    """The level of an interval, 1 - alpha, as a short percentage."""
    return f"{100 * (1 - alpha):g} %"
