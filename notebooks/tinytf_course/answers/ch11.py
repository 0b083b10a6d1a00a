"""Answers to chapter 11: references and mistakes."""

import math

import torch
from torch.nn import functional as F

from tinytf_course.grading import Answers, WrongAnswer

# 11.1 the feed-forward network, a row per token


def my_feed_forward(x, w_1, b_1, w_2, b_2):
    """Return the output of the position-wise feed-forward network with a ReLU.

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
            "Without the ReLU the two matrices are one, `w_1 @ w_2`: the width gains nothing.",
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
            "b_1 decides how large a sum must be before its unit is active. After the ReLU it is "
            "a constant, which b_2 can provide already.",
        ),
        WrongAnswer(
            "second bias forgotten",
            lambda x, w_1, b_1, w_2, b_2: torch.relu(x @ w_1 + b_1) @ w_2,
            "expected [[11]]",
            "Both linear layers have a bias in the paper's equation 2.",
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
            "With tokens as columns, the second matrix must be on the left, too. In "
            "`max(0, W_1 v + b_1) W_2` the shapes don't fit.",
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
    """Return how many parameters an encoder layer or, with cross_attention, a decoder layer has.

    Every linear layer has a bias; every sublayer has a LayerNorm with gain and bias.
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


# 11.3 two units that multiply


def my_product(d_model, i, j, k):
    """Return weights (w_1, w_3, w_2) with which SwiGLU(d_model, 2) multiplies two features.

    Feature k of the output is feature i of the input times its feature j; all others are 0. The
    weights are (2, d_model), (2, d_model) and (d_model, 2), as `nn.Linear` stores them.
    """
    w_1, w_3, w_2 = torch.zeros(2, d_model), torch.zeros(2, d_model), torch.zeros(d_model, 2)
    w_1[0, i], w_1[1, i] = 1.0, -1.0  # the gates: feature i and its negative
    w_3[:, j] = 1.0  # what may pass: feature j, in both units
    w_2[k, 0], w_2[k, 1] = 1.0, -1.0  # the difference of the units
    return w_1, w_3, w_2


def _wired(gates=(1.0, -1.0), passing=(1.0, 1.0), back=(1.0, -1.0)):
    def answer(d_model, i, j, k):
        w_1, w_3, w_2 = torch.zeros(2, d_model), torch.zeros(2, d_model), torch.zeros(d_model, 2)
        w_1[:, i], w_3[:, j] = torch.tensor(gates), torch.tensor(passing)
        w_2[k] = torch.tensor(back)
        return w_1, w_3, w_2

    return answer


def _everywhere(d_model, i, j, k):
    w_1, w_3, _ = my_product(d_model, i, j, k)
    return w_1, w_3, torch.tensor([[1.0, -1.0]] * d_model)


PRODUCT = Answers(
    reference=my_product,
    wrong=(
        WrongAnswer(
            "one unit",
            _wired(gates=(1.0, 0.0)),
            "you get [[8.573]]",
            "silu(3) is 2.86, a little less than 3. The second unit, turned round, has what is "
            "missing.",
        ),
        WrongAnswer(
            "the units added",
            _wired(back=(1.0, 1.0)),
            "you get [[8.146]]",
            "silu(z) + silu(-z) is not z, but near to its size without the sign. It takes the "
            "difference.",
        ),
        WrongAnswer(
            "neither gate turned round",
            _wired(gates=(1.0, 1.0)),
            "you get [[0]], expected [[9]]",
            "Two units that do the same, one less the other, are nothing: one gate must look at "
            "-x_i.",
        ),
        WrongAnswer(
            "half of each",
            _wired(back=(0.5, -0.5)),
            "you get [[4.5]]",
            "silu(z) - silu(-z) is z already; no mean is taken.",
        ),
        WrongAnswer(
            "the gate's feature passes",
            lambda d_model, i, j, k: my_product(d_model, i, i, k),
            "Feature 0 is 2, feature 1 3",
            "That is the square of feature i. Feature j is what must pass.",
        ),
        WrongAnswer(
            "written where it was read",
            lambda d_model, i, j, k: my_product(d_model, i, j, i),
            "for d_model=3, i=0, j=1, k=2",
            "Row k of w_2 writes feature k.",
        ),
        WrongAnswer(
            "written everywhere",
            _everywhere,
            "you get [[6, 6]]",
            "Every row of w_2 writes a feature, and all but row k must write 0.",
        ),
        WrongAnswer(
            "transposed",
            lambda d_model, i, j, k: tuple(w.T for w in my_product(d_model, i, j, k)),
            "(out, in)",
            "`nn.Linear` keeps its matrix as (out, in): a unit is a row of w_1 and w_3, and a "
            "column of w_2.",
        ),
        WrongAnswer(
            "in the order of their numbers",
            lambda d_model, i, j, k: (
                (w := my_product(d_model, i, j, k))[0],
                w[2],
                w[1],
            ),
            "`w_3` has shape (1, 2), expected (2, 1)",
            "The order is (w_1, w_3, w_2): the two ways in, then the way back.",
        ),
        WrongAnswer(
            "small gates, as if silu were straight",
            lambda d_model, i, j, k: (
                (w := _wired(gates=(0.001, 0.0))(d_model, i, j, k))[0],
                w[1],
                2000 * w[2],
            ),
            "you get [[9.014]]",
            "Near 0 silu is about z / 2, but only near 0.",
        ),
    ),
    equivalent={
        "… => ….detach()…": "weights that are written down carry no gradient",
        "… => ….float()…": "zeros are float32 already",
    },
)


