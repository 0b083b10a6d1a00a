"""Chapter 26: a product, and the bill of a model."""

from collections import Counter

import torch

from tinytf.gpt import GPTConfig
from tinytf.metrics.cost import Product, flops, traffic
from tinytf_course.parts import Part

SMALL = GPTConfig(vocab_size=11, d_model=6, num_heads=3, num_layers=2, d_ff=10, max_len=64)
MAPS = Product("maps", 1, 2, 3, 4)  # twice in the bill, as equal layers are
BILL = [Product("scores", 12, 5, 7, 3), MAPS, Product("scores", 1, 1, 2, 3), MAPS]


def _totals(products):
    """Operations by part, and how often each product is made, in one entry or in several."""
    times = Counter()
    for p in products:
        times[f"{p.part}: ({p.rows}, {p.inner}) @ ({p.inner}, {p.columns})"] += p.times
    listed = sorted(f"{product}, {count} times" for product, count in times.items())
    return {**flops(products), "products": listed, "bytes moved": traffic(products)}


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
        equivalent={"… => m, k, n = …": "the three matrices are summed, in any order"},
    ),
    Part(
        "tinytf.metrics.cost.flops",
        {
            "one product is summed up": lambda f: dict(f(BILL[:1])),
            "a part makes several": lambda f: dict(f(BILL)),
            "there is a backward pass": lambda f: dict(f(BILL, backward=True)),
        },
    ),
    Part(
        "tinytf.metrics.cost.gpt_products",
        {
            "one text is read": lambda f: _totals(f(SMALL, 5)),
            "several texts are read": lambda f: _totals(f(SMALL, 5, 4)),
            "some tokens were read before": lambda f: _totals(f(SMALL, 3, 2, cached=7)),
            "one token of each text is scored": lambda f: _totals(f(SMALL, 5, 2, scored=1)),
        },
        equivalent={
            "… => layer = [Product('attention', …": "products come in any order",
            "… => layer = [Product('projections', 3, rows, c.d_model, c.d_model), …": (
                "products come in any order"
            ),
            "… => return [output, *layer * c.num_layers]": "products come in any order",
            "… => rows, keys, width = (batch * length, c.d_model // c.num_heads, …": (
                "scores and the mix of values change places"
            ),
        },
    ),
    Part(
        "tinytf.metrics.cost.traffic",
        {
            "numbers have 4 bytes": lambda f: torch.tensor(f(BILL)),
            "numbers have 2 bytes": lambda f: torch.tensor(f(BILL, bytes_each=2)),
        },
    ),
)
