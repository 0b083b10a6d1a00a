"""Answers to chapter 11: references and mistakes."""

import math

import torch
from torch.nn import functional as F

from tinytf.course.grading import Answers, WrongAnswer

# 11.1 the feed-forward network, a row per word


def my_feed_forward(x, w_1, b_1, w_2, b_2):
    """The position-wise feed-forward network, ReLU inside.

    x is (T, C), w_1 (C, d_ff), b_1 (d_ff,), w_2 (d_ff, C), b_2 (C,); the result is (T, C).
    """
    hidden = torch.relu(x @ w_1 + b_1)  # (T, C) -> (T, d_ff)
    return hidden @ w_2 + b_2


def _no_gradient(x, w_1, b_1, w_2, b_2):
    with torch.no_grad():
        return my_feed_forward(x, w_1, b_1, w_2, b_2)


def _word_by_word(x, w_1, b_1, w_2, b_2):
    out = torch.zeros(x.shape, dtype=x.dtype)
    for t in range(len(x)):
        out[t] = torch.relu(x[t] @ w_1 + b_1) @ w_2 + b_2
    return out


FEED_FORWARD = Answers(
    reference=my_feed_forward,
    wrong=(
        WrongAnswer(
            "no activation",
            lambda x, w_1, b_1, w_2, b_2: (x @ w_1 + b_1) @ w_2 + b_2,
            "expected [[2.75, -1.5]",
            "Without the ReLU the two maps are one matrix, `w_1 @ w_2`: widening buys nothing.",
        ),
        WrongAnswer(
            "ReLU at the end",
            lambda x, w_1, b_1, w_2, b_2: torch.relu((x @ w_1 + b_1) @ w_2 + b_2),
            "not after them",
            "Then the network could only ever add to the stream, and would still be one matrix.",
        ),
        WrongAnswer(
            "first bias after the ReLU",
            lambda x, w_1, b_1, w_2, b_2: (torch.relu(x @ w_1) + b_1) @ w_2 + b_2,
            "b_2 = [10], you get [[9]]",
            "b_1 decides how much of a match it takes before a unit wakes up. After the ReLU it "
            "is a constant, which b_2 can say already.",
        ),
        WrongAnswer(
            "second bias forgotten",
            lambda x, w_1, b_1, w_2, b_2: torch.relu(x @ w_1 + b_1) @ w_2,
            "expected [[11]]",
            "Both maps have a bias in the paper's equation 2.",
        ),
        WrongAnswer(
            "residual added",
            lambda x, w_1, b_1, w_2, b_2: x + torch.relu(x @ w_1 + b_1) @ w_2 + b_2,
            "you get [[-2]], expected [[-3]]",
            "The residual connection is around the network, not in it: the layer adds x.",
        ),
        WrongAnswer(
            "a word as a column, on one side only",
            lambda x, w_1, b_1, w_2, b_2: torch.relu(w_1.T @ x.T + b_1[:, None]) @ w_2 + b_2,
            "raises RuntimeError",
            "With words as columns the second map must stand on the left too. One tutorial writes "
            "`max(0, W_1 v + b_1) W_2`, whose shapes don't fit.",
        ),
        WrongAnswer(
            "GELU",
            lambda x, w_1, b_1, w_2, b_2: F.gelu(x @ w_1 + b_1) @ w_2 + b_2,
            "you get [[10.8",
            "GELU came later, with BERT and GPT. Here it is ReLU: below 0 nothing passes.",
        ),
        WrongAnswer(
            "maps transposed",
            lambda x, w_1, b_1, w_2, b_2: torch.relu(x @ w_1.T + b_1) @ w_2.T + b_2,
            "raises RuntimeError",
            "`nn.Linear` stores its weight as (out, in) and transposes it. Here it is (in, out): "
            "`x @ w_1`. Where C and d_ff are equal the shapes fit and the result is wrong.",
        ),
        WrongAnswer(
            "nothing learns",
            _no_gradient,
            "no gradient reaches `x`",
            "`no_grad` is for evaluation. In a layer it keeps the numbers and loses the training.",
        ),
        WrongAnswer(
            "float32 comes out",
            lambda x, w_1, b_1, w_2, b_2: my_feed_forward(
                *(part.float() for part in (x, w_1, b_1, w_2, b_2))
            ),
            "the dtype is float32, expected float64",
            "`.float()` or `torch.zeros(...)` makes float32 of whatever came in. Compute in the "
            "dtype of the arguments.",
        ),
        WrongAnswer(
            "word by word into a table on the CPU",
            _word_by_word,
            "on another device than the CPU",
            "`torch.zeros(...)` is on the CPU, wherever `x` is. No table is needed: `x @ w_1` is "
            "all words at once.",
        ),
        WrongAnswer(
            "a threshold above 0",
            lambda x, w_1, b_1, w_2, b_2: F.threshold(x @ w_1 + b_1, 0.05, 0.0) @ w_2 + b_2,
            "x=[[0.001]]",
            "ReLU keeps everything above 0, however little it is.",
        ),
    ),
    equivalent={},
)


