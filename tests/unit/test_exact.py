"""Pair sums against plain definitions: hand arithmetic, golden fractions, brute force, real text."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidep.errors import DataError, ReaderError, SettingError
from evidep.stats.exact import (
    PairSums,
    additive_pair_sums,
    donor_set_sums,
    matrix_pair_sums,
    outer_pair_sums,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "delta_evi.json").read_text(encoding="utf-8"))


def fractions(values: list[str | None]) -> np.ndarray:
    return np.array([np.nan if value is None else float(Fraction(value)) for value in values])


def assert_same(a: PairSums, b: PairSums, atol: float = 1e-12) -> None:
    for field in dataclasses.fields(PairSums):
        first, second = (np.asarray(getattr(sums, field.name), dtype=float) for sums in (a, b))
        np.testing.assert_allclose(first, second, rtol=0, atol=atol, err_msg=field.name)


def as_arrays(world: dict[str, Any]) -> tuple[np.ndarray, ...]:
    scores = (np.array(world[name], dtype=float) for name in ("query_scores", "evidence_scores"))
    return *scores, *(np.array(world[name]) for name in ("labels", "evidence_codes", "strata"))


def by_argmax(query: np.ndarray, evidence: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return (query[:, None] + evidence[None]).argmax(axis=2) == labels[:, None]


def outer(query: np.ndarray, evidence: np.ndarray, *args: Any, **settings: Any) -> PairSums:
    index = (np.unique(scores, axis=0, return_inverse=True)[1] for scores in (evidence, query))
    labels, codes, *rest = args
    return outer_pair_sums(
        lambda rows, donors: query[rows][:, None] + evidence[donors], labels, codes, *index, *rest, **settings
    )


@pytest.mark.parametrize("world", GOLDEN, ids=lambda world: world["name"])
def test_golden_worlds(world: dict[str, Any]) -> None:
    expected = world["expected"]
    query, evidence, labels, codes, strata = as_arrays(world)
    h = np.array(expected["h"], dtype=bool)
    np.testing.assert_array_equal(by_argmax(query, evidence, labels), h)
    matrix = matrix_pair_sums(h, codes, strata)
    np.testing.assert_array_equal(matrix.diagonal, np.diagonal(h))
    np.testing.assert_array_equal(matrix.n_donors, expected["n_donors"])
    np.testing.assert_allclose(matrix.row_mean, fractions(expected["row_mean"]), atol=1e-15)
    np.testing.assert_allclose(matrix.column_mean, fractions(expected["column_mean"]), atol=1e-15)
    np.testing.assert_allclose(matrix.donor_effect, fractions(expected["donor_effect"]), atol=1e-15)
    if permutations := expected.get("permutations"):
        assert matrix.permutation_mean == pytest.approx(float(Fraction(permutations["mean"])), abs=1e-15)
        assert matrix.permutation_sd**2 == pytest.approx(float(Fraction(permutations["variance"])), abs=1e-15)
    else:
        assert np.isnan(matrix.permutation_mean)
        assert np.isnan(matrix.permutation_sd)
    assert_same(additive_pair_sums(query, evidence, labels, codes, strata), matrix)
    assert_same(outer(query, evidence, labels, codes, strata, block=3), matrix)


def test_by_hand() -> None:
    # Items 0 and 1 share a text. Item 0 is right with 0, 1, 3; item 1 with 1, 2; item 2 with all, item 3 with none.
    h = np.array([[1, 1, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)
    sums = matrix_pair_sums(h, np.array([5, 5, 6, 7]))
    np.testing.assert_array_equal(sums.n_donors, [2, 2, 3, 3])
    # Item 0 may receive 2 (wrong) and 3 (right); item 1: 2 right, 3 wrong; item 2: 3 of 3; item 3: 0 of 3.
    np.testing.assert_array_equal(sums.row_mean, [1 / 2, 1 / 2, 1, 0])
    # Column 0: given to 2 (right) and 3 (wrong). Column 2: 0 wrong, 1 right, 3 wrong. Column 3: 0 and 2 right, 1 wrong.
    np.testing.assert_allclose(sums.column_mean, [1 / 2, 1 / 2, 1 / 3, 2 / 3])
    # Item 2 as donor: (0 - 1/2)/2 + (1 - 1/2)/2 + (0 - 0)/3 = 0; item 3: (1 - 1/2)/2 + (0 - 1/2)/2 + (1 - 1)/3 = 0.
    np.testing.assert_allclose(sums.donor_effect, [0, 0, 0, 0], atol=1e-15)
    # T = 9 right of 16: mean 9/16. Rows 3, 2, 4, 0 (squares 29), columns 2, 3, 2, 2 (21):
    # sum d^2 = 9 - (29 + 21)/4 + 81/16 = 25/16; Var(count) = 25/16/3 = 25/48; SD of the share = sqrt(25/48)/4.
    assert sums.permutation_mean == 9 / 16
    assert sums.permutation_sd == pytest.approx(np.sqrt(25 / 48) / 4, abs=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("kind", ["ties", "eighths", "continuous", "equal rows", "tiny", "float32"])
def test_additive_agrees_with_all_pairs(n_classes: int, kind: str) -> None:
    rng = np.random.default_rng([n_classes, len(kind)])
    n = 120
    query, evidence = rng.normal(size=(2, n, n_classes))
    if kind == "ties":
        query, evidence = np.round(query), np.round(evidence)
    elif kind == "eighths":
        query, evidence = np.round(query * 8) / 8, np.round(evidence * 8) / 8
    elif kind == "equal rows":
        query, evidence = query[rng.integers(0, 9, n)], evidence[rng.integers(0, 9, n)]
    elif kind == "tiny":
        query, evidence = query * 1e-300, evidence * 1e-300
    elif kind == "float32":
        query, evidence = query.astype(np.float32).astype(float), evidence.astype(np.float32).astype(float)
    labels, codes, strata = (rng.integers(0, top, n) for top in (n_classes, 40, 3))
    h = by_argmax(query, evidence, labels)
    for given in (None, strata):
        assert_same(additive_pair_sums(query, evidence, labels, codes, given), matrix_pair_sums(h, codes, given))
        assert_same(outer(query, evidence, labels, codes, given, block=50), matrix_pair_sums(h, codes, given))


def test_rounding_noise_decides_ties_one_way_only() -> None:
    # 0.1 + 0.2 and 0.3 + 0.0 differ in float64 by 5.6e-17; on the common grid both comparisons use the same integers,
    # so rows, columns and the diagonal cannot contradict each other.
    query = np.array([[0.1, 0.3], [0.3, 0.1], [0.2, 0.2]])
    evidence = np.array([[0.2, 0.0], [0.0, 0.2], [0.1, 0.1]])
    labels = np.array([0, 1, 0])
    sums = additive_pair_sums(query, evidence, labels, np.arange(3))
    total = sums.row_mean.sum() * 2
    assert total == pytest.approx(sums.column_mean.sum() * 2)
    assert sums.permutation_mean == pytest.approx((total + sums.diagonal.sum()) / 9)


def test_differences_near_the_rounding_error_count() -> None:
    # Class 1 leads by 2^-48 with donor 1 only; the largest score is 1, so the step of the grid is 2^-50.
    query = np.array([[1.0, 1.0], [0.5, 0.5]])
    evidence = np.array([[0.0, 0.0], [0.0, 2.0**-48]])
    sums = additive_pair_sums(query, evidence, np.array([1, 1]), np.arange(2))
    np.testing.assert_array_equal(sums.row_mean, [1, 0])
    np.testing.assert_array_equal(sums.diagonal, [False, True])


def test_one_large_cell_and_distinct_texts_with_one_code() -> None:
    # A third of the items has "empty" evidence; its raw variants score differently but share a code.
    rng = np.random.default_rng(3)
    n = 300
    query, evidence = rng.normal(size=(2, n, 3))
    codes = np.where(np.arange(n) % 3 == 0, 0, np.arange(n))
    labels = rng.integers(0, 3, n)
    sums = additive_pair_sums(query, evidence, labels, codes)
    assert_same(sums, matrix_pair_sums(by_argmax(query, evidence, labels), codes))
    assert_same(outer(query, evidence, labels, codes, block=37), sums)
    np.testing.assert_array_equal(np.unique(sums.n_donors), [200, 299])


def test_permutation_moments_against_all_permutations() -> None:
    rng = np.random.default_rng(11)
    h = rng.random((6, 6)) < 0.5
    accuracies = [h[np.arange(6), list(order)].mean() for order in itertools.permutations(range(6))]
    sums = matrix_pair_sums(h, np.arange(6))
    assert sums.permutation_mean == pytest.approx(np.mean(accuracies), abs=1e-14)
    assert sums.permutation_sd == pytest.approx(np.std(accuracies), abs=1e-14)


def test_reader_blind_to_evidence_has_no_spread_at_all() -> None:
    rng = np.random.default_rng(0)
    query = rng.normal(size=(1000, 3))
    labels = rng.integers(0, 3, 1000)
    sums = additive_pair_sums(query, np.zeros((1000, 3)), labels, np.arange(1000))
    np.testing.assert_array_equal(sums.row_mean, sums.diagonal)
    assert sums.permutation_sd == 0.0
    assert np.abs(sums.donor_effect).max() < 1e-12


def test_large_counts_stay_exact() -> None:
    # 200,000 items, all right on any evidence: sums of squares of 2e5 exceed int64 when multiplied out with n^2.
    n = 200_000
    scores = np.tile([1.0, 0.0], (n, 1))
    sums = additive_pair_sums(scores, np.zeros((n, 2)), np.zeros(n, dtype=np.int64), np.arange(n))
    assert sums.permutation_mean == 1.0
    assert sums.permutation_sd == 0.0
    half = np.arange(n) % 2
    sums = additive_pair_sums(scores, np.zeros((n, 2)), half, np.arange(n))
    assert (sums.permutation_mean, sums.permutation_sd) == (0.5, 0.0)


def test_permutation_sd_of_a_large_known_matrix() -> None:
    # h(i, j) = 1 where i and j are both even or both odd: d = ±1/2, sum d^2 = n^2/4, Var(share) = 1/(4(n - 1)).
    n = 100_000
    parity = np.arange(n) % 2
    evidence = np.where(parity[:, None] == np.arange(2), 1.0, 0.0)
    sums = additive_pair_sums(np.zeros((n, 2)), evidence, parity, np.arange(n))
    assert sums.permutation_mean == 0.5
    assert sums.permutation_sd == pytest.approx(np.sqrt(1 / (4 * (n - 1))), rel=1e-12)


def test_outer_scores_each_distinct_pair_once_within_strata() -> None:
    rng = np.random.default_rng(5)
    query, evidence = rng.normal(size=(2, 60, 3))
    query, evidence = query[np.arange(60) // 3], evidence[np.arange(60) // 2]
    labels, codes = rng.integers(0, 3, 60), np.arange(60) // 2
    calls: list[tuple[int, int]] = []

    def scores(rows: np.ndarray, donors: np.ndarray) -> np.ndarray:
        calls.append((len(rows), len(donors)))
        return query[rows][:, None] + evidence[donors]

    outer_pair_sums(scores, labels, codes, np.arange(60) // 2, np.arange(60) // 3)
    assert calls == [(20, 30)]
    calls.clear()
    strata = np.arange(60) // 30
    sums = outer_pair_sums(scores, labels, codes, np.arange(60) // 2, np.arange(60) // 3, strata, block=30)
    assert sum(rows * donors for rows, donors in calls) <= 2 * 20 * 15
    assert_same(sums, matrix_pair_sums(by_argmax(query, evidence, labels), codes, strata))


def test_many_strata_meet_in_few_calls() -> None:
    rng = np.random.default_rng(6)
    query, evidence = rng.normal(size=(2, 3000, 2))
    labels, strata = rng.integers(0, 2, 3000), np.arange(3000) // 3
    calls = []

    def scores(rows: np.ndarray, donors: np.ndarray) -> np.ndarray:
        calls.append(len(rows) * len(donors))
        return query[rows][:, None] + evidence[donors]

    everyone = np.arange(3000)
    sums = outer_pair_sums(scores, labels, everyone, everyone, everyone, strata, block=300)
    assert len(calls) <= 20
    assert sum(calls) < 3000 * 303
    assert_same(sums, additive_pair_sums(query, evidence, labels, everyone, strata))


def test_donor_sets() -> None:
    correct = np.array([[True, False], [True, True], [True, True]])
    donors = np.array([[1, 2], [2, -1], [-1, -1]])
    sums = donor_set_sums(correct, donors, np.array([True, True, False]))
    np.testing.assert_array_equal(sums.n_donors, [2, 1, 0])
    np.testing.assert_array_equal(sums.row_mean, [1 / 2, 1, np.nan])
    # Item 1 is given to 0 (right); item 2 to 0 (wrong) and 1 (right); item 0 to nobody.
    np.testing.assert_array_equal(sums.column_mean, [np.nan, 1, 1 / 2])
    # Item 1: (1 - 1/2)/2 = 1/4; item 2: (0 - 1/2)/2 + (1 - 1)/1 = -1/4.
    np.testing.assert_array_equal(sums.donor_effect, [0, 1 / 4, -1 / 4])
    assert np.isnan([sums.permutation_mean, sums.permutation_sd]).all()


def test_donor_sets_of_all_allowed_donors_are_the_matrix() -> None:
    rng = np.random.default_rng(8)
    h = rng.random((9, 9)) < 0.6
    codes = np.array([0, 0, 1, 2, 3, 3, 3, 4, 5])
    donors = np.where(codes[:, None] != codes, np.arange(9), -1)
    matrix = matrix_pair_sums(h, codes)
    sums = donor_set_sums(h, donors, np.diagonal(h))
    nan = float("nan")
    assert_same(sums, dataclasses.replace(matrix, permutation_mean=nan, permutation_sd=nan))


def test_real_text_tfidf_agrees_with_all_pairs(real_data: Path) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    with gzip.open(real_data / "snli.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in itertools.islice(lines, 900)]
    labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    features = [TfidfVectorizer().fit_transform([row[name] for row in rows]) for name in ("query", "evidence")]
    model = LogisticRegression(solver="newton-cg").fit(np.hstack([f.toarray() for f in features]), labels)
    width = features[0].shape[1]
    query = features[0] @ model.coef_[:, :width].T + model.intercept_
    evidence = features[1] @ model.coef_[:, width:].T
    codes = np.unique([row["evidence"].casefold().strip() for row in rows], return_inverse=True)[1]
    assert len(np.unique(codes)) < len(codes)
    sums = additive_pair_sums(query, evidence, labels, codes)
    assert_same(sums, matrix_pair_sums(by_argmax(query, evidence, labels), codes))
    assert sums.diagonal.mean() == model.score(np.hstack([f.toarray() for f in features]), labels)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"query_scores": np.zeros((4, 1)), "evidence_scores": np.zeros((4, 1))}, ReaderError, "C >= 2"),
        ({"evidence_scores": np.zeros((4, 2))}, ReaderError, "evidence_scores: expected shape"),
        ({"query_scores": np.full((4, 3), np.nan)}, ReaderError, r"query_scores\[0\]: expected finite"),
        ({"labels": np.array([0, 1, 2, 3])}, DataError, r"labels\[3\]: expected 0 to 2"),
        ({"labels": np.array([0.0, 1, 2, 2])}, DataError, "labels: expected 4 integers"),
        ({"evidence_codes": np.arange(3)}, DataError, "evidence_codes: expected 4 integers"),
        ({"strata": np.zeros(5, dtype=int)}, DataError, "strata: expected 4 integers"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {
        "query_scores": np.zeros((4, 3)),
        "evidence_scores": np.zeros((4, 3)),
        "labels": np.array([0, 1, 2, 0]),
        "evidence_codes": np.arange(4),
        "strata": None,
    }
    with pytest.raises(error, match=message):
        additive_pair_sums(**(given | change))


def test_bad_outer_scores_and_matrices_are_named() -> None:
    everyone = np.arange(3)
    labels = np.zeros(3, dtype=np.int64)
    with pytest.raises(ReaderError, match=r"expected shape \(3, 3, C\), got \(3, 2\)"):
        outer_pair_sums(lambda r, d: np.zeros((3, 2)), labels, everyone, everyone, everyone)
    with pytest.raises(ReaderError, match="expected finite scores"):
        outer_pair_sums(lambda r, d: np.full((3, 3, 2), np.inf), labels, everyone, everyone, everyone)
    with pytest.raises(SettingError, match="block"):
        outer_pair_sums(lambda r, d: np.zeros((3, 3, 2)), labels, everyone, everyone, everyone, block=0)
    with pytest.raises(DataError, match="square bool"):
        matrix_pair_sums(np.zeros((2, 3), dtype=bool), everyone)
    with pytest.raises(DataError, match="at least one item"):
        matrix_pair_sums(np.zeros((0, 0), dtype=bool), everyone[:0])
    with pytest.raises(DataError, match="below 3, got 7"):
        donor_set_sums(np.zeros((3, 1), dtype=bool), np.full((3, 1), 7), np.zeros(3, dtype=bool))
    with pytest.raises(DataError, match="donor sets"):
        donor_set_sums(np.zeros((3, 1), dtype=bool), np.zeros((3, 2), dtype=int), np.zeros(3, dtype=bool))
