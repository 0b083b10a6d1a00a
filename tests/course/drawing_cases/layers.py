"""Drawings of attention, norms, the feed-forward network, and the two stacks."""

import pytest
import torch
from matplotlib.colors import to_rgba
from torch import nn

from drawing_cases import case, refused
from tinytf import attention_weights, causal_mask
from tinytf.viz.style import COLOURS
from tinytf_course import drawings as viz
from tinytf_course.drawings import encoder, feedforward, lookup, multihead
from tinytf_course.drawings.norms import GROUP, PAD

# ---- attention

X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
MASK = causal_mask(3)[0, 0]
Q, K, V = torch.tensor([[0.5, 2.0], [-1.0, 0.3]]), X + 0.25, torch.tensor([[1.0], [2], [-4]])


def written(numbers):
    """The numbers of a tensor as drawings have them."""
    return [f"{n:.2f}".replace("-", "−") for n in numbers.flatten().tolist()]


case(
    "steps",
    lambda: lookup.draw_steps(Q, K, V, words=["x", "y"], keys=["the", "cat", "sat"]),
    has=["x", "the", "cat", "sat", *written(attention_weights(Q, K)),
         *written(attention_weights(Q, K) @ V)],
    said="rows sum to 1",
)  # fmt: skip
case(
    "masked steps",
    lambda: lookup.draw_steps(X, X, X, MASK, words=["a", "b", "c"]),
    has=["a", *written(attention_weights(X, X, MASK)[2])],
    holds=lambda ax: len(ax.texts) == len(lookup.draw_steps(X, X, X, words="abc").texts) - 6,
)
MAPS = {"Q": torch.eye(2), "K": torch.eye(2).flip(0), "V": torch.tensor([[1.0, 2], [3, 5]])}
case(
    "maps",
    lambda: lookup.draw_maps(X, MAPS, ["a", "b", "c"]),
    count={"a": 4},  # X, Q, K and V
    has=["W_V (2, 2)", "V (3, 2)", "7"],
    said="is V, [[1.0, 2.0], [3.0, 5.0], [4.0, 7.0]]",
)
case(
    "one head",
    lambda: multihead.draw_one_head(length=10, width=32),
    count={"(10, 32)": 4},  # X, Q, K, V
    has=["scores (10, 10)", "weights (10, 10)", "output (10, 32)"],
)
case("split", lambda: multihead.draw_split(torch.arange(18).reshape(3, 6), num_heads=3),
    count={str(n): 2 for n in range(18)}, has=["head 2 (3, 2)"])  # fmt: skip
HEADS = {"causal": causal_mask(2)[0].expand(3, 2, 2)}
case("heads", lambda: multihead.draw_heads(HEADS), count={"0": 3, "1": 9})
case("blank heads", lambda: multihead.draw_heads(HEADS, blank=True), count={"0": 0, "1": 9})
case(
    "three attentions",
    lambda: multihead.draw_three_attentions(
        ["a", "b"], ["c", "d", "e"], torch.tensor([[True, False]]).expand(2, 2), MASK
    ),
    count={"1": 2 + 6 + 3, "Q": 3},
)
refused(lambda: multihead.draw_looks(torch.ones(1, 3, 2) / 2, list("ab"), list("xyz"), 3),
    "place 3 is not one of 0 to 2")  # fmt: skip

# ---- residuals and norms

case("shortcut", lambda: viz.draw_shortcut(slopes=(0.5, -0.5)),
    has=["0.75", "0.5", "1", "shortcut"])  # fmt: skip
case("norm places", viz.draw_norm_places, count={"norm": 2},
    has=["Post-LN", "Pre-LN", "on the stream", "on the branch"], said="Post-LN")  # fmt: skip
# the front and what of the side and the top belongs to it
for norm, counted, cells in (("LayerNorm", "6 ", 6 + 1), ("BatchNorm", "3 × 5 = 15 ", 5 + 3 + 15)):
    case(f"averaged by {norm}", lambda norm=norm: viz.draw_averaged(norm, sizes=(3, 5, 6)),
        within=[counted], filled={COLOURS[norm]: cells})  # fmt: skip

