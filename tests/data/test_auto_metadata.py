"""Features derived without a schema, the joint model and the rules."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest

import evidep
from evidep.audit.packet import check_document
from evidep.data.auto_metadata import _FEATURES, derive_features, feature_names, register_feature
from evidep.data.synthetic import planted_world
from evidep.data.table import build_audit_data
from evidep.errors import SettingError
from evidep.report.card import audit_card
from evidep.types import ColumnRoles

ROLES = ColumnRoles("query", "evidence", "label")
PAIRS = (
    ("Who wrote Dune?", "Frank Herbert wrote Dune in 1965."),
    ("Is it not true that 7 is prime?", "Seven has no divisor."),
    ("How many legs has an ant?", ["An ant has six legs.", "It is an insect."]),
    ("The sky is blue", None),
)


@pytest.fixture(scope="module")
def features():
    rows = [{"query": q, "evidence": e, "label": "ab"[n % 2]} for n, (q, e) in enumerate(PAIRS)]
    return derive_features(build_audit_data(rows, None, ROLES).evaluation)


def test_features_by_hand(features):
    columns = features.columns
    assert columns["query_length"].tolist() == [3, 8, 6, 4]
    assert columns["evidence_length"].tolist() == [6, 4, 8, 0]
    assert columns["query_negation"] == ["no", "yes", "no", "no"]
    assert columns["evidence_negation"] == ["no", "yes", "no", "no"]
    assert columns["question_word"] == ["who", "none", "how", "none"]
    assert columns["answer_type"] == ["person", "yes/no", "number", "none"]
    assert columns["query_first_tokens"] == ["who wrote", "is it", "how many", "the sky"]
    assert columns["query_has_number"] == ["no", "yes", "no", "no"]
    assert columns["evidence_count"].tolist() == [1, 1, 2, 0]
    assert columns["evidence_state"] == ["present", "present", "present", "missing"]
    # wrote, dune of 3; none of it (7 is not "seven"); legs, has, an, ant of 6; none of 4.
    assert columns["overlap"].tolist() == pytest.approx([2 / 3, 0, 4 / 6, 0])
    assert columns["number_mismatch"] == ["none", "missing", "none", "none"]
    # Characters, plus one each: 15 and 33, 31 and 21, 25 and 20 + 1 + 16, 15 and none.
    assert columns["length_ratio"].tolist() == pytest.approx([16 / 34, 32 / 22, 26 / 38, 16 / 1])
    # "wrote" at 14 of 33 characters.
    assert columns["position"][0] == pytest.approx(14 / 33)
    assert math.isnan(columns["position"][3])
    assert set(features.seconds) == set(feature_names())
    assert all(cost >= 0 for cost in features.seconds.values())


def test_features_of_ones_own():
    rows = [{"query": q, "evidence": "e", "label": "ab"[n % 2]} for n, q in enumerate(["a!", "b", "c!"])]
    made = build_audit_data(rows, None, ROLES).evaluation
    register_feature("shouts", "query", lambda texts: ["yes" if "!" in text else "no" for text in texts])
    try:
        assert derive_features(made, ["shouts"]).columns["shouts"] == ["yes", "no", "yes"]
        with pytest.raises(SettingError, match="exists already"):
            register_feature("shouts", "query", list)
        register_feature("shouts", "pair", lambda queries, evidence: [1.0], replace=True)
        with pytest.raises(SettingError, match="gave 1 values for 3 items"):
            derive_features(made, ["shouts"])
    finally:
        del _FEATURES["shouts"]
    with pytest.raises(SettingError, match="feature 'shouts' is unknown"):
        derive_features(made, ["shouts"])
    with pytest.raises(SettingError, match="side"):
        register_feature("other", "label", list)


def negated(n, seed):
    """A negated claim is refuted in nine of ten items; else the label is a coin."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        no = rng.random() < 0.4
        refuted = rng.random() < (0.9 if no else 0.5)
        claim = f"Claim {number} is {'not ' if no else ''}about {rng.integers(99)}"
        made.append({"query": claim, "evidence": f"Page {number}.", "label": ["supported", "refuted"][int(refuted)]})
    return made


