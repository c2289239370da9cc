"""Planted worlds: what they claim of themselves is true of their rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from evidep.data.synthetic import WORLDS, _shares_of, planted_world
from evidep.data.world_truth import truth_of
from evidep.errors import SettingError

NAMES = tuple(WORLDS)

# (accuracy_metadata, query_only, evidence_only, accuracy_full, accuracy_shuffled), by hand:
BY_HAND = {
    "direct_coupling": (1, 1, 1 / 3, 1, 1),
    "latent_coupling": (0.7, 0.6, 0.5, 1, 1),
    "question_dominant": (1 / 3, 1, 1 / 3, 1, 1),
    # 578/600 plain, 7 of the 22 conflicts recognised: 585/600.
    "question_dominant_skewed": (578 / 600, 585 / 600, 578 / 600, 585 / 600, 585 / 600),
    "evidence_only_shortcut": (1 / 2, 1 / 2, 1, 1, 1 / 2),
    # Right by chance: 2/3 of the items need one trade in 12, 1/3 any of the 11 others.
    "mismatch_detector": (1 / 3, 2 / 3, 1 / 3, 1, 2 / 3 / 12 + 1 / 3 * 11 / 12),
    "matching": (1 / 2, 1 / 2, 1 / 2, 1, 1 / 2 / 12 + 1 / 2 * 11 / 12),
    "reader_limited": (1 / 2, 0.7, 1 / 2, 1, 0.7 * 0.7 + 0.3 * 0.3),
    "base_rate_collapse": (0.9, 0.9, 0.9, 0.9, 0.9),
    "no_signal": (1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 3),
    "nq": (1, 1, 1 / 4, 1, 1),
    "hotpotqa": (0.643, 0.6, 0.5, 1, 1),
    # 1.2 p^2 - 0.4 p + 0.2 = 0.192 at p = 0.31196.
    "triviaqa": (0.31196, 0.31196, 1, 1, 0.192),
}


@pytest.mark.parametrize("name", NAMES)
def test_truth_by_hand(name):
    truth = planted_world(name, n_train=10, n_eval=10, seed=0).truth
    metadata, query_only, evidence_only, full, shuffled = BY_HAND[name]
    assert truth["accuracy_metadata"] == pytest.approx(metadata, abs=1e-5)
    assert truth["query_only"] == pytest.approx(query_only, abs=1e-5)
    assert truth["evidence_only"] == pytest.approx(evidence_only, abs=1e-5)
    assert truth["accuracy_full"] == pytest.approx(full)
    assert truth["accuracy_shuffled"] == pytest.approx(shuffled)
    assert truth["delta_evi"] == pytest.approx(full - shuffled)
    assert truth["mpds"] == pytest.approx(metadata / full, abs=1e-5)


def test_the_papers_end_points():
    truths = {name: planted_world(name, n_train=10, n_eval=10, seed=0).truth for name in ("nq", "hotpotqa", "triviaqa")}
    assert (truths["nq"]["mpds"], truths["nq"]["delta_evi_additive"]) == (1.0, 0.0)
    assert truths["hotpotqa"]["mpds_additive"] == pytest.approx(0.643)
    assert truths["hotpotqa"]["delta_evi_additive"] == 0.0
    assert truths["triviaqa"]["delta_evi_additive"] == pytest.approx(0.808)
    assert [truths[name]["region_strong"] for name in truths] == [
        "direct_coupling",
        "latent_coupling",
        "evidence_sensitive",
    ]


@pytest.mark.parametrize("group_size", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_rows_agree_with_the_truth(name, group_size):
    n = 1500
    world = planted_world(name, n_train=300, n_eval=n, seed=2, group_size=group_size)
    labels, truth = world.labels, world.truth
    items = np.arange(n)
    outside = items[:, None] // group_size != items // group_size
    right = world.ideal(items[:, None], items[None, :]) == labels[:, None]
    # Four standard errors of a share of n/group_size independent groups.
    tolerance = 4 * 0.5 / np.sqrt(n / group_size)
    assert np.diag(right).mean() == pytest.approx(truth["accuracy_full"], abs=tolerance)
    assert right[outside].mean() == pytest.approx(truth["accuracy_shuffled"], abs=tolerance)
    same = outside & (labels[:, None] == labels)
    within = (right & same).sum(axis=1) / np.maximum(same.sum(axis=1), 1)
    assert np.diag(right).mean() - within.mean() == pytest.approx(truth["delta_evi_within_label"], abs=2 * tolerance)
    assert np.mean(world.additive(items, items) == labels) == pytest.approx(
        truth["accuracy_full_additive"], abs=tolerance
    )
    assert np.mean(labels == np.bincount(labels).argmax()) == pytest.approx(truth["majority_rate"], abs=tolerance)
    cells = Counter((row[world.metadata[0]], row["label"]) for row in world.evaluation)
    best = sum(max(count for (value, _), count in cells.items() if value == each) for each in {v for v, _ in cells})
    # The best answer per value is chosen on the same rows: at most a little above the truth.
    assert truth["accuracy_metadata"] - tolerance < best / n < truth["accuracy_metadata"] + tolerance + 0.02


@pytest.mark.parametrize("name", NAMES)
def test_additive_rule_is_what_additive_logistic_regression_converges_to(name):
    from sklearn.linear_model import LogisticRegression

    kind = WORLDS[name]
    plan = kind.build(_shares_of(kind, name, None, None))
    q, e, y = np.nonzero(plan.train)
    sizes = plan.rule.shape
    one_hot = np.hstack([np.eye(sizes[0])[q], np.eye(sizes[1])[e]])
    fitted = LogisticRegression(C=1e5, max_iter=2000, tol=1e-8).fit(
        one_hot, y, sample_weight=plan.train[q, e, y] * 1000
    )
    every = np.hstack([np.repeat(np.eye(sizes[0]), sizes[1], axis=0), np.tile(np.eye(sizes[1]), (sizes[0], 1))])
    scores = fitted.decision_function(every)
    if name == "matching":
        assert np.abs(scores).max() < 1e-3  # nothing to learn: every answer is a coin
        return
    answers = fitted.predict(every).reshape(sizes)
    seen = plan.evaluation.sum(axis=2) > 0
    assert np.array_equal(answers[seen], plan.additive_rule[seen])
    moved = (answers != answers[:, :1]).any(axis=1)
    if truth_of(plan)["delta_evi_additive"] == 0 and name not in ("latent_coupling", "hotpotqa"):
        assert not moved.any()


@pytest.mark.parametrize("name", NAMES)
def test_no_reader_does_better_with_swapped_evidence_than_the_query_alone_allows(name):
    # With an independent donor the reader is a random choice among query-only predictors.
    kind = WORLDS[name]
    world = planted_world(name, n_train=10, n_eval=10, seed=0)
    plan = kind.build(_shares_of(kind, name, None, None))
    best = plan.evaluation.sum(axis=1).max(axis=1).sum()
    assert world.truth["accuracy_shuffled"] <= best + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_distinct_complete_and_not_shared_by_splits(name):
    world = planted_world(name, n_train=200, n_eval=300, seed=1)
    assert (len(world.train), len(world.evaluation)) == (200, 300)
    rows = world.train + world.evaluation
    for column in ("id", "query", "evidence"):
        assert len({row[column] for row in rows}) == 500, column
    assert not any("{" in row["query"] + row["evidence"] for row in rows)
    assert all(row["query"][0].isupper() and len(row["evidence"].split()) >= 15 for row in rows)
    assert {row["label"] for row in rows} == set(world.label_names)
    assert list(rows[0]) == ["id", "query", "evidence", "label", *world.metadata]


def test_groups_share_one_text_and_ask_different_things():
    world = planted_world("matching", n_train=10, n_eval=100, seed=0, group_size=4)
    texts = [row["evidence"] for row in world.evaluation]
    assert all(texts[i] == texts[i - i % 4] for i in range(100))
    assert len(set(texts)) == 25
    assert len({row["query"] for row in world.evaluation}) == 100


def test_the_seed_decides_everything():
    first, again, other = (planted_world("matching", n_train=50, n_eval=50, seed=seed) for seed in (0, 0, 1))
    assert (first.train, first.evaluation) == (again.train, again.evaluation)
    assert first.evaluation != other.evaluation


def test_noise_replaces_labels_and_the_truth_follows():
    clean = planted_world("matching", n_train=10, n_eval=4000, seed=0)
    noisy = planted_world("matching", n_train=10, n_eval=4000, seed=0, noise=0.2)
    items = np.arange(4000)
    # 0.8 * 1 + 0.2 / 2 = 0.9, and 0.8 * 0.5 + 0.2 / 2 = 0.5: ΔEvi 0.8 of the clean one.
    assert noisy.truth["accuracy_full"] == pytest.approx(0.9)
    assert noisy.truth["delta_evi"] == pytest.approx(0.8 * clean.truth["delta_evi"])
    assert np.mean(noisy.ideal(items, items) == noisy.labels) == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 4000))
    assert planted_world("question_dominant", n_train=9, n_eval=9, seed=0).truth["region_light"] == "question_dominant"
    # Query-only 0.9 + 0.1/3 leaves more to gain than the margin, which an additive reader cannot exclude.
    noisy_light = planted_world("question_dominant", n_train=9, n_eval=9, seed=0, noise=0.1).truth["region_light"]
    assert noisy_light == "reader_limited"


def test_skew_and_classes():
    world = planted_world("evidence_only_shortcut", n_train=0, n_eval=2000, seed=0, n_classes=3, skew=0.6)
    counts = np.bincount(world.labels, minlength=3) / 2000
    assert counts == pytest.approx([0.6, 0.2, 0.2], abs=0.05)
    # 1 - (0.36 + 0.04 + 0.04)
    assert world.truth["delta_evi"] == pytest.approx(0.56)
    assert world.train == []


def test_the_papers_end_points_are_met_to_the_item():
    world = planted_world("hotpotqa", n_train=0, n_eval=1000, seed=5)
    agree = sum((row["type"] == "bridge") == (row["label"] == "yes") for row in world.evaluation)
    assert Counter(row["label"] for row in world.evaluation) == {"yes": 500, "no": 500}
    # 321.5 of 500 for either label: 321 or 322.
    assert agree in (642, 643, 644)
    skewed = planted_world("question_dominant_skewed", n_train=0, n_eval=600, seed=0)
    assert Counter(row["label"] for row in skewed.evaluation) == {"full": 578, "conflict": 22}
    assert np.mean(skewed.ideal(np.arange(600), np.arange(600)) == skewed.labels) == 585 / 600
    trivia = planted_world("triviaqa", n_train=0, n_eval=1000, seed=0)
    # 1000 * 0.31196 = 311.96, 1000 * 0.137608 = 137.6 five times: 312 and 688 over five.
    assert sorted(np.bincount(trivia.labels).tolist()) == [137, 137, 138, 138, 138, 312]


def test_only_the_wanted_states_are_in_the_texts():
    world = planted_world("reader_limited", n_train=0, n_eval=400, seed=0)
    for row, q, e in zip(world.evaluation, world.query_state, world.evidence_state, strict=True):
        assert ("closed" in row["query"], "open" in row["query"]) == (q == 1, q == 0)
        assert ("closed" in row["evidence"], "open" in row["evidence"]) == (e == 1, e == 0)
        assert row["label"] == ("yes" if q == e else "no")
    latent = planted_world("latent_coupling", n_train=400, n_eval=400, seed=0)
    corrected = [row for row in latent.train if "Confirmed" in row["evidence"] or "Withdrawn" in row["evidence"]]
    assert all(("Confirmed" in row["evidence"]) == (row["label"] == "supported") for row in corrected)
    # 0.4 * 0.65 = 0.26 of the train items; none of the evaluation items.
    assert len(corrected) / 400 == pytest.approx(0.26, abs=4 * np.sqrt(0.26 * 0.74 / 400))
    assert not any("Confirmed" in row["evidence"] or "Withdrawn" in row["evidence"] for row in latent.evaluation)


def test_as_a_dataset_with_roles():
    world = planted_world("matching", n_train=5, n_eval=7, seed=0)
    data = world.dataset()
    assert {name: len(split) for name, split in data.items()} == {"train": 5, "test": 7}
    assert data["test"].to_list() == world.evaluation
    roles = world.roles
    assert (roles.query, roles.evidence, roles.label, roles.metadata) == (
        "query",
        "evidence",
        "label",
        ("source", "length"),
    )
    assert list(planted_world("matching", n_train=0, n_eval=7, seed=0).dataset()) == ["test"]


def test_what_does_not_exist_is_refused():
    def make(name="matching", **given):
        return planted_world(name, **{"n_train": 5, "n_eval": 5, "seed": 0, **given})

    with pytest.raises(SettingError, match=r"no planted world 'snli'; choose from direct_coupling, latent"):
        make("snli")
    with pytest.raises(SettingError, match=r"no planted world \['matching'\]"):
        make(["matching"])
    with pytest.raises(SettingError, match=r"skew: expected the share of the first label, a number, got '0.6'"):
        make(skew="0.6")
    with pytest.raises(SettingError, match=r"n_eval: expected a whole number of at least 1, got 0"):
        make(n_eval=0)
    with pytest.raises(SettingError, match=r"n_classes: the world matching has 2 classes, got 3"):
        make(n_classes=3)
    with pytest.raises(SettingError, match=r"n_classes: the world direct_coupling has 2 to 5 classes, got 6"):
        make("direct_coupling", n_classes=6)
    with pytest.raises(SettingError, match=r"skew: the label shares of the world hotpotqa are fixed"):
        make("hotpotqa", skew=0.6)
    with pytest.raises(SettingError, match=r"skew: the share of the first of 2 labels must be in \[0.5, 0.8\]"):
        make(skew=0.9)
    with pytest.raises(SettingError, match=r"noise: expected a share of replaced labels in \[0, 0.5\], got 0.6"):
        make(noise=0.6)
    with pytest.raises(SettingError, match=r"at most 3717120 different evidence texts"):
        make(n_eval=4_000_000)


def test_the_light_reader_finds_what_it_should():
    tfidf = pytest.importorskip("evidep.readers.tfidf")
    from evidep.data.conditions import shuffle
    from evidep.data.table import build_audit_data
    from evidep.types import NULL

    for name, low, high, query_low, query_high in (
        ("triviaqa", 0.77, 0.85, 0.2, 0.36),
        ("hotpotqa", -0.02, 0.02, 0.5, 0.7),
        ("nq", -0.005, 0.005, 0.98, 1.0),
        ("reader_limited", -0.03, 0.03, 0.6, 0.75),
    ):
        world = planted_world(name, n_train=4000, n_eval=1000, seed=0)
        data = build_audit_data(world.evaluation, world.train, world.roles)
        items, labels = np.arange(1000), data.evaluation.labels
        reader = tfidf.TfidfReader().fit(data.train, seed=0)
        encoded = reader.encode(data.evaluation)
        full = np.mean(reader.scores(encoded, items, items).argmax(axis=1) == labels)
        donors = shuffle(data.evaluation, "global", 0, seed=0).donors
        swapped = np.mean(reader.scores(encoded, items, donors).argmax(axis=1) == labels)
        assert low < full - swapped < high, name
        assert full == pytest.approx(world.truth["accuracy_full_additive"], abs=0.05), name
        nothing = np.full(4000, NULL)
        alone = tfidf.TfidfReader().fit(data.train.under(np.arange(1500), nothing, name="query-only"), seed=0)
        scores = alone.scores(alone.encode(data.evaluation), items, np.full(1000, NULL))
        assert query_low <= np.mean(scores.argmax(axis=1) == labels) <= query_high, name