# 11.2 count a layer


def my_layer_parameters(d_model, d_ff, cross_attention=False):
    """How many numbers one encoder layer learns, or, with cross_attention, one decoder layer.

    Every linear map has a bias; every sublayer has a LayerNorm with gain and bias.
    """
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    attentions = 2 if cross_attention else 1
    return attentions * attention + feed_forward + (attentions + 1) * 2 * d_model


def _counted(matrices=4, biases=True, norms=True, feed_forwards="one"):
    def count(d_model, d_ff, cross_attention=False):
        a = 2 if cross_attention else 1
        attention = matrices * (d_model * d_model + (d_model if biases else 0))
        ffn = 2 * d_model * d_ff + (d_ff + d_model if biases else 0)
        f = a if feed_forwards == "each" else 1
        n = {"one": 1, "two": 2, True: a + 1, False: 0}[norms]
        return a * attention + f * ffn + n * 2 * d_model

    return count


COUNT = Answers(
    reference=my_layer_parameters,
    wrong=(
        WrongAnswer(
            "output map forgotten",
            _counted(matrices=3),
            "you get 43, expected 49",
            "After the heads are joined, w_o mixes them: a fourth d_model x d_model matrix.",
        ),
        WrongAnswer(
            "biases forgotten",
            _counted(biases=False),
            "you get 36, expected 49",
            "Here every linear map has a bias. (Llama's have none; read before you count.)",
        ),
        WrongAnswer(
            "norms forgotten",
            _counted(norms=False),
            "you get 41, expected 49",
            "They are few, but a checkpoint with them missing does not load.",
        ),
        WrongAnswer(
            "one norm",
            _counted(norms="one"),
            "you get 45, expected 49",
            "Each sublayer has a norm of its own: two in an encoder layer, three in a decoder's.",
        ),
        WrongAnswer(
            "the attention's biases forgotten",
            lambda d_model, d_ff, cross_attention=False: (
                my_layer_parameters(d_model, d_ff, cross_attention)
                - (8 if cross_attention else 4) * d_model
            ),
            "you get 61, expected 77",
            "Query, key, value and output are linear maps, and here each has a bias.",
        ),
        WrongAnswer(
            "norms without a bias",
            lambda d_model, d_ff, cross_attention=False: (
                my_layer_parameters(d_model, d_ff, cross_attention)
                - (3 if cross_attention else 2) * d_model
            ),
            "you get 71, expected 77",
            "A LayerNorm has a gain and a bias for each feature.",
        ),
        WrongAnswer(
            "two norms, always",
            _counted(norms="two"),
            "you get 73, expected 77",
            "Each sublayer has a norm, and a decoder's layer has three sublayers.",
        ),
        WrongAnswer(
            "a network after every attention",
            _counted(feed_forwards="each"),
            "there is still one feed-forward network",
            "A decoder layer has two attentions and one feed-forward network, which comes last. "
            "One tutorial says there is one after every attention.",
        ),
        WrongAnswer(
            "cross-attention ignored",
            lambda d_model, d_ff, cross_attention=False: _counted()(d_model, d_ff),
            "you get 49, expected 77",
            "The decoder's layer attends twice: to its own words and to the memory.",
        ),
        WrongAnswer(
            "d_ff is 4 d_model",
            lambda d_model, d_ff, cross_attention=False: my_layer_parameters(
                d_model, 4 * d_model, cross_attention
            ),
            "for d_model=1, d_ff=1, you get 25, expected 16",
            "In the paper it is; but `d_ff` is an argument.",
        ),
    ),
    equivalent={},
)


