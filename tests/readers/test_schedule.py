"""Order, learning rate, evaluations and hold-out of a fine-tuning run, and the check of its settings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidep.errors import SettingError
from evidep.readers.recipe import TrainSettings
from evidep.readers.schedule import epoch_batches, evaluation_steps, holdout, learning_rate, rank_share


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
