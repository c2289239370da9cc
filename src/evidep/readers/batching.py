"""Batches of equal-length inputs under a token budget, scored on one or many processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evidep.errors import ReaderError, SettingError
from evidep.readers.watched import counted
from evidep.types import FloatArray, IntArray

Precision = Literal["auto", "fp32", "bf16", "fp16"]
PADDING_SHARE = 0.1
"""Inputs that are at most this much longer than the shortest of a batch may be padded into it."""


def token_budget_batches(lengths: IntArray, budget: int, *, exact_from: int = 16) -> list[IntArray]:
    """Positions grouped into batches of (nearly) equal length with at most `budget` tokens each, padding included.

    Inputs of one length form batches of their own, which need neither padding nor a mask, where there are at least
    `exact_from` of them; rarer lengths share a batch with slightly longer ones. A single input over the budget is a
    batch of one. Deterministic: equal lengths keep their order.

    Raises:
        SettingError: budget < 1.
    """
    if budget < 1:
        raise SettingError(f"token_budget: expected at least 1 token a batch, got {budget}")
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    batches: list[IntArray] = []
    start, n = 0, len(order)
    while start < n:
        length = max(int(ordered[start]), 1)
        same = int(np.searchsorted(ordered, ordered[start], side="right"))
        most = max(budget // length, 1)
        if same - start >= min(exact_from, most):
            batches.extend(order[at : min(at + most, same)] for at in range(start, same, most))
            start = same
            continue
        longest = int(length * (1 + PADDING_SHARE)) + 1
        stop = int(np.searchsorted(ordered, longest, side="right"))
        # A length with enough inputs for exact batches of its own ends the mixed batch.
        sizes = np.unique(ordered[start:stop], return_counts=True)
        rich = sizes[0][sizes[1] >= exact_from]
        if len(rich):
            stop = int(np.searchsorted(ordered, rich[0], side="left"))
        while stop > start + 1 and int(ordered[stop - 1]) * (stop - start) > budget:
            stop = start + max(1, min(stop - start - 1, budget // int(ordered[stop - 1])))
        batches.append(order[start:stop])
        start = stop
    return batches


def few_sizes(batch: IntArray) -> IntArray:
    """The batch with its last input repeated up to one of few sizes: multiples of 4 to 16, then multiples of 8.

    CPU kernels are prepared, and memory is laid out, anew for each size of input; without this the memory of a long run
    grows with the number of batches, by half a gigabyte and more.
    """
    step = 4 if len(batch) <= 16 else 8
    return np.concatenate([batch, np.repeat(batch[-1:], -len(batch) % step)])


@dataclass(frozen=True, slots=True)
class UniquePairs:
    """Distinct (query, evidence) pairs of a long list.

    Attributes:
        query: [u] query of each distinct pair.
        evidence: [u] evidence of each distinct pair.
        of: [t] which distinct pair each entry of the list is.
    """

    query: IntArray
    evidence: IntArray
    of: IntArray


def unique_pairs(query: IntArray, evidence: IntArray) -> UniquePairs:
    """Find the distinct pairs; entries may be negative (NULL, EMPTY)."""
    if not len(query):
        return UniquePairs(query, evidence, query)
    low = int(evidence.min())
    span = int(evidence.max()) - low + 1
    base = int(query.min())
    _, first, of = np.unique((query - base) * span + (evidence - low), return_index=True, return_inverse=True)
    return UniquePairs(query[first], evidence[first], of.reshape(-1).astype(np.int64))


def on_cpu() -> bool:
    """Whether this process computes on the CPU: no accelerator is there, or ACCELERATE_USE_CPU asks for it."""
    import torch
    from accelerate.utils import parse_flag_from_env

    return bool(parse_flag_from_env("ACCELERATE_USE_CPU")) or not torch.accelerator.is_available()


def device_type() -> str:
    """Type of the device that this process computes on, for example "cpu" or "cuda"."""
    from accelerate import PartialState

    return str(PartialState(cpu=on_cpu()).device.type)


def make_accelerator(precision: str) -> Any:
    """An Accelerator for this process and precision, whatever Accelerator the process had before.

    Raises:
        ReaderError: The launcher asks for a sharded engine (FSDP, DeepSpeed), or for several processes that do not
            find each other.
    """
    import os

    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import DistributedType

    # The state is a singleton that refuses a second precision; transformers.Trainer resets it in the same way.
    AcceleratorState._reset_state()
    accelerator = Accelerator(mixed_precision={"fp32": "no"}.get(precision, precision), cpu=on_cpu())
    if accelerator.distributed_type in (DistributedType.FSDP, DistributedType.DEEPSPEED, DistributedType.MEGATRON_LM):
        raise ReaderError(
            f"launched with {accelerator.distributed_type.value}: readers are small enough for plain data parallelism; "
            "use a configuration with distributed_type MULTI_GPU, MULTI_CPU or NO"
        )
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    if launched != accelerator.num_processes:
        raise ReaderError(
            f"launched as {launched} processes, but each of them runs alone ({accelerator.num_processes}); "
            "launch with torchrun, on CPUs with ACCELERATE_USE_CPU=true, before anything else uses accelerate"
        )
    return accelerator


def resolve_precision(precision: Precision, device_type: str) -> str:
    """The precision to compute in: "fp32", "bf16" or "fp16".

    "auto" follows the launcher (ACCELERATE_MIXED_PRECISION), else takes bf16 where the hardware multiplies it (CPUs
    with avx512_bf16 or AMX, GPUs from Ampere on), fp16 on older GPUs, and fp32 elsewhere.

    Raises:
        SettingError: An unknown precision.
    """
    import os

    import torch

    if precision not in ("auto", "fp32", "bf16", "fp16"):
        raise SettingError(f"precision: expected auto, fp32, bf16 or fp16, got {precision!r}")
    if precision == "fp16" and device_type == "cpu":
        raise SettingError("precision: fp16 needs a GPU; use bf16, fp32 or auto on a CPU")
    if precision != "auto":
        return precision
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if launched in ("bf16", "fp16") and (launched, device_type) != ("fp16", "cpu"):
        return launched
    if device_type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    if device_type == "cpu":
        units = torch.cpu.get_capabilities()
        return "bf16" if units.get("avx512_bf16") or units.get("amx_bf16") else "fp32"
    return "fp32"


def torch_dtype(precision: str) -> Any:
    """The torch dtype of a resolved precision."""
    import torch

    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on a GPU or on the CPU."""
    from accelerate.utils.memory import should_reduce_batch_size

    return isinstance(error, MemoryError) or (isinstance(error, Exception) and should_reduce_batch_size(error))


