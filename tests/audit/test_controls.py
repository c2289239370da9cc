"""Planted controls: an audit finds an effect that is there, and none that is not, on the user's own texts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import evidep
from evidep.audit.controls import Rule, choose_rule, outcome
from evidep.audit.packet import check_document
from evidep.data.synthetic import planted_world
from evidep.data.table import build_audit_data
from evidep.readers.callable import from_callable
from evidep.report.card import audit_card
from evidep.stats.calibration import Works
from evidep.stats.delta_evi import delta_evi
from evidep.types import ColumnRoles, Interval

ROLES = ColumnRoles("query", "evidence", "label")
NO_DELTA = delta_evi(np.ones(20, bool), np.ones((1, 20), bool), None, unchanged_rate=0.0)


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
    assert negative["outcome"] in ("as planted", "too few items")
    assert negative["passed"] == (negative["verdict"] == "equivalent")
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


def test_a_second_run_reuses_the_fits(tmp_path):
    world = planted_world("matching", n_train=200, n_eval=150, seed=0)
    settings = {"train": world.train, "roles": ROLES, "controls": True, "out": tmp_path}
    first = evidep.audit(world.evaluation, **settings)
    second = evidep.audit(world.evaluation, **settings)
    assert second.to_dict() == first.to_dict()
    assert '"cells_computed": 0' in (tmp_path / "run.json").read_text()


def test_three_outcomes():
    def delta(verdict):
        return dataclasses.replace(NO_DELTA, verdict=verdict)

    works = Works(True, 0.001, 0.5, Interval(0.4, 0.6))
    learnt_nothing = Works(False, 0.4, 0.01, Interval(-0.05, 0.07), reason="not above")
    too_small = Works(False, 0.2, 0.3, Interval(-0.2, 0.6), reason="not above")
    withheld = Works(False, 0.2, 0.3, Interval(np.nan, np.nan, reason="too few groups"), reason="not above")
    ends = {
        ("evidence", "sensitive"): "as planted",
        ("evidence", "inconclusive"): "too few items",
        ("evidence", "equivalent"): "not as planted",
        ("query", "sensitive"): "not as planted",
        ("query", "inconclusive"): "too few items",
        ("query", "equivalent"): "as planted",
    }
    for (side, verdict), end in ends.items():
        assert outcome(side, delta(verdict), works, 0.5) == end
        # A reader that follows the labels gains 1 - 0.5. An upper end of 0.07 rules that out, 0.6 and none do not.
        assert outcome(side, delta(verdict), learnt_nothing, 0.5) == "not as planted"
        assert outcome(side, delta(verdict), too_small, 0.5) == "too few items"
        assert outcome(side, delta(verdict), withheld, 0.5) == "too few items"


def planted_texts(n, labels="ab", seed=0):
    """Each of two words in half of the queries, and in half of the evidence; neither tells of the label."""
    rng = np.random.default_rng(seed)
    query, evidence = rng.permutation(n) % 2, rng.permutation(n) % 2
    return [
        {
            "query": f"{'xy'[query[number]]} q{number}",
            "evidence": f"{'uv'[evidence[number]]} e{number}",
            "label": labels[number % len(labels)],
        }
        for number in range(n)
    ]


def test_too_few_items_are_no_failure():
    packet = evidep.audit(planted_texts(60), train=planted_texts(300, seed=1), roles=ROLES, controls=True)
    negative = next(row for row in packet["controls"]["rows"] if row["control"] == "query")
    assert (negative["accuracy_full"], negative["delta_evi"], negative["verdict"]) == (1.0, 0.0, "inconclusive")
    assert negative["outcome"] == "too few items"
    assert negative["passed"] is False
    # None of n items changes: 0.98^n <= 0.05 from n = 149 on.
    assert negative["items_needed"] == 149
    # Effects on fewer items than a sample of 60 misses with probability 0.025 are not found.
    assert negative["minimum_detectable_effect"] == pytest.approx(1 - 0.025 ** (1 / 60))
    for text in (" ".join(str(packet).split()), audit_card(packet)):
        assert "inconclusive: too few items to tell, about 149 would do (degenerate: no variance" in text
        assert f"effects are found from {1 - 0.025 ** (1 / 60):.3f} up" in text
        assert "NOT as planted" not in text
    main = packet["delta_evi"][0]
    assert main["minimum_detectable_effect"] is not None


def mismatch_detector(rows, wrong):
    """Answers the planted label of the query, where it stands with its own evidence; else what `wrong` makes of it."""
    own = {(row["query"], row["evidence"]) for row in rows}

    def answer(queries, evidence):
        labels = [0 if query.startswith("x") else 1 for query in queries]
        return [
            label if pair in own else wrong(label)
            for label, pair in zip(labels, zip(queries, evidence, strict=True), strict=True)
        ]

    return from_callable(answer, name="detector", fingerprint="1", fit=lambda train, seed: None)


def test_a_negative_control_can_fail():
    rows = planted_texts(300)
    detector = mismatch_detector(rows, lambda label: 1 - label)
    packet = evidep.audit(rows, train=planted_texts(400, seed=1), roles=ROLES, controls=True, readers=[detector])
    negative = next(row for row in packet["controls"]["rows"] if row["control"] == "query")
    assert negative["words"] == ["x"]
    assert (negative["accuracy_full"], negative["truth"]) == (1.0, 0.0)
    assert negative["delta_evi"] == pytest.approx(1.0)
    assert (negative["verdict"], negative["outcome"], negative["passed"]) == ("sensitive", "not as planted", False)
    assert "sensitive: NOT as planted" in " ".join(str(packet).split())


def test_readers_are_measured_against_the_planted_majority():
    # Five labels of 20 % each; the controls have two of 50 %. A coin, at 50 %, beats the old majority rate only.
    rows = planted_texts(500, labels="abcde")
    coin = from_callable(
        lambda queries, evidence: [sum(map(ord, query[1:])) // 2 % 2 for query in queries],
        name="coin",
        fingerprint="1",
        fit=lambda train, seed: None,
    )
    packet = evidep.audit(rows, train=planted_texts(400, "abcde", 1), roles=ROLES, controls=True, readers=[coin])
    for row in packet["controls"]["rows"]:
        assert sum(row["label_shares"]) == pytest.approx(1)
        assert row["accuracy_full"] == pytest.approx(0.5, abs=0.04)
        assert row["works"] is False
        assert row["outcome"] == "not as planted"
        assert "majority rate 0.5" in row["reason"]


def test_the_detectable_effect_is_that_of_the_control():
    world = planted_world("no_signal", n_train=600, n_eval=800, seed=3)
    packet = evidep.audit(world.evaluation, train=world.train, roles=ROLES, controls=True)
    positive = packet["controls"]["rows"][0]
    # Both are multiples of one standard error: 1.96 for the half-width, 1.96 + 0.84 for 80 % power.
    half = (positive["ci"][1] - positive["ci"][0]) / 2
    assert positive["minimum_detectable_effect"] == pytest.approx(2.80 / 1.96 * half, rel=0.1)


def test_where_no_evidence_can_change_there_is_no_control():
    rows = [{"query": f"q {n} {['x', 'y'][n % 2]}", "evidence": "same", "label": "ab"[n % 2]} for n in range(60)]
    packet = evidep.audit(rows, roles=ROLES, controls=True)
    assert packet["controls"]["rows"] == []
    assert packet["controls"]["reasons"] == [
        "no control from the evidence: no word splits its texts into shares of 5% or more",
        "no control from the query: no item's evidence can change, so ΔEvi is not applicable",
    ]


def test_readers_that_cannot_be_fitted_are_named():
    fixed = from_callable(lambda queries, evidence: [0] * len(queries), name="fixed", fingerprint="1")
    packet = evidep.audit(planted_texts(60), roles=ROLES, controls=True, readers=["majority", fixed])
    assert packet["controls"]["rows"] == []
    assert packet["controls"]["reasons"] == [
        "majority: no controls, it is a baseline that does not read the texts",
        "fixed: no controls, it cannot be fitted on other items or labels",
        "no reader for the controls: run one that is fitted on texts, for example --readers tfidf_lr",
    ]
    assert "majority: no controls, it is a baseline" in " ".join(str(packet).split())
