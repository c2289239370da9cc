"""Checks of readers' settings: one clear line for a value out of range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from evidep.errors import SettingError

PRECISIONS: Final = ("auto", "fp32", "bf16", "fp16")


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


def check_flags(**values: Any) -> None:
    """Raise SettingError for a value that is neither True nor False; the keyword is its name."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise SettingError(f"{name}: expected true or false, got {value!r}")


def check_texts(**values: Any) -> None:
    """Raise SettingError for a value that is no text, or an empty one; the keyword is its name."""
    for name, value in values.items():
        if not isinstance(value, str) or not value:
            raise SettingError(f"{name}: expected a text, got {value!r}; put quotes around it")


def check_text_mappings(**values: Any) -> None:
    """Raise SettingError for a value that is no mapping of texts to texts; the keyword is its name."""
    for name, value in values.items():
        if not isinstance(value, Mapping):
            raise SettingError(f"{name}: expected a mapping such as {{a: b}}, got {value!r}")
        for part in (*value.keys(), *value.values()):
            if not isinstance(part, str):
                raise SettingError(f"{name}: expected texts, got {part!r}; put quotes around it")


def check_model_settings(
    *,
    name: Any,
    model: Any,
    revision: Any = None,
    max_length: Any = None,
    precision: Any = "auto",
    token_budget: Any = None,
    contamination: Any = None,
    licence: Any = None,
) -> None:
    """Raise SettingError for a setting of the wrong kind among those that all readers with pre-trained weights have."""
    check_texts(name=name, **({} if isinstance(model, Path) else {"model": model}))
    texts = {"revision": revision, "contamination": contamination, "licence": licence}
    check_texts(**{key: value for key, value in texts.items() if value is not None})
    counts = {"max_length": max_length, "token_budget": token_budget}
    check_counts(**{key: value for key, value in counts.items() if value is not None})
    if precision not in PRECISIONS:
        raise SettingError(f"precision: expected one of {', '.join(PRECISIONS)}, got {precision!r}")
