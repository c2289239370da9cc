"""Usable information of the evidence: how many bits about the label a trained reader gains from seeing it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from evidep.errors import DataError
from evidep.stats.checks import check_alpha, group_codes, numbers, same_length
from evidep.stats.resampling import ClusterError, cluster_error, t_interval
from evidep.types import FloatArray, Interval

_ROUNDING = 1e-6
"""Log-probabilities up to this much above 0 are rounding of a probability of 1."""
MIN_GROUPS_BITS: Final = 50
"""Fewest groups for which an interval is given. Log-losses are skewed: a few surprising items carry the variance, and
small samples miss them. In planted worlds the 95 % interval covers in 87 % of samples of 20 groups, 94 % of 40 and 96 %
of 60."""


@dataclass(frozen=True, slots=True, eq=False)
class VInformation:
    """V-information of the evidence about the label, given the query.

    Attributes:
        v_information: entropy_query - entropy_full, in bits per item. Estimated on held-out items, so it can fall
            below 0: then the reader that sees the evidence predicts worse than the one that does not. Not clipped.
        standard_error: Cluster-robust standard error of `v_information`.
        ci: Cluster t interval of `v_information`, with degrees of freedom limited by the groups that carry the
            variance; nan with a reason below `MIN_GROUPS_BITS` groups.
        entropy_query: H(Y|Q): mean held-out log-loss, in bits, of the reader trained without evidence.
        entropy_full: H(Y|Q,E): mean held-out log-loss, in bits, of the reader trained with evidence.
        pointwise: [n] bits per item, whose mean is `v_information` (see `pointwise_v_information`).
        reason: Why values are nan, or that the interval is degenerate; else None.
    """

    v_information: float
    standard_error: float
    ci: Interval
    entropy_query: float
    entropy_full: float
    pointwise: FloatArray
    reason: str | None = None


def pointwise_v_information(log_prob_query_only: ArrayLike, log_prob_full: ArrayLike) -> FloatArray:
    """Bits by which the evidence makes each item's gold label likelier (PVI, Ethayarajh et al. 2022).

    Args:
        log_prob_query_only: [n] natural log-probability of the gold label, reader trained and asked without evidence.
        log_prob_full: [n] the same for the reader trained and asked with evidence.

    Returns:
        [n] bits; negative where the evidence misleads the reader.

    Raises:
        DataError: If a value is not a finite log-probability, or the lengths differ.
    """
    query = _log_probabilities(log_prob_query_only, "log_prob_query_only")
    full = _log_probabilities(log_prob_full, "log_prob_full")
    same_length(len(full), len(query), "log_prob_full")
    return (full - query) / math.log(2.0)


def v_information(
    log_prob_query_only: ArrayLike,
    log_prob_full: ArrayLike,
    groups: ArrayLike | None = None,
    alpha: float = 0.05,
) -> VInformation:
    """I_V(E -> Y | Q) = H(Y|Q) - H(Y|Q,E) by held-out log-loss of two trained readers (Xu et al. 2020).

    It sees changes of confidence that leave the most likely label as it was, which accuracy hides. Both readers must
    have been trained on items other than these.

    Args:
        log_prob_query_only: [n] natural log-probability of the gold label, reader trained and asked without evidence.
        log_prob_full: [n] the same for the reader trained and asked with evidence.
        groups: [n] cluster of each item; None: each item is its own.
        alpha: 1 - alpha is the level of the interval.

    Raises:
        DataError: If a value is not a finite log-probability, or the lengths differ.
        SettingError: If alpha is not in (0, 1).
    """
    check_alpha(alpha)
    pointwise = pointwise_v_information(log_prob_query_only, log_prob_full)
    n = len(pointwise)
    level = 1.0 - alpha
    estimate = float(pointwise.mean()) if n else math.nan
    error = ClusterError(math.nan, math.nan, 0) if n == 0 else cluster_error(pointwise, group_codes(groups, n)[0])
    ci = t_interval(estimate, error, level, bound=math.inf)
    if n == 0:
        ci = Interval(math.nan, math.nan, level, "no items")
    elif not error.too_few and error.n_groups < MIN_GROUPS_BITS:
        reason = f"too few groups: {error.n_groups}, at least {MIN_GROUPS_BITS} are needed for an interval in bits"
        ci = Interval(math.nan, math.nan, level, reason)
    losses = _log_probabilities(log_prob_query_only, "log_prob_query_only") / -math.log(2.0)
    entropy_query = float(losses.mean()) if len(losses) else math.nan
    return VInformation(
        v_information=estimate,
        standard_error=error.standard_error,
        ci=ci,
        entropy_query=entropy_query,
        entropy_full=entropy_query - estimate,
        pointwise=pointwise,
        reason=ci.reason,
    )


def _log_probabilities(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1 and np.isneginf(array).any():
        at = int(np.argmax(np.isneginf(array)))
        raise DataError(
            f"{name}: item {at} has log-probability -inf (its gold label got probability 0), so its loss is infinite;"
            " take log_softmax of the scores in float64 instead of the log of rounded probabilities"
        )
    array = numbers(array, name)
    above = array > _ROUNDING
    if above.any():
        at = int(np.argmax(above))
        raise DataError(
            f"{name}: expected natural log-probabilities (at most 0), got {array[at]:.6g} at item {at};"
            " pass log_softmax of the scores, not scores or probabilities"
        )
    return np.minimum(array, 0.0)
