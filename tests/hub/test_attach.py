"""Attaching an audit: one pull request, the card's other bytes untouched, nothing sent twice."""

from __future__ import annotations

import json

import pytest
from hub.fixtures import CARD, OWNER
from report.report_packets import HOSTILE, large_effect, three_readers

from evidep.audit.packet import AuditPacket, check_document
from evidep.errors import SettingError
from evidep.hub.attach import attach, audit_files
from evidep.hub.client import Hub
from evidep.hub.errors import HubError
from evidep.hub.section import BEGIN, END

FILES = {
    "README.md", "audit/packet.json", "audit/badge.json", "audit/badge.svg", "audit/figures/arms.png",
    "audit/figures/diagnostic_map.png", "audit/figures/ladder.png", "audit/figures/shuffle_distribution.png",
}  # fmt: skip


def push(packet, **more):
    return attach(packet, "ledger/claims", hub=Hub(timeout=20, waits=(0.01, 0.01)), **{"send": True} | more)


def test_a_dry_run_shows_the_difference_and_sends_nothing(standin, claims):
    plan = push(large_effect(), send=False)
    assert set(plan.files) == FILES
    assert plan.url is None
    removed = [line for line in plan.diff.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert removed == []
    assert "+## Evidence audit of `planted`" in plan.diff.splitlines()
    assert standin.store.writes() == []
    assert len(claims.commits) == 1
    assert claims.pulls == []


def test_a_dry_run_needs_no_token(standin, claims, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert set(push(large_effect(), send=False).files) == FILES
    assert all("whoami" not in line for line in standin.store.log)


def test_sent_as_one_commit_in_a_pull_request(standin, claims):
    done = push(large_effect())
    assert done.url == f"{standin.url}/datasets/ledger/claims/discussions/1"
    (pull,) = claims.pulls
    assert (pull.title, pull.author) == ("Evidence audit: evidence-sensitive", "auditor")
    assert len(claims.commits) == 2
    files = claims.files("refs/pr/1")
    assert files["README.md"].startswith(CARD)
    assert files["data.csv"] == claims.files("main")["data.csv"]
    assert set(files) == FILES | {".gitattributes", "data.csv"}
    check_document(json.loads(files["audit/packet.json"]))
    assert files["audit/figures/ladder.png"].startswith(b"\x89PNG")
    assert claims.files("main") == {".gitattributes": b"", "README.md": CARD, "data.csv": b"claim,label\nx,1\n"}
    assert large_effect().signature in claims.at("refs/pr/1").description


def test_the_figure_in_the_section_is_a_file_of_the_commit(standin, claims):
    push(large_effect())
    files = claims.files("refs/pr/1")
    path = files["README.md"].decode().split("](")[1].split(")")[0]
    assert path in files


def test_the_same_again_sends_nothing(standin, claims):
    push(large_effect())
    before = list(standin.store.writes())
    again = push(large_effect())
    assert again.nothing_to_do
    assert again.diff == ""
    assert again.url == f"{standin.url}/datasets/ledger/claims/discussions/1"
    assert standin.store.writes() == before
    claims.merge(1)
    assert push(large_effect()).nothing_to_do  # now it is in main
    assert len(claims.pulls) == 1


def test_another_audit_updates_the_open_pull_request(standin, claims):
    push(large_effect())
    done = push(three_readers())
    assert done.pull_request == 1
    assert len(claims.pulls) == 1
    files = claims.files("refs/pr/1")
    assert files["README.md"].startswith(CARD)
    assert files["README.md"].count(BEGIN) == files["README.md"].count(END) == 1
    assert b"minilm" in files["README.md"]
    assert b"planted" not in files["README.md"]


def test_after_the_merge_an_update_is_a_new_pull_request(standin, claims):
    push(large_effect())
    claims.merge(1)
    owners = (
        claims.files("main")["README.md"].replace(b"Text of the owners.", b"Longer text.") + b"\nBelow the audit.\n"
    )
    claims.commit("main", claims.files("main") | {"README.md": owners})
    done = push(three_readers())
    assert done.pull_request is None
    assert len(claims.pulls) == 2
    updated = claims.files("refs/pr/2")["README.md"]
    begin, end = updated.index(BEGIN), updated.index(END) + len(END)
    old_begin, old_end = owners.index(BEGIN), owners.index(END) + len(END)
    assert updated[:begin] == owners[:old_begin]
    assert updated[end:] == owners[old_end:]
    assert b"Below the audit." in updated[end:]


def test_a_closed_or_foreign_pull_request_is_not_touched(standin, claims, monkeypatch):
    push(large_effect())
    claims.pulls[0].status = "closed"
    monkeypatch.setenv("HF_TOKEN", OWNER)
    push(large_effect())
    assert [pull.author for pull in claims.pulls] == ["auditor", "ledger"]
    monkeypatch.undo()


def test_a_dataset_without_a_card_gets_one(standin):
    bare = standin.store.add_repo("datasets", "ledger/bare", {"train.csv": b"a\n1\n"})
    attach(large_effect(), "ledger/bare", send=True, hub=Hub())
    assert bare.files("refs/pr/1")["README.md"].startswith(BEGIN)


def test_files_that_would_become_data_are_refused_with_the_way_out(standin):
    loose = standin.store.add_repo("datasets", "ledger/loose", {"data.csv": b"a\n1\n", "README.md": b"# Loose\n"})
    with pytest.raises(HubError, match=r"would be loaded as data; choose a hidden folder \(--folder \.audit\)"):
        attach(large_effect(), "ledger/loose", send=True, hub=Hub())
    attach(large_effect(), "ledger/loose", folder=".audit", send=True, hub=Hub())
    assert ".audit/packet.json" in loose.files("refs/pr/1")


@pytest.mark.parametrize("folder", ["/etc", "../up", "a b", "", "audit/", "a//b", ".."])
def test_folder_names_that_lead_elsewhere(standin, folder):
    with pytest.raises(SettingError, match="plain relative name"):
        push(large_effect(), folder=folder)


def test_hostile_names_arrive_as_text(standin, claims):
    document = large_effect().to_dict()
    document["data"]["name"] = HOSTILE
    document["metadata"]["schema"] = [HOSTILE]
    push(AuditPacket(document))
    readme = claims.files("refs/pr/1")["README.md"].decode()
    assert readme.startswith(CARD.decode())
    assert readme.count(BEGIN.decode()) == 1
    assert "\x1b" not in claims.at("refs/pr/1").title + claims.at("refs/pr/1").description


def test_the_files_hold_no_items(standin):
    assert not any(path.endswith(".parquet") for path in audit_files(large_effect()))


def test_the_same_packet_gives_the_same_bytes():
    assert audit_files(three_readers()) == audit_files(three_readers())
