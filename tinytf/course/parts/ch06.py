"""Chapter 06: norms, and the two orders of residual and norm."""

import torch
from torch import nn

from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch03 import learned, wide
from tinytf.norm import RMSNorm


def _norm(biases):
    def parameters(width):
        return [1 + wide(width, seed=5), *([wide(width, seed=6)] if biases else [])]

    def gradients(f):
        leaves = [learned(2, 3, 5, seed=1), *(p.requires_grad_() for p in parameters(5))]
        return arrived(f(*leaves), *leaves)

    def half(f):
        out = f(wide(2, 8, seed=1).half() * 100, *(p.half() for p in parameters(8)))
        return {"dtype": str(out.dtype), "values": out.float()}

    return {
        "there is one token": lambda f: f(torch.tensor([[1.0, 3.0]]).double(), *parameters(2)),
        "there are sentences of tokens": lambda f: f(wide(2, 3, 5, seed=1), *parameters(5)),
        "the numbers lie far from zero": lambda f: f(wide(2, 3, 5, seed=1) + 1000, *parameters(5)),
        "a token is all zeros": lambda f: f(torch.zeros(2, 4).double(), *parameters(4)),
        "eps is large": lambda f: f(wide(2, 4, seed=1), *parameters(4), 1.0),
        "numbers are tiny": lambda f: f(wide(2, 4, seed=1) * 1e-3, *parameters(4)),
        "numbers are in half precision": half,
        "gradients go back to every input": gradients,
    }


def _block(f):
    def run(block, **named):
        module = twin(block, 5, 0.0, **named)
        return module(wide(2, 3, 5, seed=1), lambda x: x.flip(1) * 2 + x**2)

    def gradients(block):
        module, x = twin(block, 5, 0.0), learned(2, 3, 5, seed=1)
        return arrived(module(x, lambda y: y.flip(1) * y), x, module=module)

    def dropped(block):
        module = twin(block, 5, 0.5, mode="train")
        torch.manual_seed(0)
        return module(wide(2, 3, 5, seed=1), nn.Tanh())

    return {
        "its weights are counted": lambda block: shapes(block(5)),
        "a sublayer is put in": run,
        "another norm is put in": lambda block: run(block, norm=RMSNorm),
        "half of what the sublayer says is dropped": dropped,
        "a stack of these ends": lambda block: block.final_norm(5).__class__.__name__,
        "gradients go back to the stream and to the norm": gradients,
    }


PARTS = (
    Part("tinytf.norm.layer_norm", _norm(biases=True)),
    Part("tinytf.norm.rms_norm", _norm(biases=False)),
    Part("tinytf.residual.PostNorm", _block("PostNorm")),
    Part("tinytf.residual.PreNorm", _block("PreNorm")),
)
