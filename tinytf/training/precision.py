"""What a training step computes in: its precision, and its attention in one kernel or in steps."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from tinytf.attention import explicit_attention, fused_attention
from tinytf.inspect import attention_layers, weights_of

__all__ = ["InFloat32", "attending", "autocast", "check_masters"]


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Compute in "float32" as it stands, or in "bfloat16" where torch finds that it is safe."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def check_masters(model: nn.Module, precision: str) -> None:
    """Refuse to train in bfloat16 what is stored in half precision: small steps would be lost.

    Raises ValueError naming a parameter and its dtype.
    """
    for name, parameter in model.named_parameters():
        if precision == "bfloat16" and parameter.requires_grad and parameter.element_size() < 4:
            raise ValueError(
                f"precision='bfloat16' computes in it and keeps the weights in float32, but {name} "
                f"is of {parameter.dtype}, in which small steps are lost: train model.float()"
            )


@contextmanager
def attending(model: nn.Module, kind: str, in_float32: bool = False) -> Iterator[None]:
    """Attend in one kernel ("fused") or step by step ("explicit") while the block runs.

    Layers with an attention of their own keep it. With `in_float32` attention stays in float32
    where the rest is in bfloat16: on a CPU its backward pass is fast in that alone.
    """
    before = {layer: layer.attention for layer in attention_layers(model).values()}
    for layer, attention in before.items():
        if kind == "explicit" and attention is fused_attention:
            attention = explicit_attention
        layer.attention = InFloat32(attention) if in_float32 else attention
    try:
        yield
    finally:
        for layer, attention in before.items():
            layer.attention = attention


class InFloat32:
    """An attention computed in float32; its weights are those of the attention inside."""

    def __init__(self, attention: Callable[..., Tensor]) -> None:
        self.attention = attention

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Tensor:
        """Compute it; the result is in float32."""
        with torch.autocast(q.device.type, enabled=False):
            return self.attention(q.float(), k.float(), v.float(), *rest)

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Give the weights of the attention inside, for `record` in a running training."""
        with torch.autocast(q.device.type, enabled=False):
            return weights_of(self.attention)(q.float(), k.float(), mask)
