"""Normalisation of each token over its own features: LayerNorm and RMSNorm.

Both come twice: the equation as a function, and a module with learned parameters that calls torch's
fused kernel. No token depends on another one, so neither batch nor padding can change the result.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["LayerNorm", "RMSNorm", "layer_norm", "rms_norm"]


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalise the last axis of x (..., C), then scale and shift it by weight and bias (C,).

    The variance is the biased one (divided by C), and eps is inside the root, as in
    `nn.LayerNorm`. Computed in the precision of x, so that in float16 a deviation above 256
    overflows when squared; `LayerNorm` sums in float32. Source: Ba et al. 2016, equation 4.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Divide the last axis of x (..., C) by its root mean square, then scale it by weight (C,).

    The mean stays in: on centred input this is `layer_norm` without bias. eps is added to the mean
    square, inside the root. Squares are taken at least in float32, since in float16 those of
    numbers above 256 overflow. Source: Zhang and Sennrich 2019, equation 4; eps as in Llama's code.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide / torch.sqrt(mean_square + eps)).to(x.dtype) * weight


class LayerNorm(nn.Module):
    """`layer_norm` with a learned gain and bias, computed by the fused kernel."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each vector of x (..., C). Raises ValueError if the width differs."""
        if x.size(-1) != self.weight.numel():
            raise ValueError(f"x has width {x.size(-1)}, the norm d_model={self.weight.numel()}")
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """`rms_norm` with a learned gain, computed by torch's `F.rms_norm`.

    It also squares float16 and bfloat16 in float32 (torch 2.13). Its default eps depends on the
    number format (1.2e-7 in float32), so it is always given ours.
    """

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each vector of x (..., C). Raises ValueError if the width differs."""
        if x.size(-1) != self.weight.numel():
            raise ValueError(f"x has width {x.size(-1)}, the norm d_model={self.weight.numel()}")
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
