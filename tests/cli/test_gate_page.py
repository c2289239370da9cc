"""The commands of docs/ci-gate.md, docs/hub.md and the example workflow are real ones."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from support import make_rows, write_jsonl

from evidep.cli import build_parser

DOCS = Path(__file__).resolve().parents[2] / "docs"
WORKFLOW = DOCS / "examples" / "evidence-gate.yml"


def steps():
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    assert set(workflow) == {"name", True, "permissions", "jobs"}  # YAML 1.1 reads the key "on" as true
    return workflow["jobs"]["audit"]["steps"]


def commands():
    """Every evidep command of the pages and the workflow."""
    found = [step["run"] for step in steps() if step.get("run", "").startswith("evidep ")]
    for page in ("ci-gate.md", "hub.md"):
        for block in (DOCS / page).read_text(encoding="utf-8").split("```bash\n")[1:]:
            text = block.split("```")[0].replace("\\\n", " ")
            found += [line for line in text.splitlines() if line.startswith("evidep ")]
    return found


@pytest.mark.parametrize("command", commands())
def test_every_command_is_understood(command):
    words = shlex.split(command, comments=True)
    assert build_parser().parse_args(words[1:]).command == words[1]


def test_the_workflow_on_a_benchmark(tmp_path, monkeypatch, call_cli):
    """Audit, baseline, gate: passes unchanged, and fails once the evidence has lost its meaning."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    rows = [
        row | {"id": f"q{number}", "split": ["train", "test"][number % 2]}
        for number, row in enumerate(make_rows(400))
    ]  # fmt: skip
    write_jsonl(tmp_path / "data" / "benchmark.jsonl", rows)
    audit, check = (shlex.split(step["run"])[1:] for step in steps() if step.get("run", "").startswith("evidep "))
    assert call_cli(*audit)[0] == 0
    (tmp_path / "audits" / "baseline").mkdir(parents=True)
    for name in ("packet.json", "items.parquet"):
        (tmp_path / "audits" / "baseline" / name).write_bytes((tmp_path / "audit" / name).read_bytes())
    code, out, err = call_cli(*check)
    assert code == 0, out + err
    reports = sorted(path.name for path in (tmp_path / "reports").iterdir())
    assert reports == ["evidence.md", "evidence.sarif", "evidence.xml"]

    for number, row in enumerate(rows):
        row["evidence"] = f"The ledger has a page {number}."
    write_jsonl(tmp_path / "data" / "benchmark.jsonl", rows)
    assert call_cli(*audit)[0] == 0
    code, out, _ = call_cli(*check)
    assert code == 1
    assert "failed   min-delta-evi" in out
    assert "failed   baseline-delta-evi" in out
    assert "**failed**" in (tmp_path / "reports" / "evidence.md").read_text(encoding="utf-8")


def test_the_pinned_release_is_this_one():
    import evidep

    assert f"pip install evidep=={evidep.__version__}" in WORKFLOW.read_text(encoding="utf-8")
