"""Chapter 10: norms, the two orders of residual and norm, and what weights start from."""

import math

import torch
from torch import nn

from tinytf.attention import MultiHeadAttention
from tinytf.feedforward import FeedForward
from tinytf.norm import RMSNorm
from tinytf_course.parts import Part, arrived, shapes, thinned, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide


def _rounded(out, exact):
    """What is said of half precision: any order of the operations may round in its own way."""
    off = (out.double() - exact).abs().max().item()
    return {"dtype": str(out.dtype), "off": "by rounding" if off < 0.01 else f"by {off:.2g}"}


def _norm(biases, loud):
    def parameters(width):
        return [1 + wide(width, seed=5), *([wide(width, seed=6)] if biases else [])]

    def gradients(f):
        leaves = [learned(2, 3, 5, seed=1), *(p.requires_grad_() for p in parameters(5))]
        return arrived(f(*leaves), *leaves)

    def half(f):
        given = [wide(2, 8, seed=1).half() * loud, *(p.half() for p in parameters(8))]
        return _rounded(f(*given), f(*(x.double() for x in given)))

    def far(f):
        given = [wide(2, 8, seed=1).float() + 3000, *(p.float() for p in parameters(8))]
        return _rounded(f(*given), f(*(x.double() for x in given)))

    return {
        "there is one token": lambda f: f(torch.tensor([[1.0, 3.0]]).double(), *parameters(2)),
        "there are sentences of tokens": lambda f: f(wide(2, 3, 5, seed=1), *parameters(5)),
        "the numbers lie far from zero": lambda f: f(wide(2, 3, 5, seed=1) + 1000, *parameters(5)),
        "they lie far from zero, in float32": far,
        "a token is all zeros": lambda f: f(torch.zeros(2, 4).double(), *parameters(4)),
        "eps is large": lambda f: f(wide(2, 4, seed=1), *parameters(4), 1.0),
        "numbers are tiny": lambda f: f(wide(2, 4, seed=1) * 1e-3, *parameters(4)),
        "numbers are in half precision": half,
        "gradients go back to every input": gradients,
    }


def _module():
    def run(norm, x, *more):
        return twin(norm, x.size(-1), *more)(x)

    def plain(norm):
        return norm(4)(wide(2, 3, 4, seed=1).float())

    def half(norm):
        x = wide(2, 8, seed=1).half() * 1000
        return _rounded(norm(8).half()(x), norm(8).double()(x.double()))

    def gradients(norm):
        module, x = twin(norm, 5), learned(2, 3, 5, seed=1)
        return arrived(module(x), x, module=module)

    return {
        "there is one token, before training": plain,
        "its weights are counted": lambda norm: shapes(norm(5)),
        "there are sentences of tokens": lambda norm: run(norm, wide(2, 3, 5, seed=1)),
        "a token is all zeros": lambda norm: run(norm, torch.zeros(2, 4).double()),
        "eps is large": lambda norm: run(norm, wide(2, 4, seed=1), 1.0),
        "numbers are tiny": lambda norm: run(norm, wide(2, 4, seed=1) * 1e-3),
        "numbers are in half precision": half,
        "gradients go back to the tokens and to every weight": gradients,
    }


def _start(bound):
    """Scripts of an initialiser; bound: whether its numbers are drawn between two ends."""

    def drawn(start, inputs=400, outputs=100, **named):
        torch.manual_seed(0)
        linear = nn.Linear(inputs, outputs)
        start(linear, **named)
        return linear

    def spread(start, **named):
        found = drawn(start, **named).weight.std().item()
        right = math.sqrt(2 / 500) if bound else named.get("std", 0.02)
        return f"{right if abs(found / right - 1) < 0.03 else found:.4f}"  # of 40,000 draws

    def largest(start):
        linear = drawn(start)
        size = (linear.weight.abs().max() / linear.weight.std()).item()
        return "within ±√3 standard deviations" if size < 1.8 else "beyond ±3" if size > 3 else size

    def double(start):
        parts = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3)).double()
        start(parts)
        return {"biases": parts[0].bias.detach(), **dtypes(*parts.parameters())}

    def others(start):
        torch.manual_seed(0)
        parts = nn.ModuleDict({"table": nn.Embedding(5, 4), "norm": nn.LayerNorm(4)})
        parts["map"] = nn.Linear(4, 4, bias=False)
        before = {name: p.detach().clone() for name, p in parts.named_parameters()}
        start(parts)
        return {name: bool((p != before[name]).any()) for name, p in parts.named_parameters()}

    scripts = {
        "a map of 400 inputs and 100 outputs is drawn": spread,
        "its biases are looked at": lambda start: drawn(start).bias.abs().max(),
        "its largest weight is looked at": largest,
        "a module has an embedding, a norm and a map": others,
        "a map in float64 lies inside a module": double,
    }
    if not bound:
        scripts["another standard deviation is given"] = lambda start: spread(start, std=0.5)
    return scripts


