"""What a log says of a fit or a scoring that takes long."""

import io
import time

import numpy as np
import pytest
from tiny_readers import QUICK, pairs_table

from evidep.cli.progress import plain_lines
from evidep.readers.baseline import MajorityReader
from evidep.readers.batching import make_accelerator, score_batches
from evidep.readers.crossfit import cross_fit
from evidep.readers.watched import counted, named, running


def test_parts_are_named_from_the_outermost_on_and_end_with_their_work():
    assert running() == ""
    with named("fold 2 of 5"), counted("fine-tuning", "step", 1200, done=100) as advance:
        advance(48)
        assert running() == "fold 2 of 5, fine-tuning 148 of 1,200 steps"
        with counted("scoring", "input", 7, shown=False):
            assert running() == "fold 2 of 5, fine-tuning 148 of 1,200 steps, scoring 0 of 7 inputs"
        assert running() == "fold 2 of 5, fine-tuning 148 of 1,200 steps"
    assert running() == ""


def test_what_fails_is_no_longer_running():
    with pytest.raises(ValueError, match="nan"), named("fold 1 of 2"), counted("fine-tuning", "step", 3):
        raise ValueError("nan")
    assert running() == ""


def test_a_line_of_the_log_tells_how_far_the_reader_is():
    log, deadline = io.StringIO(), time.monotonic() + 60
    with plain_lines(log, first=0.02) as show:
        show("minilm: fitting", 48, 72)
        with counted("fine-tuning", "step", 222) as advance:
            advance(148)
            while "steps done): " not in log.getvalue() and time.monotonic() < deadline:
                time.sleep(0.01)
    assert "s: minilm: fitting (48 of 72 steps done): fine-tuning 148 of 222 steps\n" in log.getvalue()


class Watching:
    """A reader that writes down what is said to run while it works."""

    def __init__(self, seen):
        self.inner, self.seen = MajorityReader(), seen
        self.info, self.fingerprint = self.inner.info, self.inner.fingerprint

    def fit(self, train, *, seed):
        self.seen.append(running())
        self.inner.fit(train, seed=seed)
        return self

    def encode(self, table):
        return self.inner.encode(table)

    def scores(self, encoded, rows, donors):
        self.seen.append(running())
        return self.inner.scores(encoded, rows, donors)


def test_folds_say_which_of_them_is_fitted_and_scored():
    seen, rows = [], np.arange(12)
    table = pairs_table(12)
    reader = cross_fit(lambda: Watching(seen), rows % 3).fit(table, seed=0)
    reader.scores(reader.encode(table), rows, rows)
    assert seen == [f"fold {k} of 3" for k in (1, 2, 3)] * 2
    assert running() == ""


def test_scoring_counts_inputs():
    torch = pytest.importorskip("torch")
    seen = []

    def forward(batch):
        seen.append(running())
        return torch.zeros((len(batch), 1))

    batches = [np.array([3, 1]), np.array([0]), np.array([2, 4, 5])]
    score_batches(make_accelerator("fp32"), batches, forward, 6, 1, "scoring")
    assert seen == [f"scoring {n} of 6 inputs" for n in (0, 2, 3)]


def test_fine_tuning_counts_steps(model, monkeypatch):
    pytest.importorskip("torch")
    from evidep.readers import training
    from evidep.readers.transformer import TransformerReader

    seen, inner = [], training.rank_share

    def rank_share(*arguments):
        seen.append(running())
        return inner(*arguments)

    monkeypatch.setattr(training, "rank_share", rank_share)
    TransformerReader(model=str(model), holdout_share=0, **QUICK | {"epochs": 1}).fit(pairs_table(24), seed=0)
    assert seen == [f"fine-tuning {n} of 3 steps" for n in range(3)]
