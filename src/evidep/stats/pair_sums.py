"""What the statistics need of the n x n matrix of right answers: its diagonal, its row and column means, its spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evidep.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """Sums over the n x n matrix h of one reader, enough for the exact ΔEvi and its standard error.

    Attributes:
        diagonal: [n] h(i, i): right on the own evidence.
        row_mean: [n] mean of h(i, j) over the allowed donors j of i, in [0, 1]; nan where there is none.
        column_mean: [n] mean of h(i, j) over the items i for which j is an allowed donor; nan where there is none.
        donor_effect: [n] sum of (h(i, j) - row_mean_i) / n_donors_i over the items i for which j is an allowed donor:
            what item j, as a donor, adds to the sum of the row means. 0 where there is none. Sums to 0 over all j.
        n_donors: [n] number of allowed donors of i (and of items for which i is an allowed donor: the relation is
            symmetric, except for donor sets).
        permutation_mean: Mean accuracy of the items that have a donor, over all permutations within strata, donors of
            equal text included; nan where no item has one, and for donor sets.
        permutation_sd: SD of that accuracy over all these permutations (Hoeffding 1951, Ann. Math. Statist. 22:
            Var(sum_i h(i, pi(i))) = sum d^2 / (n - 1) with d = h doubly centred; strata add up).
    """

    diagonal: BoolArray
    row_mean: FloatArray
    column_mean: FloatArray
    donor_effect: FloatArray
    n_donors: IntArray
    permutation_mean: float
    permutation_sd: float


def from_sums(
    diagonal: BoolArray,
    rows: IntArray,
    columns: IntArray,
    same_rows: IntArray,
    same_columns: IntArray,
    weighted_columns: FloatArray,
    cells: IntArray,
    strata: IntArray,
) -> PairSums:
    """Means from sums: `same_*` over donors of equal evidence, `weighted_columns` = sum of h / n_donors over others."""
    n_donors = group_sizes(strata) - group_sizes(cells)
    row_mean = ratio(rows - same_rows, n_donors)
    share = np.nan_to_num(row_mean) * inverse(n_donors)
    expected = np.bincount(strata, weights=share)[strata] - np.bincount(cells, weights=share)[cells]
    mean, sd = _permutation_moments(rows, columns, strata, n_donors > 0)
    return PairSums(
        diagonal=diagonal,
        row_mean=row_mean,
        column_mean=ratio(columns - same_columns, n_donors),
        donor_effect=np.where(n_donors > 0, weighted_columns - expected, 0.0),
        n_donors=n_donors,
        permutation_mean=mean,
        permutation_sd=sd,
    )


def _permutation_moments(
    rows: IntArray, columns: IntArray, strata: IntArray, movable: BoolArray
) -> tuple[float, float]:
    """Mean and SD of the accuracy over all permutations within strata, in exact integers up to the last division."""
    n = int(movable.sum())
    if n == 0:
        return float("nan"), float("nan")
    order = np.argsort(strata[movable], kind="stable")
    starts = np.flatnonzero(np.diff(strata[movable][order], prepend=-1))
    size = np.diff(starts, append=n).astype(object)
    total = np.add.reduceat(rows[movable][order], starts).astype(object)
    squares = sum(_sum_of_squares(sums[movable][order], starts) for sums in (rows, columns))
    # sum d^2 = T - (sum R^2 + sum C^2) / m + T^2 / m^2, since h^2 = h; here times m^2.
    scaled = size * size * total - size * squares + total * total
    variance = sum(float(s) / float(m * m * (m - 1)) for s, m in zip(scaled, size, strict=True))
    mean = sum(float(t) / float(m) for t, m in zip(total, size, strict=True)) / n
    return mean, float(np.sqrt(variance)) / n


def _sum_of_squares(sums: IntArray, starts: IntArray) -> IntArray:
    """Per-stratum sums of squares as Python integers; split in two so that ten million items do not overflow int64."""
    upper = np.add.reduceat(sums * (sums >> 16), starts).astype(object)
    result: IntArray = upper * 65536 + np.add.reduceat(sums * (sums & 65535), starts).astype(object)
    return result


def kinds(*keys: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct tuples in lexicographic order: one item of each, the kind of each item, and the number of items."""
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    kind = np.empty(len(order), dtype=np.int64)
    kind[order] = np.cumsum(new) - 1
    return order[new], kind, np.bincount(kind)


def cell_numbers(codes: IntArray, strata: IntArray) -> IntArray:
    """Number of each item's (stratum, evidence) combination: items of one cell are no donors to each other."""
    return kinds(strata, codes)[1]


def group_sizes(groups: IntArray) -> IntArray:
    """Number of items in each item's group."""
    sizes: IntArray = np.bincount(groups)[groups]
    return sizes


def inverse(counts: IntArray) -> FloatArray:
    """1 / count, and 0 where the count is 0."""
    return ratio(np.ones(len(counts)), counts, undefined=0.0)


def ratio(numerator: IntArray | FloatArray, denominator: IntArray, undefined: float = np.nan) -> FloatArray:
    """Numerator / denominator, `undefined` where the denominator is 0."""
    result = np.full(len(denominator), undefined)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result
