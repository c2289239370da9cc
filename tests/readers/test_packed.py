"""Packed linear layers: the same products, and the plain layers wherever they cannot be had."""

from __future__ import annotations

import types

import pytest

torch = pytest.importorskip("torch")

from evidep.readers.first_token import first_token_model  # noqa: E402
from evidep.readers.packed import pack_linears  # noqa: E402


def network(dtype: object) -> object:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(96, 64), torch.nn.GELU(), torch.nn.Linear(64, 128, bias=False), torch.nn.Linear(128, 3)]
    return torch.nn.Sequential(*layers).to(dtype).eval()


def kinds(model: object) -> list[str]:
    return [type(layer).__name__ for layer in model.children()]


@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("rows", [1, 7, 2000])
def test_same_products(dtype, allowed, rows):
    plain, packed = network(dtype), pack_linears(network(dtype))
    inputs = torch.randn(rows, 4, 96).to(dtype)
    with torch.inference_mode():
        expected, found = plain(inputs), packed(inputs)
    assert found.dtype == dtype
    assert float(expected.float().std()) > 0.1  # the comparison is of something
    assert float((found - expected).abs().max()) <= allowed


@pytest.mark.skipif(
    not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")),
    reason="this torch has no packed layers",
)
def test_wide_layers_are_packed_and_the_label_layer_is_not():
    assert kinds(pack_linears(network(torch.float32))) == ["PackedLinear", "GELU", "PackedLinear", "Linear"]


def test_other_precisions_stay_plain():
    assert kinds(pack_linears(network(torch.float64))) == ["Linear", "GELU", "Linear", "Linear"]


@pytest.mark.parametrize("fault", ["missing", "fails", "wrong"])
def test_an_operation_that_is_missing_or_differs_leaves_the_plain_layer(monkeypatch, fault):
    real = torch.ops.mkldnn

    def broken(inputs, weight, bias, *rest):
        if fault == "fails":
            raise RuntimeError("not on this CPU")
        return real._linear_pointwise(inputs, weight, bias, *rest) * 1.01

    fake = types.SimpleNamespace(_reorder_linear_weight=real._reorder_linear_weight)
    if fault != "missing":
        fake._linear_pointwise = broken
    monkeypatch.setattr(torch.ops, "mkldnn", fake)
    assert kinds(pack_linears(network(torch.float32))) == ["Linear", "GELU", "Linear", "Linear"]


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_the_short_last_layer_is_packed_too(kind, monkeypatch):
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    if kind == "distilbert":
        sizes = {"dim": 64, "n_layers": 2, "n_heads": 2, "hidden_dim": 128}
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind, vocab_size=50, **sizes)).eval()
    ids = torch.arange(2, 12)[None]
    seen = []
    forward = torch.nn.Linear.forward

    def watched(layer, inputs):
        seen.append(layer.out_features)
        return forward(layer, inputs)

    with torch.inference_mode():
        expected = model(ids).logits
        packed = pack_linears(first_token_model(model))
        monkeypatch.setattr(torch.nn.Linear, "forward", watched)
        torch.testing.assert_close(packed(ids).logits, expected, rtol=1e-4, atol=1e-5)
    assert seen == [2]  # the labels alone
