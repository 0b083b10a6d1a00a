"""Marian's Transformer: the paper's post-norm model with four small choices of its own.

It is the model of the public OPUS-MT translators. Of ours it differs in its positions, which keep
all sines before all cosines, in a bias per word on the scores, in swish for ReLU, and in starting a
translation from <pad>. Source: Junczys-Dowmunt et al. 2018, *Marian: Fast Neural Machine
Translation in C++*; Tiedemann and Thottingal 2020, *OPUS-MT*; as Hugging Face carries it on.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tinytf.initialisation import WRITERS
from tinytf.positional import sinusoidal_encoding
from tinytf.transformer import Transformer, TransformerConfig

__all__ = ["Marian", "MarianConfig", "half_and_half", "halves", "reorder_stream"]


@dataclass(frozen=True)
class MarianConfig(TransformerConfig):
    """The sizes of a `Marian`, whose vocabulary is theirs in another order.

    Our ids 0, 1 and 2 are <pad>, the start and <eos>, as everywhere in tinytf; the others follow as
    they stood. Theirs has no start: its decoder begins with <pad>, which must then not be masked.
    So the start is a copy of <pad>, and our vocabulary is larger by 1.
    """

    activation: str = "silu"  # swish is another name of it
    share_embeddings: bool = True
    their_pad_id: int | None = None  # None: the last of theirs
    their_eos_id: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        size = self.src_vocab_size - 1
        if self.their_pad_id is None:
            object.__setattr__(self, "their_pad_id", size - 1)
        for name in ("their_pad_id", "their_eos_id"):
            if not 0 <= getattr(self, name) < size:
                raise ValueError(f"{name}={getattr(self, name)} is outside theirs, 0..{size - 1}")
        if self.their_pad_id == self.their_eos_id:
            raise ValueError(f"<pad> and <eos> must differ, both are {self.their_pad_id}")
        fixed = {"norm": "post", "share_embeddings": True, "tie_output": True, "pad_id": 0}
        for name, value in fixed.items():
            if getattr(self, name) != value:
                raise ValueError(f"a Marian has {name}={value!r}, got {getattr(self, name)!r}")

    @property
    def order(self) -> Tensor:
        """Their id of each of our words: (V,), their <pad> twice."""
        first = [self.their_pad_id, self.their_pad_id, self.their_eos_id]
        return torch.tensor(
            [*first, *(i for i in range(self.src_vocab_size - 1) if i not in first)]
        )

    @property
    def places(self) -> Tensor:
        """Our id of each of their words, (V - 1,): the other way round, with 0 for <pad>."""
        ours = torch.arange(self.src_vocab_size)
        ours = ours[ours != 1]
        return ours[self.order[ours].argsort()]


class Marian(Transformer):
    """A `Transformer` with Marian's positions and a learned bias per word of the output."""

    def __init__(self, config: MarianConfig) -> None:
        super().__init__(config)
        self.positions.table = self.position_table()
        self.output = nn.Linear(config.d_model, config.tgt_vocab_size)
        nn.init.zeros_(self.output.bias)
        self.tie()

    def position_table(self) -> Tensor:
        """Tabulate the positions as Marian orders them, (max_len, C)."""
        return half_and_half(self.config.max_len, self.config.d_model)


def halves(d_model: int) -> Tensor:
    """Return the even places of 0..d_model-1, then the odd ones: a tensor of integers."""
    places = torch.arange(d_model)
    return torch.cat([places[0::2], places[1::2]])


def half_and_half(max_len: int, d_model: int) -> Tensor:
    """Tabulate sinusoids with all sines in the first half, all cosines in the second.

    The numbers are those of `sinusoidal_encoding`, whose columns 2i and 2i+1 are now d_model/2
    apart. Returns (max_len, d_model).
    """
    return sinusoidal_encoding(max_len, d_model)[:, halves(d_model)]


@torch.no_grad()
def reorder_stream(model: Transformer, order: Tensor) -> None:
    """Put feature order[j] of the residual stream in place j, in all that reads or writes it.

    Embeddings, norms and linear maps change in place, and so does the table of positions; the heads
    and the inside of the feed-forward network stay as they are. What the model computes stays the
    same, its states in another order. Raises ValueError if `order` is no permutation of
    0..d_model-1.
    """
    width = model.config.d_model
    if order.sort().values.tolist() != list(range(width)):
        raise ValueError(f"order must hold each of 0..{width - 1} once, got {order.tolist()}")
    order = order.to(model.device)
    model.positions.table = model.positions.table[:, order]
    for name, parameter in model.named_parameters():
        module = name.split(".")[-2]
        if parameter.dim() == 2 and module not in WRITERS:
            parameter.copy_(parameter[:, order])  # embeddings, and maps that read the stream
        elif module in WRITERS or "norm" in module:
            parameter.copy_(parameter[order])
