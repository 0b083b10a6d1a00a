"""Chapter 15: counting a product, and attention that costs less."""

import torch

from tinytf.course.parts import Part, arrived
from tinytf.course.parts.ch03 import learned, wide


def _attended(f, causal):
    q, k, v = (wide(2, 5, n, seed=n) for n in (4, 4, 3))
    return f(q, k * 2, v, causal)


def _gradients(f):
    leaves = [learned(2, 5, 4, seed=n) for n in (1, 2, 3)]
    return arrived(f(*leaves, True), *leaves)


PARTS = (
    Part(
        "tinytf.metrics.cost.Product",
        {
            "it is counted": lambda product: torch.tensor(
                [product("scores", 12, 5, 7, 3).flops, product("scores", 12, 5, 7, 3).numbers]
            ),
            "its parts are named": lambda product: [
                str(getattr(product("scores", 12, 5, 7, 3), name))
                for name in ("part", "times", "rows", "inner", "columns")
            ],
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