def score_batches(
    accelerator: Any,
    batches: list[IntArray],
    forward: Callable[[IntArray], Any],
    n: int,
    width: int,
    description: str,
) -> FloatArray:
    """Values [n, width] of n inputs, each rank computing its share of the batches; every rank returns all values.

    Args:
        accelerator: Says how many processes there are and gathers their results.
        batches: Positions of the inputs, as `token_budget_batches` groups them; the same list on every rank.
        forward: Positions [B] -> tensor [B, width] on the accelerator's device.
        n: Number of inputs.
        width: Values per input.
        description: Label of the progress bar, which is shown on a terminal only.

    Raises:
        ReaderError: Memory runs out even for a batch of one input.
    """
    import torch
    from torch.utils.data import DataLoader

    values = np.zeros((n, width), dtype=np.float64)
    if not batches:
        return values
    widest = max(len(batch) for batch in batches)
    loader = DataLoader(
        range(len(batches)), batch_size=1, collate_fn=torch.tensor, generator=torch.Generator().manual_seed(0)
    )
    with torch.inference_mode(), counted(description, "input", n, shown=accelerator.is_main_process) as advance:
        for number in accelerator.prepare(loader):
            batch = batches[int(number)]
            computed = _forward_in_memory(forward, batch)
            padded = computed.new_zeros((1, widest, width), dtype=torch.float32)
            padded[0, : len(batch)] = computed
            # Ranks without a batch in the last round repeat an earlier one; gather_for_metrics drops the repetition.
            numbers, results = accelerator.gather_for_metrics((number.to(padded.device), padded))
            for done, result in zip(numbers.tolist(), results.cpu().numpy(), strict=True):
                values[batches[done]] = result[: len(batches[done])]
                advance(len(batches[done]))
    return values


def _forward_in_memory(forward: Callable[[IntArray], Any], batch: IntArray) -> Any:
    """Compute a batch; where memory runs out, compute its halves."""
    import torch

    try:
        return forward(batch)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        if len(batch) == 1:
            raise ReaderError(
                "out of memory even for a batch of one input: use a smaller model, a smaller max_length or more memory"
            ) from error
    # Outside the handler, so that the failed call's tensors are freed first.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    middle = len(batch) // 2
    return torch.cat([_forward_in_memory(forward, batch[:middle]), _forward_in_memory(forward, batch[middle:])])
