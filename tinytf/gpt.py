"""GPT: a stack of causal layers that scores the next token (Radford et al. 2018 and 2019)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import Encoder, EncoderLayer, decoder_mask
from tinytf.checks import check_dropout, check_heads, check_one_of, check_sizes
from tinytf.embedding import TiedOutput, check_ids
from tinytf.feedforward import ACTIVATIONS
from tinytf.initialisation import normal, scale_residual
from tinytf.masks import CAUSAL
from tinytf.positional import LearnedPositionalEncoding
from tinytf.residual import RESIDUALS
from tinytf.service import so_far

__all__ = ["GPT", "PRESETS", "CausalStack", "DecoderOnly", "GPTConfig"]

# Radford et al. 2019, table 2. It counts 117M, 345M, 762M and 1542M parameters, wrongly, and two of
# these are still met as names. Right are 124,439,808, 354,823,168, 774,030,080 and 1,557,611,200.
# The names here are Hugging Face's.
PRESETS = {
    "gpt2": {"d_model": 768, "num_heads": 12, "num_layers": 12},
    "gpt2-medium": {"d_model": 1024, "num_heads": 16, "num_layers": 24},
    "gpt2-large": {"d_model": 1280, "num_heads": 20, "num_layers": 36},
    "gpt2-xl": {"d_model": 1600, "num_heads": 25, "num_layers": 48},
}


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a `GPT`; the defaults are those of the smallest GPT-2."""

    vocab_size: int = 50257  # 256 bytes, 50,000 merges and one special token
    d_model: int = 768
    num_heads: int = 12  # of width d_model / num_heads = 64 in every size
    num_layers: int = 12
    d_ff: int | None = None  # None: four times d_model
    max_len: int = 1024  # positions learned; longer input is refused
    dropout: float = 0.0  # on embeddings and sublayers' outputs; pays where text is met repeatedly
    norm: str = "pre"  # "post" as in GPT-1
    activation: str = "gelu_tanh"
    tie_output: bool = True  # the output's matrix is the embedding table

    def __post_init__(self) -> None:
        if self.d_ff is None:
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        check_sizes(self, "vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_len")
        check_heads(self.d_model, self.num_heads)
        check_dropout(self.dropout)
        check_one_of(self, norm=RESIDUALS, activation=ACTIVATIONS)

    @classmethod
    def preset(cls, name: str) -> Self:
        """Return one of the four published sizes by the name of its weights, such as "gpt2".

        Raises ValueError for another name. Source: Radford et al. 2019, table 2.
        """
        if name not in PRESETS:
            raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
        return cls(**PRESETS[name])


class CausalStack(Encoder):
    """An encoder in which no position sees a later one: the stack of a decoder-only model."""

    def forward(
        self,
        x: Tensor,
        cache: list[KeyValueCache] | None = None,  # service
        padding: Tensor | None = None,  # service
    ) -> Tensor:
        """Map (B, T, C) to (B, T, C).

        With a `cache`, x holds only the positions that are new; `padding` comes from
        `padding_so_far`.
        """
        mask = CAUSAL
        if padding is not None:  # service
            mask = decoder_mask(padding, x.size(1))
        return super().forward(x, mask, cache)

    def new_cache(self) -> list[KeyValueCache]:  # service
        """Return an empty cache, one entry a layer."""
        return [KeyValueCache() for _ in self.layers]


class DecoderOnly(TiedOutput):
    """How the parts of a decoder-only model call each other; a subclass determines the parts.

    They are `embedding`, `positions`, `decoder` (a `CausalStack`) and `output`; `config` holds
    vocab_size.
    """

    def forward(
        self,
        ids: Tensor,
        cache: list[KeyValueCache] | None = None,  # service
        mask: Tensor | None = None,  # service
    ) -> Tensor:
        """Score the token after each prefix: ids (B, T) -> logits (B, T, V).

        With a `cache` (from `decoder.new_cache()`), `ids` holds only the tokens that are new.
        `mask`, as `padding_mask` makes it for them, is False at padding: a row's positions count
        real tokens only, so that texts of different lengths can be read together. Raises
        ValueError for an empty batch, ids outside the vocabulary, a mask of another shape, and
        sequences longer than max_len; TypeError for ids that are not integers.
        """
        return self.output(self.decode(ids, cache, mask))

    def decode(
        self,
        ids: Tensor,
        cache: list[KeyValueCache] | None = None,  # service
        mask: Tensor | None = None,  # service
    ) -> Tensor:
        """Represent each prefix: ids (B, T) -> hidden states (B, T, C), before the output."""
        check_ids(ids, self.config.vocab_size)
        start, positions, padding = so_far(ids, cache, mask)  # service
        x = self.positions(self.embedding(ids), start, positions)
        return self.decoder(x, cache, padding)

    @property
    def table(self) -> nn.Parameter:
        """The embedding table, which the output may share."""
        return self.embedding.weight

    @property  # service
    def device(self) -> torch.device:
        """The device the parameters are on."""
        return self.table.device


class GPT(DecoderOnly):
    """A decoder-only Transformer like GPT-2: pre-norm, learned positions, tanh-GELU, tied.

    Weights are initialised from N(0, 0.02²); those that write to the residual stream are divided by
    √(2 L) for L layers. OpenAI's released code draws positions from N(0, 0.01²) and does not scale;
    Hugging Face's does as we do. Source: Radford et al. 2018, section 4.1, and 2019, section 2.3.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        c = self.config = config
        residual = RESIDUALS[c.norm]
        sizes = (c.d_model, c.num_heads, c.d_ff, c.dropout, residual, ACTIVATIONS[c.activation])
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)  # not scaled by √d_model
        self.positions = LearnedPositionalEncoding(c.d_model, c.max_len, c.dropout)
        self.decoder = CausalStack(
            [EncoderLayer(*sizes) for _ in range(c.num_layers)], residual.final_norm(c.d_model)
        )
        self.output = nn.Linear(c.d_model, c.vocab_size, bias=False)
        if c.tie_output:
            self.tie()  # the embedding is drawn below, too: it is the output's matrix
        else:
            nn.init.normal_(self.embedding.weight, std=0.02)
        normal(self, std=0.02)
        scale_residual(self, 2 * c.num_layers)

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Self:
        """Read GPT-2 weights in Hugging Face's format: a folder, or a public name such as "gpt2".

        The model comes in float32, on the CPU, in evaluation mode. See `pretrained.gpt2.load`.
        """
        from tinytf.pretrained import gpt2  # which builds on this file

        return gpt2.load(source, cls)