# 11.4 the network as a table


def my_recall(x, keys, thresholds, values):
    """Return the output of a network with a key and a value per unit, and the activities.

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
            "sum to 1",
            "Attention's weights sum to 1, so some value is always added. Here all units may be "
            "inactive, and all may be active.",
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


# 11.5 is it wide enough?


def my_fits(width, d_ff, multiple_of=1):
    """Return whether width is right for SwiGLU, True or False.

    The right one is the smallest multiple of multiple_of at which three matrices have no fewer
    weights than two of width d_ff. All are whole numbers from 1 up.
    """
    enough = 3 * width >= 2 * d_ff
    less_would_do = 3 * (width - multiple_of) >= 2 * d_ff
    return enough and not less_would_do and width % multiple_of == 0


def _is(width_of):
    """A check that computes a width and compares."""
    return lambda width, d_ff, multiple_of=1: width == width_of(d_ff, multiple_of)


FITS = Answers(
    reference=my_fits,
    wrong=(
        WrongAnswer(
            "too narrow passes",
            lambda width, d_ff, multiple_of=1: (
                width % multiple_of == 0 and 3 * (width - multiple_of) < 2 * d_ff
            ),
            "3 · 1 weights are fewer than 2 · 3",
            "Three matrices must have no fewer weights than two: 3 · width against 2 · d_ff.",
        ),
        WrongAnswer(
            "too wide passes",
            lambda width, d_ff, multiple_of=1: width % multiple_of == 0 and 3 * width >= 2 * d_ff,
            "A width of 2 is enough",
            "It must be the smallest: the next multiple below must be too narrow.",
        ),
        WrongAnswer(
            "exactly as many",
            lambda width, d_ff, multiple_of=1: 3 * width == 2 * d_ff,
            "Two thirds of 1 are 0.67",
            "Mostly no whole number costs exactly as much; then the next above is right.",
        ),
        WrongAnswer(
            "any number, not only multiples",
            lambda width, d_ff, multiple_of=1: 3 * width >= 2 * d_ff > 3 * (width - multiple_of),
            "for width=10923",
            "10923 is wide enough, and no multiple of 256: look at `width % multiple_of`.",
        ),
        WrongAnswer(
            "the next below is one less",
            lambda width, d_ff, multiple_of=1: (
                width % multiple_of == 0 and 3 * width >= 2 * d_ff > 3 * (width - 1)
            ),
            "for width=11008",
            "Between multiples nothing else is allowed: the next width below is width - "
            "multiple_of.",
        ),
        WrongAnswer(
            "exactly enough refused",
            lambda width, d_ff, multiple_of=1: (
                width % multiple_of == 0 and 3 * width > 2 * d_ff >= 3 * (width - multiple_of)
            ),
            "for width=2, d_ff=3",
            "No fewer weights: as many are enough.",
        ),
        WrongAnswer(
            "the multiple ignored",
            lambda width, d_ff, multiple_of=1: 3 * width >= 2 * d_ff > 3 * (width - 1),
            "for width=10923",
            "Widths come in blocks: a multiple of `multiple_of`, and the smallest that is enough.",
        ),
        WrongAnswer(
            "rounded to the nearest",
            _is(lambda d_ff, m: round(2 * d_ff / (3 * m)) * m),
            "Two thirds of 2 are 1.33",
            "`round` goes down as often as up, and then three matrices have fewer weights.",
        ),
        WrongAnswer(
            "rounded down, then up",
            _is(lambda d_ff, m: -(-(2 * d_ff // 3) // m) * m),
            "Two thirds of 1 are 0.67",
            "Llama's code does so, and at Llama's widths it makes no difference. Ask what makes "
            "`width` right, and nothing has to be rounded.",
        ),
        WrongAnswer(
            "half",
            _is(lambda d_ff, m: -(-d_ff // (2 * m)) * m),
            "for width=3, d_ff=6",
            "Three matrices against two, so two thirds: the way back narrows as well.",
        ),
        WrongAnswer(
            "unchanged",
            _is(lambda d_ff, m: -(-d_ff // m) * m),
            "for width=2, d_ff=3",
            "Then SwiGLU has half as many weights again, and wins for that reason alone.",
        ),
        WrongAnswer(
            "in floats",
            _is(lambda d_ff, m: math.ceil(2 * d_ff / (3 * m)) * m),
            "Floats have 16 digits",
            "`/` loses what is left over of large numbers. Products of whole numbers are exact.",
        ),
    ),
    equivalent={},
)


ANSWERS = {
    "11.1": FEED_FORWARD,
    "11.2": COUNT,
    "11.3": PRODUCT,
    "11.4": RECALL,
    "11.5": FITS,
}
