"""An audit that is stopped or killed while it scores goes on from there, fits nothing again and ends the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_models import audit_rows, bert_model

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import evidep  # noqa: E402
from evidep.readers import training  # noqa: E402
from evidep.readers.transformer import TransformerReader  # noqa: E402


class Stopped(BaseException):
    pass


def audited(model: Path, out: Path, progress=None, k: int = 19):
    reader = TransformerReader(model=str(model), epochs=4, batch_size=8, learning_rate=2e-3, precision="fp32")
    return evidep.audit(
        audit_rows(250, 1),
        train=audit_rows(250, 0),
        readers=[reader],
        k=k,
        shuffles=["global"],
        ablations=(),
        out=out,
        progress=progress,
        name="spoken",
    )


def numbers(packet):
    return {key: packet[key] for key in ("readers", "delta_evi", "ablations", "signature")}


def test_stopped_while_scoring(tmp_path, monkeypatch):
    model = bert_model(tmp_path / "model")
    straight = audited(model, tmp_path / "straight")
    assert straight["readers"][0]["accuracy_full"] > 0.9

    def stop(stage: str, done: int, total: int) -> None:
        if "global" in stage and done > 8:
            raise Stopped

    with pytest.raises(Stopped):
        audited(model, tmp_path / "stopped", stop)
    before = len(list((tmp_path / "stopped" / "cells").rglob("*.*")))
    assert before == 1 + 1 + 2 * 4  # full evidence, truncation, and two calls of 4 shuffles (1,000 pairs) each

    def refit(*_):
        raise AssertionError("the finished fit was not found")

    monkeypatch.setattr(training._Run, "step", refit)
    resumed = audited(model, tmp_path / "stopped")
    assert numbers(resumed) == numbers(straight)


def test_sigkill_while_scoring(tmp_path):
    model = bert_model(tmp_path / "model")
    script = Path(__file__).with_name("audit_in_process.py")
    command = [sys.executable, str(script), str(model), str(tmp_path / "out")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "out" / "cells").rglob("*.*"))) < 5:
        assert killed.poll() is None, "the audit ended before it could be killed"
        assert time.monotonic() < deadline, "no finished cells appeared"
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "out" / "packet.json").exists()
    subprocess.run(command, env=environment, check=True, timeout=120, capture_output=True)
    import json

    resumed = json.loads((tmp_path / "out" / "packet.json").read_text())
    straight = audited(model, tmp_path / "straight", k=40)
    for key in ("readers", "delta_evi", "ablations"):
        assert resumed[key] == straight[key]
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["cells_reused"] >= 4
