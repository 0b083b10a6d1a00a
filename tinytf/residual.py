"""The residual stream: what a sublayer reads from it, and how its output is added."""

from collections.abc import Callable

from torch import Tensor, nn

from tinytf.norm import LayerNorm

__all__ = ["PostNorm", "PreNorm"]


class PostNorm(nn.Module):
    """Add a sublayer to the residual stream and normalise the sum (the paper, sections 3.1, 5.4).

    `norm` makes the normalisation from the width; `functools.partial(PostNorm, norm=RMSNorm)` goes
    wherever a layer asks for a residual, and `norm=nn.Identity` leaves it out. `final_norm` makes
    what a stack of these ends in, from the width (a partial does not have it).
    """

    final_norm = nn.Identity

    def __init__(
        self, d_model: int, dropout: float = 0.1, norm: Callable[[int], nn.Module] = LayerNorm
    ) -> None:
        super().__init__()
        self.norm = norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Map (B, T, C) to (B, T, C)."""
        return self.norm(x + self.dropout(sublayer(x)))


class PreNorm(PostNorm):
    """Normalise what the sublayer reads and leave the stream alone (Xiong et al. 2020).

    The stream grows with depth, so a stack of these ends in a norm of its own.
    """

    final_norm = LayerNorm

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Map (B, T, C) to (B, T, C)."""
        return x + self.dropout(sublayer(self.norm(x)))


RESIDUALS = {"post": PostNorm, "pre": PreNorm}
