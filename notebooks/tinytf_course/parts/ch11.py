"""Chapter 11: the feed-forward network, its activations, and what its units hold."""

import torch
import torch.nn.functional as F

from tinytf.feedforward import FeedForward
from tinytf_course.parts import Part, arrived, shapes, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide


def _dropped(network, **named):
    """What dropout does to the hidden units, which are computed back from the output."""
    module, x = twin(network, 8, 8, dropout=0.5, mode="train", **named), wide(50, 20, 8, seed=1)
    back = torch.linalg.inv(module.w_2.weight.detach()).T
    bias = 0 if module.w_2.bias is None else module.w_2.bias
    torch.manual_seed(0)
    found, whole = (module.train(mode)(x) - bias for mode in (True, False))
    found, whole = found @ back, whole @ back
    alive, gone = whole.abs() > 1e-6, found.abs() < 1e-9
    patterns = {tuple(row) for row in (gone & alive).flatten(0, 1).tolist()}
    return {
        "each is 0, or doubled": bool((gone | ((found - 2 * whole).abs() < 1e-9)).all()),
        "half of them are 0": bool(0.4 < gone[alive].double().mean() < 0.6),
        "each token drops its own": len(patterns) > 20,
    }


def _network(**named):
    def run(network, **more):
        return twin(network, 4, 10, **named, **more)(wide(2, 3, 4, seed=1))

    def gradients(network):
        module, x = twin(network, 4, 10), learned(2, 3, 4, seed=1)
        return arrived(module(x), x, module=module)

    def in_training(network):
        return twin(network, 4, 10, mode="train")(wide(2, 3, 4, seed=1))

    return {
        "its weights are counted": lambda network: shapes(network(4, 10)),
        "it reads two sentences": run,
        "half of the hidden units are dropped": _dropped,
        "no dropout is named: nothing is dropped": in_training,
        "it is in eval mode, and drops nothing": lambda network: run(network, dropout=0.5),
        "its width is kept": lambda network: {"d_model": network(4, 10).d_model},
        "numbers are in float32": lambda network: dtypes(
            network(4, 10)(wide(2, 3, 4, seed=1).float())
        ),
        "gradients go back to the tokens and to every weight": gradients,
    }


def _contributions_gradients(f):
    network, x = twin(FeedForward, 4, 10, activation=F.gelu), learned(2, 3, 4, seed=1)
    return arrived(f(network, x), x, network.w_1.weight, network.w_2.weight)


CURVE = {
    "numbers are read": lambda f: f(torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0]).double()),
    "they are large, and far below zero": lambda f: f(torch.tensor([-30.0, 30, -5, 5]).double()),
    "they are many": lambda f: f(wide(3, 4, 5, seed=1)),
    "they are in float32": lambda f: dtypes(f(torch.tensor([-2.0, -0.5, 0.0]))),
    "gradients go back": lambda f: arrived(f(x := learned(3, 4, seed=1)), x),
}

PARTS = (
    Part(
        "tinytf.feedforward.FeedForward",
        _network()
        | {
            "the activation is another": lambda network: twin(network, 4, 10, activation=F.silu)(
                wide(2, 3, 4, seed=1)
            ),
            "another activation, and half of its units are dropped": lambda network: _dropped(
                network, activation=F.silu
            ),
            "there are no biases": lambda network: shapes(network(4, 10, bias=False)),
            "its activation is kept": lambda network: network(4, 10, activation=F.silu).activation(
                torch.tensor([-1.0, 2.0])
            ),
        },
    ),
    Part("tinytf.feedforward.gelu", CURVE, tolerance=1e-9),
    Part("tinytf.feedforward.gelu_tanh", CURVE, tolerance=1e-9),
    Part("tinytf.feedforward.SwiGLU", _network()),
    Part(
        "tinytf.feedforward.gated_width",
        {
            "two thirds are whole": lambda f: f(3),
            "they are not": lambda f: [f(n) for n in (1, 2, 7, 9, 15, 2048)],
            "a multiple is asked for": lambda f: [f(16384, 256), f(384, 256), f(100, 66), f(1, 4)],
        },
    ),
    Part(
        "tinytf.interpret.ffn_units.contributions",
        {
            "units speak": lambda f: f(twin(FeedForward, 4, 10), wide(2, 3, 4, seed=1)),
            "the activation is another": lambda f: f(
                twin(FeedForward, 4, 10, activation=F.gelu), wide(3, 4, seed=1)
            ),
            "numbers are in float32": lambda f: dtypes(
                f(FeedForward(4, 10), wide(3, 4, seed=1).float())
            ),
            "gradients go back to the tokens and to both maps": _contributions_gradients,
        },
        tolerance=1e-9,
    ),
    Part(
        "tinytf.interpret.ffn_units.mirrored",
        {
            "the mirror is an axis": lambda f: f(
                *(torch.tensor(x).double() for x in ([[1.0, 2.0]], [3.0, 0.0], [1.0, 0.0]))
            ),
            "it is any": lambda f: f(wide(2, 3, 5, seed=1), wide(5, seed=2), wide(5, seed=3)),
            "numbers are in float32": lambda f: dtypes(
                f(*(wide(*shape, seed=1).float() for shape in ((2, 5), (5,), (1,))))
            ),
        },
        tolerance=1e-9,
        equivalent={
            "… => across = other - one": "the mirror is the same, whichever side it is seen from",
            "… => across /= across.norm()": "in place on a difference that is the function's own",
        },
    ),
)
