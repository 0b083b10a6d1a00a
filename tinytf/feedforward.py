"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3)."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["FeedForward"]


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
