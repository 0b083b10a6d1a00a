"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3)."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["FeedForward", "gelu", "gelu_tanh"]


def gelu(x: Tensor) -> Tensor:
    """Weigh x by the share of a standard normal that lies below it: x Φ(x), entry by entry.

    Source: Hendrycks and Gimpel 2016, section 2. `F.gelu` computes the same in one kernel.
    """
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: Tensor) -> Tensor:
    """Approximate `gelu` by a tanh, as GPT-2 does; it is never more than 0.0005 off.

    Source: Hendrycks and Gimpel 2016, section 2. `F.gelu(x, approximate="tanh")` is the same.
    """
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


class FeedForward(nn.Module):
    """Widen each token to d_ff, apply the activation, come back: w_2 act(w_1 x)."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C), each position by itself; ValueError if C is not d_model."""
        if x.size(-1) != self.w_1.in_features:
            raise ValueError(f"x has width {x.size(-1)}, expected d_model={self.w_1.in_features}")
        return self.w_2(self.dropout(self.activation(self.w_1(x))))
