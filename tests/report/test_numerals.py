from __future__ import annotations

import pytest

from evidep.report.numerals import confidence, count, interval, number, p_value, percent


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0.0, "0.000"), (-0.0001, "0.000"), (-0.0006, "-0.001"), (0.31649, "0.316"), (1.0, "1.000")],
)
def test_number(value: float | None, expected: str) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.0004, "<0.1 %"),
        (0.9996, ">99.9 %"),
        (0.125, "12.5 %"),
        (0.5, "50 %"),
    ],
)
def test_percent_says_0_and_100_only_where_it_is_so(share: float | None, expected: str) -> None:
    assert percent(share) == expected


@pytest.mark.parametrize(("p", "expected"), [(None, "–"), (1 / 21, "0.048"), (0.0009, "<0.001"), (1.0, "1.000")])
def test_p_value_is_never_0(p: float | None, expected: str) -> None:
    assert p_value(p) == expected


def test_the_rest() -> None:
    assert interval([-0.0001, 0.25]) == "[0.000, 0.250]"
    assert interval(None) == "–"
    assert count(12345) == "12,345"
    assert count(None) == "–"
    assert confidence(0.05) == "95 %"
    assert confidence(0.1) == "90 %"
