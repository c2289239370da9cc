"""Batches: complete, within the budget, of equal length; and nothing is scored twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidep.errors import ReaderError, SettingError
from evidep.readers.batching import (
    few_sizes,
    make_accelerator,
    resolve_precision,
    score_batches,
    token_budget_batches,
    unique_pairs,
)
from evidep.types import EMPTY, NULL

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

lengths_strategy = st.lists(st.integers(1, 60), min_size=0, max_size=300).map(lambda x: np.array(x, dtype=np.int64))


@settings(deadline=None, max_examples=60)
@given(lengths_strategy, st.integers(1, 400))
def test_batches_hold_every_input_once_within_the_budget(lengths, budget):
    batches = token_budget_batches(lengths, budget)
    assert sorted(np.concatenate([*batches, np.empty(0, np.int64)]).tolist()) == list(range(len(lengths)))
    for batch in batches:
        longest = int(lengths[batch].max())
        assert len(batch) == 1 or len(batch) * longest <= budget
        # at most a tenth and one token of padding
        assert longest <= int(lengths[batch].min()) * 1.1 + 1


def test_common_lengths_are_batched_without_padding():
    lengths = np.array([5] * 40 + [6] * 3 + [7] * 40)
    batches = token_budget_batches(lengths, 100)
    sizes = [sorted(set(lengths[batch].tolist())) for batch in batches]
    # 40 inputs of 5 tokens: 20 fit into 100 tokens; the three of 6 are alone, since 7 has batches of its own
    assert sizes == [[5], [5], [6], [7], [7], [7]]
    assert [len(batch) for batch in batches] == [20, 20, 3, 14, 14, 12]


def test_batches_have_few_sizes():
    sizes = {len(few_sizes(np.arange(n))) for n in range(1, 73)}
    assert sizes == {4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72}
    assert few_sizes(np.array([7, 5, 3])).tolist() == [7, 5, 3, 3]
    assert few_sizes(np.array([7, 5, 3, 2])).tolist() == [7, 5, 3, 2]


def test_rare_lengths_share_a_batch():
    batches = token_budget_batches(np.array([20, 21, 22, 23, 30]), 1000)
    # 20 * 1.1 + 1 = 23 is the longest that may be padded into the batch that begins with 20
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3], [4]]


def test_an_input_over_the_budget_is_alone():
    assert [b.tolist() for b in token_budget_batches(np.array([500, 3]), 10)] == [[1], [0]]


def test_budget_must_be_positive():
    with pytest.raises(SettingError, match="token_budget: expected at least 1 token"):
        token_budget_batches(np.array([1]), 0)


@given(st.lists(st.tuples(st.integers(NULL, 6), st.integers(EMPTY, 6)), max_size=60))
def test_unique_pairs_are_distinct_and_restore_the_list(pairs):
    query = np.array([q for q, _ in pairs], dtype=np.int64)
    evidence = np.array([e for _, e in pairs], dtype=np.int64)
    unique = unique_pairs(query, evidence)
    distinct = list(zip(unique.query.tolist(), unique.evidence.tolist(), strict=True))
    assert len(set(distinct)) == len(distinct) == len(set(pairs))
    assert [distinct[at] for at in unique.of.tolist()] == pairs


def test_scores_come_back_in_order():
    batches = [np.array([3, 1]), np.array([0]), np.array([2, 4, 5])]
    calls = []

    def forward(batch):
        calls.append(batch.tolist())
        return torch.tensor(np.stack([batch, batch**2], axis=1), dtype=torch.float32)

    values = score_batches(make_accelerator("fp32"), batches, forward, 6, 2, "test")
    assert values.tolist() == [[i, i * i] for i in range(6)]
    assert calls == [[3, 1], [0], [2, 4, 5]]


def test_no_batches_no_values():
    assert score_batches(make_accelerator("fp32"), [], lambda batch: batch, 0, 3, "test").shape == (0, 3)


def test_out_of_memory_halves_the_batch():
    calls = []

    def forward(batch):
        calls.append(len(batch))
        if len(batch) > 2:
            raise RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
            )
        return torch.tensor(batch, dtype=torch.float32)[:, None]

    values = score_batches(make_accelerator("fp32"), [np.arange(7)], forward, 7, 1, "test")
    assert values[:, 0].tolist() == list(range(7))
    # 7 fails; halves 3 and 4 fail; 3 = 1 + 2, 4 = 2 + 2
    assert calls == [7, 3, 1, 2, 4, 2, 2]


def test_out_of_memory_for_one_input_is_one_clear_error():
    def forward(batch):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with pytest.raises(ReaderError, match="out of memory even for a batch of one input: use a smaller model"):
        score_batches(make_accelerator("fp32"), [np.arange(4)], forward, 4, 1, "test")


def test_other_errors_are_not_taken_for_out_of_memory():
    def forward(batch):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        score_batches(make_accelerator("fp32"), [np.arange(4)], forward, 4, 1, "test")


def test_precision_follows_hardware_and_launcher(monkeypatch):
    monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
    for units, expected in (({"avx512_bf16": True}, "bf16"), ({"amx_bf16": True}, "bf16"), ({"avx2": True}, "fp32")):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda units=units: units)
        assert resolve_precision("auto", "cpu") == expected
    for supported, expected in ((True, "bf16"), (False, "fp16")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True, s=supported: s)
        assert resolve_precision("auto", "cuda") == expected
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert resolve_precision("auto", "cpu") == "bf16"
    assert resolve_precision("fp32", "cpu") == "fp32"
    with pytest.raises(SettingError, match="fp16 needs a GPU"):
        resolve_precision("fp16", "cpu")
    with pytest.raises(SettingError, match="expected auto, fp32, bf16 or fp16, got 'int8'"):
        resolve_precision("int8", "cpu")


def test_a_second_precision_in_one_process():
    assert make_accelerator("bf16").mixed_precision == "bf16"
    assert make_accelerator("fp32").mixed_precision == "no"
