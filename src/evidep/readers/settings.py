"""Checks of readers' settings: one clear line for a value out of range."""

from __future__ import annotations

import math

from evidep.errors import SettingError


def check_positive(**values: float) -> None:
    """Raise SettingError for a value that is no finite number above 0; the keyword is its name."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise SettingError(f"{name}: expected a finite number above 0, got {value!r}")


def check_counts(**values: int) -> None:
    """Raise SettingError for a value that is no whole number of at least 1; the keyword is its name."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SettingError(f"{name}: expected a whole number of at least 1, got {value!r}")
