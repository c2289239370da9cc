"""A classifier that reads the first token alone needs no other token's last layer: a sixth less work for six layers."""

from __future__ import annotations

import copy
from typing import Any

BERT_LIKE = ("bert", "electra", "roberta", "xlm-roberta")


def first_token_model(model: Any) -> Any:
    """A copy of a sequence classifier whose last layer computes only the first token, where that is the whole output.

    Known for BERT-, ELECTRA-, RoBERTa- and DistilBERT-like classifiers. Its logits are compared with the model's own
    on random ids; where they differ, or for any other architecture, the copy is the plain model.
    """
    import torch

    plain = copy.deepcopy(model).eval()
    kind = plain.config.model_type
    if kind in BERT_LIKE and not plain.config.is_decoder:
        stack = "encoder"
    elif kind == "distilbert":
        stack = "transformer"
    else:
        return plain
    short = copy.deepcopy(plain)
    layers = getattr(getattr(short, short.base_model_prefix), stack).layer
    layers[-1] = _last_layer(layers[-1], plain.config, kind)
    ids = torch.randint(0, plain.config.vocab_size, (3, 7), generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(7) < torch.tensor([[7], [5], [4]])).long()
    device = next(plain.parameters()).device
    with torch.inference_mode():
        for inputs in ({"input_ids": ids.to(device)}, {"input_ids": ids.to(device), "attention_mask": mask.to(device)}):
            if not torch.allclose(plain(**inputs).logits, short(**inputs).logits, rtol=1e-3, atol=1e-4):
                return plain
    return short


def _last_layer(layer: Any, config: Any, kind: str) -> Any:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    if kind == "distilbert":
        own, names, heads = layer.attention, ("q_lin", "k_lin", "v_lin"), config.n_heads
    else:
        own, names, heads = layer.attention.self, ("query", "key", "value"), config.num_attention_heads

    class FirstToken(torch.nn.Module):  # type: ignore[misc]
        """The same weights as `layer`, applied to the first token as the only query."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, hidden_states: Any, attention_mask: Any = None, *_: Any, **__: Any) -> Any:
            size, length, _width = hidden_states.shape
            first = hidden_states[:, :1]
            query, key, value = (getattr(own, name) for name in names)  # now: they may have been replaced since

            def split(projected: Any, tokens: int) -> Any:
                return projected.view(size, tokens, heads, -1).transpose(1, 2)

            seen = scaled_dot_product_attention(
                split(query(first), 1),
                split(key(hidden_states), length),
                split(value(hidden_states), length),
                attn_mask=None if attention_mask is None else attention_mask[:, :, :1],
            )
            seen = seen.transpose(1, 2).reshape(size, 1, -1)
            if kind == "distilbert":
                attended = layer.sa_layer_norm(own.out_lin(seen) + first)
                return layer.output_layer_norm(layer.ffn(attended) + attended)
            attended = layer.attention.output(seen, first)
            return layer.output(layer.intermediate(attended), attended)

    return FirstToken()
