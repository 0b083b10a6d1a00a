"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3), and its gated form."""

import functools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["FeedForward", "SwiGLU", "gated_width", "gelu", "gelu_tanh"]


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


def gelu(x: Tensor) -> Tensor:
    """Multiply x by the share of a standard normal below it: x Φ(x), entry by entry.

    Source: Hendrycks and Gimpel 2016, section 2. `F.gelu` computes the same in one kernel.
    """
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: Tensor) -> Tensor:
    """Approximate `gelu` by a tanh, as GPT-2 does; it is never more than 0.0005 off.

    Source: Hendrycks and Gimpel 2016, section 2. `F.gelu(x, approximate="tanh")` is the same.
    """
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


class FeedForward(nn.Module):
    """Expand each token to d_ff features, apply the activation, project back: w_2 act(w_1 x).

    `d_model` and `activation` are kept as attributes. Dropout acts on the d_ff activations, in
    training mode alone.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = F.relu,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.w_1 = nn.Linear(d_model, d_ff, bias)
        self.w_2 = nn.Linear(d_ff, d_model, bias)
        self.dropout = nn.Dropout(dropout)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C), each position by itself.

        Raises ValueError if C is not d_model.
        """
        if x.size(-1) != self.d_model:
            raise ValueError(f"x has width {x.size(-1)}, expected d_model={self.d_model}")
        return self.w_2(self.dropout(self.activation(self.w_1(x))))


def gated_width(d_ff: int, multiple_of: int = 1) -> int:
    """Return the width at which three matrices cost what two of width d_ff do: 2/3 d_ff.

    Rounded up to a multiple of `multiple_of`, as Llama does to fit the hardware. Raises ValueError
    if either is below 1. Source: Shazeer 2020, section 2.
    """
    if d_ff < 1 or multiple_of < 1:
        raise ValueError(f"d_ff={d_ff} and multiple_of={multiple_of} must both be at least 1")
    return -(-2 * d_ff // (3 * multiple_of)) * multiple_of


class SwiGLU(nn.Module):
    """Multiply two projections of each token, one through silu: w_2 (silu(w_1 x) * w_3 x).

    Three matrices without biases, named as in Llama: w_1 the gate, w_3 what may pass, w_2
    the projection back. `d_model` is kept as an attribute. Dropout acts on the product of the two,
    in training mode alone. Source: Shazeer 2020, equation 6, where w_3 is V.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model = d_model
        self.w_1 = nn.Linear(d_model, d_ff, bias=False)
        self.w_3 = nn.Linear(d_model, d_ff, bias=False)
        self.w_2 = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C), each position by itself.

        Raises ValueError if C is not d_model.
        """
        if x.size(-1) != self.d_model:
            raise ValueError(f"x has width {x.size(-1)}, expected d_model={self.d_model}")
        return self.w_2(self.dropout(F.silu(self.w_1(x)) * self.w_3(x)))
