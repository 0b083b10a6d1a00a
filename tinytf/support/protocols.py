"""What training and decoding ask of a model, so that one of another make can take its place."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from tinytf.transformer import Memory

__all__ = ["LanguageModel", "SentenceTranslator", "Seq2Seq"]


class Seq2Seq(Protocol):
    """An encoder-decoder, as `tinytf.transformer.Transformer`.

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


class LanguageModel(Protocol):
    """A decoder-only model, as `tinytf.gpt.GPT` or `tinytf.llama.Llama`.

    `config` is a frozen dataclass with at least vocab_size, d_model and max_len;
    `decoder.new_cache()` gives what `decode` keeps between steps; `output` maps hidden states
    (..., C) to logits (..., V). It is an `nn.Module` as well, and called with ids (B, T) and a
    cache it gives logits (B, T, V).
    """

    config: Any
    decoder: Any
    output: torch.nn.Module
    device: torch.device

    def __call__(self, ids: Tensor, cache: list | None = None) -> Tensor:
        """Score the token after each prefix."""

    def decode(self, ids: Tensor, cache: list | None = None) -> Tensor:
        """Represent each prefix: ids (B, T) -> hidden states (B, T, C)."""


class SentenceTranslator(Protocol):
    """A model with its two vocabularies, as `tinytf.apps.translator.Translator`.

    `source` and `target` encode words to ids; `batch` translates sentences, best first.
    """

    model: Any
    source: Any
    target: Any

    def batch(self, sentences: Sequence[Any], beam: int | None = None) -> list[Any]:
        """Translate sentences; each result has `words`."""
