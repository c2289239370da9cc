from __future__ import annotations

from report import report_packets as packets

from evidep.report import facts
from evidep.report.facts import Point
from evidep.report.terminal_map import HEIGHT, character_map, letters


def point(mpds: float | None, effect: float | None, *, works: bool = True, ci: bool = False) -> Point:
    around = None if mpds is None or not ci else (mpds - 0.1, mpds + 0.1)
    spread = None if effect is None or not ci else (effect - 0.1, effect + 0.1)
    return Point("r", 0, "light", works, mpds, around, effect, spread, "sensitive", True)


def rows(lines: list[str]) -> dict[str, str]:
    """ΔEvi label -> what is drawn on its line."""
    return {line[:5].strip(): line[7:] for line in lines[:HEIGHT]}


def test_points_stand_where_their_numbers_say() -> None:
    # width 67: 60 cells for MPDS 0 to 1.1, so MPDS 0.55 is the cell round(0.5 * 59) = 30 (or 29 by ties to even).
    # ΔEvi from 0 up to 0.5: step 0.05, so 0.5 has a line of its own and 0.0 too.
    drawn = rows(character_map([point(0.55, 0.5), point(0.0, 0.0)], mpds_high=0.9, width=67))
    assert drawn["0.50"].index("A") in (29, 30)
    assert drawn["0.00"].index("B") == 0
    assert sum(line.count("A") for line in drawn.values()) == 1


def test_intervals_reach_their_ends() -> None:
    drawn = rows(character_map([point(0.55, 0.3, ci=True)], mpds_high=0.9, width=67))
    at = drawn["0.30"].index("A")
    marked = [value for value, line in drawn.items() if len(line) > at and line[at] in "|A"]
    assert marked == ["0.40", "0.35", "0.30", "0.25", "0.20"]
    # 59 steps for 1.1: 0.45 is cell 24.1, 0.55 cell 29.5 (drawn at 30), 0.65 cell 34.9.
    assert drawn["0.30"].strip(" :") == "------A-----"


def test_undefined_mpds_stands_in_the_strip_and_not_at_0() -> None:
    lines = character_map([point(None, 0.3), point(0.5, 0.1)], mpds_high=0.9, width=72)
    line = next(line for line in lines if "A" in line)
    assert line.rindex("|") < line.index("A")
    assert "no MPDS" in lines[-1]
    assert all(len(line) <= 72 for line in lines)
    assert "no MPDS" not in character_map([point(0.5, 0.1)], mpds_high=0.9)[-1]


def test_two_readers_in_one_cell_are_a_star_and_failed_readers_small() -> None:
    assert any("*" in line for line in character_map([point(0.5, 0.1), point(0.5, 0.1)], mpds_high=0.9))
    assert any("a" in line for line in rows(character_map([point(0.5, 0.3, works=False)], mpds_high=0.9)).values())


def test_nothing_to_draw_is_no_map() -> None:
    assert character_map(facts.points(packets.not_applicable()), mpds_high=0.9) == []


def test_near_zero_looks_near_zero() -> None:
    drawn = rows(character_map([point(0.3, 0.004)], mpds_high=0.9))
    assert "A" in drawn["0.00"]


def test_extreme_values_stay_inside() -> None:
    for width in (20, 40, 200):
        lines = character_map([point(3.0, -1.0, ci=True), point(0.2, 1.0)], mpds_high=5.0, width=width)
        assert len(lines) == HEIGHT + 2
        assert len({len(line) for line in lines if line[6:7] == "+"}) == 1


def test_more_readers_than_letters() -> None:
    named = letters([point(0.5, 0.1)] * 30)
    assert [letter for letter, _ in named[24:]] == ["Y", "Z", "#", "#", "#", "#"]
