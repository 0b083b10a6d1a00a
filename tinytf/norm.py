"""Layer normalisation (Ba et al. 2016): each token to mean 0 and variance 1 over its features."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["LayerNorm", "layer_norm"]


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalise the last axis of x (..., C), then scale and shift it by weight and bias (C,).

    The variance is the biased one (divided by C), and eps stands inside the root, as in
    `nn.LayerNorm`. Source: Ba et al. 2016, equation 4.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


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
