"""Llama: the decoder-only Transformer with today's block (Touvron et al. 2023, section 2.2)."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torch import Tensor, nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import EncoderLayer, padding_so_far
from tinytf.checks import check_sizes
from tinytf.embedding import check_ids
from tinytf.feedforward import SwiGLU
from tinytf.gpt import CausalStack, DecoderOnly
from tinytf.grouped_query import GroupedQueryAttention, check_groups
from tinytf.initialisation import normal, scale_residual
from tinytf.norm import RMSNorm
from tinytf.residual import PreNorm

__all__ = ["PRESETS", "Llama", "LlamaConfig", "LlamaLayer"]

# From the config.json files of the published weights; the papers' tables leave out d_ff.
PRESETS = {
    "llama-2-7b": {},
    "llama-2-70b": {"d_model": 8192, "num_heads": 64, "num_kv_heads": 8, "num_layers": 80,
                    "d_ff": 28672},
    "llama-3-8b": {"vocab_size": 128256, "num_kv_heads": 8, "d_ff": 14336, "max_len": 8192,
                   "base": 500000.0},
}  # fmt: skip


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes of a `Llama`; the defaults are those of the 7B Llama 2."""

    vocab_size: int = 32000
    d_model: int = 4096
    num_heads: int = 32
    num_kv_heads: int = 32  # fewer: groups of query heads share keys and values
    num_layers: int = 32
    d_ff: int = 11008  # 2/3 of 4 d_model, rounded up to a multiple of 256
    max_len: int = 4096  # longer input is refused, though nothing in the model has a length
    base: float = 10000.0  # of RoPE's frequencies
    eps: float = 1e-5  # of the norms
    tie_output: bool = False  # whether the output's matrix is the embedding table

    def __post_init__(self) -> None:
        check_sizes(self, "vocab_size", "d_model", "num_heads", "num_kv_heads", "num_layers",
                    "d_ff", "max_len")  # fmt: skip
        check_groups(self.d_model, self.num_heads, self.num_kv_heads)
        _check_above_zero(self, "base", "eps")

    @classmethod
    def preset(cls, name: str) -> Self:
        """Return the sizes of published weights, such as "llama-3-8b".

        Raises ValueError for another name.
        """
        if name not in PRESETS:
            raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
        return cls(**PRESETS[name])


class LlamaLayer(EncoderLayer):
    """An `EncoderLayer` with other parts: grouped-query attention, SwiGLU and RMSNorm.

    The forward pass is that of a Pre-LN `EncoderLayer`, without dropout. Norms have the config's
    `eps`.
    """

    def __init__(self, config: LlamaConfig) -> None:
        nn.Module.__init__(self)  # the encoder layer's own parts are not built
        c = config
        norm = functools.partial(RMSNorm, eps=c.eps)
        self.self_attention = GroupedQueryAttention(c.d_model, c.num_heads, c.num_kv_heads, c.base)
        self.feed_forward = SwiGLU(c.d_model, c.d_ff)
        self.residual_1 = PreNorm(c.d_model, 0.0, norm)
        self.residual_2 = PreNorm(c.d_model, 0.0, norm)


class Llama(DecoderOnly):
    """Llama's decoder-only Transformer: `GPT`'s stack with other layers and no position table.

    It is called as a `GPT` is. The parts are `embedding`, `decoder` (a `CausalStack` of
    `LlamaLayer`s that ends in an RMSNorm) and `output`; no linear layer has a bias. Weights are
    initialised as those of `GPT`: from N(0, 0.02²), and those that write to the residual stream are
    divided by √(2 L) for L layers. Source: Touvron et al. 2023, section 2.2; grouped queries:
    Touvron et al. 2023b, section 2.2.
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        c = self.config = config
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)  # not scaled by √d_model
        layers = [LlamaLayer(c) for _ in range(c.num_layers)]
        self.decoder = CausalStack(layers, RMSNorm(c.d_model, c.eps))
        self.output = nn.Linear(c.d_model, c.vocab_size, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        if c.tie_output:
            self.tie()
        normal(self, std=0.02)
        scale_residual(self, 2 * c.num_layers)

    def decode(
        self, ids: Tensor, cache: list[KeyValueCache] | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Represent each prefix: ids (B, T) -> hidden states (B, T, C), before the output.

        Padding counts as positions, too, since RoPE depends on distances only.
        """
        check_ids(ids, self.config.vocab_size)
        _check_length(ids, cache, self.config.max_len)
        padding = padding_so_far(mask, ids.size(1), cache[0] if cache else None)
        return self.decoder(self.embedding(ids), cache, padding)

    @classmethod  # service
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Read Llama weights in Hugging Face's format from a folder; see `pretrained.llama.load`.

        The model comes in float32, on the CPU, in evaluation mode.
        """
        from tinytf.pretrained import llama  # which builds on this file

        return llama.load(folder, cls)


def _check_above_zero(config: LlamaConfig, *names: str) -> None:
    for name in names:
        if not getattr(config, name) > 0:
            raise ValueError(f"{name} must be above 0, got {getattr(config, name)}")


def _check_length(ids: Tensor, cache: list[KeyValueCache] | None, max_len: int) -> None:
    end = (len(cache[0]) if cache else 0) + ids.size(1)
    if end > max_len:
        raise ValueError(f"sequence of length {end} is longer than max_len={max_len}")
