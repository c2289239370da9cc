"""Where no person watches: few lines on stderr, and one process of several that speaks."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time

import pytest

from evidep.cli.progress import plain_lines, progress_bar


def test_lines_come_ever_more_seldom_and_tell_the_present_stage():
    log, started, first = io.StringIO(), time.monotonic(), 0.05

    def wait_for(lines: int) -> None:
        while log.getvalue().count("\n") < lines and time.monotonic() < started + 60:
            time.sleep(0.01)

    with plain_lines(log, first=first) as show:
        wait_for(1)
        show("minilm: fitting", 0, 24)
        wait_for(3)
    took = time.monotonic() - started
    lines = log.getvalue().splitlines()
    assert lines[0] == "evidep: after 0 s: reading the data"
    assert lines[-1].endswith(": minilm: fitting (0 of 24 steps done)")
    # Lines after first · (1, 3, 7, ...): n of them need at least first · (2^n - 1).
    assert took >= first * (2 ** len(lines) - 1) >= first * 7
    time.sleep(4 * first)
    assert log.getvalue().splitlines() == lines  # nothing comes after the end


def test_nobody_listening_is_no_error():
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with plain_lines(Closed(), first=0.01) as show:
        time.sleep(0.05)
        show("still at work", 1, 2)


def test_a_short_audit_says_nothing_of_its_progress(call_cli, small_csv):
    _, _, err = call_cli("audit", small_csv, "--json", "--ablations", "none")
    assert len(err.splitlines()) == 1  # the columns


@pytest.mark.parametrize(("rank", "speaks"), [("0", True), ("1", False)])
def test_one_process_of_several_speaks(monkeypatch, call_cli, small_csv, tmp_path, rank, speaks):
    monkeypatch.setenv("RANK", rank)
    code, out, err = call_cli("audit", small_csv, "--json", "--ablations", "none", "--out", tmp_path / "out")
    assert code == 0
    assert (bool(out), "are in" in err) == (speaks, speaks)
    assert bool(err) is speaks
    with progress_bar() as show:
        assert (show is not None) is speaks


@pytest.mark.slow
def test_two_launched_processes_print_one_packet(small_csv, tmp_path):
    pytest.importorskip("torch")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    audit = ["evidep", "audit", str(small_csv), "--json", "--ablations", "none", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    run = subprocess.run([*launcher, *audit], env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert json.loads(run.stdout)["data"]["rows"] == 120  # one document, not two after each other
    assert run.stderr.count("per-item results are in") == 1