SENTENCES = [["the", "cat", "sat"], ["tea", "<pad>", "<pad>"]]
NUMBERS = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
ROW, COLUMN = torch.zeros(2, 2, 3, 5, dtype=torch.bool)
ROW[0, 1], COLUMN[:, :, 2] = True, True
GROUPS = {"row": ROW, "column": COLUMN}


def gradients():
    """Which numbers one normed number depends on, by the norms themselves."""

    def used(norm):
        z = NUMBERS.clone().requires_grad_()
        return torch.autograd.grad(norm(z)[0, 1, 2], z)[0] != 0

    batch = nn.BatchNorm1d(5)
    columns = used(lambda z: batch(z.flatten(0, 1)).view_as(z))
    return viz.norm_groups(NUMBERS, {"row": used(nn.LayerNorm(5)), "column": columns}, SENTENCES)


def cells(ax):
    """How many cells of each stack belong to the group, and to its padding."""
    ax.figure.canvas.draw()
    colours = [stack.get_facecolors() for stack in ax.collections]
    return [tuple((abs(found - to_rgba(c)) < 1e-6).all(1).sum() for c in (GROUP, PAD))
            for found in colours]  # fmt: skip


def in_red(ax):
    """The words in the colour of padding."""
    words = {word for sentence in SENTENCES for word in sentence}
    return {t.get_text() for t in ax.texts if t.get_color() == PAD} & words


case(
    "norm groups",
    lambda: viz.norm_groups(NUMBERS, GROUPS, SENTENCES, cell=(0, 1, 2)),
    holds=lambda ax: (
        cells(ax) == [(5, 0), (4, 2)]
        and in_red(ax) == {"<pad>"}
        and ax.patches[-1].get_edgecolor() == to_rgba("black")
    ),  # the frame of the cell
    count={"5 features →": 2, "sentence 1": 1, "2 tokens of padding": 1, "the": 1, "<pad>": 2},
)
case("gradients of norms", gradients, holds=lambda ax: cells(ax) == [(5, 0), (4, 2)])
case(
    "few features of norms",
    lambda: viz.norm_groups(NUMBERS, GROUPS, SENTENCES, shown=3),
    has=["5 numbers", "1 token × 5 features", "6 numbers", "6 tokens × 1 feature"],
    count={"…": 4},
)
case(
    "one number, and a title of two lines",
    lambda: viz.norm_groups(
        torch.ones(2, 3, 5), {"one\nand two": ROW & COLUMN}, SENTENCES, shown=5
    ),
    has=["1 number", "one\nand two"],
    holds=lambda ax: cells(ax) == [(1, 0)],
)
for change, match in (
    ({"x": torch.ones(3, 5)}, "3 dimensions"),
    ({"groups": {}}, "at least one"),
    ({"groups": {"short": torch.ones(2, 3, 4)}}, r"'short' has shape \(2, 3, 4\)"),
    ({"groups": {"none": torch.zeros(2, 3, 5)}}, "'none' is empty"),
    ({"words": SENTENCES[:1]}, r"rows of \[3\] tokens"),
    ({"words": [["a"], ["b"]]}, r"rows of \[1, 1\] tokens"),
    ({"cell": (2, 0, 0)}, r"cell \(2, 0, 0\) lies outside"),
    ({"cell": (0, 0)}, r"cell \(0, 0\) lies outside"),
    ({"cell": (0, 0, 4), "shown": 3}, "not among the 3 features"),
    ({"shown": 0}, "shown=0"),
):
    given = {"x": NUMBERS, "groups": {"row": ROW}, "words": SENTENCES} | change
    refused(lambda given=given: viz.norm_groups(**given), match)

# ---- the feed-forward network

