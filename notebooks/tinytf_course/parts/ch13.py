"""Chapter 13: the decoder."""

import torch
import torch.nn.functional as F
from torch import nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import DecoderLayer, LayerCache
from tinytf.masks import causal_mask
from tinytf.norm import LayerNorm
from tinytf.residual import PreNorm
from tinytf_course.parts import Part, arrived, shapes, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide

SEEN = torch.tensor([[True, True, True, False, False], [True] * 5])[:, None, None]


def _tokens():
    return wide(2, 4, 6, seed=1), wide(2, 5, 6, seed=2)


def _run(layer, *masks, **named):
    return twin(layer, 6, 2, 10, **named)(*_tokens(), *masks)


def _steps(layer):
    module, (x, memory) = twin(layer, 6, 2, 10), _tokens()
    cache = LayerCache(KeyValueCache(), KeyValueCache())
    steps = [module(x[:, t : t + 1], memory, None, SEEN, cache) for t in range(4)]
    return [*steps, torch.tensor([len(part) for part in cache])]


def _gradients(layer):
    module = twin(layer, 6, 2, 10)
    x, memory = learned(2, 4, 6, seed=1), learned(2, 5, 6, seed=2)
    return arrived(module(x, memory, causal_mask(4), SEEN), x, memory, module=module)


def _dropped(layer, **dropout):
    module = twin(layer, 6, 2, 10, **dropout, mode="train")
    torch.manual_seed(0)
    return module(wide(2, 14, 6, seed=1), wide(2, 5, 6, seed=2))


def _single(module):
    return dtypes(module(*(x.float() for x in _tokens())))


def _stack_gradients(stack):
    module = _stack(stack, LayerNorm(6))
    x, memory = learned(2, 4, 6, seed=1), learned(2, 5, 6, seed=2)
    return arrived(module(x, memory), x, memory, module=module)


def _stack(stack, norm=None):
    return twin(stack, [DecoderLayer(6, 2, 10) for _ in range(3)], norm or nn.Identity())


def _stack_steps(stack):
    module, (x, memory) = _stack(stack), _tokens()
    cache = module.new_cache()
    steps = [module(x[:, t : t + 1], memory, None, SEEN, cache) for t in range(4)]
    return [*steps, cache[0].self_attention.k, cache[2].cross_attention.v]


PARTS = (
    Part(
        "tinytf.blocks.DecoderLayer",
        {
            "its weights are counted": lambda layer: shapes(layer(6, 2, 10)),
            "it reads two sentences": _run,
            "no position sees what comes later, nor padding": lambda layer: _run(
                layer, causal_mask(4), SEEN
            ),
            "norms come first, and the activation is another": lambda layer: _run(
                layer, causal_mask(4), SEEN, residual=PreNorm, activation=F.gelu
            ),
            "half of what sublayers add is dropped": lambda layer: _dropped(layer, dropout=0.5),
            "no dropout is named: a tenth is dropped": _dropped,
            "numbers are in float32": lambda layer: _single(layer(6, 2, 10)),
            "words come one by one, with a cache": _steps,
            "gradients go back to both sides and to every weight": _gradients,
        },
    ),
    Part(
        "tinytf.blocks.Decoder",
        {
            "its weights are counted": lambda stack: shapes(_stack(stack)),
            "three layers read the same memory": lambda stack: _stack(stack)(*_tokens()),
            "no position sees what comes later, nor padding": lambda stack: _stack(stack)(
                *_tokens(), causal_mask(4), SEEN
            ),
            "it ends in a norm": lambda stack: _stack(stack, LayerNorm(6))(*_tokens()),
            "words come one by one, with a cache for every layer": _stack_steps,
            "numbers are in float32": lambda stack: _single(
                stack([DecoderLayer(6, 2, 10)], LayerNorm(6))
            ),
            "gradients go back to both sides and to every weight": _stack_gradients,
        },
    ),
)