def _scaled():
    def shares(scale, times=1):
        torch.manual_seed(0)
        parts = [MultiHeadAttention(4, 2), FeedForward(4, 6), nn.LayerNorm(4)]
        layers = nn.ModuleList(parts)
        before = {name: p.detach().clone() for name, p in layers.named_parameters()}
        for _ in range(times):
            scale(layers, 8)
        pairs = [(name, p.detach(), before[name]) for name, p in layers.named_parameters()]
        return {name: p.norm() / old.norm() for name, p, old in pairs if old.norm() > 0}

    def learns(scale):
        layer = FeedForward(4, 6)
        before = list(layer.parameters())
        scale(layer, 2)
        same = all(p is old for p, old in zip(layer.parameters(), before))
        return same and all(p.requires_grad and p.is_leaf for p in layer.parameters())

    def double(scale):
        layer = twin(FeedForward, 4, 6)
        scale(layer, 2)
        return {name: p.detach() for name, p in layer.named_parameters()}

    return {
        "a layer is one of four": shares,
        "its weights are in float64": double,
        "it is called twice": lambda scale: shares(scale, times=2),
        "the weights are to be trained after it": learns,
    }


def _block(f):
    def run(block, **named):
        module = twin(block, 5, 0.0, **named)
        return module(wide(2, 3, 5, seed=1), lambda x: x.flip(1) * 2 + x**2)

    def gradients(block):
        module, x = twin(block, 5, 0.0), learned(2, 3, 5, seed=1)
        return arrived(module(x, lambda y: y.flip(1) * y), x, module=module)

    def dropped(block, *dropout):
        module, x = twin(block, 5, *dropout, mode="train"), wide(20, 30, 5, seed=1)
        said, share = learned(20, 30, 5, seed=2), dropout[0] if dropout else 0.1
        return thinned(
            module(x, lambda _: said),
            said,
            share,
            lambda factor: module.eval()(x, lambda _: said * factor),
        )

    def single(block):
        given, module = [], block(5)
        out = module(wide(2, 3, 5, seed=1).float(), lambda x: given.append(x) or x)
        return dtypes(out, *given)

    return {
        "its weights are counted": lambda block: shapes(block(5)),
        "a sublayer is put in": run,
        "another norm is put in": lambda block: run(block, norm=RMSNorm),
        "half of what the sublayer says is dropped": lambda block: dropped(block, 0.5),
        "no dropout is named: a tenth is dropped": dropped,
        "numbers are in float32": single,
        "a stack of these ends": lambda block: block(5).final_norm(5).__class__.__name__,
        "gradients go back to the stream and to the norm": gradients,
    }


AT_LEAST = "squares are taken at least in float32, so in float64 too"
ONE_DTYPE = "the weight has the dtype of x"

PARTS = (
    Part(
        "tinytf.norm.layer_norm",
        _norm(biases=True, loud=100),
        equivalent={
            "… => variance = (x - mean.detach()).square().mean(dim=-1, keepdim=True)": (
                "at the mean the variance is least: its gradient to the mean is zero"
            )
        },
    ),
    Part(
        "tinytf.norm.rms_norm",
        _norm(biases=False, loud=1000)
        | {"numbers are huge, in float64": lambda f: f(wide(2, 4, seed=1) * 1e40, wide(4, seed=2))},
        equivalent={
            "… => wide = ….double()": AT_LEAST,
            "… => mean_square = ….double()": AT_LEAST,
            "… => wide = x.to(torch.promote_types(torch.float32, x.dtype))": "the order is nothing",
            "… => wide = x.to(torch.promote_types(weight.dtype, torch.float32))": ONE_DTYPE,
            "… => return (wide / …).to(weight.dtype) * weight": ONE_DTYPE,
        },
    ),
    Part("tinytf.norm.LayerNorm", _module()),
    Part("tinytf.norm.RMSNorm", _module()),
    Part("tinytf.initialisation.xavier", _start(bound=True), changes=("module",)),
    Part("tinytf.initialisation.normal", _start(bound=False), changes=("module",)),
    Part("tinytf.initialisation.scale_residual", _scaled(), changes=("module",)),
    Part(
        "tinytf.residual.PostNorm",
        _block("PostNorm"),
        tolerance=1e-9,
    ),
    Part("tinytf.residual.PreNorm", _block("PreNorm"), tolerance=1e-9),
)
