"""Chapter 27: attention tile by tile, in windows, and without a softmax."""

import torch

from tinytf.masks import causal_mask
from tinytf_course.parts import Part, arrived
from tinytf_course.parts.ch05 import dtypes, learned, wide

ONE_KIND = "queries, keys and values are of one dtype"


def _attended(f, *causal, heads=(), width=3):
    q, k, v = (wide(2, *heads, 5, n, seed=n) for n in (4, 4, width))
    return f(q, k * 2, v, *causal)


def _gradients(f, causal):
    leaves = [learned(2, 5, 4, seed=n) for n in (1, 2, 3)]
    return arrived(f(*leaves, causal), *leaves)


def _single(f):
    x = torch.ones(2, 5, 4)
    return dtypes(f(x, x, x), f(x, x, x, True))


def _heads(queries, keys):
    return wide(2, queries, 4, seed=1), wide(2, keys, 4, seed=2), wide(2, keys, 3, seed=3)


def _even(keys):
    """Weights that are all alike, and values of which the first half are 0, the others 1."""
    values = (torch.arange(keys) >= keys // 2).float()
    return torch.zeros(1, 1, 2), torch.zeros(1, keys, 2), values[None, :, None].expand(1, keys, 2)


def _tile(batch, queries, keys, width):
    shapes = ((batch, queries, 4), (batch, keys, 4), (batch, keys, width))
    return tuple(wide(*shape, seed=n) for n, shape in enumerate(shapes))


def _nothing(batch, queries, width, dtype=torch.float64):
    column = torch.zeros(batch, queries, 1, dtype=dtype)
    none = torch.zeros(batch, queries, width, dtype=dtype)
    return column + torch.finfo(dtype).min, column, none


def _begun(batch, queries, width):
    column = wide(batch, queries, 1, seed=8).abs()
    return column, column + 1, wide(batch, queries, width, seed=9)


def _added_gradients(f):
    """Gradients of the weighted average to queries, and to two tiles of keys and values."""
    q, *tiles = (learned(2, n, 4, seed=n) for n in (3, 4, 5, 6, 7))
    (k, v), (more_k, more_v) = (tiles[0], tiles[0] + 0), (tiles[1], tiles[1] + 0)
    hidden = torch.tensor([[True, True, False, True, True]]).expand(3, 5)
    state = f(f(_nothing(2, 3, 4), q, k, v), q, more_k, more_v, hidden)
    return arrived(state[2] / state[1], q, *tiles[:2])


def _large(f):
    """Scores of hundreds and thousands, all of them below zero."""
    q, k, v = _heads(4, 5)
    return f(q.abs() * 30, k.abs() * -30, v, tile=2)


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
            "the state is in float32, keys are in bfloat16": lambda f: dtypes(
                *f(
                    _nothing(1, 2, 3, torch.float32),
                    *(x.bfloat16() for x in _tile(1, 2, 2, 3)),
                )
            ),
            "keys are in float64, and some are hidden": lambda f: dtypes(
                *f(
                    _nothing(1, 2, 3, torch.float32),
                    *_tile(1, 2, 3, 3),
                    torch.tensor([[0, 0, 0], [1, 0, 1]]).bool(),
                ),
                *f(_nothing(1, 2, 3, torch.float32), *_tile(1, 2, 3, 3)),
            ),
            "gradients go back through two tiles": _added_gradients,
        },
        tolerance=1e-9,
        equivalent={
            "… => new = ….detach()": "what the largest is cancels",
            "… => new = …detach()…": "what the largest is cancels",
            "… => …to(total.dtype)…": "a state is of one dtype",
            "… => …to(largest.dtype)…": "a state is of one dtype",
            "… => …to(weights.dtype)…": "a state is of one dtype",
            "… => …to(shrink.dtype)…": "a state is of one dtype",
            "… => …sqrt(k.size(-1))…": "queries and keys have one width",
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
            "scores are far below zero": _large,
            "gradients go back": _tiled_gradients,
        },
        tolerance=1e-9,
        equivalent={
            "def tiled_attention(…": "how many at once changes no number",
            "… => wide = torch.promote_types(…)": ONE_KIND,
            "… => …to(k.dtype)": ONE_KIND,
            "… => …to(v.dtype)": ONE_KIND,
            "… => for t in range(0, q.size(-2) + 1, tile):": "no query is left for it",
            "… => …v.size(-2)…": "there is a value for each key",
            "… => mask = mask.expand(*….shape[:-2], …": "a mask may be written out further",
            "… => largest = torch.full_like(some.….…": "only the shape is read",
            "… => …torch.finfo().min…": "no score is as low",
            "… => mix = …": "zeros are zeros, whatever their shape",
            "… => state = (…)": "zeros are zeros, whatever their shape",
            "… => …masked_fill(total == 0, 2.0))": "0 divided by it stays 0",
            "… => …masked_fill(total == 0, -1.0))": "0 divided by it stays 0",
            "… => …masked_fill_(…": "in place on what is the function's own",
            "… => …__itruediv__(…": "in place on what is the function's own",
            "… => …masked_fill(total.….…": "only its zeros are looked for",
        },
    ),
    Part(
        "tinytf.related.efficient_attention.window_mask",
        {
            "everybody sees only itself": lambda f: f(3, 1),
            "neighbours are seen": lambda f: f(6, 2),
            "only those before": lambda f: f(6, 3, True),
            "there are 2100": lambda f: f(2100, 2)[..., 2040:, 2040:],
            "another device is asked for": lambda f: {
                "device": [str(f(4, 2, causal, "meta").device) for causal in (False, True)]
            },
        },
    ),
    Part(
        "tinytf.related.efficient_attention.feature_map",
        {
            "numbers are read": lambda f: f(torch.tensor([-3.0, -0.5, 0.0, 0.5, 3.0]).double()),
            "numbers are in float32": lambda f: dtypes(f(torch.zeros(3))),
            "gradients go back": lambda f: arrived(f(x := learned(3, 4, seed=1)), x),
        },
        tolerance=1e-9,
    ),
    Part(
        "tinytf.related.efficient_attention.linear_attention",
        {
            "everybody sees everybody": lambda f: _attended(f, False),
            "nobody sees what comes later": lambda f: _attended(f, True),
            "nothing is said of what comes later": lambda f: _attended(f),
            "there are three heads": lambda f: _attended(f, False, heads=(3,)),
            "there are, and nobody sees what comes later": lambda f: _attended(f, True, heads=(3,)),
            "values are single numbers": lambda f: _attended(f, True, width=1),
            "numbers are in float32": _single,
            "gradients go back": lambda f: _gradients(f, False),
            "gradients go back, and not to what comes later": lambda f: _gradients(f, True),
        },
        tolerance=1e-9,
        equivalent={
            "… => …__itruediv__(…": "in place on what is the function's own",
            "… => state = (k[:, ..., None] * …": "the new axis is the last either way",
        },
    ),
)
