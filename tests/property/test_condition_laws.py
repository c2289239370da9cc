"""Laws that hold for every table, arm, stratification, seed and k."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from evidep.data import conditions, near_miss
from evidep.data.derange import Draws
from evidep.types import NULL, PairTable, StringColumn

PERMUTATION_ARMS = ("global", "within-label", "within-metadata")


@st.composite
def cases(draw):
    """A table with heavily repeated texts, labels and metadata, an arm, strata or None, seed and k."""
    n = draw(st.integers(1, 40))
    most = draw(st.sampled_from([0, 1, 2, 5, 40]))
    ints = st.lists(st.integers(0, most), min_size=n, max_size=n)
    few = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    table = table_of(draw(ints), draw(few), draw(few))
    strata = draw(st.one_of(st.none(), few.map(np.array)))
    return table, draw(st.sampled_from(PERMUTATION_ARMS)), strata, draw(st.integers(0, 3)), draw(st.integers(0, 50))


def table_of(codes, labels, metadata):
    n = len(codes)
    evidence = StringColumn.from_list([f"text number {c}" for c in codes])
    return PairTable(
        ids=pa.array([str(i) for i in range(n)], pa.large_string()),
        queries=evidence,
        evidence=evidence,
        evidence_state=np.zeros(n, np.int8),
        evidence_codes=np.array(codes, np.int64),
        labels=np.array(labels, np.int64),
        label_names=("a", "b", "c"),
        metadata={"m": StringColumn.from_list([None if m == 0 else str(m) for m in metadata])},
        groups=np.array(codes, np.int64),
        components=np.array(codes, np.int64),
        fingerprint="t",
    )


def stratum_keys(table, arm, strata):
    own = {"global": np.zeros(len(table)), "within-label": table.labels, "within-metadata": table.metadata["m"].index}[
        arm
    ]
    return list(zip(own.tolist(), (np.zeros(len(table)) if strata is None else strata).tolist(), strict=True))


@given(cases())
@settings(max_examples=100, deadline=None)
def test_both_permutations_are_bijections_of_each_stratum(case):
    table, arm, strata, seed, k = case
    condition = conditions.shuffle(table, arm, k, seed=seed, strata=strata)
    keys = stratum_keys(table, arm, strata)
    for donors in (condition.donors, condition.uniform_donors):
        assert sorted(donors.tolist()) == list(range(len(table)))
        assert [keys[d] for d in donors] == keys


@given(cases())
@settings(max_examples=100, deadline=None)
def test_only_forced_items_keep_their_text(case):
    table, arm, strata, seed, k = case
    condition = conditions.shuffle(table, arm, k, seed=seed, strata=strata)
    keys = stratum_keys(table, arm, strata)
    codes = table.evidence_codes
    kept = Counter(
        key for key, d, i in zip(keys, condition.donors, range(len(keys)), strict=True) if codes[d] == codes[i]
    )
    for key, size in Counter(keys).items():
        commonest = max(Counter(c for c, at in zip(codes.tolist(), keys, strict=True) if at == key).values())
        assert kept[key] == max(0, 2 * commonest - size)
    assert condition.unchanged_rate == kept.total() / len(keys)


@given(cases())
@settings(max_examples=80, deadline=None)
def test_movable_means_another_text_in_the_stratum(case):
    table, arm, strata, seed, k = case
    keys = stratum_keys(table, arm, strata)
    codes = table.evidence_codes.tolist()
    texts = {key: {c for c, at in zip(codes, keys, strict=True) if at == key} for key in keys}
    expected = [len(texts[key]) > 1 for key in keys]
    assert conditions.shuffle(table, arm, k, seed=seed, strata=strata).movable.tolist() == expected


@given(cases())
@settings(max_examples=50, deadline=None)
def test_the_uniform_permutation_does_not_look_at_the_texts(case):
    table, arm, strata, seed, k = case
    unique = table_of(
        list(range(len(table))), table.labels.tolist(), [0 if i < 0 else 1 + i for i in table.metadata["m"].index]
    )
    ours = conditions.shuffle(table, arm, k, seed=seed, strata=strata)
    theirs = conditions.shuffle(unique, arm, k, seed=seed, strata=strata)
    assert np.array_equal(ours.uniform_donors, theirs.uniform_donors)
    if not (table.evidence_codes[ours.uniform_donors] == table.evidence_codes).any():
        assert np.array_equal(ours.donors, ours.uniform_donors)


@given(cases(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_numbering_of_texts_and_strata_does_not_matter(case, random):
    table, arm, strata, seed, k = case
    allowed = conditions.arm_strata(table, arm, strata)
    names = list(range(100))
    random.shuffle(names)
    renamed = np.array(names)
    ours = conditions.permute(table.evidence_codes, allowed, Draws(seed, arm, k))
    other_strata = None if allowed is None else renamed[allowed]
    theirs = conditions.permute(renamed[table.evidence_codes], other_strata, Draws(seed, arm, k))
    for left, right in zip(ours, theirs, strict=True):
        assert np.array_equal(left, right)


@given(cases())
@settings(max_examples=50, deadline=None)
def test_each_shuffle_stands_alone_in_any_order(case):
    table, arm, strata, seed, k = case
    many = [conditions.shuffle(table, arm, j, seed=seed, strata=strata).donors for j in (k + 2, k + 1, k)]
    few = [conditions.shuffle(table, arm, j, seed=seed, strata=strata).donors for j in (k, k + 1)]
    assert np.array_equal(many[2], few[0])
    assert np.array_equal(many[1], few[1])


@given(cases(), st.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_near_miss_donors_are_other_texts_of_the_stratum(case, m):
    table, _, strata, seed, k = case
    neighbours = near_miss.nearest_other_evidence(table, m=m, strata=strata)
    condition = conditions.shuffle(table, "near-miss", k, seed=seed, strata=strata, neighbours=neighbours)
    keys = stratum_keys(table, "global", strata)
    codes = table.evidence_codes
    for i, donor in enumerate(condition.donors.tolist()):
        others = {c for c, at in zip(codes.tolist(), keys, strict=True) if at == keys[i]} - {int(codes[i])}
        distinct = {int(codes[j]) for j in neighbours[i] if j != NULL}
        # All texts share the words "text number", so every other text of the stratum is a neighbour, up to m.
        assert distinct <= others
        assert len(distinct) == (neighbours[i] != NULL).sum() == min(m, len(others))
        assert keys[donor] == keys[i]
        assert condition.movable[i] == bool(others)
        assert int(codes[donor]) in (others or {int(codes[i])})
