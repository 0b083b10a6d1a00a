"""Decoding with little overhead: weights laid out once, keys and values written in place.

A small model's token takes less time to compute than to ask for: module calls, joined weights and
growing caches cost more than the arithmetic. A large one's takes the time to read its weights.
`fast_decoder` gives a model with the same outputs that asks for less and reads faster; the tests
hold it equal to the plain one.
"""

import copy
from collections.abc import Callable

from tinytf.decoding.fast_checks import check_linear
from tinytf.decoding.fast_parts import FastOutput
from tinytf.decoding.fast_stack import FastStack
from tinytf.decoding.fast_transformer import FastTransformer
from tinytf.decoding.matvec import Columns, Half, Map
from tinytf.decoding.quantized import BFloat16, Int8
from tinytf.embedding import TiedOutput
from tinytf.gpt import GPT
from tinytf.llama import Llama
from tinytf.transformer import Transformer

__all__ = ["FastGPT", "FastLlama", "fast_decoder", "weight_bytes"]

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
    quarter with a scale per input (`Int8` says how), and for few texts at a time a CPU takes about
    as much less time to read them. Logits are then near the model's, not equal. They need a model
    in float32, the first and the last on the CPU, and raise as `Half`, `BFloat16` and `Int8` do.

    There is nothing in it to look into or to train: `record` refuses it. Raises ValueError for
    other `weights`, a model that is fast already, one of another kind, and one of which a part is
    not as these have it: another attention, norm or kind of linear map, or one with hooks.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights={weights!r} is not one of {tuple(WEIGHTS)}")
    if isinstance(model, tuple(FAST.values())):
        raise ValueError("the model is fast already: give the one it was made from")
    for kind, fast in FAST.items():
        if isinstance(model, kind):
            return fast(model, WEIGHTS[weights]).eval()
    name = type(model).__name__
    raise ValueError(f"fast decoding is for a GPT, a Llama or a Transformer, and this is a {name}")


def weight_bytes(twin: "FastGPT | FastLlama | FastTransformer") -> int:
    """Give the bytes of the matrices that a fast model reads for one token."""
    maps = [part for layer in twin.decoder.weights for part in layer]
    return sum(m.nbytes for m in [*maps, twin.output.map] if hasattr(m, "nbytes"))


class FastGPT(GPT):
    """What `fast_decoder` makes of a GPT: its layers and output are laid out for decoding."""

    def __init__(self, model: GPT, lay_out: Callable[..., Map] = Columns) -> None:
        TiedOutput.__init__(self)  # of a GPT what it computes, not how its weights are drawn
        _share(self, model, lay_out)
        self.positions = copy.deepcopy(model.positions)


class FastLlama(Llama):
    """What `fast_decoder` makes of a Llama; a table of turns takes the place of RoPE's angles."""

    def __init__(self, model: Llama, lay_out: Callable[..., Map] = Columns) -> None:
        TiedOutput.__init__(self)
        _share(self, model, lay_out)


FAST = {GPT: FastGPT, Llama: FastLlama, Transformer: FastTransformer}


def _share(twin: FastGPT | FastLlama, model: GPT | Llama, lay_out: Callable[..., Map]) -> None:
    twin.config = model.config
    twin.embedding = copy.copy(model.embedding)  # the same table
    twin.decoder = FastStack(model.decoder, model.config.max_len, lay_out)
    check_linear("output", model.output)
    twin.output = FastOutput(model.output.weight, lay_out)
