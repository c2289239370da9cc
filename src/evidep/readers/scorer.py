"""A trained pair classifier, asked about pairs of texts that are already tokenised."""

from __future__ import annotations

import copy
from typing import Any, Final

from evidep.readers.batching import few_sizes, score_batches, token_budget_batches, torch_dtype
from evidep.readers.first_token import first_token_model
from evidep.readers.packed import pack_linears
from evidep.readers.pairing import EncodedPairs, assemble, input_lengths
from evidep.types import FloatArray, IntArray

PREPARED: Final = ("forward", "_original_forward")
"""What Accelerate hangs on a model that it prepares for mixed precision."""
FEW: Final = 16
"""Fewer inputs of one length than this are padded into a batch with slightly longer ones."""


def reads_padding(model: Any, tokenizer: Any, typed: bool) -> bool:
    """Whether a classifier's logits change when its input is padded on the right, as `assemble` does.

    XLNet reads its answer off the last position, FNet mixes all positions and takes no mask. Their inputs must be
    computed in batches of one length.

    Args:
        model: The classifier, in float32 and evaluation mode.
        tokenizer: Its tokenizer.
        typed: Whether the model takes token types.
    """
    import torch

    ids = torch.tensor(tokenizer(["a"], ["a"])["input_ids"], device=model.device)
    pad = torch.full((1, 5), tokenizer.pad_token_id, device=model.device)
    alone, padded = {"input_ids": ids}, {"input_ids": torch.cat([ids, pad], dim=1)}
    if typed:
        alone["token_type_ids"] = torch.zeros_like(ids)
        padded["token_type_ids"] = torch.zeros_like(padded["input_ids"])
    padded["attention_mask"] = (torch.arange(padded["input_ids"].shape[1], device=model.device) < ids.shape[1]).long()[
        None
    ]
    with torch.inference_mode():
        own, other = model(**alone).logits, model(**padded).logits
    # Rounding in float32 stays far below this, and a random head's answers far above.
    return not torch.allclose(own, other, rtol=1e-3, atol=1e-4 * float(own.abs().max()))


class PairScorer:
    """A trained classifier, ready to score distinct pairs fast.

    Batches of equal length need no mask; the last layer computes the first token only.

    Args:
        model: The classifier (copied, not changed).
        accelerator: Devices and processes.
        precision: "fp32", "bf16" or "fp16".
        token_budget: Tokens per batch.
        typed: Whether the model takes token types.
        exact: Whether only inputs of one length may share a batch (see `reads_padding`).
    """

    def __init__(
        self, model: Any, accelerator: Any, precision: str, token_budget: int, typed: bool, exact: bool = False
    ) -> None:
        plain = copy.copy(model)
        plain.__dict__ = {key: value for key, value in model.__dict__.items() if key not in PREPARED}
        short = first_token_model(plain).to(accelerator.device, torch_dtype(precision)).eval()
        self.model = pack_linears(short)
        self.accelerator, self.token_budget, self.typed, self.exact = accelerator, token_budget, typed, exact

    def logits(self, encoded: EncodedPairs, query: IntArray, evidence: IntArray) -> FloatArray:
        """Logits [t, model labels] of pairs of distinct texts; every process returns all of them.

        Raises:
            ReaderError: No room for evidence, or memory runs out for a single pair.
        """
        lengths = input_lengths(encoded, query, evidence)
        batches = token_budget_batches(lengths, self.token_budget, exact_from=1 if self.exact else FEW)

        def forward(batch: IntArray) -> Any:
            rows = few_sizes(batch)
            inputs = model_inputs(encoded, query[rows], evidence[rows], self.accelerator.device, self.typed)
            return self.model(**inputs).logits[: len(batch)].float()

        width = int(self.model.config.num_labels)
        return score_batches(self.accelerator, batches, forward, len(query), width, "scoring")


def model_inputs(
    encoded: EncodedPairs, query: IntArray, evidence: IntArray, device: Any, typed: bool
) -> dict[str, Any]:
    """Tensors of an assembled batch, as a transformers model takes them."""
    import torch

    batch = assemble(encoded, query, evidence)
    tensors = {"input_ids": torch.from_numpy(batch.ids).to(device, non_blocking=True)}
    if typed:
        tensors["token_type_ids"] = torch.from_numpy(batch.types).to(device, non_blocking=True)
    if batch.mask is not None:
        tensors["attention_mask"] = torch.from_numpy(batch.mask).to(device, non_blocking=True)
    return tensors
