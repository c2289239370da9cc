"""Checks of the arrays and settings that the statistics are given: one clear line instead of a numpy traceback."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evidep.errors import DataError, SettingError
from evidep.types import FloatArray, IntArray


def numbers(values: ArrayLike, name: str) -> FloatArray:
    """The values as a one-dimensional float array.

    Raises:
        DataError: If they are not numbers, not one-dimensional, or not finite.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: expected numbers, got {type(values).__name__} that numpy cannot read") from error
    if array.ndim != 1:
        raise DataError(f"{name}: expected one value per item (1 dimension), got shape {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        at = int(np.argmin(finite))
        raise DataError(f"{name}: expected finite numbers, got {array[at]} at item {at}; drop or repair that item")
    return array


def zero_one(values: ArrayLike, name: str) -> FloatArray:
    """Right/wrong values as 0.0 and 1.0.

    Raises:
        DataError: If anything but True, False, 0 or 1 is among them.
    """
    array = numbers(values, name)
    wrong = (array != 0.0) & (array != 1.0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(
            f"{name}: expected True/False (prediction right or wrong) for each item, got {array[at]} at item {at}"
        )
    return array


def codes(values: ArrayLike, name: str, *, length: int | None = None) -> IntArray:
    """The values as a one-dimensional array of whole numbers.

    Raises:
        DataError: If they are not whole numbers, or not `length` of them.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name}: expected one value per item (1 dimension), got shape {array.shape}")
    if not (array.dtype.kind in "iub" or (array.size == 0 and array.dtype.kind == "f")):
        raise DataError(f"{name}: expected whole numbers, got dtype {array.dtype}; map the values to integers first")
    if length is not None:
        same_length(len(array), length, name)
    return array.astype(np.int64, copy=False)


def same_length(got: int, expected: int, name: str) -> None:
    """Refuse an array that does not belong to the same items.

    Raises:
        DataError: If the lengths differ.
    """
    if got != expected:
        raise DataError(f"{name}: expected {expected} values (one per item), got {got}; pass arrays of the same items")


def group_codes(groups: Any, n: int, name: str = "groups") -> tuple[IntArray, int]:
    """Groups as codes 0 .. G-1 and their number G; None means that each item is its own group.

    Raises:
        DataError: If a group is missing (NaN or None: such items would be merged unseen) or the length is wrong.
    """
    if groups is None:
        return np.arange(n, dtype=np.int64), n
    array = np.asarray(groups)
    if array.ndim != 1:
        raise DataError(f"{name}: expected one group per item (1 dimension), got shape {array.shape}")
    same_length(len(array), n, name)
    if array.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in array], dtype=np.bool_)
    elif array.dtype.kind == "f":
        missing = np.isnan(array)
    else:
        missing = np.zeros(n, dtype=np.bool_)
    if missing.any():
        at = int(np.argmax(missing))
        raise DataError(f"{name}: item {at} has no group; give it one of its own, or leave groups out")
    distinct, inverse = np.unique(array.astype(str) if array.dtype.kind == "O" else array, return_inverse=True)
    return inverse.astype(np.int64, copy=False), len(distinct)


def check_alpha(alpha: float, *, below: float = 1.0) -> None:
    """Refuse an error rate outside (0, `below`).

    Raises:
        SettingError: If it is outside.
    """
    if not 0.0 < alpha < below:
        raise SettingError(f"alpha: expected a number between 0 and {below:g}, got {alpha}; 0.05 is usual")


def check_margin(margin: float) -> None:
    """Refuse an equivalence margin that is not a positive share.

    Raises:
        SettingError: If it is not in (0, 1).
    """
    if not 0.0 < margin < 1.0:
        raise SettingError(
            f"margin: expected an accuracy difference between 0 and 1, got {margin}; 0.02 is the default"
        )


def check_count(value: int, name: str, least: int = 1) -> None:
    """Refuse a count below its least value.

    Raises:
        SettingError: If it is below.
    """
    if value < least:
        raise SettingError(f"{name}: expected at least {least}, got {value}")
