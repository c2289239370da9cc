"""Linear layers whose weights are laid out once for the CPU's matrix units, where torch lays them out at every call."""

from __future__ import annotations

from typing import Any, Final

SMALLEST: Final = 64
"""Layers with fewer outputs (the labels) stay as they are."""
ROWS: Final = 1024
"""Tokens per batch that the layout is chosen for; any other number works."""


def pack_linears(model: Any) -> Any:
    """Replace the linear layers of a finished CPU classifier in place, in fp32 or bf16; anything else stays as it is.

    torch offers this layout to compiled models only (Inductor's `mkldnn::_linear_pointwise`, no public interface), so
    each replaced layer is compared with its own on random input, and kept where the operation is missing or differs.

    Args:
        model: In evaluation mode, on its final device and in its final precision. It cannot be trained or saved
            afterwards.

    Returns:
        The same model.
    """
    import torch

    if not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return model
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is torch.nn.Linear and layer.out_features >= SMALLEST:
                setattr(parent, name, _packed(layer))
    return model


def _packed(layer: Any) -> Any:
    import torch

    weight = layer.weight.detach()
    if weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.bfloat16):
        return layer

    class PackedLinear(torch.nn.Module):  # type: ignore[misc]
        """The same product as `layer`."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
            self.bias = None if layer.bias is None else layer.bias.detach()

        def forward(self, inputs: Any) -> Any:
            return torch.ops.mkldnn._linear_pointwise(inputs, self.weight, self.bias, "none", [], "")

    probe = torch.randn(5, layer.in_features, generator=torch.Generator().manual_seed(0)).to(weight.dtype)
    with torch.inference_mode():
        expected = layer(probe)
        try:
            packed = PackedLinear()
            found = packed(probe)
        except RuntimeError:
            return layer
        # Sums in another order: a few units of the precision, relative to the largest of them.
        allowed = 8 * torch.finfo(weight.dtype).eps * float(expected.abs().max())
        return packed if float((found - expected).abs().max()) <= allowed else layer
