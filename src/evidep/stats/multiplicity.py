"""p-values adjusted for how many there are: Holm within an audit, Benjamini-Hochberg over a sweep of audits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from evidep.errors import DataError
from evidep.types import BoolArray, FloatArray


def holm(p: ArrayLike) -> FloatArray:
    """Holm's step-down adjusted p-values (Holm 1979): control of any false claim within one audit.

    The i-th smallest of m p-values is multiplied by m - i + 1, kept in order and capped at 1. A nan marks a test that
    could not be made: it stays nan and is not counted in m, because a test that cannot reject cannot err.

    Args:
        p: [m] p-values in [0, 1] or nan, in any order.

    Raises:
        DataError: If a value is outside [0, 1].
    """
    values, tested = _p_values(p)
    made = values[tested]
    order = np.argsort(made, kind="stable")
    steps = np.maximum.accumulate(made[order] * np.arange(len(made), 0, -1))
    adjusted = np.empty(len(made))
    adjusted[order] = np.minimum(steps, 1.0)
    return _with_nan(adjusted, tested)


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """Benjamini-Hochberg adjusted p-values (1995): the expected share of false claims over many audits.

    Valid for independent or positively dependent tests. A nan stays nan and is not counted, as in `holm`.

    Args:
        p: [m] p-values in [0, 1] or nan, in any order.

    Raises:
        DataError: If a value is outside [0, 1].
    """
    values, tested = _p_values(p)
    made = values[tested]
    return _with_nan(stats.false_discovery_control(made, method="bh") if len(made) else made, tested)


def _p_values(p: ArrayLike) -> tuple[FloatArray, BoolArray]:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise DataError(f"p: expected a list of p-values (1 dimension), got shape {values.shape}")
    tested = ~np.isnan(values)
    outside = tested & ~((values >= 0.0) & (values <= 1.0))
    if outside.any():
        at = int(np.argmax(outside))
        raise DataError(f"p: expected p-values between 0 and 1 (nan: not tested), got {values[at]} at position {at}")
    return values, tested


def _with_nan(adjusted: FloatArray, tested: BoolArray) -> FloatArray:
    result = np.full(len(tested), np.nan)
    result[tested] = adjusted
    return result
