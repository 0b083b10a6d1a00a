"""The readers that `tinytf_course.studies.memory` compares: recurrent, convolution, attention."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention
from tinytf.blocks import Encoder, EncoderLayer, PreNorm
from tinytf.norm import LayerNorm
from tinytf.positional import sinusoidal_encoding

__all__ = [
    "Attention",
    "Classifier",
    "Convolution",
    "RelativeAttention",
    "SmallEncoder",
    "largest",
    "last",
    "recurrent",
]

Pool = Callable[[Tensor], Tensor]  # (B, T, C) -> (B, C)
POSITIONS = ("sinusoidal", "learned", "relative")


def recurrent(kind: str, width: int, forget_bias: float = 0.0) -> nn.Module:
    """Build torch's fused RNN, LSTM or GRU; `forget_bias` is added to an LSTM's forget gate."""
    reader = getattr(nn, kind)(width, width, batch_first=True)
    if forget_bias:
        with torch.no_grad():
            reader.bias_ih_l0[width : 2 * width] += forget_bias
    return reader


class Attention(nn.Module):
    """One attention layer of one head over words and their positions, added to the words."""

    def __init__(self, width: int, max_len: int = 512) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(width, 1)
        self.register_buffer("positions", sinusoidal_encoding(max_len, width), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, T, C) to (B, T, C)."""
        x = x + self.positions[: x.size(1)]
        return x + self.attention(x)


class Convolution(nn.Module):
    """One convolution over three neighbours, then ReLU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, T, C) to (B, T, C)."""
        return F.relu(self.convolution(x.mT)).mT


class RelativeAttention(nn.Module):
    """Attention whose scores get a learned number for each head and offset, at first 0.

    Source: Raffel et al. 2020, section 2.1, here with a number for every offset.
    """

    def __init__(self, num_heads: int, longest: int) -> None:
        super().__init__()
        self.longest = longest
        self.offsets = nn.Parameter(torch.zeros(num_heads, 2 * longest - 1))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: None, dropout: float) -> Tensor:
        """Map q, k, v (B, H, T, D) to (B, H, T, D); ValueError if T is above `longest`."""
        if q.size(-2) > self.longest:
            raise ValueError(f"{q.size(-2)} words, but there are offsets for {self.longest}")
        steps = torch.arange(q.size(-2), device=q.device)
        bias = self.offsets[:, steps - steps[:, None] + self.longest - 1]  # (H, T, T)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None])


class SmallEncoder(nn.Module):
    """A pre-norm Transformer encoder of two heads a layer.

    `positions`: "sinusoidal" or "learned" vectors are added to the words; "relative" adds nothing
    to them and puts `RelativeAttention` into every layer. Raises ValueError for anything else.
    """

    def __init__(
        self, width: int, longest: int, positions: str = "sinusoidal", layers: int = 2
    ) -> None:
        if positions not in POSITIONS:
            raise ValueError(f"positions={positions!r} is not one of {POSITIONS}")
        super().__init__()
        stack = [EncoderLayer(width, 2, 4 * width, 0.0, PreNorm) for _ in range(layers)]
        self.encoder = Encoder(stack, LayerNorm(width))
        self.register_buffer("table", sinusoidal_encoding(longest, width), persistent=False)
        if positions == "learned":
            self.table = nn.Parameter(0.02 * torch.randn(longest, width))
        if positions == "relative":
            self.table.zero_()
            for layer in stack:
                layer.self_attention.attention = RelativeAttention(2, longest)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, T, C), T at most `longest`, to (B, T, C)."""
        return self.encoder(x + self.table[: x.size(1)])


class Classifier(nn.Module):
    """Embed ids, read them, take one vector from what was read, and score the classes."""

    def __init__(
        self, symbols: int, classes: int, width: int, reader: nn.Module, pool: Pool
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.reader, self.pool = reader, pool
        self.output = nn.Linear(width, classes)

    def forward(self, ids: Tensor) -> Tensor:
        """Score ids (B, T): logits (B, classes)."""
        read = self.reader(self.embedding(ids))  # (B, T) -> (B, T, C)
        read = read[0] if isinstance(read, tuple) else read  # torch's RNNs return a state as well
        return self.output(self.pool(read))


def last(x: Tensor) -> Tensor:
    """Pool (B, T, C) to (B, C): what stands at the end."""
    return x[:, -1]


def largest(x: Tensor) -> Tensor:
    """Pool (B, T, C) to (B, C): the largest of each feature, wherever it stands."""
    return x.amax(dim=1)
