"""Counts of right answers over all pairs of an additive reader, without visiting the pairs.

Item i with label y answers correctly on the evidence of j where, for every other class c,
B_jc - B_jy <= A_iy - A_ic (< where c < y, because ties go to the smaller label). For two classes that is one
comparison, answered by sorting; for three it is a two-dimensional dominance count, answered in O(n log n) by splitting
on the bits of the second rank while the first order is kept (the recursion of Bentley's multidimensional
divide-and-conquer, CACM 23(4), 1980, run level by level).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidep.types import BoolArray, FloatArray, IntArray


def to_grid(query_scores: FloatArray, evidence_scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Round both score tables to integers on one grid, so that sums and differences of two scores are exact.

    The step is 2^-51 of the power of two above the largest absolute score: finer than or equal to the rounding error
    of a float64 sum of two such scores. Scores that already are multiples of the step (integers, float32 values of
    similar size) are unchanged. Without a grid, "A + B compared" and "differences compared" would be two definitions
    that disagree on ties.
    """
    largest = max(float(np.abs(query_scores).max(initial=0.0)), float(np.abs(evidence_scores).max(initial=0.0)))
    shift = 51 - int(np.frexp(largest)[1])
    return (
        np.rint(np.ldexp(query_scores, shift)).astype(np.int64),
        np.rint(np.ldexp(evidence_scores, shift)).astype(np.int64),
    )


def correct_counts(
    query_grid: IntArray, evidence_grid: IntArray, labels: IntArray, strata: IntArray, weights: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Row and column sums of h(i, j) = 1[argmax_c(A_ic + B_jc) = y_i] over the pairs of one stratum.

    Args:
        query_grid: [n, C] integer query scores, C = 2 or 3 (see `to_grid`).
        evidence_grid: [n, C] integer evidence scores on the same grid.
        labels: [n] in [0, C).
        strata: [n] non-negative integers; only pairs of items of one stratum count.
        weights: [n] weight of each item as a row, for the third result.

    Returns:
        [n] sum over j of h(i, j); [n] sum over i of h(i, j); [n] sum over i of weights_i h(i, j).
    """
    n, n_classes = query_grid.shape
    rows = np.zeros(n, dtype=np.int64)
    columns = np.zeros(n, dtype=np.int64)
    weighted = np.zeros(n)
    for label in range(n_classes):
        queries = np.flatnonzero(labels == label)
        if not len(queries):
            continue
        elements = np.concatenate([strata, strata[queries]])
        is_query = np.arange(n + len(queries)) >= n
        orders = []
        for other in range(n_classes):
            if other == label:
                continue
            point = evidence_grid[:, other] - evidence_grid[:, label]
            query = query_grid[queries, label] - query_grid[queries, other]
            # A doubled key with a last bit orders equal values: a point at the query's value counts only if c > y.
            tie = int(other > label)
            orders.append(_order(np.concatenate([2 * point + (1 - tie), 2 * query + tie]), elements))
        count, mass = (_prefix if n_classes == 2 else _dominance)(orders, is_query, weights[queries])
        # In both orders every point of an earlier stratum lies below, and every query of a later stratum above.
        above, mass_above = _after(strata[queries], weights[queries], strata)
        rows[queries] = count[n:] - _before(strata, strata[queries])
        columns += count[:n] - above
        weighted += mass - mass_above
    return rows, columns, weighted


def _order(keys: IntArray, strata: IntArray) -> IntArray:
    """Positions sorted by stratum, then key."""
    order = np.argsort(keys)
    if strata.max() == strata.min():
        return order
    return order[np.argsort(strata[order], kind="stable")]


def _before(values: IntArray, at: IntArray) -> IntArray:
    """Number of the `values` smaller than each of `at`."""
    counts = np.bincount(values)
    before: IntArray = (np.cumsum(counts) - counts)[at]
    return before


def _after(values: IntArray, weights: FloatArray, at: IntArray) -> tuple[IntArray, FloatArray]:
    """Number and total weight of the `values` larger than each of `at`."""
    size = int(max(values.max(), at.max())) + 1
    counts = np.bincount(values, minlength=size)
    mass = np.bincount(values, weights=weights, minlength=size)
    return (counts.sum() - np.cumsum(counts))[at], (mass.sum() - np.cumsum(mass))[at]


def _prefix(orders: list[IntArray], is_query: BoolArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """One dimension. For a query: points before it. For a point: queries after it, and (second result) their weight."""
    order = orders[0]
    size, n_points = len(order), len(order) - len(weights)
    query = is_query[order]
    queries_seen = np.cumsum(query)
    count = np.empty(size, dtype=np.int64)
    count[order] = np.where(query, np.arange(1, size + 1) - queries_seen, len(weights) - queries_seen)
    mass_seen = np.cumsum(np.concatenate([np.zeros(n_points), weights])[order])
    mass = np.empty(size)
    mass[order] = mass_seen[-1] - mass_seen
    return count, mass[:n_points]


def _dominance(orders: list[IntArray], is_query: BoolArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Two dimensions. For a query: points before it in both orders. For a point: queries after it in both, and weight.

    Elements are held grouped by the high bits of their rank in the second order, inside a group in the first order. At
    each bit, a point with bit 0 and a query with bit 1 of one group differ first in this bit, so they are decided here.
    """
    first, second = orders
    size, n_points = len(first), len(first) - len(weights)
    rank = np.empty(size, dtype=np.int32)
    rank[second] = np.arange(size, dtype=np.int32)
    code = (rank[first] << 1) | is_query[first]
    # `value` is the weight of a query and the collected weight of a point: one array travels instead of two.
    value = np.concatenate([np.zeros(n_points), weights])[first]
    count = np.zeros(size, dtype=np.int32)
    for bit in range((size - 1).bit_length() - 1, -1, -1):
        high = (code & (2 << bit)) != 0
        query = (code & 1) != 0
        low_points, high_queries = ~(high | query), high & query
        at_points, at_queries = np.flatnonzero(low_points), np.flatnonzero(high_queries)
        edges = np.append(np.arange(0, size, 2 << bit), size)

        seen = _running(low_points, np.int32)
        count[at_queries] += seen[at_queries] - seen[edges[at_queries >> (bit + 1)]]
        seen = _running(high_queries, np.int32)
        group_end = edges[(at_points >> (bit + 1)) + 1]
        count[at_points] += seen[group_end] - seen[at_points]
        seen_mass = _running(np.where(high_queries, value, 0.0), np.float64)
        value[at_points] += seen_mass[group_end] - seen_mass[at_points]

        # After the split an element's position has the bit that its rank has.
        to_high = (np.arange(size) & (1 << bit)) != 0
        code, value, count = (_split(array, high, to_high) for array in (code, value, count))
    result, mass = np.empty(size, dtype=np.int64), np.empty(size)
    result[second], mass[second] = count, value
    return result, mass[:n_points]


def _running(values: NDArray[Any], dtype: type) -> NDArray[Any]:
    """Sum of the values before each position; one entry more than `values`."""
    sums: NDArray[Any] = np.zeros(len(values) + 1, dtype=dtype)
    np.cumsum(values, dtype=dtype, out=sums[1:])
    return sums


def _split(array: NDArray[Any], high: BoolArray, to_high: BoolArray) -> NDArray[Any]:
    """Move the entries marked `high` to the places marked `to_high` and the rest to the others, both in order."""
    moved = np.empty_like(array)
    moved[to_high] = array[high]
    moved[~to_high] = array[~high]
    return moved
