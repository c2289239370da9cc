"""`evidep audit` as a user meets it: results on stdout, one line for bad input, nothing computed lost."""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from support import make_rows, write_csv, write_jsonl

from evidep.audit.packet import AuditPacket, check_document

FAST = ("--ablations", "none", "--shuffles", "global")


def one_line(code, out, err, *words):
    """Exit code 2, an empty stdout, and exactly one line of error that holds the words."""
    assert code == 2, (out, err)
    assert out == ""
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert "Traceback" not in err
    for word in words:
        assert word in lines[0], (word, lines[0])


def test_the_packet_alone_is_on_stdout(call_cli, small_csv):
    code, out, err = call_cli("audit", small_csv, "--metadata", "source", "--json")
    assert code == 0
    document = json.loads(out)
    check_document(document)
    assert document["data"]["rows"] == 120
    assert document["data"]["train_rows"] is None
    assert document["data"]["roles"] == {
        "query": "claim", "evidence": "evidence", "label": "label", "metadata": ["source"], "group": None,
    }  # fmt: skip
    assert "query=claim evidence=evidence label=label metadata=source" in err


def test_the_table_is_on_stdout_and_the_files_are_in_out(call_cli, small_csv, tmp_path):
    code, out, err = call_cli("audit", small_csv, "--out", tmp_path / "out", *FAST)
    assert code == 0
    assert "tfidf_lr" in out
    assert "ΔEvi" in out
    packet = AuditPacket.load(tmp_path / "out")
    assert packet.items.num_rows == 120
    assert str(tmp_path / "out") in err
    code, shown, _ = call_cli("show", tmp_path / "out")
    assert code == 0
    assert packet.signature in shown.replace("\n", "")


def test_same_seed_same_packet_other_seed_other_numbers(call_cli, small_csv):
    first = call_cli("audit", small_csv, "--json", "--seed", 3)[1]
    assert call_cli("audit", small_csv, "--json", "--seed", 3)[1] == first
    other = json.loads(call_cli("audit", small_csv, "--json", "--seed", 4)[1])
    assert other["delta_evi"][0]["accuracy_shuffled"] != json.loads(first)["delta_evi"][0]["accuracy_shuffled"]


def test_raising_k_only_adds(call_cli, small_csv, tmp_path):
    call_cli("audit", small_csv, "--out", tmp_path / "out", *FAST)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").rglob("*.npz")}
    short = AuditPacket.load(tmp_path / "out")
    call_cli("audit", small_csv, "--out", tmp_path / "out", "--k", 50, *FAST)
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["cells_computed"] == 30
    assert {path: path.stat().st_mtime_ns for path in before} == before
    longer = AuditPacket.load(tmp_path / "out")
    assert longer["delta_evi"][0]["accuracy_shuffled"][:20] == short["delta_evi"][0]["accuracy_shuffled"]


