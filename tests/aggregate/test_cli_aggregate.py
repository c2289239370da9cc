from __future__ import annotations

import argparse
import json
import subprocess
import sys

import pytest

from evidep.cli.aggregate import add_parser
from evidep.errors import EvidepError

TABLE = "system,task,score\nA,x,0.9\nA,y,0.5\nA,z,0.4\nB,x,0.3\nB,y,0.6\nB,z,0.7\nC,x,0.2\nC,y,0.4\nC,z,0.6\n"


def call(*words):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["aggregate", *map(str, words)])
    return arguments.run(arguments)


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def test_report_json_markdown_and_figures_agree(scores, tmp_path, capsys):
    packet = tmp_path / "packet.json"
    packet.write_text(
        json.dumps({"diagnosis": {"region": "direct_coupling"}, "data": {"name": "nq"}}), encoding="utf-8"
    )
    common = [scores, "--metric", "accuracy", "--chance", "0.1", "--bootstrap", 300, "--audit", f"x={packet}"]
    extra = ["--save", tmp_path / "r.json", "--markdown", tmp_path / "r.md", "--figures", tmp_path / "fig"]
    assert call(*common, *extra) == 0
    text, notes = capsys.readouterr()
    assert call(*common, "--json") == 0
    printed = capsys.readouterr().out
    assert json.loads(printed) == json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    result = json.loads(printed)
    macro = next(item for item in result["aggregates"] if item["name"] == "macro")
    assert [round(standing["value"], 6) for standing in macro["standings"]] == [0.6, 0.533333, 0.4]
    page = (tmp_path / "r.md").read_text(encoding="utf-8")
    for shown in (text, page):
        assert "0.600" in shown
        assert "direct" in shown
        assert "3 systems on 3 tasks" in shown
    assert result["evidence"]["dropped"] == ["x"]
    assert {path.name for path in (tmp_path / "fig").iterdir()} == {
        "radar.png",
        "critical_difference.png",
        "rank_intervals.png",
        "score_profiles.png",
    }
    assert "radar.png" in notes
    assert result["signature"] in text.replace("\n", "")


def test_declarations_for_one_task_and_from_a_file(scores, tmp_path, capsys):
    declared = tmp_path / "tasks.json"
    declared.write_text(json.dumps({"*": "accuracy", "y": {"metric": "rmse", "chance": 2}}), encoding="utf-8")
    assert call(scores, "--tasks", declared, "--items", "x=50", "--bootstrap", 100, "--json") == 0
    tasks = {task["name"]: task for task in json.loads(capsys.readouterr().out)["tasks"]}
    assert tasks["y"]["higher_is_better"] is False
    assert tasks["y"]["high"] == "inf"
    assert tasks["x"]["n_items"] == 50
    assert tasks["z"]["metric"] == "accuracy"


def test_weights_merge_baseline_and_compare(scores, capsys):
    words = ["--direction", "higher", "--range", "0:1", "--merge", "yz=y,z", "--weight", "x=3", "--baseline", "B"]
    assert call(scores, *words, "--compare", "A", "C", "--bootstrap", 100, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert [task["name"] for task in result["tasks"]] == ["x", "yz"]
    declared = next(item for item in result["aggregates"] if item["name"] == "declared_weights")
    # A: (3 * 0.9 + 0.45) / 4 = 0.7875.
    assert declared["standings"][0]["value"] == pytest.approx(0.7875)
    assert (result["comparison"]["a"], result["comparison"]["b"]) == ("A", "C")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "task 'x': unknown whether a higher or a lower score is better"),
        (["--metric", "accuracy", "--bootstrap", "3"], "at least 100 replicates"),
        (["--metric", "accuracy", "--columns", "score=points"], "no column 'points' for the score"),
        (["--metric", "accuracy", "--columns", "score"], "expected NAME=VALUE"),
        (["--metric", "accuracy", "--baseline", "Z"], "system 'Z' is not in the table"),
        (["--metric", "accuracy", "--weight", "x=much"], "expected a number, got 'much'"),
        (["--metric", "accuracy", "--audit", "x"], "--audit: expected NAME=VALUE"),
        (["--metric", "accuracy", "--audit", "x=none.json"], "none.json: cannot be read as JSON"),
        (["--range", "01"], "expected LOW:HIGH"),
        (["--chance", "x=high"], "chance of 'x': expected a number"),
        (["--metric", "accuracy", "--only", "q*"], "no task 'q"),
        (["--metric", "accuracy", "--resample", "within", "--bootstrap", "100"], "no task has items"),
        (["--metric", "accuracy", "--tasks", "none.json"], "none.json: cannot be read"),
        (["--metric", "accuracy", "--bootstrap", "100", "--figures", "f", "--format", "gif"], "'gif' is unknown"),
    ],
)
def test_bad_input_is_one_clear_line(scores, words, message, capsys):
    with pytest.raises(EvidepError, match=message) as caught:
        call(scores, *words)
    assert "\n" not in str(caught.value)


def test_one_system_and_names_that_would_break_a_page(tmp_path, capsys):
    path = tmp_path / "odd.csv"
    path.write_text(
        'system,task,score\n"[red]A|B[/red]\x1b[31m",x,0.5\n"[red]A|B[/red]\x1b[31m",y,0.6\n', encoding="utf-8"
    )
    assert call(path, "--metric", "accuracy", "--bootstrap", 100, "--markdown", tmp_path / "r.md") == 0
    text = capsys.readouterr().out
    assert "One system: there is nothing to order" in text
    assert "\x1b[31m" not in text
    assert "[red]" in text
    page = (tmp_path / "r.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert all(line.count("|") == rows[0].count("|") for line in rows[:3])
    assert call(path, "--metric", "accuracy", "--bootstrap", 100, "--figures", tmp_path / "fig") == 0
    assert "no figure rank_intervals: one system has no ranks" in capsys.readouterr().err


def test_conflict_prints_no_single_order(tmp_path, capsys):
    lines = ["system,task,score"]
    for at in range(12):
        lines += [f"s{at},up,{at / 12}", f"s{at},down,{1 - at / 12}", f"s{at},also,{(at + 0.3) / 13}"]
    path = tmp_path / "c.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert call(path, "--metric", "accuracy", "--bootstrap", 200) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "No single order is true here" in text
    assert "for want of a better order" in text
    assert "Opposed: up and down" in text


def test_parser_is_light():
    code = (
        "import argparse, sys; from evidep.cli.aggregate import add_parser; p = argparse.ArgumentParser();"
        "add_parser(p.add_subparsers()); p.parse_args(['aggregate', 'x.csv']);"
        "print(sorted({'numpy', 'pandas', 'scipy', 'matplotlib', 'pyarrow', 'rich'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
