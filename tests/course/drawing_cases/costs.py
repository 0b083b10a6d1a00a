"""Drawings of what a Transformer costs, and of how to save."""

import math

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex, to_rgba

from drawing_cases import case, refused
from tinytf.viz.style import COLOURS, CYCLE
from tinytf_course import drawings as viz
from tinytf_course.drawings import counting, saving

# ---- what it costs

case(
    "product",
    lambda: counting.draw_product(3, 4, 5),
    filled={COLOURS["query"]: 4, COLOURS["key"]: 4, COLOURS["output"]: 1,
            counting.PALE: 12 + 20 + 15 - 9},
    has=["all 3 · 5 of them: 2 · 3 · 4 · 5"],
    said="4 multiplications and 4 additions",
)  # fmt: skip
refused(lambda: counting.draw_product(3, 0, 5), "at least 1")
case("square", lambda: counting.draw_square((3, 6), width=4),
    filled={counting.WEIGHTS: 3 * 4 + 6 * 4 + 1, counting.PAIRS: 9 + 36 + 1})  # fmt: skip
refused(lambda: counting.draw_square((0, 3), width=4), "at least 1")
refused(lambda: counting.draw_token_meets((8,), width=0), "at least 1")
case("what a layer keeps", counting.draw_kept, count={"d": 5, "4 d": 2, "nothing": 2},
    said="6 d numbers a token")  # fmt: skip
case("wait", lambda: counting.draw_wait(prompt=512, written=4), count={"step": 3},
    has=["prefill: 512 at once", "time to first token", "per token", "token 4"],
    said="3 short passes")  # fmt: skip
refused(lambda: counting.draw_wait(prompt=5, written=1), "no two waits")
BARS = {"one": {"weights": 2e9, "moments": 4e9}, "two": {"moments": 1e9}}
case("byte bars",
    lambda: viz.byte_bars(BARS, colors={"moments": 3, "weights": 1}, limit=("a card", 5e9)),
    widths=[2, 4, 0, 1], corners=[(0, -0.35), (2, -0.35), (0, 0.65), (0, 0.65)],
    inks=[to_rgba(CYCLE[1]), to_rgba(CYCLE[3]), ...], texts=["6 GB", "1 GB", "a card"],
    xs=[[5, ...], ...], legend=["weights", "moments"])  # fmt: skip
refused(lambda: viz.byte_bars({"none": {}}), "at least one bar")
refused(lambda: viz.byte_bars({"one": {"a": -1}}), "'one' must not be negative")
POINTS = {"decoding": (0.5, 4e9), "training": (60.0, 90e9)}


def roof(ax):
    """It bends at ten operations a byte, and all points are below it."""
    x, y = ax.lines[0].get_data()
    off = (x < 9.9) | (x > 14.1)
    left, right = ax.get_xlim()
    return (
        np.allclose(y[off], np.minimum(10 * x, 100)[off])
        and ax.lines[1].get_xdata()[0] == pytest.approx(10)
        and left < 0.5 < 60 < right
        and to_hex(ax.lines[-1].get_color()) == CYCLE[4]
    )


case(
    "roofline",
    lambda: viz.roofline(POINTS, rate=100e9, bandwidth=10e9, colors={"training": 4}),
    holds=roof,
    dots=[[0.5], [60.0]],
    dot_heights=[[4.0], [90.0]],
    end=["decoding", "training"],
)
refused(lambda: viz.roofline({"a": (0.0, 1.0)}, 1.0, 1.0), "above 0")
refused(lambda: viz.roofline({}, 1.0, 1.0), "needs points")
SPEEDS = {"plain": (1, 1, 1), "fused": (1.2, 1.5, 1.6)}
SHARES = {"plain": {"attention": 0.3, "the rest": 0.7}, "fused": {"attention": 1.0}}
case("rung table", lambda: viz.rung_table(SPEEDS, SHARES, colors={"attention": 2}),
    widths=[1, 1.5, 0.3, 0.7, 1, 0], xs=[[1, 1], [1.2, 1.6], ...],
    texts=["1.00", "1.50", "30%", "70%", "100%"], filled={CYCLE[2]: 2},
    yticks=["plain", "fused", ...])  # fmt: skip
refused(lambda: viz.rung_table(SPEEDS, {"plain": {}}), "but shares of")

# ---- how to save

TOTAL = sum(math.exp(score - 4) for score in (2.0, 1.0, 4.0, 3.0))
case("carried", lambda: saving.draw_carried([2.0, 1.0, 4.0, 3.0], 2), has=[f"{TOTAL:.3f}"],
    said=f"the sum {TOTAL:.3f}")  # fmt: skip
refused(lambda: saving.draw_carried([1.0, 2.0, 3.0], 2), "3 scores are not whole tiles of 2")
case(  # each with one in the legend
    "tiles",
    lambda: saving.draw_tiles({"causal": torch.ones(4, 4).tril().bool()}, 2),
    filled=dict(zip(saving.FILLS.values(), (10 + 1, 2 + 1, 4 + 1), strict=True)),
    said="3 of 4 tiles",
)
refused(lambda: saving.draw_tiles({"all": torch.ones(4, 4).bool()}, 3), "not whole tiles of 3")
case("two memories", saving.draw_two_memories, said="n by n scores come up")
case("product order", saving.draw_product_order, said="D by D")
case("bits", saving.draw_bits, said="8 and 7")
case("data parallel", saving.draw_data_parallel, said="averaged")
case("stacked bars", lambda: viz.stacked_bars(
    {"small": {"a": 1, "b": 3}, "large": {"a": 50, "c": 50}}, ylabel="share", colors={"b": 4}),
    heights=[0.25, 0.75, 0, 0.5, 0, 0.5],
    bottoms=[0, 0.25, 1, 0, 0.5, 0.5],
    inks=[to_rgba(CYCLE[place]) for place in (0, 4, 2, 0, 4, 2)],
    texts=["25", "75", "4", "50", "50", "100"],
    legend=["c", "b", "a"],
)  # fmt: skip
case("long totals",
    lambda: viz.stacked_bars({f"bar {n}": {"a": 10**9, "b": n} for n in range(4)}),
    has=["1,000,000,003"])  # fmt: skip
for values, match in (
    ({}, "at least one"),
    ({"x": {"a": 0}}, "of 'x' must not"),
    ({"x": {"a": -1, "b": 3}}, "-1"),
):
    refused(lambda values=values: viz.stacked_bars(values), match)
KINDS = {"cat": "noun", "dog": "noun", "see": "verb", "red": "adjective"}


def stacked(ax):
    """The colour of the dot at each place."""
    dots = [line for line in ax.lines if len(line.get_xdata())]
    return {tuple(line.get_xydata()[0]): line.get_color() for line in dots}


case(
    "dot histogram",
    lambda: viz.dot_histogram({"cat": 8, "dog": 8, "see": 1, "red": None}, (1, 8, 64),
                              kinds=KINDS, marked="dog"),
    holds=lambda ax: {(0, 0): CYCLE[1], (1, 1): CYCLE[0], (3, 0): CYCLE[2]}.items()
    <= stacked(ax).items(),
    xticks=["1", "8", "64", "never"],
    texts=["dog"],
    legend=["noun", "verb", "adjective"],
)  # fmt: skip
refused(lambda: viz.dot_histogram({"a": 7}, (1, 8)), r"\[7\] are not among the places \[1, 8\]")
refused(lambda: viz.dot_histogram({}, (1, 8)), "at least one")
