"""Positions: what tells attention the order of the tokens (Vaswani et al. 2017, section 3.5)."""

import torch
from torch import Tensor, nn

__all__ = ["LearnedPositionalEncoding", "PositionalEncoding", "sinusoidal_encoding"]


def sinusoidal_encoding(max_len: int, d_model: int) -> Tensor:
    """Tabulate sines and cosines of falling frequency: (max_len, d_model), values in [-1, 1].

    PE[pos, 2i] = sin(pos / 10000^(2i/d_model)) and PE[pos, 2i+1] = cos of the same angle, in
    radians. An odd d_model ends with a sine. Source: Vaswani et al. 2017, section 3.5.
    """
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    frequency = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency  # (max_len, ceil(C / 2))
    table = torch.empty(max_len, d_model, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table.to(torch.get_default_dtype())


class PositionalEncoding(nn.Module):
    """Add the sinusoid of each position to its token, then drop out (section 5.4)."""

    def __init__(self, d_model: int, max_len: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Encode x (B, T, C), whose first token is at position `start`.

        There is no row for a position from max_len on: ValueError if start + T passes it.
        """
        max_len, end = self.table.size(0), start + x.size(1)
        if end > max_len:
            raise ValueError(f"sequence of length {end} is longer than max_len={max_len}")
        return self.dropout(x + self.table[start:end])


class LearnedPositionalEncoding(nn.Module):
    """Add a learned vector to each token, one per position, then drop out.

    The parameter `table` (max_len, d_model) is drawn from N(0, 0.02²). Source: Radford et al. 2018
    (GPT); the initialisation is Hugging Face's (GPT-2's released code draws positions
    from N(0, 0.01²)); Vaswani et al. 2017, section 3.5, compares the two.
    """

    def __init__(self, d_model: int, max_len: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.table = nn.Parameter(torch.empty(max_len, d_model).normal_(std=0.02))

    def forward(self, x: Tensor, start: int = 0, positions: Tensor | None = None) -> Tensor:
        """Encode x (B, T, C), whose first token is at position `start`.

        `positions` (B, T) gives each token its own instead, where rows begin with padding. There
        is no row for a position from max_len on: ValueError if start + T passes it.
        """
        max_len, end = self.table.size(0), start + x.size(1)
        if end > max_len:
            raise ValueError(f"sequence of length {end} is longer than max_len={max_len}")
        rows = self.table[start:end] if positions is None else self.table[positions]
        return self.dropout(x + rows)
