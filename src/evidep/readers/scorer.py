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


class PairScorer:
    """A trained classifier, ready to score distinct pairs fast.

    Batches of equal length need no mask; the last layer computes the first token only.

    Args:
        model: The classifier (copied, not changed).
        accelerator: Devices and processes.
        precision: "fp32", "bf16" or "fp16".
        token_budget: Tokens per batch.
        typed: Whether the model takes token types.
    """

    def __init__(self, model: Any, accelerator: Any, precision: str, token_budget: int, typed: bool) -> None:
        plain = copy.copy(model)
        plain.__dict__ = {key: value for key, value in model.__dict__.items() if key not in PREPARED}
        short = first_token_model(plain).to(accelerator.device, torch_dtype(precision)).eval()
        self.model = pack_linears(short)
        self.accelerator, self.token_budget, self.typed = accelerator, token_budget, typed

    def logits(self, encoded: EncodedPairs, query: IntArray, evidence: IntArray) -> FloatArray:
        """Logits [t, model labels] of pairs of distinct texts; every process returns all of them.

        Raises:
            ReaderError: No room for evidence, or memory runs out for a single pair.
        """
        batches = token_budget_batches(input_lengths(encoded, query, evidence), self.token_budget)

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
