"""The fine-tuning loop: what it learns, what the seed decides, and how each failure is said."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_models import bert_model, spoken_world, table
from tiny_readers import QUICK, assert_same_weights, weights

from evidep.errors import ReaderError
from evidep.readers import training
from evidep.readers.recipe import TrainSettings
from evidep.types import NULL

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers.batching import make_accelerator  # noqa: E402
from evidep.readers.pairing import encode_pairs  # noqa: E402
from evidep.readers.transformer import TransformerReader  # noqa: E402


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