# 11.3 SwiGLU


def my_swiglu(x, w_1, w_3, w_2):
    """The gated feed-forward network without biases.

    x is (T, C), w_1 and w_3 (C, d_ff), w_2 (d_ff, C); the result is (T, C). The gate is
    silu(x @ w_1), with silu(z) = z sigmoid(z).
    """
    gate = x @ w_1
    return (gate * torch.sigmoid(gate) * (x @ w_3)) @ w_2


def _gated(gate, product=True):
    def answer(x, w_1, w_3, w_2):
        left = gate(x @ w_1)
        return (left * (x @ w_3) if product else left + x @ w_3) @ w_2

    return answer


def _silu(z):
    return z * torch.sigmoid(z)


SWIGLU = Answers(
    reference=my_swiglu,
    wrong=(
        WrongAnswer(
            "sigmoid gate",
            _gated(torch.sigmoid),
            "50 times -3",
            "That is the older GLU (Dauphin et al. 2017). silu is z times sigmoid(z), so the gate "
            "can be large.",
        ),
        WrongAnswer(
            "ReLU gate",
            _gated(torch.relu),
            "you get [[-14.5, 16]",
            "That is ReGLU, of the same paper: near, but below 0 silu lets a little through.",
        ),
        WrongAnswer(
            "silu on the other branch",
            lambda x, w_1, w_3, w_2: (x @ w_1 * _silu(x @ w_3)) @ w_2,
            "The gate is shut",
            "w_1 is the gate in Llama's code; with the two exchanged its weights do not fit.",
        ),
        WrongAnswer(
            "silu of the product",
            lambda x, w_1, w_3, w_2: _silu(x @ w_1 * (x @ w_3)) @ w_2,
            "50 times -3",
            "The silu belongs to the gate alone, before the product.",
        ),
        WrongAnswer(
            "sum for product",
            _gated(_silu, product=False),
            "The gate is shut",
            "A gate multiplies: only so can it shut.",
        ),
        WrongAnswer(
            "GELU gate",
            _gated(F.gelu),
            "1 · sigmoid(1) = 0.7311",
            "That is GEGLU, of the same paper: z · Φ(z), where silu is z · sigmoid(z).",
        ),
        WrongAnswer(
            "ReLU where z is large",
            _gated(lambda z: torch.where(z.abs() > 10, torch.relu(z), _silu(z))),
            "A gate closes slowly",
            "Far from 0 silu comes near to ReLU, and is never equal to it. `torch.sigmoid` stands "
            "numbers of any size.",
        ),
        WrongAnswer(
            "exponentials without sigmoid",
            _gated(lambda z: z * z.exp() / (1 + z.exp())),
            "e^89 is past float32",
            "`exp` overflows at 89, and ∞/∞ is NaN. `torch.sigmoid` takes care of it.",
        ),
        WrongAnswer(
            "z over 1 + e^-z",
            _gated(lambda z: z / (1 + (-z).exp())),
            "its slope times 0 NaN",
            "The values are right, since z / ∞ is 0. Going back, ∞ is multiplied by 0, and one NaN "
            "spoils the whole model. `torch.sigmoid` takes care of it.",
        ),
        WrongAnswer(
            "maps transposed",
            lambda x, w_1, w_3, w_2: my_swiglu(x, w_1.T, w_3.T, w_2.T),
            "raises RuntimeError",
            "`nn.Linear` stores its weight as (out, in) and transposes it. Here it is (in, out): "
            "`x @ w_1`.",
        ),
        WrongAnswer(
            "float32 comes out",
            lambda x, w_1, w_3, w_2: my_swiglu(x.float(), w_1.float(), w_3.float(), w_2.float()),
            "the dtype is float32, expected float64",
            "`.float()` or `torch.zeros(...)` makes float32 of whatever came in. Compute in the "
            "dtype of the arguments.",
        ),
        WrongAnswer(
            "gate cut off from the graph",
            _gated(lambda z: _silu(z.detach())),
            "for the gradient to `x`",
            "The numbers are right, but the gate would never learn when to open: leave `detach` "
            "and `no_grad` out of it.",
        ),
    ),
    equivalent={},
)


# 11.4 repair: equal parameters


