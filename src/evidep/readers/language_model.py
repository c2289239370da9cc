"""A causal language model in memory: the likelihoods of labels after prompts, and proof that it is causal."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from evidep.errors import ReaderError


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModel:
    """The model in memory, the ids that open every prompt, and the ids of each label's verbaliser."""

    model: Any
    tokenizer: Any
    accelerator: Any
    first: list[int]
    label_ids: list[list[int]]
    max_length: int

    def log_likelihoods(self, prompts: list[list[int]]) -> Any:
        """[B, C] on the model's device.

        A label of m tokens is read off one pass over prompt + its first m - 1 tokens; all labels of one token, and the
        first token of the others, off any pass. Padding on the right cannot reach earlier positions of a causal model.
        """
        import torch

        device = self.accelerator.device
        sizes = torch.tensor([len(prompt) for prompt in prompts], device=device)
        longer = [c for c, ids in enumerate(self.label_ids) if len(ids) > 1]
        found: list[Any] = [None] * len(self.label_ids)
        for c in longer or [0]:
            own = self.label_ids[c][:-1]
            width = int(sizes.max()) + len(own)
            inputs = torch.zeros((len(prompts), width), dtype=torch.long)
            mask = torch.zeros_like(inputs)
            for row, prompt in enumerate(prompts):
                inputs[row, : len(prompt) + len(own)] = torch.tensor([*prompt, *own])
                mask[row, : len(prompt) + len(own)] = 1
            keep = width - int(sizes.min()) + 1
            logits = self._logits(inputs.to(device), None if bool(mask.all()) else mask.to(device), keep)
            at = (sizes - 1 - (width - keep))[:, None] + torch.arange(len(own) + 1, device=device)
            chosen = logits.gather(1, at[..., None].expand(-1, -1, logits.shape[-1])).float().log_softmax(dim=-1)
            ids = torch.tensor(self.label_ids[c], device=device)
            found[c] = chosen.gather(2, ids[None, :, None].expand(len(prompts), -1, 1)).sum(dim=(1, 2))
            for other, label in enumerate(self.label_ids):
                if len(label) == 1 and found[other] is None:
                    found[other] = chosen[:, 0, label[0]]
        return torch.stack(found, dim=1)

    def _logits(self, inputs: Any, mask: Any, keep: int) -> Any:
        options: dict[str, Any] = {} if mask is None else {"attention_mask": mask}
        if "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            options["logits_to_keep"] = keep
        return self.model(input_ids=inputs, use_cache=False, **options).logits[:, -keep:]


def check_causal(model: Any, source: str) -> None:
    """Refuse a model whose prediction after a token depends on later tokens, as every encoder's does.

    Raises:
        ReaderError: Two inputs that differ in their last token alone get different logits before it.
    """
    import torch

    last = model.get_input_embeddings().num_embeddings - 1
    inputs = torch.arange(8).remainder(last).repeat(2, 1)
    inputs[1, -1] = last
    with torch.inference_mode():
        one, other = model(input_ids=inputs, use_cache=False).logits[:, :-1].float()
    if not torch.allclose(one, other, rtol=1e-3, atol=1e-3 * float(one.abs().max())):
        raise ReaderError(
            f"model: {source!r} as {type(model).__name__} looks at later tokens, so it is no causal language model; "
            "name a decoder, for example HuggingFaceTB/SmolLM2-135M"
        )
