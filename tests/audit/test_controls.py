"""Planted controls: an audit finds an effect that is there, and none that is not, on the user's own texts."""

from __future__ import annotations

import numpy as np
import pytest

import evidep
from evidep.audit.controls import Rule, choose_rule
from evidep.audit.packet import check_document
from evidep.data.synthetic import planted_world
from evidep.data.table import build_audit_data
from evidep.types import ColumnRoles

ROLES = ColumnRoles("query", "evidence", "label")


def table(pairs, labels=None):
    rows = [
        {"query": query, "evidence": evidence, "label": "ab"[number % 2] if labels is None else labels[number]}
        for number, (query, evidence) in enumerate(pairs)
    ]
    return build_audit_data(rows, None, ROLES).evaluation


def test_rule_by_hand():
    # "sun" stands in 2 of 4 texts and is half of each; "the" stands in all, "a" in one.
    evidence = ["the sun", "sun the", "the rain", "the a"]
    made = table([(f"q {number}", text) for number, text in enumerate(evidence)])
    rule = choose_rule(made, "evidence")
    assert rule == Rule("evidence", ("sun",))
    assert rule.labels(made).tolist() == [0, 0, 1, 1]
    relabelled = rule.relabel(made)
    assert relabelled.fingerprint != made.fingerprint
    assert relabelled.labels.tolist() == [0, 0, 1, 1]
    assert relabelled.evidence is made.evidence


def test_rule_keeps_the_class_balance():
    # Shares wanted 0.5, 0.3, 0.2: "x" in 5 of 10, then "y" in 3 of the 5 that are left.
    texts = ["x"] * 5 + ["y"] * 3 + ["z"] * 2
    made = table([(text, f"e {n}") for n, text in enumerate(texts)], labels=list("aaaaabbbcc"))
    rule = choose_rule(made, "query")
    assert np.bincount(rule.labels(made)).tolist() == [5, 3, 2]


def test_scripts_without_spaces_are_split_by_characters():
    # 24 sentences, each one "word" to a splitter by spaces; half of them speak of sunshine.
    made = table([(f"{chr(0x4E00 + n)}日は{'晴' if n % 2 else '雨'}", f"e {n}") for n in range(24)])
    rule = choose_rule(made, "query")
    assert rule == Rule("query", ("晴",), characters=True)
    assert np.bincount(rule.labels(made)).tolist() == [12, 12]


def test_no_rule_where_all_texts_are_equal():
    assert choose_rule(table([(f"q {n}", "same") for n in range(6)]), "evidence") is None


@pytest.mark.parametrize("split", [True, False])
def test_controls_find_what_was_planted(split):
    world = planted_world("no_signal", n_train=600, n_eval=500, seed=3)
    packet = evidep.audit(world.evaluation, train=world.train if split else None, roles=ROLES, controls=True)
    check_document(packet.to_dict())
    assert packet["settings"]["controls"] is True
    rows = {row["control"]: row for row in packet["controls"]["rows"]}
    positive, negative = rows["evidence"], rows["query"]
    assert positive["verdict"] == "sensitive"
    assert positive["passed"]
    assert positive["delta_evi"] == pytest.approx(positive["truth"], abs=0.12)
    assert positive["truth"] == pytest.approx(1 - sum(share**2 for share in positive["label_shares"]), abs=0.02)
    assert negative["truth"] == 0
    assert abs(negative["delta_evi"]) < 0.02
    assert negative["verdict"] != "sensitive"
    # The audit's own labels are noise: the controls change nothing about them.
    assert packet.region == evidep.audit(world.evaluation, train=world.train if split else None, roles=ROLES).region


def test_truth_of_the_positive_control_is_the_rule_reader_s_delta():
    world = planted_world("no_signal", n_train=300, n_eval=60, seed=1)
    packet = evidep.audit(world.evaluation, train=world.train, roles=ROLES, controls=True)
    row = packet["controls"]["rows"][0]
    made = build_audit_data(world.evaluation, world.train, ROLES).evaluation
    labels = Rule("evidence", tuple(row["words"])).labels(made)
    right = [np.mean([labels[j] == labels[i] for j in range(60) if j != i]) for i in range(60)]
    assert row["truth"] == pytest.approx(1 - np.mean(right))


def test_equal_evidence_gives_a_reason_instead_of_a_control():
    rows = [{"query": f"q {n} {['x', 'y'][n % 2]}", "evidence": "same", "label": "ab"[n % 2]} for n in range(60)]
    packet = evidep.audit(rows, roles=ROLES, controls=True)
    assert any("no control from the evidence" in reason for reason in packet["controls"]["reasons"])


def test_a_second_run_reuses_the_fits(tmp_path):
    world = planted_world("matching", n_train=200, n_eval=150, seed=0)
    settings = {"train": world.train, "roles": ROLES, "controls": True, "out": tmp_path}
    first = evidep.audit(world.evaluation, **settings)
    second = evidep.audit(world.evaluation, **settings)
    assert second.to_dict() == first.to_dict()
    assert '"cells_computed": 0' in (tmp_path / "run.json").read_text()
