"""Chapter 11: the feed-forward network, its activations, and what its units hold."""

import torch
import torch.nn.functional as F

from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch05 import learned, wide
from tinytf.feedforward import FeedForward


def _network(**named):
    def run(network, **more):
        return twin(network, 4, 10, **named, **more)(wide(2, 3, 4, seed=1))

    def gradients(network):
        module, x = twin(network, 4, 10), learned(2, 3, 4, seed=1)
        return arrived(module(x), x, module=module)

    def dropped(network):
        module = twin(network, 4, 10, dropout=0.5, mode="train")
        torch.manual_seed(0)
        return module(wide(2, 3, 4, seed=1))

    return {
        "its weights are counted": lambda network: shapes(network(4, 10)),
        "it reads two sentences": run,
        "half of the hidden units are dropped": dropped,
        "gradients go back to the tokens and to every weight": gradients,
    }


CURVE = {
    "numbers are read": lambda f: f(torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])),
    "they are large, and far below zero": lambda f: f(torch.tensor([-30.0, 30.0, -5.0, 5.0])),
    "they are many": lambda f: f(wide(3, 4, 5, seed=1)),
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
            "there are no biases": lambda network: shapes(network(4, 10, bias=False)),
            "its width and its activation are kept": lambda network: [
                network(4, 10).d_model,
                network(4, 10, activation=F.silu).activation(torch.tensor([-1.0, 2.0])),
            ],
        },
    ),
    Part("tinytf.feedforward.gelu", CURVE),
    Part("tinytf.feedforward.gelu_tanh", CURVE),
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
        },
    ),
    Part(
        "tinytf.interpret.ffn_units.mirrored",
        {
            "the mirror is an axis": lambda f: f(
                torch.tensor([[1.0, 2.0]]), torch.tensor([3.0, 0.0]), torch.tensor([1.0, 0.0])
            ),
            "it is any": lambda f: f(wide(2, 3, 5, seed=1), wide(5, seed=2), wide(5, seed=3)),
        },
    ),
)