x, W_1, B_1 = torch.tensor([1.0, -1.0]), torch.tensor([[1.0, -1, 1], [-1, 1, 1]]), [0.0, 0, -1]
W_2, B_2 = torch.tensor([[1.0, 0], [1, 0], [0, 1]]), [-1.0, 0]
case("network", lambda: feedforward.draw_network(x, W_1, B_1, W_2, B_2),
    has=["word", "sums", "ReLU", "hidden", "out"], count={"2": 2, "−2": 1, "−1": 6},
    said="becomes [1.0, 0.0]")  # fmt: skip
case("units", lambda: feedforward.draw_units([1.0, 1.0], W_1, B_1, W_2),
    has=["unit 0", "unit 2", "keys", "activity", "values", "written", "sum"],
    said=["activities are [0.0, 0.0, 1.0]", "the sum is [0.0, 1.0]"])  # fmt: skip


def area(patch):
    """What it covers."""
    return patch.get_width() * patch.get_height()


case("weights", lambda: feedforward.draw_weights(2, 8),
    has=["16 weights, 33%", "32 weights, 67%"],
    holds=lambda ax: area(ax.patches[-1]) == pytest.approx(4 * area(ax.patches[0])))  # fmt: skip
case("a layer", lambda: feedforward.draw_layer(["the", "cat", "sat"]), count={"FFN": 3},
    arrows=3 * 2 + 3 * 3)  # fmt: skip
case("gate", feedforward.draw_gate, count={"w_1": 2, "w_2": 2},
    has=["silu", "w_3", "×", "how far open"])  # fmt: skip
case("mirror", lambda: feedforward.draw_mirror("one", "other"),
    has=["one", "other", "value", "mirrored"], said="towards other")  # fmt: skip
case("unit card",
    lambda: viz.unit_card(["the *cat*", "a *dog*"], torch.tensor([3.0, 2.0]), {"猫": 1, "b": -2}),
    has=["the *cat*", "a *dog*"], widths=[3, 2, 1, -2])  # fmt: skip
refused(lambda: viz.unit_card(["a", "b"], [1.0], {"a": 1}), "2 contexts for 1 activities")
refused(lambda: viz.unit_card(["a"], [1.0], {}), "at least one")
PLANES = {("a", "x", "y"): [[0, 0], [0, 1]], ("b", "x", "y"): [[2, 2], [2, 2]]}
case("verdict planes", lambda: feedforward.verdict_planes(PLANES, [0, 1], ["bad", "good"]),
    texts=["bad", "good", "bad / good"], legend=["praise", "no praise"])  # fmt: skip

# ---- the encoder

case(
    "encoder layer",
    lambda: encoder.draw_encoder_layer(("a", "cat", "likes", "milk")),
    has=["a", "cat", "likes", "milk"],
    count={"self-attention": 1, "feed-forward": 4, "+ norm": 8},
)
case(
    "encoder stack",
    lambda: encoder.draw_encoder_stack(4, final="the end"),
    has=["layer 1", "layer 2", "layer 3", "layer 4", "the end"],
    count={"layer 5": 0},
    said="mask",
)
case(
    "masked words",
    lambda: encoder.draw_masked_words(
        ["a", "cat", "sat"], ["a", "<mask>", "sat"], [False, True, False]
    ),
    count={"cat": 2, "<mask>": 1, "sat": 2},
    said="the chosen words: cat.",
)
refused(lambda: encoder.draw_masked_words(["a", "cat"], ["a"], [True, True]), "zip")
MOVES = {"one": torch.tensor([[1.0, 0.0], [2.0, 3.0]]), "other": torch.ones(2, 2)}
case("who moves whom", lambda: encoder.who_moves_whom(MOVES, ["a", "cat"]),
    titles=["one", "other"], scales=[(0, 3), (0, 3)], hatched=1)  # fmt: skip


def meanings():
    """Two meanings that part layer by layer."""
    apart = torch.arange(3)[:, None] * torch.tensor([-1.0, 1.0]).repeat(20)
    scores = torch.randn(3, 40, generator=torch.Generator().manual_seed(0)) + apart
    return encoder.parting({"trained": scores, "not": scores}, torch.tensor([0, 1]).repeat(20))


case("parting", meanings, titles=["trained", "not"], legend=["first noun", "second noun"])