@pytest.mark.parametrize("split", [True, False])
def test_screen_and_rules_find_the_planted_artefact(split):
    rows = negated(700, 1)
    packet = evidep.audit(rows, train=negated(900, 0) if split else None, roles=ROLES, auto_metadata=True)
    check_document(packet.to_dict())
    found = packet["automatic_metadata"]
    # 0.4 * 0.9 + 0.6 * 0.5 = 0.66 is the best that anything can do.
    assert found["accuracy"] == pytest.approx(0.66, abs=0.07)
    assert found["upper_screen"] == pytest.approx(found["accuracy"] / packet["readers"][0]["accuracy_full"])
    rule = next(rule for rule in found["rules"] if rule["feature"] == "query_negation" and "yes" in rule["condition"])
    assert rule["label"] == "refuted"
    negations = [row for row in rows if " not " in row["query"]]
    assert rule["items"] == len(negations)
    assert rule["share"] == pytest.approx(np.mean([row["label"] == "refuted" for row in negations]))
    assert len(rule["examples"]) == 5
    assert not any("Claim" in text for text in rule["examples"])
    share = f"{rule['share']:.0%}"
    assert rule["sentence"].startswith(f"Where query_negation is 'yes', the label is refuted in {share} of")


def test_no_artefact_gives_no_high_screen():
    rng = np.random.default_rng(0)
    rows = [
        {"query": f"Claim {n}", "evidence": f"Page {rng.integers(999)}.", "label": "ab"[rng.integers(2)]}
        for n in range(500)
    ]
    found = evidep.audit(rows, roles=ROLES, auto_metadata=True)["automatic_metadata"]
    assert found["accuracy"] == pytest.approx(0.5, abs=0.08)
    assert found["rules"] == []


WORDS = [first + last for first in "bdfgk" for last in ("ake", "ill", "ode", "une")]


def items(n, seed, told):
    """`told(rng)` gives (first words of the query, label); lengths, numbers and shared words vary and say nothing."""
    rng = np.random.default_rng(seed)

    def filler():
        return " ".join([*rng.choice(WORDS, rng.integers(3, 30)), *map(str, rng.integers(9, size=rng.integers(2)))])

    made = []
    for number in range(n):
        start, label = told(rng)
        made.append({"id": f"i{number}", "query": f"{start} {filler()}", "evidence": filler(), "label": label})
    return made


def noise(rng):
    return ("who", "it is", "it is not")[rng.integers(3)], "ab"[rng.integers(2)]


def two_artefacts(rng):
    """A negation gives "b" in 95 of 100 items, a leading question word "a" in 80; else a coin."""
    kind = rng.integers(3)
    chance = (0.95, 0.2, 0.5)[kind]
    return ("it is not", "when was it", "it is")[kind], "ab"[int(rng.random() < chance)]


@pytest.mark.parametrize("split", [True, False])
def test_many_features_of_pure_noise_predict_nothing(split):
    train = items(400, 1, noise) if split else None
    found = evidep.audit(items(400, 0, noise), train=train, roles=ROLES, auto_metadata=True)["automatic_metadata"]
    assert len(found["features"]) >= 10
    # 0.5, and four standard errors of 0.025. Asked about the items that it was fitted on, the model is right on 0.9.
    assert found["accuracy"] == pytest.approx(0.5, abs=0.1)
    # At three standard errors, none of these features' values stands out by chance.
    assert found["rules"] == []
    assert found["rules_not_confirmed"] == 0


