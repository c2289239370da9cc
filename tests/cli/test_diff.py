"""`evidep diff`: packets, data files and revisions against each other."""

from __future__ import annotations

import json

import pytest
from report.report_packets import large_effect, three_readers
from support import make_rows, write_jsonl

from evidep.audit.packet import AuditPacket


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two revisions of a data file (20 items dropped, 10 relabelled in the second) and an audit of the first."""
    import evidep

    folder = tmp_path_factory.mktemp("diff")
    rows = [row | {"id": f"q{number}"} for number, row in enumerate(make_rows(150))]
    write_jsonl(folder / "one.jsonl", rows)
    for row in rows[20:30]:
        row["label"] = {"supported": "refuted", "refuted": "supported"}[row["label"]]
    write_jsonl(folder / "two.jsonl", rows[20:])
    evidep.audit(
        folder / "one.jsonl", roles={"metadata": ["source"]}, ablations=(), shuffles=("global",), seed=5, n_folds=4,
        out=folder / "audit",
    )  # fmt: skip
    return folder


def test_a_packet_against_new_data_is_audited_the_same_way(call_cli, data, tmp_path):
    code, out, err = call_cli("diff", data / "audit", data / "two.jsonl", "--json", "--out", tmp_path / "kept")
    assert code == 0, err
    result = json.loads(out)
    assert result["items"] == {"old": 150, "new": 130, "matched": 130, "relabelled": 10, "reason": None}
    assert {change["quantity"] for change in result["changes"]} == {"delta_evi", "mpds", "accuracy"}
    made = AuditPacket.load(tmp_path / "kept" / "new")
    assert made["settings"] == AuditPacket.load(data / "audit")["settings"]
    assert made["data"]["roles"]["metadata"] == ["source"]
    assert not (tmp_path / "kept" / "old").exists()


def test_two_data_files_with_options(call_cli, data):
    code, out, err = call_cli("diff", data / "one.jsonl", data / "one.jsonl", "--query", "claim", "--k", "19", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["items"]["matched"] == 150
    assert all(change["difference"] == 0 for change in result["changes"] if change["outcome"] != "undefined")
    assert "K:19" in result["signatures"][0]


def test_table_and_markdown_say_the_same(call_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    three_readers().save(tmp_path / "old")
    document = three_readers().to_dict()
    for row in document["delta_evi"]:
        if row["reader"] == "minilm_lr" and row["shuffle"] == "global":
            row |= {"exact": 0.1, "ci": [0.08, 0.12]}
    AuditPacket(document).save(tmp_path / "new")
    code, out, err = call_cli("diff", tmp_path / "old", tmp_path / "new", "--markdown", tmp_path / "diff.md")
    assert code == 0
    assert err.strip() == str(tmp_path / "diff.md")
    shown = next(line for line in out.splitlines() if "minilm_lr (fit 1)" in line and "global" in line).split()
    text = (tmp_path / "diff.md").read_text(encoding="utf-8")
    written = next(line for line in text.splitlines() if "minilm\\_lr" in line or "`minilm_lr (fit 1)`" in line)
    assert "0.317" in shown
    assert "-0.217" in shown
    assert shown[-1] == "lower"
    assert [cell.strip() for cell in written.strip("|").split("|")][2:5] == ["0.317", "0.100", "-0.217"]
    assert "not matched: the old packet was read without its items.parquet" in out


def test_undefined_values_are_dashes_with_a_reason(call_cli, tmp_path):
    document = large_effect().to_dict()
    document["delta_evi"][0] |= {"exact": None, "mean": None, "ci": None, "reason": "no reason but this"}
    large_effect().save(tmp_path / "old")
    AuditPacket(document).save(tmp_path / "new")
    code, out, _ = call_cli("diff", tmp_path / "old", tmp_path / "new")
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("ΔEvi, global"))
    assert "–" in row
    assert "undefined" in row
    assert "the new packet has no value: no reason but this" in out.replace("\n", " ")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("nowhere", "nowhere"), "nowhere is no audit folder, packet.json or data file here, and no Hub dataset"),
        (("old", "missing.csv"), "missing.csv is no audit folder"),
        (("old", "empty"), "empty holds neither a packet.json nor a dataset"),
    ],
)
def test_operands_that_are_nothing(call_cli, tmp_path, monkeypatch, names, words):
    monkeypatch.chdir(tmp_path)
    large_effect().save(tmp_path / "old")
    (tmp_path / "empty").mkdir()
    code, out, err = call_cli("diff", *names)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
