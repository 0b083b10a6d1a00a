"""Chapter 12: the encoder, and the masking of words."""

import torch
import torch.nn.functional as F
from torch import nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import EncoderLayer
from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch05 import learned, wide
from tinytf.norm import LayerNorm
from tinytf.residual import PreNorm

HIDDEN = torch.tensor([[True, True, False, False], [True, True, True, True]])[:, None, None]

FRONT = torch.tensor([[False, True, True, True, True], [False, False, False, True, True]])
FRONT = FRONT[:, None, None]


def _layer(f):
    def run(layer, mask=None, **named):
        return twin(layer, 6, 2, 10, **named)(wide(2, 4, 6, seed=1), mask)

    def gradients(layer):
        module, x = twin(layer, 6, 2, 10), learned(2, 4, 6, seed=1)
        return arrived(module(x), x, module=module)

    def dropped(layer):
        module = twin(layer, 6, 2, 10, dropout=0.5, mode="train")
        torch.manual_seed(0)
        return module(wide(2, 4, 6, seed=1))

    def stepped(layer):
        module, x, cache = twin(layer, 6, 2, 10), wide(2, 4, 6, seed=1), KeyValueCache()
        steps = [module(x[:, t : t + 1], cache=cache) for t in range(4)]
        return [*steps, torch.tensor(len(cache))]

    return {
        "its weights are counted": lambda layer: shapes(layer(6, 2, 10)),
        "it reads two sentences": run,
        "one of them is padded": lambda layer: run(layer, HIDDEN),
        "norms come first, and the activation is another": lambda layer: run(
            layer, residual=PreNorm, activation=F.gelu
        ),
        "half of what sublayers say is dropped": dropped,
        "words come one by one, with a cache": stepped,
        "gradients go back to the tokens and to every weight": gradients,
    }


def _stack(stack, norm=None):
    layers = [EncoderLayer(6, 2, 10) for _ in range(3)]
    return twin(stack, layers, norm or nn.Identity())


def _stack_steps(stack):
    module, x = _stack(stack), wide(2, 4, 6, seed=1)
    cache = [KeyValueCache() for _ in range(3)]
    steps = [module(x[:, t : t + 1], cache=cache) for t in range(4)]
    return [*steps, torch.tensor([len(part) for part in cache])]


def _masked(f, seed=0, **named):
    ids = torch.randint(0, 60, (40, 12), generator=torch.Generator().manual_seed(3))
    read, chosen = f(ids, 60, torch.Generator().manual_seed(seed), **named)
    return [read, chosen]


PARTS = (
    Part("tinytf.blocks.EncoderLayer", _layer("EncoderLayer")),
    Part(
        "tinytf.blocks.Encoder",
        {
            "its weights are counted": lambda stack: shapes(_stack(stack)),
            "three layers read two sentences": lambda stack: _stack(stack)(wide(2, 4, 6, seed=1)),
            "one of them is padded": lambda stack: _stack(stack)(wide(2, 4, 6, seed=1), HIDDEN),
            "it ends in a norm": lambda stack: _stack(stack, LayerNorm(6))(wide(2, 4, 6, seed=1)),
            "words come one by one, with a cache for every layer": _stack_steps,
        },
    ),
    Part(
        "tinytf.training.masked_lm.mask_tokens",
        {
            "480 words are read": _masked,
            "another seed draws": lambda f: _masked(f, 1),
            "half are chosen, and all of these hidden": lambda f: _masked(
                f, share=0.5, masked=1.0, swapped=0.0
            ),
            "chosen words are swapped or left, and none is hidden": lambda f: _masked(
                f, share=0.4, masked=0.0, swapped=0.5
            ),
        },
    ),
)
