"""Exact expectation of the shuffled accuracy over all donors, and its spread over all permutations.

h(i, j) is True where the reader answers item i correctly when it is shown the evidence of item j. An allowed donor of i
is an item of i's stratum whose evidence differs from i's as normalised text. Everything that the audit needs of the
n x n matrix h are its diagonal and sums over rows and columns, which are cheap for additive readers (no pair is
visited), and for bilinear readers (unique queries times unique evidence texts, by matrix products).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evidep.errors import DataError, ReaderError, SettingError
from evidep.stats.dominance import correct_counts, to_grid
from evidep.stats.pair_sums import PairSums, cell_numbers, from_sums, group_sizes, inverse, kinds, ratio
from evidep.types import BoolArray, FloatArray, IntArray

__all__ = ["PairSums", "additive_pair_sums", "donor_set_sums", "matrix_pair_sums", "outer_pair_sums"]


def additive_pair_sums(
    query_scores: FloatArray,
    evidence_scores: FloatArray,
    labels: IntArray,
    evidence_codes: IntArray,
    strata: IntArray | None = None,
) -> PairSums:
    """Pair sums of a reader whose scores are query_scores[i] + evidence_scores[j]; ties go to the smaller label.

    Scores are first rounded to one grid of steps on which all sums and differences are exact (`dominance.to_grid`): the
    result equals the argmax over the n x n sums exactly where the scores lie on such a grid (integers, dyadic
    fractions, single-precision values), and otherwise wherever two classes differ by more than the rounding error of
    the sum itself, about 2^-49 of the largest score. O(n log n) for two and three classes; all pairs of distinct rows,
    in blocks, for more.

    Args:
        query_scores: [n, C] float.
        evidence_scores: [n, C] float.
        labels: [n] in [0, C).
        evidence_codes: [n] equal where two items' evidence is equal as normalised text.
        strata: [n] items are only exchanged within a stratum; None means one stratum.

    Raises:
        ReaderError: Scores of a wrong shape, fewer than two classes, or not finite.
        DataError: Labels outside [0, C), or arrays of different lengths.
    """
    labels, codes, strata = _checked(labels, evidence_codes, strata)
    for name, scores in (("query_scores", query_scores), ("evidence_scores", evidence_scores)):
        _check_scores(name, scores, (len(labels), query_scores.shape[-1]))
    _check_labels(labels, query_scores.shape[1])
    if query_scores.shape[1] > 3:
        return _additive_by_blocks(query_scores, evidence_scores, labels, codes, strata)
    query_grid, evidence_grid = to_grid(query_scores, evidence_scores)

    cells = cell_numbers(codes, strata)
    n_donors = group_sizes(strata) - group_sizes(cells)
    weights = inverse(n_donors)
    rows, columns, weighted = correct_counts(query_grid, evidence_grid, labels, strata, weights)
    diagonal = np.argmax(query_grid + evidence_grid, axis=1) == labels
    same_rows, same_columns = diagonal.astype(np.int64), diagonal.astype(np.int64)
    shared = np.flatnonzero(group_sizes(cells) > 1)
    if len(shared):
        _, cell = np.unique(cells[shared], return_inverse=True)
        same_rows[shared], same_columns[shared], _ = correct_counts(
            query_grid[shared], evidence_grid[shared], labels[shared], cell, weights[shared]
        )
    return from_sums(diagonal, rows, columns, same_rows, same_columns, weighted - same_columns * weights, cells, strata)


def _additive_by_blocks(
    query_scores: FloatArray, evidence_scores: FloatArray, labels: IntArray, codes: IntArray, strata: IntArray
) -> PairSums:
    query, evidence = (grid.astype(np.float64) for grid in to_grid(query_scores, evidence_scores))
    _, query_index = np.unique(query, axis=0, return_inverse=True)
    _, evidence_index = np.unique(evidence, axis=0, return_inverse=True)
    return outer_pair_sums(
        lambda rows, donors: query[rows][:, None] + evidence[donors][None],
        labels,
        codes,
        evidence_index,
        query_index,
        strata,
        block=max(32, int(np.sqrt(2**22 / query.shape[1]))),
    )


def outer_pair_sums(
    outer_scores: Callable[[IntArray, IntArray], FloatArray],
    labels: IntArray,
    evidence_codes: IntArray,
    evidence_index: IntArray,
    query_index: IntArray,
    strata: IntArray | None = None,
    block: int = 1024,
) -> PairSums:
    """Pair sums of a reader that scores all pairs of two sets of items at once; ties go to the smaller label.

    Each distinct query is scored with each distinct evidence text (of strata that meet in one block), one item standing
    for all with the same text. At most `block` queries and `block` texts are scored in one call.

    Args:
        outer_scores: (rows [R], donors [D]) -> [R, D, C]: scores of the query of each item of `rows` with the evidence
            of each item of `donors`.
        labels: [n] in [0, C).
        evidence_codes: [n] equal where two items' evidence is equal as normalised text.
        evidence_index: [n] equal where two items' evidence is the same raw text.
        query_index: [n] equal where two items' query is the same raw text.
        strata: [n] items are only exchanged within a stratum; None means one stratum.
        block: Largest number of queries and of evidence texts in one call.

    Raises:
        ReaderError: `outer_scores` returns a wrong shape or values that are not finite.
        DataError: Arrays of different lengths, or labels outside [0, C).
        SettingError: block < 1.
    """
    if block < 1:
        raise SettingError(f"block: expected at least 1 text a call, got {block}")
    labels, codes, strata = _checked(labels, evidence_codes, strata)
    n = len(labels)
    for name, index in (("evidence_index", evidence_index), ("query_index", query_index)):
        _check_integers(name, index, n)
    cells = cell_numbers(codes, strata)
    n_donors = group_sizes(strata) - group_sizes(cells)
    # Items of one row kind have equal rows of h and equal allowed donors; those of one donor kind have equal columns.
    row_item, row_kind, row_count = kinds(strata, query_index, labels, codes)
    donor_item, donor_kind, donor_count = kinds(strata, evidence_index, codes)
    row_weight = inverse(n_donors)[row_item] * row_count
    rows, same_rows = np.zeros((2, len(row_item)))
    columns, same_columns, weighted = np.zeros((3, len(donor_item)))
    diagonal = np.zeros(n, dtype=bool)
    by_row_kind = np.argsort(row_kind, kind="stable")
    sorted_kind = row_kind[by_row_kind]
    reached = strata[donor_item]

    for start in range(0, len(row_item), block):
        r = np.arange(start, min(start + block, len(row_item)))
        _, query_at, query_of = np.unique(query_index[row_item[r]], return_index=True, return_inverse=True)
        first = np.searchsorted(reached, strata[row_item[start]], side="left")
        last = np.searchsorted(reached, strata[row_item[r[-1]]], side="right")
        members = by_row_kind[slice(*np.searchsorted(sorted_kind, [r[0], r[-1] + 1]))]
        for low in range(first, last, block):
            d = np.arange(low, min(low + block, last))
            scores = outer_scores(row_item[r[query_at]], donor_item[d])
            _check_outer(scores, len(query_at), len(d), labels)
            right = _right(scores, query_of, labels[row_item[r]])
            inside = members[(donor_kind[members] >= low) & (donor_kind[members] <= d[-1])]
            diagonal[inside] = right[row_kind[inside] - start, donor_kind[inside] - low]
            right &= strata[row_item[r], None] == strata[donor_item[d]]
            same = right & (codes[row_item[r], None] == codes[donor_item[d]])
            # As floats, because only float products use BLAS; counts stay exact below 2^53.
            right, same = right.astype(np.float64), same.astype(np.float64)
            rows[r] += right @ donor_count[d]
            same_rows[r] += same @ donor_count[d]
            columns[d] += row_count[r] @ right
            same_columns[d] += row_count[r] @ same
            weighted[d] += row_weight[r] @ (right - same)
    return from_sums(
        diagonal,
        rows[row_kind].astype(np.int64),
        columns[donor_kind].astype(np.int64),
        same_rows[row_kind].astype(np.int64),
        same_columns[donor_kind].astype(np.int64),
        weighted[donor_kind],
        cells,
        strata,
    )


def matrix_pair_sums(h: BoolArray, evidence_codes: IntArray, strata: IntArray | None = None) -> PairSums:
    """Pair sums of an explicit matrix: the plain definition, O(n^2) in time and memory.

    Args:
        h: [n, n] bool, h[i, j] = item i is answered correctly with the evidence of item j.
        evidence_codes: [n] equal where two items' evidence is equal as normalised text.
        strata: [n] items are only exchanged within a stratum; None means one stratum.

    Raises:
        DataError: `h` is not a square bool matrix, or arrays of different lengths.
    """
    if h.ndim != 2 or h.shape[0] != h.shape[1] or h.dtype != np.bool_:
        raise DataError(f"h: expected a square bool matrix, got shape {h.shape} of {h.dtype}")
    n = len(h)
    _, codes, strata = _checked(np.zeros(n, np.int64), evidence_codes, strata)
    cells = cell_numbers(codes, strata)
    right = h & (strata[:, None] == strata)
    same = right & (codes[:, None] == codes)
    weights = inverse(group_sizes(strata) - group_sizes(cells))
    return from_sums(
        np.diagonal(h).copy(),
        right.sum(axis=1),
        right.sum(axis=0),
        same.sum(axis=1),
        same.sum(axis=0),
        (right & ~same).T @ weights,
        cells,
        strata,
    )


def donor_set_sums(correct: BoolArray, donors: IntArray, diagonal: BoolArray) -> PairSums:
    """Pair sums where each item has its own short list of donors (near-miss evidence), all of them equally likely.

    No permutation is involved, so the permutation moments are nan.

    Args:
        correct: [n, m] item i is answered correctly with the evidence of its t-th donor.
        donors: [n, m] item index of that donor; negative where item i has fewer than m.
        diagonal: [n] right on the own evidence.

    Raises:
        DataError: Shapes differ, or a donor index is n or larger.
    """
    if correct.ndim != 2 or correct.shape != donors.shape or diagonal.shape != correct.shape[:1]:
        raise DataError(
            f"donor sets: expected correct [n, m], donors [n, m] and diagonal [n], "
            f"got {correct.shape}, {donors.shape} and {diagonal.shape}"
        )
    n = len(diagonal)
    if donors.max(initial=-1) >= n:
        raise DataError(f"donors: expected item indices below {n}, got {int(donors.max())}")
    present = donors >= 0
    right = correct & present
    n_donors = present.sum(axis=1)
    row_mean = ratio(right.sum(axis=1), n_donors)
    at = donors[present]
    effect = (right - np.nan_to_num(row_mean)[:, None]) * inverse(n_donors)[:, None]
    return PairSums(
        diagonal=diagonal.astype(bool),
        row_mean=row_mean,
        column_mean=ratio(np.bincount(at, weights=right[present], minlength=n), np.bincount(at, minlength=n)),
        donor_effect=np.bincount(at, weights=effect[present], minlength=n).astype(np.float64),
        n_donors=n_donors,
        permutation_mean=float("nan"),
        permutation_sd=float("nan"),
    )


def _right(scores: FloatArray, query_of: IntArray, labels: IntArray) -> BoolArray:
    """[R, D] whether row r, of query query_of[r], gets its label; ties go to the smaller label.

    Label by label with plain comparisons: argmax over a short last axis costs several times more.
    """
    right = np.empty((len(labels), scores.shape[1]), dtype=bool)
    for label in np.unique(labels).tolist():
        rows = np.flatnonzero(labels == label)
        part = scores[query_of[rows]]
        own = part[:, :, label]
        hit = np.ones(own.shape, dtype=bool)
        for c in range(scores.shape[2]):
            if c < label:
                hit &= own > part[:, :, c]
            elif c > label:
                hit &= own >= part[:, :, c]
        right[rows] = hit
    return right


def _check_outer(scores: FloatArray, n_rows: int, n_donors: int, labels: IntArray) -> None:
    if scores.ndim != 3 or scores.shape[:2] != (n_rows, n_donors):
        raise ReaderError(f"outer_scores: expected shape ({n_rows}, {n_donors}, C), got {scores.shape}")
    _check_labels(labels, scores.shape[2])
    if not np.isfinite(scores.sum()) and not np.isfinite(scores).all():
        raise ReaderError("outer_scores: expected finite scores, got nan or infinity; check the reader's weights")


def _checked(labels: IntArray, codes: IntArray, strata: IntArray | None) -> tuple[IntArray, IntArray, IntArray]:
    """Validated labels and codes, and strata numbered from 0 (the numbering makes them safe as array positions)."""
    n = len(labels)
    if n == 0:
        raise DataError("labels: expected at least one item, got none")
    for name, values in (("labels", labels), ("evidence_codes", codes), ("strata", strata)):
        if values is not None:
            _check_integers(name, values, n)
    if strata is None:
        return labels, codes, np.zeros(n, dtype=np.int64)
    return labels, codes, np.unique(strata, return_inverse=True)[1]


def _check_integers(name: str, values: IntArray, n: int) -> None:
    if values.shape != (n,) or not np.issubdtype(values.dtype, np.integer):
        raise DataError(f"{name}: expected {n} integers, one per item, got shape {values.shape} of {values.dtype}")


def _check_labels(labels: IntArray, n_classes: int) -> None:
    outside = np.flatnonzero((labels < 0) | (labels >= n_classes))
    if len(outside):
        i = int(outside[0])
        raise DataError(f"labels[{i}]: expected 0 to {n_classes - 1} for {n_classes} scores, got {int(labels[i])}")


def _check_scores(name: str, scores: FloatArray, shape: tuple[int, int]) -> None:
    if scores.ndim != 2 or scores.shape != shape or shape[1] < 2:
        raise ReaderError(f"{name}: expected shape ({shape[0]}, C) with the same C >= 2 in both, got {scores.shape}")
    bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(bad):
        raise ReaderError(f"{name}[{int(bad[0])}]: expected finite scores, got {scores[int(bad[0])].tolist()}")
