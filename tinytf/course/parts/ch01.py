"""Chapter 01: recurrent cells, and attention by addition."""

import torch

from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch03 import learned, wide


def _cell(target, **named):
    def run(cell, *states):
        return twin(cell, 3, 4, **named)(wide(2, 3, seed=1), *states)

    def gradients(cell):
        module = twin(cell, 3, 4, **named)
        x = learned(2, 3, seed=1)
        out = module(x)
        return arrived(out[0] if isinstance(out, tuple) else out, x, module=module)

    two = (wide(2, 4, seed=2), wide(2, 4, seed=3))
    state = two if target.endswith("LSTMCell") else two[0]
    return {
        "its weights are counted": lambda cell: shapes(cell(3, 4)),
        "it reads a first word": lambda cell: run(cell),
        "it goes on from a state": lambda cell: run(cell, state),
        "gradients go back to the word and to every weight": gradients,
    }


def _bias(cell):
    torch.manual_seed(0)
    return cell(3, 4, forget_bias=2.0).bias_ih.detach()


class _Sum:
    """A cell without weights, whose state is a tensor."""

    def __call__(self, x, state=None):
        return x if state is None else 2 * state + x


class _Pair:
    """A cell whose state is a pair; its first entry is the output."""

    def __call__(self, x, state=None):
        h, c = (x, x) if state is None else state
        return h * c + x, c + 1


def _unrolled(f):
    x = learned(2, 4, 3, seed=1)
    return arrived(f(_Sum(), x), x)


PARTS = (
    Part("tinytf.related.recurrent.RNNCell", _cell("RNNCell")),
    Part(
        "tinytf.related.recurrent.LSTMCell",
        _cell("LSTMCell") | {"the forget gate starts open by its bias": _bias},
    ),
    Part("tinytf.related.recurrent.GRUCell", _cell("GRUCell")),
    Part(
        "tinytf.related.recurrent.unroll",
        {
            "there is one word": lambda f: f(_Sum(), torch.tensor([[[1.0]]])),
            "two sentences have four words": lambda f: f(_Sum(), wide(2, 4, 3, seed=1)),
            "the state is a pair": lambda f: f(_Pair(), wide(2, 4, 3, seed=1)),
            "it begins from a state": lambda f: f(
                _Sum(), wide(2, 4, 3, seed=1), wide(2, 3, seed=2)
            ),
            "gradients go back to every word": _unrolled,
        },
    ),
    Part(
        "tinytf.related.recurrent_seq2seq.additive_weights",
        {
            "two sentences of unequal length are read": lambda f: f(
                wide(2, 3, seed=1),
                wide(2, 4, 3, seed=2),
                wide(3, seed=3),
                torch.tensor([[True, True, False, False], [True, True, True, True]]),
            ),
            "a sentence has nothing to read": lambda f: f(
                wide(2, 3, seed=1),
                wide(2, 2, 3, seed=2),
                wide(3, seed=3),
                torch.tensor([[False, False], [True, False]]),
            ),
            "gradients go back to query, keys and v": lambda f: arrived(
                f(
                    *(
                        leaves := (
                            learned(2, 3, seed=1),
                            learned(2, 4, 3, seed=2),
                            learned(3, seed=3),
                        )
                    ),
                    torch.ones(2, 4).bool(),
                ),
                *leaves,
            ),
        },
    ),
)
