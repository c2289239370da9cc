"""Conditions: what is fixed, what is drawn, and how repeated evidence is dealt with."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evidep.data import conditions, derange, near_miss
from evidep.errors import DataError, SettingError
from evidep.types import EMPTY, NULL, PairTable, StringColumn


def table_of(evidence, labels=None, metadata=None):
    n = len(evidence)
    column = StringColumn.from_list(list(evidence))
    labels = np.zeros(n, np.int64) if labels is None else np.asarray(labels, np.int64)
    return PairTable(
        ids=pa.array([str(i) for i in range(n)], pa.large_string()),
        queries=StringColumn.from_list([f"query {i}" for i in range(n)]),
        evidence=column,
        evidence_state=np.zeros(n, np.int8),
        evidence_codes=column.index,
        labels=labels,
        label_names=("a", "b", "c"),
        metadata={name: StringColumn.from_list(values) for name, values in (metadata or {}).items()},
        groups=column.index,
        components=column.index,
        fingerprint="t",
    )


DISTINCT = [f"text {i}" for i in range(60)]


def same_text(condition, table):
    return table.evidence_codes[condition.donors] == table.evidence_codes


def test_fixed_conditions_are_what_they_say():
    assert conditions.full(3).donors.tolist() == [0, 1, 2]
    assert conditions.full(3).rows.tolist() == [0, 1, 2]
    assert conditions.query_only(2).donors.tolist() == [NULL, NULL]
    assert conditions.query_only(2).rows.tolist() == [0, 1]
    assert conditions.evidence_only(2).rows.tolist() == [NULL, NULL]
    assert conditions.evidence_only(2).donors.tolist() == [0, 1]
    assert conditions.empty_evidence(2).donors.tolist() == [EMPTY, EMPTY]
    assert [conditions.full(1).name, conditions.empty_evidence(1).name] == ["full", "empty"]
    assert conditions.full(2).unchanged_rate == 1.0
    assert conditions.query_only(2).unchanged_rate == 0.0


def test_drawn_numbers_are_pinned():
    # Philox words and their order are stable across versions of numpy, so cached audits stay valid. If this fails
    # because the drawing was changed on purpose, raise derange.ALGORITHM_VERSION.
    condition = conditions.shuffle(table_of(DISTINCT[:8]), "global", 0, seed=0)
    assert condition.uniform_donors.tolist() == [4, 0, 1, 2, 5, 3, 6, 7]
    assert condition.donors.tolist() == [4, 6, 7, 2, 5, 3, 0, 1]


def test_uniform_permutations_are_uniform():
    table = table_of(DISTINCT[:4])
    drawn = [tuple(conditions.shuffle(table, "global", k, seed=5).uniform_donors.tolist()) for k in range(2400)]
    counts = [drawn.count(p) for p in itertools.permutations(range(4))]
    # Pearson chi-square on 24 cells of 100 each; 49.73 is the 0.999 quantile with 23 degrees of freedom.
    assert sum((c - 100) ** 2 / 100 for c in counts) < 49.73


def test_repaired_donors_are_uniform_over_other_items_when_texts_differ():
    table = table_of(DISTINCT[:5])
    seen = np.zeros((5, 5))
    for k in range(2000):
        seen[np.arange(5), conditions.shuffle(table, "global", k, seed=0).donors] += 1
    assert (np.diag(seen) == 0).all()
    off = seen[~np.eye(5, dtype=bool)]
    # Each of 4 donors: 500 of 2000; sd = sqrt(2000 * .25 * .75) = 19.4, four of them 77.
    assert np.abs(off - 500).max() < 78


@pytest.mark.parametrize("rounds", [0, 16], ids=["finishing scan alone", "random rounds first"])
def test_repair_is_optimal_against_all_permutations(monkeypatch, rounds):
    monkeypatch.setattr(derange, "_RANDOM_ROUNDS", rounds)
    for texts in itertools.product("abc", repeat=5):
        table = table_of(texts)
        codes = table.evidence_codes
        best = min(sum(codes[p[i]] == codes[i] for i in range(5)) for p in itertools.permutations(range(5)))
        for k in range(3):
            assert same_text(conditions.shuffle(table, "global", k, seed=1), table).sum() == best


def test_one_text_in_more_than_half_keeps_exactly_the_forced_number():
    # 7 of 10 items share a text: only 3 donors differ from it, so 7 - 3 = 4 keep it.
    table = table_of(["same"] * 7 + DISTINCT[:3])
    condition = conditions.shuffle(table, "global", 0, seed=0)
    assert same_text(condition, table).sum() == 4
    assert condition.unchanged_rate == 0.4
    assert condition.movable.all()


def test_all_evidence_equal_is_unmovable_not_an_endless_loop():
    condition = conditions.shuffle(table_of(["x"] * 6), "global", 0, seed=0)
    assert not condition.movable.any()
    assert condition.unchanged_rate == 1.0
    assert sorted(condition.donors.tolist()) == list(range(6))


def test_one_item_cannot_move():
    condition = conditions.shuffle(table_of(["x"]), "global", 0, seed=0)
    assert (condition.donors.tolist(), condition.movable.tolist()) == ([0], [False])


def test_strata_of_one_cannot_move_and_of_two_move_one_way():
    table = table_of(DISTINCT[:3], labels=[0, 1, 1])
    for k in range(8):
        condition = conditions.shuffle(table, "within-label", k, seed=0)
        assert condition.donors.tolist() == [0, 2, 1]
        assert condition.movable.tolist() == [False, True, True]
        assert condition.unchanged_rate == pytest.approx(1 / 3)


def test_a_third_of_the_items_without_evidence_still_all_move():
    table = table_of([""] * 200 + [f"text {i}" for i in range(400)])
    assert conditions.shuffle(table, "global", 0, seed=0).unchanged_rate == 0.0


def test_seeds_arms_and_k_give_different_permutations_and_seed_zero_is_one():
    table = table_of(DISTINCT)
    drawn = {
        tuple(conditions.shuffle(table, arm, k, seed=seed).uniform_donors.tolist())
        for arm in ("global", "within-label")
        for k in (0, 1)
        for seed in (0, 1)
    }
    assert len(drawn) == 8
    again = conditions.shuffle(table, "global", 0, seed=0).donors
    assert np.array_equal(again, conditions.shuffle(table, "global", 0, seed=0).donors)


def test_global_random_state_is_neither_read_nor_written():
    table = table_of(DISTINCT)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = conditions.shuffle(table, "global", 0, seed=0).donors
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert np.array_equal(first, conditions.shuffle(table, "global", 0, seed=0).donors)


def test_within_metadata_crosses_all_columns_and_counts_missing_as_a_value():
    table = table_of(DISTINCT[:6], metadata={"a": ["x", "x", None, None, "", "x"], "b": ["1", "2", "1", "1", "1", "1"]})
    strata = conditions.arm_strata(table, "within-metadata")
    # (x,1) items 0 and 5, (x,2) item 1, (None,1) items 2 and 3, ("",1) item 4.
    assert [strata.tolist().index(s) for s in strata] == [0, 1, 2, 2, 4, 0]


def test_folds_cross_the_strata_of_the_arm():
    table = table_of(DISTINCT[:8], labels=[0, 0, 0, 0, 1, 1, 1, 1])
    folds = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    strata = conditions.arm_strata(table, "within-label", folds)
    assert [strata.tolist().index(s) for s in strata] == [0, 1, 0, 1, 4, 5, 4, 5]
    assert conditions.arm_strata(table, "global") is None
    assert conditions.arm_strata(table, "global", folds).tolist() == folds.tolist()
    assert conditions.shuffle(table, "within-label", 0, seed=0, strata=folds).donors.tolist() == [
        2,
        3,
        0,
        1,
        6,
        7,
        4,
        5,
    ]


def test_what_cannot_be_done_is_refused_in_one_line():
    table = table_of(DISTINCT[:4])
    with pytest.raises(SettingError, match=r"^shuffle within-metadata needs metadata columns"):
        conditions.shuffle(table, "within-metadata", 0, seed=0)
    with pytest.raises(SettingError, match=r"'random' is unknown; choose from global, within-label"):
        conditions.shuffle(table, "random", 0, seed=0)
    with pytest.raises(SettingError, match=r"seed: expected a whole number of at least 0, got -1"):
        conditions.shuffle(table, "global", 0, seed=-1)
    with pytest.raises(SettingError, match=r"k: expected a whole number of at least 0, got 0.5"):
        conditions.shuffle(table, "global", 0.5, seed=0)
    with pytest.raises(DataError, match=r"strata: expected 4 values \(one per item\), got 3"):
        conditions.shuffle(table, "global", 0, seed=0, strata=np.zeros(3, np.int64))
    with pytest.raises(DataError, match=r"no items"):
        conditions.shuffle(table_of([]), "global", 0, seed=0)
    with pytest.raises(SettingError, match=r"neighbours belong to the near-miss shuffle"):
        conditions.shuffle(table, "global", 0, seed=0, neighbours=np.zeros((4, 1), np.int64))


TOPICS = [
    "The red fox jumps over the fence near the farm",
    "The red fox sleeps under the fence near the farm",
    "Quarterly profits of the steel company rose sharply",
    "Quarterly profits of the steel company fell sharply",
    "The orchestra played a slow waltz in the evening",
]


def test_neighbours_are_the_similar_other_texts():
    table = table_of([*TOPICS, TOPICS[0]])
    neighbours = near_miss.nearest_other_evidence(table, m=2)
    assert neighbours[:, 0].tolist()[:4] == [1, 0, 3, 2]
    assert neighbours[5].tolist() == neighbours[0].tolist()
    assert not (table.evidence_codes[neighbours] == table.evidence_codes[:, None]).any()


def test_neighbours_against_a_plain_dense_computation():
    rng = np.random.default_rng(3)
    words = [f"w{chr(97 + i)}{chr(97 + j)}x" for i in range(8) for j in range(8)]
    table = table_of([" ".join(rng.choice(words, 12)) for _ in range(70)])
    texts, of = near_miss._distinct_texts(table.evidence, table.evidence_codes)
    dense = near_miss._vectors(texts).toarray().astype(np.float64)
    similarity = dense @ dense.T
    np.fill_diagonal(similarity, -1)
    found = near_miss.nearest_other_evidence(table, m=5)
    best = -np.sort(-similarity, axis=1)[:, :5]
    assert np.allclose(np.take_along_axis(similarity, found, axis=1), best, atol=1e-6)
    assert np.array_equal(of, np.arange(70))


def test_neighbours_do_not_depend_on_the_size_of_the_blocks(monkeypatch):
    table = table_of([f"{a} {b} {c}" for a in ("ash", "oak", "elm") for b in ("tree", "leaf") for c in ("tall", "old")])
    whole = near_miss.nearest_other_evidence(table)
    monkeypatch.setattr(near_miss, "_BLOCK", 5)
    assert np.array_equal(whole, near_miss.nearest_other_evidence(table))


def test_neighbours_stay_in_their_stratum_and_blank_evidence_has_none():
    table = table_of([*TOPICS, "", "  "])
    strata = np.array([0, 1, 0, 0, 1, 0, 1])
    neighbours = near_miss.nearest_other_evidence(table, m=3, strata=strata)
    assert (strata[neighbours] == strata[:, None])[neighbours >= 0].all()
    assert neighbours[0, 0] in (2, 3)
    assert (neighbours[5:] == NULL).all()
    condition = conditions.shuffle(table, "near-miss", 0, seed=0, strata=strata, neighbours=neighbours)
    assert condition.movable.tolist() == [True, True, True, True, True, False, False]
    assert condition.donors[5:].tolist() == [5, 6]


def test_near_miss_draws_among_the_neighbours_uniformly_and_has_no_permutation_test():
    table = table_of(TOPICS)
    neighbours = np.array([[1, 2, NULL], [0, NULL, NULL], [3, 4, 0], [NULL, NULL, NULL], [2, NULL, 3]])
    drawn = np.array(
        [conditions.shuffle(table, "near-miss", k, seed=0, neighbours=neighbours).donors for k in range(900)]
    )
    counts = [np.bincount(drawn[:, i], minlength=5).tolist() for i in range(5)]
    assert counts[1] == [900, 0, 0, 0, 0]
    assert counts[3] == [0, 0, 0, 900, 0]
    # sd of 900 draws at 1/2 is 15, at 1/3 14.1; four of them are 60 and 57.
    assert abs(counts[0][1] - 450) < 60
    assert abs(counts[4][2] - 450) < 60
    assert all(abs(counts[2][j] - 300) < 57 for j in (0, 3, 4))
    condition = conditions.shuffle(table, "near-miss", 0, seed=0, neighbours=neighbours)
    assert condition.uniform_donors is None
    assert condition.movable.tolist() == [True, True, True, False, True]
    assert condition.unchanged_rate == 0.2


def test_foreign_neighbours_are_refused():
    table = table_of([*TOPICS, TOPICS[0]])
    with pytest.raises(DataError, match=r"neighbours: item 0 has a neighbour with its own text"):
        conditions.shuffle(table, "near-miss", 0, seed=0, neighbours=np.array([[5]] * 6))
    with pytest.raises(DataError, match=r"expected shape \(6, m\), got \(5, 1\)"):
        conditions.shuffle(table, "near-miss", 0, seed=0, neighbours=np.zeros((5, 1), np.int64))
    with pytest.raises(DataError, match=r"neighbours: item 0"):
        conditions.shuffle(
            table, "near-miss", 0, seed=0, neighbours=np.array([[1]] * 6), strata=np.array([0, 1, 1, 1, 1, 1])
        )
    with pytest.raises(SettingError, match=r"m: expected at least 1 neighbour, got 0"):
        near_miss.nearest_other_evidence(table, m=0)


def test_near_miss_donors_are_nearer_than_global_ones_on_real_evidence(real_data: Path):
    import gzip
    import json

    with gzip.open(real_data / "scifact_rte.jsonl.gz", "rt", encoding="utf-8") as lines:
        table = table_of([json.loads(line)["evidence"] for line in lines])
    near = conditions.shuffle(table, "near-miss", 0, seed=0)
    far = conditions.shuffle(table, "global", 0, seed=0)
    assert near.unchanged_rate == 0.0
    similarity = {c.arm: near_miss.donor_similarity(table, c.donors).mean() for c in (near, far)}
    assert similarity["near-miss"] > 3 * similarity["global"]
    assert near_miss.donor_similarity(table, np.arange(len(table))).min() == pytest.approx(1.0)
    assert np.isnan(near_miss.donor_similarity(table, np.full(len(table), EMPTY))).all()
