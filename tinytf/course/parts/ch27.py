"""Chapter 27: attention tile by tile, in windows, and without a softmax."""

import torch

from tinytf.course.parts import Part, arrived
from tinytf.course.parts.ch05 import learned, wide
from tinytf.masks import causal_mask


def _attended(f, causal):
    q, k, v = (wide(2, 5, n, seed=n) for n in (4, 4, 3))
    return f(q, k * 2, v, causal)


def _gradients(f):
    leaves = [learned(2, 5, 4, seed=n) for n in (1, 2, 3)]
    return arrived(f(*leaves, True), *leaves)


def _heads(queries, keys):
    return wide(2, queries, 4, seed=1), wide(2, keys, 4, seed=2), wide(2, keys, 3, seed=3)


def _even(keys):
    return torch.zeros(1, 1, 2), torch.zeros(1, keys, 2), torch.ones(1, keys, 2)


def _tile(batch, queries, keys, width):
    shapes = ((batch, queries, 4), (batch, keys, 4), (batch, keys, width))
    return tuple(wide(*shape, seed=n) for n, shape in enumerate(shapes))


def _nothing(batch, queries, width):
    column = torch.zeros(batch, queries, 1)
    return column + torch.finfo(column.dtype).min, column, torch.zeros(batch, queries, width)


def _begun(batch, queries, width):
    column = wide(batch, queries, 1, seed=8).abs()
    return column, column + 1, wide(batch, queries, width, seed=9)


def _tiled_gradients(f):
    leaves = [learned(2, 5, 4, seed=n) for n in (1, 2, 3)]
    return arrived(f(*leaves, causal_mask(5)[0], 2), *leaves)


PARTS = (
    Part(
        "tinytf.related.efficient_attention.add_tile",
        {
            "a first tile comes": lambda f: f(_nothing(1, 2, 3), *_tile(1, 2, 2, 3)),
            "a second tile comes": lambda f: f(_begun(1, 2, 3), *_tile(1, 2, 4, 3)),
            "some keys are hidden": lambda f: f(
                _begun(1, 2, 3), *_tile(1, 2, 3, 3), torch.tensor([[0, 0, 0], [1, 0, 1]]).bool()
            ),
            "nobody has seen or sees a key": lambda f: f(
                _nothing(1, 2, 3), *_tile(1, 2, 3, 3), torch.zeros(2, 3).bool()
            ),
            "keys are in bfloat16": lambda f: [
                str(x.dtype)
                for x in f(_nothing(1, 2, 3), *(x.bfloat16() for x in _tile(1, 2, 2, 3)))
            ],
        },
    ),
    Part(
        "tinytf.related.efficient_attention.tiled_attention",
        {
            "all fits into one tile": lambda f: f(*_heads(3, 3), tile=4),
            "there are several tiles": lambda f: f(*_heads(5, 7), tile=2),
            "there are several heads and a causal mask": lambda f: f(
                *(wide(2, 3, 6, 4, seed=n) for n in (1, 2, 3)), causal_mask(6), 4
            ),
            "a mask has one row for all queries": lambda f: f(
                *_heads(5, 4), torch.tensor([[[1, 1, 0, 1]], [[1, 0, 0, 0]]]).bool(), 2
            ),
            "a query may see nothing": lambda f: f(
                *_heads(4, 4), torch.tensor([[1], [0], [1], [1]]).bool().expand(4, 4), 2
            ),
            "tiles are large by default": lambda f: f(*_heads(70, 70)),
            "all is in bfloat16": lambda f: str(f(*(x.bfloat16() for x in _heads(3, 3))).dtype),
            "a sum is longer than bfloat16 can count": lambda f: f(
                *(x.bfloat16() for x in _even(600)), tile=1
            ).float(),
            "gradients go back": _tiled_gradients,
        },
    ),
    Part(
        "tinytf.related.efficient_attention.window_mask",
        {
            "everybody sees only itself": lambda f: f(3, 1),
            "neighbours are seen": lambda f: f(6, 2),
            "only those before": lambda f: f(6, 3, True),
        },
    ),
    Part(
        "tinytf.related.efficient_attention.feature_map",
        {"numbers are read": lambda f: f(torch.tensor([-3.0, -0.5, 0.0, 0.5, 3.0]))},
    ),
    Part(
        "tinytf.related.efficient_attention.linear_attention",
        {
            "everybody sees everybody": lambda f: _attended(f, False),
            "nobody sees what comes later": lambda f: _attended(f, True),
            "gradients go back": _gradients,
        },
    ),
)
