"""Real benchmark text through the whole audit, in small samples. Numbers in full are in docs/results.md."""

from __future__ import annotations

import pytest

import evidep

QUICK = {"max_items": 600, "max_train_items": 1500, "shuffles": ("global",)}


def test_snli_query_signal_without_evidence_dependence_of_the_light_reader(real_data):
    packet = evidep.audit(
        str(real_data / "snli.jsonl.gz"), split="test", train=str(real_data / "snli_train.jsonl.gz"), **QUICK
    )
    row = packet["delta_evi"][0]
    alone = next(a for a in packet["ablations"] if (a["arm"], a["how"]) == ("query-only", "retrained"))
    assert abs(row["exact"]) < 0.06
    assert alone["ci"][0] > packet["majority_rate"]  # hypothesis-only beats the majority rate
    assert "residual_query_signal" in packet["diagnosis"]["flags"]
    assert packet["data"]["roles"]["query"] == "query"


def test_liar_plus_keeps_its_empty_evidence_and_predicts_from_metadata(real_data):
    packet = evidep.audit(
        str(real_data / "liar_plus.jsonl.gz"),
        split="test",
        train_split="validation",
        roles={"metadata": ["speaker", "party", "state", "job", "subject"]},
        ablations=(),
    )
    states = {
        name: sum(packet["data"]["report"][split]["evidence_states"][name] for split in ("evaluation", "train"))
        for name in ("blank", "missing")
    }
    assert sum(states.values()) == 13
    assert packet["data"]["rows"] == 1267
    assert packet["metadata"]["schema"] == ["speaker", "party", "state", "job", "subject"]
    assert 0.5 < packet["metadata"]["mpds"] < 1.2
    within = next(row for row in packet["delta_evi"] if row["shuffle"] == "within-metadata")
    assert within["unmovable_share"] > 0.5  # most metadata cells hold one item: said, not hidden
    assert within["n_items"] < 600


def test_boolq_has_no_train_split_and_is_audited_out_of_fold(real_data):
    packet = evidep.audit(str(real_data / "boolq.jsonl.gz"), **QUICK)
    assert packet["data"]["train_rows"] is None
    assert packet["settings"]["n_folds"] == 5


def test_farstail_is_read_in_persian(real_data):
    packet = evidep.audit(str(real_data / "farstail.jsonl.gz"), split="test", train_split="train", **QUICK)
    assert packet["readers"][0]["works"]
    assert packet["readers"][0]["accuracy_full"] > 0.4


def test_pubmedqa_small_sample_is_inconclusive_with_a_number_of_items(real_data):
    packet = evidep.audit(
        str(real_data / "pubmedqa.jsonl.gz"),
        split="test",
        train_split="train",
        shuffles=("global",),
        ablations=(),
        max_items=60,
    )
    row = packet["delta_evi"][0]
    assert row["verdict"] == "inconclusive"
    assert row["items_needed"] > 60
    assert row["minimum_detectable_effect"] > 0.01


@pytest.mark.parametrize("group", [None, "claim_id"])
def test_wice_is_grouped_as_told(real_data, group):
    packet = evidep.audit(
        str(real_data / "wice.jsonl.gz"),
        split="test",
        train_split="validation",
        roles={"group": group},
        ablations=(),
        shuffles=("global",),
    )
    assert packet["data"]["roles"]["group"] == group
    assert packet["delta_evi"][0]["n_groups"] <= packet["data"]["rows"]
