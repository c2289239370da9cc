"""Is a difference near zero, or are the data too few to tell? Equivalence, power, items that would settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from evidep.errors import SettingError
from evidep.stats.checks import check_alpha, check_count, check_margin
from evidep.types import Interval


@dataclass(frozen=True, slots=True)
class Tost:
    """Two one-sided tests of "the true difference is at least as large as the margin".

    Attributes:
        equivalent: True where `ci` lies inside (-margin, margin).
        p_value: The larger of the two one-sided p-values; below alpha exactly where `equivalent` is True.
        ci: Interval at level 1 - 2 alpha.
        reason: Why the test could not be made, or that the estimate has zero variance; else None.
    """

    equivalent: bool
    p_value: float
    ci: Interval
    reason: str | None = None


def tost(
    estimate: float,
    standard_error: float,
    df: float,
    margin: float,
    alpha: float = 0.05,
    room: tuple[float, float] = (0.0, 0.0),
    clusters: int | None = None,
) -> Tost:
    """Equivalence to zero within a margin (Schuirmann 1987), decided by inclusion of the 1 - 2 alpha interval.

    Zero variance (standard_error 0, for example a reader that never changes its answer) leaves no t-test. Then the
    zero-event bound takes its place: had a share s of the df + 1 clusters deviated (by at most 1, as differences of
    right/wrong do), none of them would have been seen with probability (1 - s)^(df + 1). So five items without any
    change are not yet equivalent to zero within 0.02; 149 are.

    Args:
        estimate: The difference, an accuracy difference in [-1, 1].
        standard_error: Its standard error, >= 0; nan where it is unknown.
        df: Degrees of freedom, clusters minus 1; math.inf for a normal interval.
        margin: Largest difference that counts as none, declared before the run.
        alpha: Error rate of each of the two tests, below 0.5.
        room: By how much the ends of the interval move out (down, up), both at least 0, where the estimate is skewed.
        clusters: Number of clusters. Where given, the interval is nowhere narrower than the zero-event bound on that
            many clusters: what none of them has shown may still be there.

    Returns:
        Never equivalent, with nan values and the reason, where an input is nan or df is below 1.

    Raises:
        SettingError: If alpha, margin or standard_error is out of its range.
    """
    check_alpha(alpha, below=0.5)
    check_margin(margin)
    _check_standard_error(standard_error)
    level = 1.0 - 2.0 * alpha
    if math.isnan(estimate) or math.isnan(standard_error) or not df >= 1:
        reason = "equivalence is undefined: it needs a finite estimate, a standard error and at least two groups"
        return Tost(False, math.nan, Interval(math.nan, math.nan, level, reason), reason)
    inside = margin - abs(estimate)
    if standard_error == 0.0:
        half_width = -math.expm1(math.log(alpha) / (df + 1.0))
        p_value = 1.0 if inside <= 0 else math.exp((df + 1.0) * math.log1p(-inside))
        reason = "zero variance: the interval is the zero-event bound on clusters that could still deviate"
        ci = Interval(estimate - half_width, estimate + half_width, level, reason)
        return Tost(half_width < inside, p_value, ci, reason)
    half_width = _t_quantile(1.0 - alpha, df) * standard_error
    down, up = room
    unseen = 0.0 if clusters is None else -math.expm1(math.log(alpha) / clusters)
    low, high = max(half_width + down, unseen), max(half_width + up, unseen)
    nearest = min(margin + estimate - down, margin - estimate - up)
    p_value = _t_upper_tail(nearest / standard_error, df)
    if clusters is not None:
        p_value = max(p_value, 1.0 if inside <= 0 else math.exp(clusters * math.log1p(-inside)))
    equivalent = low < margin + estimate and high < margin - estimate
    return Tost(equivalent, p_value, Interval(estimate - low, estimate + high, level))


def minimum_detectable_effect(
    standard_error: float, alpha: float = 0.05, power: float = 0.8, df: float = math.inf
) -> float:
    """The smallest true effect whose 1 - alpha interval excludes zero from above with the given power.

    From the non-central t distribution; for large df this is (z[1 - alpha/2] + z[power]) * standard_error, 2.80
    standard errors at the defaults. nan where the standard error or the degrees of freedom are undefined; 0 for a
    standard error of 0.

    Raises:
        SettingError: If alpha, power or standard_error is out of its range.
    """
    check_alpha(alpha)
    _check_standard_error(standard_error)
    if not alpha / 2.0 < power < 1.0:
        raise SettingError(f"power: expected a number between alpha / 2 = {alpha / 2:g} and 1, got {power}")
    if math.isnan(standard_error) or not df >= 1:
        return math.nan
    return _noncentrality(alpha, power, df) * standard_error


def items_to_settle(
    estimate: float, standard_error: float, n_items: int, margin: float, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """About how many items would settle an inconclusive difference, should the present estimate be the truth.

    The standard error falls with the root of the number of items (at the same mean group size). The answer is the
    smaller of two numbers: items until the 1 - alpha interval excludes zero from above, and items until the
    1 - 2 alpha interval lies inside the margin, each with the given power.

    Returns:
        A number above n_items, or None where no number of items like these would help: the inputs are undefined,
        the standard error is 0, or the estimate is negative and not inside the margin.

    Raises:
        SettingError: If alpha, margin, power or n_items is out of its range.
    """
    check_alpha(alpha, below=0.5)
    check_margin(margin)
    check_count(n_items, "n_items")
    _check_standard_error(standard_error)
    if not 0.0 < power < 1.0:
        raise SettingError(f"power: expected a number between 0 and 1, got {power}")
    if math.isnan(estimate) or math.isnan(standard_error) or standard_error == 0.0:
        return None
    z = special.ndtri
    ratios = []
    if estimate > 0.0:
        ratios.append((z(1.0 - alpha / 2.0) + z(power)) * standard_error / estimate)
    if abs(estimate) < margin:
        # Both one-sided tests must succeed: each is given half of the 1 - power that may fail.
        ratios.append((z(1.0 - alpha) + z((1.0 + power) / 2.0)) * standard_error / (margin - abs(estimate)))
    if not ratios:
        return None
    return max(n_items + 1, math.ceil(n_items * float(min(ratios)) ** 2))


def _check_standard_error(standard_error: float) -> None:
    if standard_error < 0.0 or math.isinf(standard_error):
        raise SettingError(f"standard_error: expected a finite number of at least 0, got {standard_error}")


def _t_quantile(probability: float, df: float) -> float:
    return float(special.ndtri(probability) if math.isinf(df) else special.stdtrit(df, probability))


def _t_upper_tail(t: float, df: float) -> float:
    return float(special.ndtr(-t) if math.isinf(df) else special.stdtr(df, -t))


def _noncentrality(alpha: float, power: float, df: float) -> float:
    """The non-centrality at which a t statistic exceeds its 1 - alpha/2 quantile with probability `power`."""
    critical = _t_quantile(1.0 - alpha / 2.0, df)
    if df > 1e6:
        return critical + float(special.ndtri(power))
    return float(special.nctdtrinc(df, 1.0 - power, critical))