def my_gated_width(d_ff, multiple_of=1):
    """The hidden width at which SwiGLU's three matrices cost what two of width d_ff do.

    Two thirds of d_ff, rounded up to a multiple of multiple_of.
    """
    steps = -(-2 * d_ff // (3 * multiple_of))  # rounded up, in whole numbers
    return steps * multiple_of


WIDTH = Answers(
    reference=my_gated_width,
    wrong=(
        WrongAnswer(
            "rounded down",
            lambda d_ff, multiple_of=1: 2 * d_ff // (3 * multiple_of) * multiple_of,
            "1365.33",
            "`//` rounds down. Turn the sign twice, or use `math.ceil`.",
        ),
        WrongAnswer(
            "the code to repair",
            lambda d_ff, multiple_of=1: round(2 * d_ff / 3) // multiple_of * multiple_of,
            "you get 10752, expected 11008",
            "It rounds twice, to the nearest and then down. Leave the fraction alone until the "
            "end: `-(-2 * d_ff // (3 * multiple_of)) * multiple_of`.",
        ),
        WrongAnswer(
            "rounded down, then up",
            lambda d_ff, multiple_of=1: -(-(2 * d_ff // 3) // multiple_of) * multiple_of,
            "1365.33",
            "Llama's code does so, and at Llama's widths it makes no difference. Here we round "
            "once, at the end.",
        ),
        WrongAnswer(
            "half",
            lambda d_ff, multiple_of=1: -(-d_ff // (2 * multiple_of)) * multiple_of,
            "for d_ff=2048, you get 1024",
            "Half would be right if gate and way in were all; the way back narrows as well.",
        ),
        WrongAnswer(
            "unchanged",
            lambda d_ff, multiple_of=1: -(-d_ff // multiple_of) * multiple_of,
            "for d_ff=3, you get 3",
            "Then SwiGLU has half as many parameters again, and wins for that reason alone.",
        ),
        WrongAnswer(
            "always one multiple more",
            lambda d_ff, multiple_of=1: (2 * d_ff // (3 * multiple_of) + 1) * multiple_of,
            "for d_ff=384, multiple_of=256, you get 512",
            "Adding 1 after rounding down overshoots where it divides evenly.",
        ),
        WrongAnswer(
            "multiple ignored",
            lambda d_ff, multiple_of=1: -(-2 * d_ff // 3),
            "you get 10923, expected 11008",
            "Matrix units work in blocks: widths are rounded up to a multiple they like.",
        ),
        WrongAnswer(
            "a float",
            lambda d_ff, multiple_of=1: -(-2 * d_ff / 3 // multiple_of) * multiple_of,
            "a float, expected an int",
            "`/` makes a float, and `nn.Linear(512, 1366.0)` is refused. Stay with `//`, or make "
            "it an `int` or use `math.ceil`.",
        ),
        WrongAnswer(
            "rounded to the nearest",
            lambda d_ff, multiple_of=1: round(2 * d_ff / (3 * multiple_of)) * multiple_of,
            "1365.33",
            "`round` goes down as often as up. Use `math.ceil`.",
        ),
        WrongAnswer(
            "divided as a float",
            lambda d_ff, multiple_of=1: math.ceil(2 * d_ff / (3 * multiple_of)) * multiple_of,
            "floats lose a remainder",
            "A float has 16 digits: `/` loses what is left over of large numbers. `//` is exact "
            "for whole numbers of any size.",
        ),
        WrongAnswer(
            "a third taken off, as a float",
            lambda d_ff, multiple_of=1: math.ceil(d_ff * (1 - 1 / 3) / multiple_of) * multiple_of,
            "for d_ff=9",
            "1 - 1/3 is 0.6666666666666667, a little above two thirds, and rounding up makes a "
            "whole unit of that little. Whole numbers are exact: `-(-2 * d_ff // (3 * m))`.",
        ),
    ),
    equivalent={},
)


# 11.5 the network as a table


def my_recall(x, keys, thresholds, values):
    """What a table with a key and a value per unit returns for one word, and how active it was.

    x is (C,), keys (d_ff, C), thresholds (d_ff,), values (d_ff, C). Returns (C,) and (d_ff,): the
    values' sum, weighted by activity, and the activity, relu(key · x + threshold).
    """
    activity = torch.relu(keys @ x + thresholds)
    return activity @ values, activity


RECALL = Answers(
    reference=my_recall,
    wrong=(
        WrongAnswer(
            "softmax, as in attention",
            lambda x, k, t, v: ((a := (k @ x + t).softmax(0)) @ v, a),
            "share out a 1",
            "Attention's weights sum to 1, so some value is always taken. Here all may sleep, "
            "and all may be wide awake.",
        ),
        WrongAnswer(
            "thresholds forgotten",
            lambda x, k, t, v: ((a := torch.relu(k @ x)) @ v, a),
            "the activity, you get [2, 0, 1]",
            "w_1's bias sets how good a match has to be before the unit wakes up.",
        ),
        WrongAnswer(
            "the threshold as a gate",
            lambda x, k, t, v: ((a := torch.relu(k @ x) * (k @ x > t)) @ v, a),
            "the activity, you get [2, 0, 0]",
            "It is added before the ReLU: w_1's bias, not a bar that the match has to clear.",
        ),
        WrongAnswer(
            "the threshold subtracted",
            lambda x, k, t, v: ((a := torch.relu(k @ x - t)) @ v, a),
            "the activity, you get [2.5, 0, 0]",
            "It is added, as biases are: a unit that is hard to wake has a negative one.",
        ),
        WrongAnswer(
            "the two results exchanged",
            lambda x, k, t, v: ((a := torch.relu(k @ x + t)), a @ v),
            "comes first",
            "Return `(result, activity)`, in this order.",
        ),
        WrongAnswer(
            "only the best key",
            lambda x, k, t, v: ((a := torch.relu(k @ x + t)).max() * v[a.argmax()], a),
            "the result, you get [10, -100]",
            "Every active unit adds its value: what comes out is a sum, and seldom of one.",
        ),
        WrongAnswer(
            "the mean of the values",
            lambda x, k, t, v: ((a := torch.relu(k @ x + t)) @ v / len(v), a),
            "the result, you get [3.833, -28.33]",
            "Nothing divides: twice as many units can write twice as much.",
        ),
        WrongAnswer(
            "normalised to sum to 1",
            lambda x, k, t, v: ((a := torch.relu(k @ x + t)) @ v / a.sum().clamp_min(1e-9), a),
            "the result for 2x against twice that for x",
            "That forgets how loud the word is. The sum is not normalised.",
        ),
        WrongAnswer(
            "no activation",
            lambda x, k, t, v: ((a := k @ x + t) @ v, a),
            "the activity, you get [1.5, -2, 2.5]",
            "A key that does not match should write nothing, not its value's opposite.",
        ),
        WrongAnswer(
            "keys transposed",
            lambda x, k, t, v: ((a := torch.relu(x @ k + t)) @ v, a),
            "raises RuntimeError",
            "A row of `keys` is a unit's key: `keys @ x`. With as many units as numbers in a word "
            "`x @ keys` has a shape that fits, and is something else.",
        ),
        WrongAnswer(
            "float32 comes out",
            lambda x, k, t, v: my_recall(x.float(), k.float(), t.float(), v.float()),
            "the dtype is float32, expected float64",
            "`.float()` or `torch.zeros(...)` makes float32 of whatever came in. Compute in the "
            "dtype of the arguments.",
        ),
        WrongAnswer(
            "activity cut off from the graph",
            lambda x, k, t, v: ((a := torch.relu(k @ x + t).detach()) @ v, a),
            "no gradient reaches `x`",
            "The numbers are right, but no key would learn: leave `detach` and `no_grad` out of "
            "it.",
        ),
        WrongAnswer(
            "three units",
            lambda x, k, t, v: ((a := torch.relu(k @ x + t)[:3]) @ v[:3], a),
            "values of shape (9, 4), for result 0",
            "The number of units is `len(keys)`.",
        ),
        WrongAnswer(
            "activity cut at 6",
            lambda x, keys, thresholds, values: (
                F.relu6(keys @ x + thresholds) @ values,
                F.relu6(keys @ x + thresholds),
            ),
            "x=[1000]",
            "`relu6` was made for phones that count in a few bits. ReLU has no ceiling.",
        ),
    ),
    equivalent={},
)


ANSWERS = {
    "11.1": FEED_FORWARD,
    "11.2": COUNT,
    "11.3": SWIGLU,
    "11.4": WIDTH,
    "11.5": RECALL,
}
