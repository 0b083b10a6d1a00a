"""Marian's Transformer: the paper's post-norm model with four small choices of its own.

It is the model of the public OPUS-MT translators. It differs from ours in its positional encoding,
which has all sines before all cosines, in a bias for each word's logit, in swish for ReLU, and in
starting a translation from <pad>. Source: Junczys-Dowmunt et al. 2018, *Marian: Fast Neural Machine
Translation in C++*; Tiedemann and Thottingal 2020, *OPUS-MT*; as implemented by Hugging Face.
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
    """The sizes of a `Marian`, whose vocabulary is in another order here than in Marian itself.

    Our ids 0, 1 and 2 are <pad>, the start and <eos>, as everywhere in tinytf; the others follow in
    Marian's order. Marian has no start: its decoder begins with <pad>, which must not be masked
    there. So our start is a copy of <pad>, and our vocabulary is larger by 1.
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
        """Marian's id of each of our words: (V,), with its <pad> twice."""
        first = [self.their_pad_id, self.their_pad_id, self.their_eos_id]
        return torch.tensor(
            [*first, *(i for i in range(self.src_vocab_size - 1) if i not in first)]
        )

    @property
    def places(self) -> Tensor:
        """Our id of each of Marian's words, (V - 1,): the inverse of `order`, with 0 for <pad>."""
        ours = torch.arange(self.src_vocab_size)
        ours = ours[ours != 1]
        return ours[self.order[ours].argsort()]


class Marian(Transformer):
    """A `Transformer` with Marian's positional table and an output projection with a bias.

    The bias is initialised to 0, and `tie` makes the new projection share the embedding's matrix.
    """

    def __init__(self, config: MarianConfig) -> None:
        super().__init__(config)
        self.positions.table = self.position_table()
        self.output = nn.Linear(config.d_model, config.tgt_vocab_size)
        nn.init.zeros_(self.output.bias)
        self.tie()

    def position_table(self) -> Tensor:
        """Return the positional encodings in Marian's order, (max_len, C)."""
        return half_and_half(self.config.max_len, self.config.d_model)


def halves(d_model: int) -> Tensor:
    """Return the even numbers of 0..d_model-1, then the odd ones: a tensor of integers."""
    places = torch.arange(d_model)
    return torch.cat([places[0::2], places[1::2]])


def half_and_half(max_len: int, d_model: int) -> Tensor:
    """Return sinusoidal encodings with all sines in the first half and all cosines in the second.

    The columns are those of `sinusoidal_encoding(max_len, d_model)`, in the order of
    `halves(d_model)`. Returns (max_len, d_model).
    """
    return sinusoidal_encoding(max_len, d_model)[:, halves(d_model)]


@torch.no_grad()
def reorder_stream(model: Transformer, order: Tensor) -> None:
    """Move feature order[j] of the residual stream to position j, in all parts of the model.

    The parameters change in place, each tied matrix once, and so does the buffer
    `model.positions.table`; the heads and the hidden units of the feed-forward network keep their
    order. `WRITERS` names the layers that write to the stream, and the parts with "norm" in their
    names have a gain and a bias for each feature. The model computes the same as before, with its
    states in another order. Raises ValueError if `order` is not a permutation of 0..d_model-1.
    """
    width = model.config.d_model
    if order.sort().values.tolist() != list(range(width)):
        raise ValueError(f"order must hold each of 0..{width - 1} once, got {order.tolist()}")
    order = order.to(model.device)
    model.positions.table = model.positions.table[:, order]
    for name, parameter in model.named_parameters():
        module = name.split(".")[-2]
        if parameter.dim() == 2 and module not in WRITERS:
            parameter.copy_(parameter[:, order])  # embeddings, and layers that read the stream
        elif module in WRITERS or "norm" in module:
            parameter.copy_(parameter[order])
