"""Features derived without a schema, the joint model and the rules."""

from __future__ import annotations

import math

import numpy as np
import pytest

import evidep
from evidep.audit.packet import check_document
from evidep.data.auto_metadata import _FEATURES, derive_features, feature_names, register_feature
from evidep.data.table import build_audit_data
from evidep.errors import SettingError
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
