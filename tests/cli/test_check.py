"""`evidep check` in continuous integration: exit codes, reports, one line for bad use."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from junitparser import Error, Failure, JUnitXml
from report.report_packets import HOSTILE, large_effect, not_applicable, three_readers
from support import make_rows, write_jsonl

import evidep


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    """A benchmark whose evidence tells the label, audited as it is and after half of its evidence lost all meaning."""
    folder = tmp_path_factory.mktemp("audits")
    rows = [row | {"id": f"q{number}"} for number, row in enumerate(make_rows(160))]
    write_jsonl(folder / "before.jsonl", rows)
    for number, row in enumerate(rows[::2]):
        row["evidence"] = f"Nothing is said of entry {number}."
    write_jsonl(folder / "after.jsonl", rows)
    for name in ("before", "after"):
        evidep.audit(
            folder / f"{name}.jsonl", roles={"metadata": ["source"]}, ablations=(), shuffles=("global",),
            out=folder / name, name="ledger",
        )  # fmt: skip
    return folder


def test_a_kept_limit_is_0_and_a_broken_one_is_1(call_cli, audits):
    code, out, err = call_cli("check", audits / "before", "--region", "evidence-sensitive", "--min-delta-evi", "0.2")
    assert code == 0, out + err
    assert out.splitlines()[-1] == "gate passed"
    assert err == ""
    code, out, err = call_cli("check", audits / "before", "--forbid-region", "evidence_sensitive", "--max-mpds", "2")
    assert code == 1
    assert out.splitlines()[0].startswith("failed   forbidden-region")
    assert out.splitlines()[1].startswith("passed   max-mpds")
    assert out.splitlines()[-1] == "gate failed: 1 of 2 checks"


def test_a_benchmark_that_lost_half_its_evidence_fails_against_its_baseline(call_cli, audits):
    code, out, _ = call_cli("check", audits / "after", "--baseline", audits / "before")
    assert code == 1
    line = next(line for line in out.splitlines() if "baseline-delta-evi" in line)
    assert line.startswith("failed")
    assert "160 items matched" in line
    code, out, _ = call_cli("check", audits / "before", "--baseline", audits / "after")
    assert code == 0, out
    code, out, _ = call_cli("check", audits / "before", "--baseline", audits / "before")
    assert code == 0, out


def test_json_is_alone_on_stdout(call_cli, audits):
    code, out, err = call_cli("check", audits / "after", "--baseline", audits / "before", "--json")
    assert (code, err) == (1, "")
    result = json.loads(out)
    assert result["passed"] is False
    assert {check["name"] for check in result["checks"]} == {"baseline-region", "baseline-delta-evi", "baseline-mpds"}
    assert result["comparison"]["items"]["matched"] == 160


def test_an_undefined_value_is_1(call_cli, tmp_path):
    not_applicable().save(tmp_path)
    code, out, _ = call_cli("check", tmp_path, "--min-delta-evi", "-1")
    assert code == 1
    assert "undefined: every item has the same evidence" in out


@pytest.fixture
def reports(call_cli, tmp_path, monkeypatch):
    """The three reports of a gate that fails in two checks of four, with text that attacks every format."""
    monkeypatch.chdir(tmp_path)
    document = three_readers().to_dict()
    document["data"]["name"] = HOSTILE
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "packet.json").write_text(json.dumps(document), encoding="utf-8")
    code, _, err = call_cli(
        "check", "audit", "--region", "evidence_sensitive", "--min-delta-evi", "0.5", "--max-mpds", "0.1",
        "--forbid-region", "latent_coupling", "--junit", "out/junit.xml", "--sarif", "out/gate.sarif",
        "--markdown", "out/summary.md",
    )  # fmt: skip
    assert code == 1
    assert err.split() == ["out/junit.xml", "out/gate.sarif", "out/summary.md"]
    return tmp_path / "out"


def test_junit_as_another_reader_sees_it(reports):
    report = JUnitXml.fromfile(str(reports / "junit.xml"))
    assert (report.tests, report.failures, report.errors, report.skipped) == (4, 2, 0, 0)
    (suite,) = report
    cases = {case.name: case for case in suite}
    assert list(cases) == ["region", "forbidden-region", "min-delta-evi", "max-mpds"]
    assert [len(case.result) for case in cases.values()] == [0, 0, 1, 1]
    failure = cases["min-delta-evi"].result[0]
    assert isinstance(failure, Failure)
    assert not isinstance(failure, Error)
    assert "must be at least 0.5" in failure.message
    assert all(case.classname == "evidep.gate" for case in cases.values())
    # the schema's order inside a suite: properties first, then cases
    assert [child.tag for child in ET.parse(reports / "junit.xml").getroot()[0]] == ["properties", *["testcase"] * 4]


def test_junit_of_a_check_that_cannot_be_made(call_cli, tmp_path):
    from report.report_packets import undefined_mpds

    undefined_mpds().save(tmp_path / "audit")
    code, out, _ = call_cli(
        "check", tmp_path / "audit", "--baseline", tmp_path / "audit", "--junit", tmp_path / "junit.xml"
    )
    assert code == 0
    assert "skipped  baseline-mpds" in out
    report = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert (report.tests, report.failures, report.skipped) == (3, 0, 1)


def test_sarif_has_one_located_result_per_failure(reports):
    log = json.loads((reports / "gate.sarif").read_text(encoding="utf-8"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [result["ruleId"] for result in run["results"]] == ["min-delta-evi", "max-mpds"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == "error"
        location = result["locations"][0]["physicalLocation"]
        assert location["artifactLocation"]["uri"] == "audit/packet.json"
        assert location["region"]["startLine"] >= 1
    assert len({result["partialFingerprints"]["check/v1"] for result in run["results"]}) == 2


def test_markdown_is_one_table_that_hostile_names_cannot_break(reports):
    text = (reports / "summary.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 4
    assert all(line.replace("\\|", "").count("|") == 4 for line in table)
    assert text.splitlines()[0].endswith(": **failed**")
    assert len(text.splitlines()[0]) < 400


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to check"),
        (("--region", "sensitive"), "'sensitive' is unknown"),
        (("--min-delta-evi", "2"), "from -1 to 1"),
        (("--baseline", "nowhere"), "no audit packet at nowhere"),
        (("--min-delta-evi", "0", "--reader", "bert"), "'bert' is not in the packet"),
    ],
)
def test_bad_use_is_one_line_and_2(call_cli, tmp_path, arguments, words):
    large_effect().save(tmp_path)
    code, out, err = call_cli("check", tmp_path, *arguments)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err


def test_a_report_that_cannot_be_written_is_one_line(call_cli, tmp_path):
    large_effect().save(tmp_path)
    (tmp_path / "file").write_text("")
    code, _, err = call_cli("check", tmp_path, "--max-mpds", "1", "--junit", tmp_path / "file" / "junit.xml")
    assert code == 2
    assert "cannot write" in err
    assert len(err.strip().splitlines()) == 1
