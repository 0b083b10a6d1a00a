"""What training and decoding ask of a model; the Transformer and the recurrent models have it."""

from typing import Any, Protocol

import torch
from torch import Tensor

from tinytf.seq2seq import Memory

__all__ = ["Seq2Seq"]


class Seq2Seq(Protocol):
    """An encoder-decoder, as `tinytf.seq2seq.Transformer`.

    `config` is a frozen dataclass with at least src_vocab_size, tgt_vocab_size, d_model, max_len
    and pad_id; `decoder.new_cache()` gives what `decode` keeps between steps; `output` maps hidden
    states (..., C) to logits (..., V). It is an `nn.Module` as well.
    """

    config: Any
    decoder: Any
    output: torch.nn.Module
    device: torch.device

    def encode(self, src: Tensor) -> Memory:
        """Read source ids (B, S) once."""

    def decode(self, tgt: Tensor, memory: Memory, cache: list | None = None) -> Tensor:
        """Represent each target prefix: ids (B, T) -> hidden states (B, T, C)."""
