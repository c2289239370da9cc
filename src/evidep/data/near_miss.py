"""The most similar other evidence of each item: same topic, other content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from evidep.data.derange import Strata
from evidep.errors import DataError, SettingError
from evidep.stats import checks
from evidep.types import NULL, FloatArray, IntArray, PairTable, StringColumn

_PRODUCT_COST: Final = 300_000_000
_PRODUCT_COST_PER_TEXT: Final = 10_000
"""Multiplications that one similarity product may cost (the larger of the two bounds). At 3e8 the chosen neighbours of
6,641 SNLI premises are as similar as without any bound to within 0.002 of cosine."""
_BLOCK: Final = 8_000_000
"""Stored similarities per block, which bounds the memory (about 0.4 GiB)."""


def nearest_other_evidence(table: PairTable, m: int = 5, strata: IntArray | None = None) -> IntArray:
    """The m items whose evidence is most similar to each item's evidence without being equal to it.

    Similarity is the cosine of TF-IDF vectors of words and character 3- and 4-grams (within word boundaries), so it
    works in any script. It is computed once per distinct normalised text. A text shared by several items of a
    stratum is represented by the first of them. Blank evidence resembles nothing: it has no neighbours and is none.
    A near copy of a text is another text. Equal similarities are settled by order of first appearance. In large
    tables the most frequent features, which carry the least weight, are left out so that it stays feasible.

    Args:
        table: The items.
        m: Neighbours wanted per item, at least 1.
        strata: [n] neighbours come from the same stratum only, or None.

    Returns:
        [n, m] item indices, most similar first, NULL where fewer than m other texts share any feature.

    Raises:
        SettingError: If m < 1.
        DataError: If `strata` is not one whole number per item.
    """
    return nearest_other_texts(table.evidence, table.evidence_codes, m, strata)


def nearest_other_texts(column: StringColumn, codes: IntArray, m: int = 5, strata: IntArray | None = None) -> IntArray:
    """`nearest_other_evidence` of any column of texts, with codes equal exactly where two texts count as equal."""
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
        raise SettingError(f"m: expected at least 1 neighbour, got {m!r}")
    n = len(column)
    if strata is not None:
        strata = checks.codes(strata, "strata", length=n)
    texts, of = _distinct_texts(column, codes)
    vectors = _vectors(texts)
    result = np.full((n, m), NULL, dtype=np.int64)
    layout = Strata.from_codes(strata, n)
    for start, size in zip(layout.start, layout.size, strict=True):
        items = layout.order[start : start + size]
        here, first, inverse = np.unique(of[items], return_index=True, return_inverse=True)
        if len(here) > 1:
            nearest = _nearest(vectors[here], m)
            result[items] = np.where(nearest < 0, NULL, items[first][nearest])[inverse]
    return result


def donor_similarity(table: PairTable, donors: IntArray) -> FloatArray:
    """[n] cosine, in [0, 1], between each item's evidence and its donor's; nan where the donor is no item.

    Every feature counts here. Its mean over the items says how near a shuffle's donors are: near-miss donors well
    above those of the global shuffle.

    Raises:
        DataError: If there is not one donor per item.
    """
    if len(donors) != len(table):
        raise DataError(f"donors: expected one per item ({len(table)}), got {len(donors)}")
    texts, of = _distinct_texts(table.evidence, table.evidence_codes)
    vectors = _vectors(texts)
    similarity = np.full(len(table), np.nan)
    there = np.flatnonzero(donors >= 0)
    for start in range(0, len(there), 4096):
        part = there[start : start + 4096]
        left, right = vectors[of[part]], vectors[of[donors[part]]]
        similarity[part] = np.minimum(np.asarray(left.multiply(right).sum(axis=1)).ravel(), 1.0)
    return similarity


def _distinct_texts(column: StringColumn, codes: IntArray) -> tuple[list[str], IntArray]:
    """One text per code, in order of first appearance, and [n] the number of each item's text."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    texts = column.take(np.sort(first)).compact().to_list()
    return [text or "" for text in texts], rank[inverse].astype(np.int64, copy=False)


def _vectors(texts: list[str]) -> Any:
    """[len(texts), features] sparse rows of length 1, or 0 where a text has no features."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    if not any(text.strip() for text in texts):
        return csr_matrix((len(texts), 1), dtype=np.float32)
    words = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True, dtype=np.float32)
    grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True, dtype=np.float32)
    both = hstack([words.fit_transform(texts), grams.fit_transform(texts)], format="csr")
    return normalize(both, copy=False)


def _nearest(vectors: Any, m: int) -> IntArray:
    """[u, m] rows most similar to each row, itself excluded; NULL where no further row shares a feature."""
    vectors = _affordable(vectors)
    transposed = vectors.T.tocsr()
    nearest = np.full((vectors.shape[0], m), NULL, dtype=np.int64)
    for start, stop in _blocks(vectors):
        product = vectors[start:stop] @ transposed
        rows = np.repeat(np.arange(stop - start), np.diff(product.indptr))
        product.data[product.indices == rows + start] = -1.0
        nearest[start:stop] = _largest(product, rows, m)
    return nearest


def _affordable(vectors: Any) -> Any:
    """The vectors without the commonest features, as many as the product's cost demands."""
    frequency = np.bincount(vectors.indices, minlength=vectors.shape[1]).astype(np.float64)
    by_frequency = np.argsort(frequency, kind="stable")
    cost = np.cumsum(frequency[by_frequency] ** 2)
    bound = max(_PRODUCT_COST, _PRODUCT_COST_PER_TEXT * vectors.shape[0])
    kept = by_frequency[: int(np.searchsorted(cost, bound, side="right"))]
    kept = kept[frequency[kept] > 1]
    return vectors[:, np.sort(kept)]


def _blocks(vectors: Any) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose products hold at most about `_BLOCK` similarities (one row at the least)."""
    frequency = np.bincount(vectors.indices, minlength=vectors.shape[1])
    per_entry = np.concatenate([[0], np.cumsum(frequency[vectors.indices])])
    upper = np.minimum(np.diff(per_entry[vectors.indptr]), vectors.shape[0])
    total = np.cumsum(upper)
    start = 0
    while start < len(total):
        before = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, before + _BLOCK, side="right")))
        yield start, stop
        start = stop


def _largest(product: Any, rows: IntArray, m: int) -> IntArray:
    """[rows, m] columns of the m largest positive values of each sparse row, largest first, ties to smaller columns."""
    found = np.full((product.shape[0], m), NULL, dtype=np.int64)
    values, columns = product.data, product.indices
    filled = np.flatnonzero(np.diff(product.indptr))
    starts, counts = product.indptr[:-1][filled], np.diff(product.indptr)[filled]
    if not len(filled):
        return found
    for place in range(m):
        best = np.maximum.reduceat(values, starts)
        is_best = values == np.repeat(best, counts)
        column = np.minimum.reduceat(np.where(is_best, columns, product.shape[1]), starts)
        found[filled, place] = np.where(best > 0, column, NULL)
        values[is_best & (columns == np.repeat(column, counts))] = -1.0
    return found