@pytest.mark.parametrize("split", [True, False])
def test_rules_come_in_order_of_clearness_with_examples_that_meet_them(split):
    rows, train = items(900, 0, two_artefacts), items(900, 1, two_artefacts)
    packet = evidep.audit(rows, train=train if split else None, roles=ROLES, auto_metadata=True)
    found = packet["automatic_metadata"]
    # (0.95 + 0.8 + 0.5) / 3 is the best that can be done; the majority rate is 0.55.
    assert found["accuracy"] == pytest.approx(0.75, abs=0.06)
    negation, question = (rule_of(found, words) for words in ("query_negation is 'yes'", "question_word is 'when'"))
    assert (negation["label"], question["label"]) == ("b", "a")
    assert negation["share"] == pytest.approx(0.95, abs=0.05)
    assert question["share"] == pytest.approx(0.8, abs=0.1)
    base = {name: np.mean([row["label"] == name for row in (train if split else rows)]) for name in "ab"}
    clearness = [
        (rule["train_share"] - base[rule["label"]])
        * np.sqrt(rule["train_items"] / (base[rule["label"]] * (1 - base[rule["label"]])))
        for rule in found["rules"]
    ]
    assert clearness == sorted(clearness, reverse=True)
    assert clearness[-1] >= 3
    by_id = {row["id"]: row for row in rows}
    for rule, words in ((negation, "it is not "), (question, "when was it ")):
        assert len(rule["examples"]) == 5
        for name in rule["examples"]:
            assert by_id[name]["label"] == rule["label"]
            assert by_id[name]["query"].startswith(words)
    for rule in found["rules"]:
        assert rule["share"] > rule["ci"][0] > rule["base_share"]


def rule_of(found, words):
    """The rule that these words name, by itself or as another face of its artefact."""
    return next(
        rule for rule in found["rules"]
        if words in (f"{rule['feature']} {rule['condition']}", *rule["same_artefact"])
    )  # fmt: skip


def test_one_artefact_is_one_rule():
    # "when" asks for a time, and every question begins with it: three features, the same items.
    packet = evidep.audit(
        items(600, 0, two_artefacts), train=items(900, 1, two_artefacts), roles=ROLES, auto_metadata=True
    )
    found = packet["automatic_metadata"]
    faces = ("answer_type is 'time'", "question_word is 'when'", "query_first_tokens is 'when was'")
    assert len({id(rule_of(found, words)) for words in faces}) == 1
    named = [f"{rule['feature']} {rule['condition']}" for rule in found["rules"]]
    assert sum(words in named for words in faces) == 1
    text = " ".join(str(packet).split())
    assert "The same artefact: " in text


def test_rules_that_fail_on_the_evaluation_are_counted_and_left_out():
    # In training a negation means "b", in the evaluation "a".
    turned = [row | {"label": "ab"[row["label"] < "b"]} for row in items(600, 0, two_artefacts)]
    packet = evidep.audit(turned, train=items(900, 1, two_artefacts), roles=ROLES, auto_metadata=True)
    found = packet["automatic_metadata"]
    assert not any("negation" in rule["feature"] for rule in found["rules"])
    assert found["rules_not_confirmed"] >= 2
    for text in (" ".join(str(packet).split()), audit_card(packet)):
        assert f"Left out: {found['rules_not_confirmed']} of the training items' rules" in text


def test_intervals_of_rules_let_groups_share_errors():
    rows = [row | {"page": f"p{number % 40}"} for number, row in enumerate(items(600, 0, two_artefacts))]
    train = items(900, 1, two_artefacts)
    alone = evidep.audit(rows, train=train, roles=ROLES, auto_metadata=True)["automatic_metadata"]["rules"][0]
    # Four groups of 150: no interval, and the reason beside it.
    few = [row | {"page": f"p{number % 4}"} for number, row in enumerate(rows)]
    roles = ColumnRoles("query", "evidence", "label", group="page")
    packet = evidep.audit(
        few, train=[row | {"page": f"t{row['id']}"} for row in train], roles=roles, auto_metadata=True
    )
    grouped = packet["automatic_metadata"]["rules"][0]
    assert (alone["share"], alone["reason"]) == (grouped["share"], None)
    assert grouped["ci"] is None
    assert grouped["reason"] == "too few groups: 4, at least 10 are needed"
    assert "of all (no interval: too few groups: 4, at least 10 are needed): i" in " ".join(str(packet).split())


