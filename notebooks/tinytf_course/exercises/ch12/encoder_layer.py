"""12.1 an encoder layer from its parts (★★☆, 8 minutes)

Write `my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first)`, the forward pass of an
encoder layer. `attend` and `think` are its sublayers (self-attention and the feed-forward network),
and `norm_1` and `norm_2` are their norms. If `norm_first` is false, the result is that of the
Post-LN layer of the paper, otherwise the Pre-LN layer. There is no dropout.

Hint: Post-LN is `norm(x + f(x))`, and Pre-LN is `x + f(norm(x))`. The input of the second sublayer
is the result of the first.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tinytf_course.expect import agrees, gradients, numbers, same
from tinytf_course.grading import hint


def my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first):
    """One encoder layer, (B, S, C) -> (B, S, C).

    attend and think are the two sublayers, norm_1 and norm_2 their norms, all functions of a
    tensor. norm_first says which layer it is: Pre-LN if true, Post-LN if false.
    """
    if norm_first:
        y = x + attend(norm_1(x))
        return y + think(norm_2(y))
    y = norm_1(x + attend(x))
    return norm_2(y + think(y))


def _attend(x):
    return x.flip(1) + 0.5 * x.mean(dim=1, keepdim=True) - 0.1 * x * x


def _think(x):
    return torch.relu(2 * x - 1) + 0.1 * x.flip(-1) * x


def _norm_1(x):
    return F.layer_norm(x, x.shape[-1:]) * torch.arange(1, x.size(-1) + 1).to(x)


def _norm_2(x):
    return F.layer_norm(x, x.shape[-1:]) + 0.5 * torch.arange(x.size(-1)).to(x)


_PARTS = (_attend, _think, _norm_1, _norm_2)


def _two_blocks(x, attend, think, norm_1, norm_2, norm_first):
    """A block for each sublayer, in a loop."""
    for sublayer, norm in ((attend, norm_1), (think, norm_2)):
        x = x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
    return x


def _torch_layer(norm_first):
    """Torch's layer, its weights unlike each other, and its parts as functions."""
    layer = nn.TransformerEncoderLayer(
        4, 2, 6, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    with torch.no_grad():
        for seed, weight in enumerate(layer.parameters()):
            weight.copy_(numbers(*weight.shape, seed=seed, scale=0.7, dtype=torch.float64))

    def attend(x):
        return layer.self_attn(x, x, x, need_weights=False)[0]

    def think(x):
        return layer.linear2(layer.linear1(x).relu())

    return layer, (attend, think, layer.norm1, layer.norm2)


def _layer_case(shape, norm_first):
    return f"for x of shape {shape}, norm_first={norm_first}"


def _layer(answer, norm_first, note):
    for shape, seed in (((1, 1, 2), 1), ((1, 2, 3), 2), ((2, 3, 4), 3)):
        x = numbers(*shape, seed=seed)
        where = _layer_case(shape, norm_first)
        agrees(answer, _two_blocks, x, *_PARTS, norm_first, note=note, where=where)


@hint("Post-LN: the norm comes after the sum.")
def test_is_post(answer):
    """with norm_first=False it is the paper's layer"""
    _layer(answer, False, "Post-LN is norm(x + f(x)), twice.")


@hint("Pre-LN: the norm comes before the sublayer, inside the sum.")
def test_is_pre(answer):
    """with norm_first=True it is the Pre-LN layer"""
    _layer(answer, True, "Pre-LN is x + f(norm(x)), twice.")


@hint("What is added is x as it was, not a normalised x.")
def test_silent(answer):
    """if both sublayers return zeros, a Pre-LN layer returns its input"""
    x = numbers(1, 2, 3, seed=2)
    got = answer(x, torch.zeros_like, torch.zeros_like, _norm_1, _norm_2, True)
    same(got, x, "for sublayers that return zeros", note="The stream itself is not normalised.")


def test_layer_is_torchs(answer):
    """with the parts of torch's layer it is torch's layer, in float64 too"""
    x = numbers(2, 3, 4, seed=4, dtype=torch.float64)
    for norm_first in (False, True):
        layer, parts = _torch_layer(norm_first)
        where = f"for the parts of `nn.TransformerEncoderLayer`, norm_first={norm_first}"
        same(answer(x, *parts, norm_first), layer(x), where, dtype=True)


def test_layer_gradients(answer):
    """gradients reach x along every path"""
    for norm_first in (False, True):
        where = _layer_case((2, 3, 4), norm_first)
        gradients(answer, _two_blocks, numbers(2, 3, 4, seed=5), *_PARTS, norm_first, where=where)


MISTAKES = r"""
the caller's x changed
    y = x + attend(norm_1(x)) =>
        x += attend(norm_1(x))
        y = x
    y = norm_1(x + attend(x)) =>
        x += attend(x)
        y = norm_1(x)
    says: changes the caller's `x`
    `x += ...` writes into the tensor that the layer was given, which others still read. `x = x
    + ...` makes a new one.
the norm inside the sum
    norm_1(x + attend(x)) => x + norm_1(attend(x))
    norm_2(y + think(y)) => y + norm_2(think(y))
    says: Post-LN is norm(x + f(x))
    x + norm(f(x)) normalises the sublayer's output; the paper normalises the sum.
the stream normalised
    y = x + attend(norm_1(x)) =>
        y = norm_1(x)
        y = norm_2(y + attend(y))
    think(norm_2(y)) => think(y)
    says: The stream itself is not normalised
    Pre-LN normalises what the sublayer reads, and adds its output to x as it was. After `x =
    norm(x)` there is no unnormalised stream left to add to.
no residual
    y = x + => y =
    return y + => return
    norm_1(x + => norm_1(
    norm_2(y + => norm_2(
    says: Post-LN is norm(x + f(x))
    Each sublayer's output is added to its input.
both sublayers read the input
    think(norm_2(y)) => think(norm_2(x))
    think(y) => think(x)
    says: Pre-LN is x + f(norm(x))
    The feed-forward network reads what attention has brought in. (Side by side they are another
    layer, which some models use.)
the second residual from the start
    return y + => return x +
    norm_2(y + => norm_2(x +
    says: Pre-LN is x + f(norm(x))
    The second block adds to the output of the first one, not to the layer's input.
one norm used twice
    think(norm_2 => think(norm_1
    return norm_2 => return norm_1
    says: Post-LN is norm(x + f(x))
    Each block has a norm of its own, with its own gain and bias.
the two layers exchanged
    if norm_first: => if not norm_first:
    says: Post-LN is norm(x + f(x))
    `norm_first` means that the norm comes first: true is Pre-LN. Here it is Post-LN, and the
    other way round.
Post-LN whatever is asked
    if norm_first: => if False:
    says: Pre-LN is x + f(norm(x))
    `norm_first` changes nothing here. One tutorial has two classes, one called PreLN, with the
    same `forward`.
"""