def test_a_finished_audit_recomputes_nothing(call_cli, small_csv, tmp_path):
    call_cli("audit", small_csv, "--out", tmp_path / "out")
    first = (tmp_path / "out" / "packet.json").read_bytes()
    call_cli("audit", small_csv, "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["cells_computed"] == 0
    assert (tmp_path / "out" / "packet.json").read_bytes() == first


@pytest.mark.parametrize("wait", [3, 12, 40])
def test_killed_and_started_again_it_gives_the_same_packet(tmp_path, wait):
    """SIGKILL once `wait` cells are there; the next run keeps every one of them and ends in the same bytes."""
    data = write_csv(tmp_path / "data.csv", make_rows(400))
    command = [sys.executable, "-m", "evidep", "audit", str(data), "--k", "30", "--out"]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    killed = subprocess.Popen([*command, str(tmp_path / "killed")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    cells = tmp_path / "killed" / "cells"
    deadline = time.monotonic() + 120
    while len(list(cells.rglob("*.npz"))) < wait and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL, "the audit ended before it could be killed"
    kept = len(list(cells.rglob("*.npz")))
    assert kept >= wait
    subprocess.run([*command, str(tmp_path / "killed")], check=True, capture_output=True)
    whole = json.loads((tmp_path / "whole" / "run.json").read_text())["cells_computed"]
    again = json.loads((tmp_path / "killed" / "run.json").read_text())
    assert again["cells_computed"] == whole - kept
    assert (tmp_path / "killed" / "packet.json").read_bytes() == (tmp_path / "whole" / "packet.json").read_bytes()


def test_ctrl_c_is_130_with_one_line_and_keeps_the_cells(tmp_path):
    data = write_csv(tmp_path / "data.csv", make_rows(400))
    command = [sys.executable, "-m", "evidep", "audit", str(data), "--k", "4000", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A background job inherits "ignore Ctrl-C", which no terminal's user has.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while len(list(tmp_path.rglob("*.npz"))) < 5 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert "interrupted; finished work is kept in" in err
    assert len(list(tmp_path.rglob("*.npz"))) >= 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--k", 0), ["k must be a whole number of at least 1"]),
        (("--k", 10), ["the smallest k is 19"]),
        (("--alpha", 0.01), ["the smallest k is 99"]),
        (("--margin", 0), ["margin"]),
        (("--query", "clam"), ["clam", "claim"]),
        (("--metadata", "sauce"), ["sauce", "source"]),
        (("--readers", "tfidf"), ["tfidf", "tfidf_lr"]),
        (("--shuffles", "globally"), ["globally", "within-label"]),
        (("--split", "dev"), ["dev"]),
        (("--evidence", "claim"), ["claim"]),
    ],
)
def test_a_bad_option_is_one_line(call_cli, small_csv, arguments, words):
    one_line(*call_cli("audit", small_csv, *arguments), *words)


def test_an_ambiguous_column_names_the_candidates_and_the_option(call_cli, tmp_path):
    rows = [{"question": r["claim"], "passage": "x", "document": "y", "label": r["label"]} for r in make_rows(20)]
    one_line(*call_cli("audit", write_csv(tmp_path / "d.csv", rows)), "passage", "document", "--evidence")


def test_no_such_file(call_cli, tmp_path):
    one_line(*call_cli("audit", tmp_path / "missing.csv"), "missing.csv")


def test_a_hub_id_without_a_network(call_cli):
    one_line(*call_cli("audit", "nobody/nothing"), "nobody/nothing")


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl", "d.json", "d.parquet", "d.jsonl.gz"])
def test_an_empty_file(call_cli, tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    one_line(*call_cli("audit", tmp_path / name), name)


def test_one_row_and_one_class(call_cli, tmp_path):
    rows = make_rows(30)
    one_line(*call_cli("audit", write_csv(tmp_path / "one.csv", rows[:1])), "one")
    for row in rows:
        row["label"] = "supported"
    one_line(*call_cli("audit", write_csv(tmp_path / "class.csv", rows)), "supported")


def test_a_malformed_json_line_is_named_by_its_number(call_cli, tmp_path):
    path = write_jsonl(tmp_path / "d.jsonl", make_rows(30))
    lines = path.read_text().splitlines()
    lines[16] = lines[16][:-1]
    path.write_text("\n".join(lines))
    one_line(*call_cli("audit", path), "17", "d.jsonl")


def test_label_sets_that_do_not_match(call_cli, tmp_path):
    train = make_rows(60)
    for row in train:
        row["label"] = {"supported": "entailment", "refuted": "contradiction"}[row["label"]]
    data, train = write_csv(tmp_path / "d.csv", make_rows(60)), write_csv(tmp_path / "t.csv", train)
    one_line(*call_cli("audit", data, "--train", train), "supported", "entailment")


def test_all_evidence_equal_is_not_applicable_and_never_zero(call_cli, tmp_path):
    rows = make_rows(80)
    for row in rows:
        row["evidence"] = "The same sentence for all."
    code, out, _ = call_cli("audit", write_csv(tmp_path / "d.csv", rows), "--json")
    assert code == 0
    document = json.loads(out)
    assert document["diagnosis"]["region"] == "not_applicable"
    for row in document["delta_evi"]:
        assert row["verdict"] == "not_applicable"
        assert row["mean"] is None
        assert row["exact"] is None
        assert row["reason"]


def test_an_unreadable_cell_is_named(call_cli, small_csv, tmp_path):
    call_cli("audit", small_csv, "--out", tmp_path / "out", *FAST)
    cell = next((tmp_path / "out" / "cells").rglob("*.npz"))
    cell.write_bytes(b"broken")
    one_line(*call_cli("audit", small_csv, "--out", tmp_path / "out", *FAST), cell.name, "delete that file")


def test_an_out_folder_that_is_a_file(call_cli, small_csv, tmp_path):
    (tmp_path / "out").write_text("")
    one_line(*call_cli("audit", small_csv, "--out", tmp_path / "out"), "cannot write")


def test_a_read_only_out_folder(run_cli, small_csv, tmp_path):
    if os.geteuid() == 0:
        target = "/proc/evidep-out"  # root may write anywhere else
    else:
        (tmp_path / "ro").mkdir(mode=0o555)
        target = tmp_path / "ro" / "out"
    result = run_cli("audit", small_csv, "--out", target)
    one_line(result.returncode, result.stdout, result.stderr, "cannot write to", "--out")


def test_a_full_disk_keeps_what_was_finished(small_csv, tmp_path):
    """A file-size limit of the process stands for the full disk: writing fails half way through a cell."""
    command = [sys.executable, "-m", "evidep", "audit", str(small_csv), "--out", str(tmp_path / "out")]

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

    result = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)
    one_line(result.returncode, result.stdout, result.stderr, "cannot write the finished cell", "File too large")
    assert not list((tmp_path / "out").rglob("*.tmp"))
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_help_is_quick_in_cpu_time_and_imports_nothing_heavy():
    code = (
        "import sys, resource, io\n"
        "from evidep.cli import build_parser\n"
        "build_parser().format_help()\n"
        "heavy = set('datasets evaluate torch transformers sklearn pandas matplotlib scipy gradio'.split())\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_closed_pipe_is_no_error(small_csv):
    command = f"{sys.executable} -m evidep audit {small_csv} --json --ablations none | head -c 10"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr


def test_unknown_option_is_exit_code_2(call_cli, small_csv):
    code, out, err = call_cli("audit", small_csv, "--no-such-option")
    assert code == 2
    assert out == ""
    assert "--no-such-option" in err
