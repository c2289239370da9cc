"""How systems look in the figures of an aggregation, and in which order they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidep.report.style import (
    BLUE,
    GREEN,
    GREY,
    NAVY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
)
from evidep.stats.aggregate.results import AggregateResult

if TYPE_CHECKING:
    pass


MOST_SYSTEMS: Final = 20


LOOKS: Final = (
    (BLUE, "o", "-"),
    (VERMILION, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
    (ORANGE, "v", (0, (5, 1, 1, 1))),
    (SKY, "P", (0, (3, 1))),
    (NAVY, "X", (0, (1, 1))),
    (GREY, "*", (0, (6, 2))),
)
"""Colour, marker and line of each system, so that the figures also work in grey."""


def by_mean_rank(result: AggregateResult) -> list[int]:
    """Positions of the systems, best mean rank first."""
    place = {name: s for s, name in enumerate(result.table.systems)}
    return [place[standing.system] for standing in result.aggregate("mean_rank").standings]
