"""Chapter 08: four ways to tell positions."""

import torch

from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch05 import learned, wide


def _refusal(layer, words, start=0):
    """What a table of 9 rows says to so many words from `start`: the kind of its error."""
    module = layer(6, 9, dropout=0.0)
    try:
        module(torch.zeros(1, words, 6), start)
    except NotImplementedError:
        raise
    except (ValueError, RuntimeError, IndexError) as error:
        return type(error).__name__
    return "no error"


def _added():
    def run(layer, start=0):
        return twin(layer, 6, 9, dropout=0.0)(wide(2, 4, 6, seed=1), start)

    def gradients(layer):
        module, x = twin(layer, 6, 9, dropout=0.0), learned(2, 4, 6, seed=1)
        return arrived(module(x, 2), x, module=module)

    def dropped(layer):
        module = twin(layer, 6, 9, dropout=0.5, mode="train")
        torch.manual_seed(0)
        return module(wide(2, 4, 6, seed=1))

    return {
        "what it learns is counted": lambda layer: shapes(layer(6, 9)),
        "sentences begin": run,
        "they go on from position 3": lambda layer: run(layer, 3),
        "the last word has the last row": lambda layer: run(layer, 5),
        "one is longer than its table": lambda layer: _refusal(layer, 10),
        "two words come where one row is left": lambda layer: _refusal(layer, 2, 8),
        "half is dropped while it trains": dropped,
        "gradients go back": gradients,
    }


def _by_number(layer):
    rows = torch.tensor([[0, 0, 1, 2], [8, 3, 1, 0]])
    return twin(layer, 6, 9, dropout=0.0)(wide(2, 4, 6, seed=1), positions=rows)


def _rotary(attention, mask=None, keys=5):
    q, k, v = wide(2, 3, 5, 4, seed=1), wide(2, 3, keys, 4, seed=2), wide(2, 3, keys, 4, seed=3)
    return [attention()(q, k, v, mask), attention().weights(q, k, mask), *attention().turned(q, k)]


def _alibi(attention, mask=None, keys=5):
    q, k, v = wide(2, 3, 5, 4, seed=1), wide(2, 3, keys, 4, seed=2), wide(2, 3, keys, 4, seed=3)
    return [attention()(q, k, v, mask), attention().weights(q, k, mask)]


def _alibi_gradients(attention):
    q, k, v = (learned(2, 3, 5, 4, seed=seed) for seed in (1, 2, 3))
    return arrived(attention()(q, k, v), q, k, v)


PARTS = (
    Part(
        "tinytf.positional.sinusoidal_encoding",
        {
            "there is one position": lambda f: f(1, 4),
            "there are seven of width 6": lambda f: f(7, 6),
            "the width is odd": lambda f: f(5, 7),
            "positions go into the thousands, where angles need float64": lambda f: f(5000, 64)[
                -5:
            ],
        },
        tolerance=1e-5,
    ),
    Part("tinytf.positional.PositionalEncoding", _added()),
    Part(
        "tinytf.positional.LearnedPositionalEncoding",
        {**_added(), "each word asks for a row of its own": _by_number},
    ),
    Part(
        "tinytf.relative.rotary_angles",
        {
            "there are three positions": lambda f: f(3, 4),
            "they begin at 7": lambda f: f(3, 6, 7),
            "the base is 100": lambda f: f(3, 6, 0, 100.0),
        },
    ),
    Part(
        "tinytf.relative.rotate",
        {
            "a pair is turned by a right angle": lambda f: f(
                torch.tensor([[1.0, 2.0]], dtype=torch.float64), torch.tensor([[torch.pi / 2]])
            ),
            "pairs are turned by angles of their own": lambda f: f(
                wide(2, 3, 5, 6, seed=1), wide(5, 3, seed=2)
            ),
            "numbers are in half precision": lambda f: f(
                wide(2, 3, 4, seed=1).half(), wide(3, 2, seed=2)
            ).float(),
            "gradients go back": lambda f: arrived(
                f(x := learned(2, 5, 6, seed=1), wide(5, 3, seed=2)), x
            ),
        },
        tolerance=1e-5,
    ),
    Part(
        "tinytf.relative.apply_rotary",
        {
            "texts begin": lambda f: f(wide(2, 3, 5, 4, seed=1)),
            "they go on from position 7": lambda f: f(wide(2, 3, 5, 4, seed=1), 7),
            "the base is 100": lambda f: f(wide(2, 3, 5, 4, seed=1), 2, 100.0),
            "positions are given": lambda f: f(
                wide(2, 3, 3, 4, seed=1), positions=torch.tensor([4, 0, 9])
            ),
            "each sentence has its own": lambda f: f(
                wide(2, 3, 3, 4, seed=1), positions=torch.tensor([[4, 0, 9], [1, 2, 3]])
            ),
            "gradients go back": lambda f: arrived(f(x := learned(2, 3, 5, 4, seed=1)), x),
        },
        tolerance=1e-5,
    ),
    Part(
        "tinytf.relative.RotaryAttention",
        {
            "everybody sees everybody": _rotary,
            "nobody sees what comes later": lambda attention: _rotary(
                attention, torch.ones(1, 1, 5, 5).tril().bool()
            ),
            "the keys of a cache come before": lambda attention: _rotary(attention, keys=8),
        },
        tolerance=1e-5,
    ),
    Part(
        "tinytf.relative.alibi_slopes",
        {
            "there are 8 heads": lambda f: f(8),
            "there is one": lambda f: f(1),
            "there are 2": lambda f: f(2),
            "there are 12, no power of two": lambda f: f(12),
            "there are 6": lambda f: f(6),
        },
    ),
    Part(
        "tinytf.relative.alibi_bias",
        {
            "two heads look over three words": lambda f: f(torch.tensor([0.5, 0.25]), 3),
            "there are older keys": lambda f: f(torch.tensor([0.5, 0.25, 0.1]), 2, 5),
        },
    ),
    Part(
        "tinytf.relative.AlibiAttention",
        {
            "everybody sees everybody": _alibi,
            "nobody sees what comes later": lambda attention: _alibi(
                attention, torch.ones(1, 1, 5, 5).tril().bool()
            ),
            "a query has nothing to see": lambda attention: _alibi(
                attention, torch.tensor([True, False, True, True, True])[:, None].expand(1, 1, 5, 5)
            ),
            "padding is hidden, in one sentence of two": lambda attention: _alibi(
                attention, torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, None]
            ),
            "the keys of a cache come before": lambda attention: _alibi(attention, keys=8),
            "slopes are given": lambda attention: _alibi(lambda: attention(slopes=(0.5, 0.0, 2.0))),
            "gradients go back": _alibi_gradients,
        },
        tolerance=1e-5,
    ),
    Part(
        "tinytf.relative.half_split_order",
        {
            "a head has two numbers": lambda f: f(2),
            "a head has six numbers": lambda f: f(6),
            "a head has eight numbers": lambda f: f(8),
        },
    ),
)