def test_a_declared_column_may_have_the_name_of_a_feature():
    rows, train = (
        [row | {"question_word": "own"[:n]} for n, row in zip([1, 2] * 300, items(600, s, noise), strict=True)]
        for s in (0, 1)
    )
    roles = ColumnRoles("query", "evidence", "label", ("question_word",))
    features = evidep.audit(rows, train=train, roles=roles, auto_metadata=True)["automatic_metadata"]["features"]
    assert features.count("metadata:question_word") == 1
    assert len(features) == len(set(features))


@pytest.mark.parametrize("world", ["nq", "hotpotqa"])
def test_the_upper_screen_stands_beside_mpds_and_is_never_below_it(world):
    made = planted_world(world, n_train=200, n_eval=300, seed=0)
    packet = evidep.audit(made.evaluation, train=made.train, roles=made.roles, auto_metadata=True)
    found, metadata = packet["automatic_metadata"], packet["metadata"]
    assert found["upper_screen"] >= metadata["mpds"]
    assert found["reader"] == metadata["reader"]
    best = max(found["accuracy"], metadata["accuracy"])
    assert found["upper_screen"] == pytest.approx(best / packet["readers"][0]["accuracy_full"])
    assert found["upper_screen_from"] == ("joint model" if best == found["accuracy"] else "metadata alone")
    text, card = " ".join(str(packet).split()), audit_card(packet)
    assert (
        text.index("metadata alone")
        < text.index(f"upper screen {found['upper_screen']:.3f}")
        < text.index("Partial input")
    )
    mpds = next(line for line in card.splitlines() if line.startswith("MPDS"))
    assert f"upper screen {found['upper_screen']:.3f}" in mpds


def test_what_features_cost_is_measured(tmp_path):
    def slow(texts):
        time.sleep(0.03)
        return [float(len(text)) for text in texts]

    register_feature("slow", "query", slow)
    try:
        evidep.audit(items(60, 0, noise), train=items(60, 1, noise), roles=ROLES, auto_metadata=True, out=tmp_path)
    finally:
        del _FEATURES["slow"]
    costs = json.loads((tmp_path / "run.json").read_text())["automatic_metadata_seconds"]
    # Asked once about the training items and once about the evaluation.
    assert 0.06 <= costs["slow"] < 1
    assert costs["joint model"] > 0
    assert set(costs) == {*feature_names(), "slow", "joint model"}


def fails(texts):
    return [1 / len(text) for text in texts]


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (fails, "feature 'own' failed with ZeroDivisionError: division by zero; .*also for the text \"\""),
        (lambda texts: None, "feature 'own' failed with TypeError"),
        (
            lambda texts: [len(text) if text else "none" for text in texts],
            "gave .* for item 0 and .* for item 1; expected texts alone",
        ),
        (lambda texts: [None] * len(texts), "gave None for item 0; expected texts alone, or finite numbers alone"),
        (lambda texts: [[1.0]] * len(texts), r"gave \[1.0\] for item 0"),
        (lambda texts: [float("inf")] * len(texts), "gave inf for item 0"),
        (lambda texts: [1.0], "gave 1 values for 4 texts"),
    ],
)
def test_a_feature_that_goes_wrong_is_named_in_one_line(compute, message):
    rows = [
        {"query": q, "evidence": e, "label": "ab"[n % 2]}
        for n, (q, e) in enumerate([("a", "x"), ("b", None), ("c", "y")])
    ]
    made = build_audit_data(rows, None, ROLES).evaluation
    register_feature("own", "evidence", compute)
    try:
        with pytest.raises(SettingError, match=message) as caught:
            derive_features(made, ["own"])
    finally:
        del _FEATURES["own"]
    assert "\n" not in str(caught.value)


def test_numbers_of_every_kind_and_nan_are_taken():
    rows = [{"query": q, "evidence": "e", "label": "ab"[n % 2]} for n, q in enumerate("abc")]
    made = build_audit_data(rows, None, ROLES).evaluation
    register_feature("own", "table", lambda table: [True, np.float32(0.5), float("nan")])
    try:
        assert derive_features(made, ["own"]).columns["own"].tolist() == pytest.approx([1, 0.5, math.nan], nan_ok=True)
    finally:
        del _FEATURES["own"]
    with pytest.raises(SettingError, match="compute: expected a function"):
        register_feature("own", "table", None)
