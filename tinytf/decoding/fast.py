"""Decoding with little overhead: weights laid out once, keys and values written in place.

A small model's token takes less time to compute than to ask for: module calls, joined weights and
growing caches cost more than the arithmetic. A large one's takes the time to read its weights.
`fast_decoder` gives a model with the same outputs that asks for less and reads faster; the tests
hold it equal to the plain one.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.blocks import LayerCache
from tinytf.checks import values_can_be_read
from tinytf.decoding.fast_parts import LayOut
from tinytf.decoding.fast_stack import FastDecoder, FastStack, check_part
from tinytf.decoding.maps import BFloat16, Columns, Half, Int8
from tinytf.embedding import TiedOutput, TokenEmbedding
from tinytf.gpt import GPT
from tinytf.llama import Llama
from tinytf.positional import PositionalEncoding
from tinytf.transformer import Memory, Transformer

__all__ = ["FastGPT", "FastLlama", "FastOutput", "FastTransformer", "fast_decoder", "weight_bytes"]

WEIGHTS = {None: Columns, "bfloat16": BFloat16, "float16": Half, "int8": Int8}


def fast_decoder(
    model: GPT | Llama | Transformer, weights: str | None = None
) -> "FastGPT | FastLlama | FastTransformer":
    """Return a copy of a model for decoding, which computes new tokens faster.

    It is used as the model itself: `generate(fast_decoder(gpt), ...)`, `greedy` or `beam_search` of
    `fast_decoder(transformer)`, and comes in evaluation mode. It has its own copy of every matrix,
    those of the decoder laid out for few tokens at a time, and shares embeddings, so make it anew
    when the model has learned, moved or changed its precision. Both together take
    twice the memory of the weights; let go of the model if you only decode.

    `weights` says in what that copy is kept. "float16" and "bfloat16" take half the bytes, "int8" a
    quarter with a scale per input (`Int8` says how), and where matrices are large, a CPU takes less
    time to read them. Logits are then near the model's, not equal. They need a model in float32,
    the first and the last on the CPU, and raise as `Half`, `BFloat16` and `Int8` do.

    There is nothing in it to look into or to train: `record` refuses it. Raises ValueError for
    other `weights`, a model that is fast already, one of another kind, and one of which a part is
    not as its class makes it: another attention, norm or kind of linear map, or one with hooks.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights={weights!r} is not one of {tuple(WEIGHTS)}")
    if isinstance(model, _Twin):
        raise ValueError("the model is fast already: give the one it was made from")
    for kind, fast in FAST.items():
        if isinstance(model, kind):
            return fast(model, WEIGHTS[weights]).eval()
    name = type(model).__name__
    raise ValueError(f"fast decoding is for a GPT, a Llama or a Transformer, and this is a {name}")


def weight_bytes(twin: "FastGPT | FastLlama | FastTransformer") -> int:
    """Give the bytes of the matrices that a fast model reads for one token."""
    return twin.decoder.nbytes + twin.output.map.nbytes


class FastOutput(nn.Module):
    """The map to logits, by a matrix laid out for few positions."""

    @torch.no_grad()
    def __init__(self, output: nn.Linear, lay_out: LayOut = Columns) -> None:
        super().__init__()
        check_part("output", output)
        self.weight = output.weight  # which may be the embedding's
        self.map = lay_out(output.weight, output.bias)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Map (..., C) to (..., V)."""
        return self.map(x.reshape(-1, x.size(-1))).view(*x.shape[:-1], -1)


class _Twin(nn.Module):
    """What `fast_decoder` makes of a model: it shares its embeddings, and has copies of the rest.

    Of the model's class it has what that computes, not how its weights are drawn.
    """

    stack: type = FastStack

    def __init__(self, model: GPT | Llama | Transformer, lay_out: LayOut = Columns) -> None:
        TiedOutput.__init__(self)
        self.config = model.config
        for name, part in model._modules.items():  # two may be one
            if name == "decoder":
                part = self.stack(part, model.config.max_len, lay_out)
            elif name == "output":
                part = FastOutput(part, lay_out)
            else:
                part = copy.copy(part) if "embedding" in name else copy.deepcopy(part)
            self.add_module(name, part)


class FastGPT(_Twin, GPT):
    """What `fast_decoder` makes of a GPT: its layers and output are laid out for decoding."""


class FastLlama(_Twin, Llama):
    """What `fast_decoder` makes of a Llama; a table of turns takes the place of RoPE's angles."""


class FastTransformer(_Twin, Transformer):
    """What `fast_decoder` makes of a `Transformer`: its encoder, and a decoder that asks for less.

    The encoder runs once a sentence, and is a copy of the model's.
    """

    stack = FastDecoder

    def decode(self, tgt: Tensor, memory: Memory, cache: list[LayerCache] | None = None) -> Tensor:
        """Do as `Transformer.decode`; one new word a row, and none of them <pad>, takes a shortcut.

        What is refused there is refused here: anything unusual goes that way.
        """
        if cache is None or not self._is_a_step(tgt, memory, cache[0]):
            return super().decode(tgt, memory, cache)
        start, embedding = len(cache[0].self_attention), self.tgt_embedding
        x = F.embedding(tgt, embedding.weight)  # (B, 1) -> (B, 1, C)
        x = torch.add(self.positions.table[start], x, alpha=embedding.scale)
        return self.decoder(x, memory.states, None, memory.mask, cache)

    def _is_a_step(self, tgt: Tensor, memory: Memory, cache: LayerCache) -> bool:
        """Say whether ids are one known word a row, after others that were no padding either.

        One look at the ids serves all that `check_ids`, masks and positions look at them for.
        """
        own, parts = cache.self_attention, (self.tgt_embedding, self.positions)
        if (
            tgt.shape != (len(memory.states), 1)
            or tgt.is_floating_point()
            or own.padding is not None
            or not 0 < len(own) < self.config.max_len
            or self.training
            or not values_can_be_read()
            or tuple(map(type, parts)) != (TokenEmbedding, PositionalEncoding)
            or any(part._forward_hooks or part._forward_pre_hooks for part in parts)
        ):
            return False
        words = tgt.flatten().tolist()
        pad_id, size = self.config.pad_id, self.config.tgt_vocab_size
        return pad_id not in words and min(words) >= 0 and max(words) < size


FAST = {GPT: FastGPT, Llama: FastLlama, Transformer: FastTransformer}
