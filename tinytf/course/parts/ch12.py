"""Chapter 12: the stack of a decoder-only model."""

import torch

from tinytf.blocks import EncoderLayer
from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch03 import learned, wide
from tinytf.norm import LayerNorm
from tinytf.residual import PreNorm


def stacked(stack):
    """Three Pre-LN layers of width 6 and a norm."""
    layers = [EncoderLayer(6, 2, 10, residual=PreNorm) for _ in range(3)]
    return twin(stack, layers, LayerNorm(6))


def _in_parts(stack):
    module, x = stacked(stack), wide(2, 6, 6, seed=1)
    cache = module.new_cache()
    ends = ((0, 3), (3, 4), (4, 6))
    return [*(module(x[:, a:b], cache) for a, b in ends), torch.tensor([len(c) for c in cache])]


def _gradients(stack):
    module, x = stacked(stack), learned(2, 4, 6, seed=1)
    return arrived(module(x)[:, 2], x, module=module)


PARTS = (
    Part(
        "tinytf.gpt.CausalStack",
        {
            "its weights are counted": lambda stack: shapes(stacked(stack)),
            "nobody sees what comes later": lambda stack: stacked(stack)(wide(2, 4, 6, seed=1)),
            "there is one word": lambda stack: stacked(stack)(wide(2, 1, 6, seed=1)),
            "words come in parts, with a cache for every layer": _in_parts,
            "gradients go back to what came before, and to every weight": _gradients,
        },
    ),
)
