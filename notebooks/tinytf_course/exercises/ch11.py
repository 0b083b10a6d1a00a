"""Chapter 11: the feed-forward network, its parameters, what a gate can do, its table."""

import math
from fractions import Fraction

import torch
from torch.nn import functional as F

from tinytf_course.evidence import record
from tinytf_course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    precise,
    same,
    short,
    travels,
)
from tinytf_course.grading import Exercise
from tinytf_course.words import described, dtype_name

# 11.1 the feed-forward network, a row per token


def my_feed_forward(x, w_1, b_1, w_2, b_2):
    """Return the output of the position-wise feed-forward network with a ReLU.

    x is (T, C), w_1 (C, d_ff), b_1 (d_ff,), w_2 (d_ff, C), b_2 (C,); the result is (T, C).
    """
    raise NotImplementedError


X = torch.tensor([[1.0, 2.0], [-1.0, 0.5], [0.0, 0.0]])
W_1 = torch.tensor([[1.0, -1.0, 0.5, 2.0], [0.0, 1.0, -1.0, 1.0]])
B_1 = torch.tensor([0.5, 0.0, 1.0, -3.0])
W_2 = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0], [-2.0, 0.5]])
B_2 = torch.tensor([0.25, -4.0])


def _network(x, w_1, b_1, w_2, b_2):
    """torch's own maps, whose weights are stored the other way round."""
    return F.linear(F.linear(x, w_1.T, b_1).clamp_min(0), w_2.T, b_2)


def _weights(c, d_ff, seed, dtype=torch.float32):
    """Random w_1, b_1, w_2, b_2."""
    maps = numbers(c, d_ff, seed=seed, dtype=dtype), numbers(d_ff, c, seed=seed + 1, dtype=dtype)
    shifts = numbers(d_ff, seed=seed + 2, dtype=dtype), numbers(c, seed=seed + 3, dtype=dtype)
    return maps[0], shifts[0], maps[1], shifts[1]


def _no_input(answer):
    """a token of zeros gives what the biases give"""
    where = "for x of zeros, w_1 and w_2 of ones, b_1 = [1, -2], b_2 = [10]"
    ones = torch.ones(1, 2), torch.tensor([1.0, -2.0]), torch.ones(2, 1), torch.tensor([10.0])
    agrees(answer, [[11.0]], torch.zeros(1, 1), *ones, where=where)


def _barely_open(answer):
    """a unit that is barely above 0 passes on what it has"""
    where = "for x=[[0.001]], w_1=[[1]], b_1=[0], w_2=[[1]], b_2=[0]"
    one, zero = torch.ones(1, 1), torch.zeros(1)
    agrees(answer, [[0.001]], 0.001 * one, one, zero, one, zero, where=where)


def _negative_output(answer):
    """the output may be negative"""
    where = "for x=[[1]], w_1=[[1]], b_1=[0], w_2=[[-3]], b_2=[0]"
    one, zero = torch.ones(1, 1), torch.zeros(1)
    note = "The ReLU is applied between the two layers, not after them."
    agrees(answer, [[-3.0]], one, one, zero, -3 * one, zero, where=where, note=note)


def _by_hand(answer):
    """three words come out as by hand"""
    expected = [[2.75, -1.5], [4.75, -5.5], [0.75, -2.0]]
    agrees(answer, expected, X, W_1, B_1, W_2, B_2)


def _any_sizes(answer):
    """whatever T, C and d_ff are, equal ones too"""
    agrees(answer, _network, numbers(1, 3, seed=1), *_weights(3, 5, seed=2), tolerance=1e-4)
    agrees(answer, _network, numbers(4, 4, seed=3), *_weights(4, 4, seed=4), tolerance=1e-4)
    agrees(answer, _network, numbers(5, 2, seed=5), *_weights(2, 1, seed=6), tolerance=1e-4)
    large = numbers(2, 3, seed=10, scale=1000.0)
    agrees(answer, _network, large, *_weights(3, 4, seed=11), tolerance=1e-3)


def _ffn_dtype(answer):
    """it works in the dtype of its arguments, and where they are"""
    x = numbers(3, 2, seed=10, dtype=torch.float64)
    agrees(answer, _network, x, *_weights(2, 4, seed=11, dtype=torch.float64))
    precise(answer, _network, X, W_1, B_1, W_2, B_2, dtype=torch.bfloat16)
    travels(answer, X, W_1, B_1, W_2, B_2)


def _ffn_gradient(answer):
    """gradients reach x, both matrices and both biases"""
    gradients(answer, _network, torch.ones(1, 1), *_weights(1, 2, seed=9))
    gradients(answer, _network, numbers(3, 2, seed=7), *_weights(2, 5, seed=8))


FEED_FORWARD = Exercise(
    id="11.1",
    title="the feed-forward network, a row per token",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_feed_forward(x, w_1, b_1, w_2, b_2)`, which returns the output of the "
        "feed-forward network with a ReLU. Each token is a *row* of `x`, so the matrices multiply "
        "from the right: `x` has the shape `(T, C)`, `w_1` `(C, d_ff)` and `w_2` `(d_ff, C)`."
    ),
    hint="Apply `torch.relu` to the first product plus `b_1`, then multiply again and add `b_2`.",
    function=my_feed_forward,
    tests=(
        _no_input,
        _negative_output,
        _barely_open,
        _by_hand,
        _any_sizes,
        _ffn_dtype,
        _ffn_gradient,
    ),
)


# 11.2 count a layer


def my_layer_parameters(d_model, d_ff, cross_attention=False):
    """Return how many parameters an encoder layer or, with cross_attention, a decoder layer has.

    Every linear layer has a bias; every sublayer has a LayerNorm with gain and bias.
    """
    raise NotImplementedError


def _torch_layer(d_model, d_ff, cross_attention=False):
    """What torch's own layers hold."""
    kind = torch.nn.TransformerDecoderLayer if cross_attention else torch.nn.TransformerEncoderLayer
    with torch.device("meta"):
        return sum(p.numel() for p in kind(d_model, 1, d_ff).parameters())


def _smallest_layer(answer):
    """of width 1, it is 16"""
    note = "Attention has 4 layers of 1 + 1, the network 2 of 1 + 1, each of the 2 norms 2."
    same(answer(1, 1), 16, "for d_model=1, d_ff=1", note=note, tolerance=0)


def _encoder(answer):
    """an encoder layer, counted by hand"""
    note = "Attention has 4 layers of 2 x 2 + 2, the network 2 x 3 + 3 and 3 x 2 + 2, each norm 4."
    same(answer(2, 3), 49, "for d_model=2, d_ff=3", note=note, tolerance=0)


def _decoder(answer):
    """a decoder layer has a second attention and a third norm"""
    note = "24 and 4 more than the encoder's 49: there is still one feed-forward network."
    where = "for d_model=2, d_ff=3, cross_attention=True"
    same(answer(2, 3, True), 77, where, note=note, tolerance=0)


def _as_torch(answer):
    """torch's own layers have as many"""
    for sizes in ((3, 2), (5, 7), (8, 8), (512, 2048), (16384, 65536)):
        for cross in (False, True):
            agrees(answer, _torch_layer, *sizes, cross, tolerance=1e-12)


def _paper(answer):
    """the paper's base model has 44 million in its layers"""
    got = 6 * answer(512, 2048) + 6 * answer(512, 2048, True)
    same(got, 44_138_496, "for 6 layers of each, d_model=512, d_ff=2048", tolerance=0)


COUNT = Exercise(
    id="11.2",
    title="count a layer",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_layer_parameters(d_model, d_ff, cross_attention=False)`, which returns the "
        "number of parameters of one encoder layer or, with `cross_attention`, of one decoder "
        "layer. Every linear layer has a bias, and every sublayer has a LayerNorm with a gain and "
        "a bias per feature. A decoder layer has a second attention, which is a sublayer of its "
        "own."
    ),
    hint=(
        "Attention has four linear layers: query, key, value and output. Their sizes don't depend "
        "on the number of heads."
    ),
    function=my_layer_parameters,
    tests=(_smallest_layer, _encoder, _decoder, _as_torch, _paper),
)


# 11.3 two units that multiply


def my_product(d_model, i, j, k):
    """Return weights (w_1, w_3, w_2) with which SwiGLU(d_model, 2) multiplies two features.

    Feature k of the output is feature i of the input times its feature j; all others are 0. The
    weights are (2, d_model), (2, d_model) and (d_model, 2), as `nn.Linear` stores them.
    """
    raise NotImplementedError


def _run(answer, x, *places):
    """What the network makes of x with the answer's weights, in float64."""
    where = f"for d_model={x.size(1)}, i={places[0]}, j={places[1]}, k={places[2]}"
    weights = answer(x.size(1), *places)
    three = isinstance(weights, tuple | list) and len(weights) == 3
    expect(three, f"{where}, return three weights, `(w_1, w_3, w_2)`")
    for name, w in zip(("w_1", "w_3", "w_2"), weights):
        kind = f"{where}, `{name}` is {described(w)}, expected a tensor"
        expect(isinstance(w, torch.Tensor), kind)
        kind = f"{where}, `{name}` is in {dtype_name(w)}, expected float32 or float64"
        expect(w.dtype in (torch.float32, torch.float64), kind)
    w_1, w_3, w_2 = (w.detach().cpu() for w in weights)
    c = x.size(1)
    for name, w, shape in (("w_1", w_1, (2, c)), ("w_3", w_3, (2, c)), ("w_2", w_2, (c, 2))):
        message = f"{where}, `{name}` has shape {tuple(w.shape)}, expected {shape}: (out, in)"
        expect(tuple(w.shape) == shape, message)
    w_1, w_3, w_2 = (w.double() for w in (w_1, w_3, w_2))
    out = F.linear(F.silu(F.linear(x, w_1)) * F.linear(x, w_3), w_2)
    record(out)
    return out, where


def _multiplies(answer, x, i, j, k, note=""):
    """Expect the product of features i and j of each row of x in place k, and zeros elsewhere."""
    x = torch.as_tensor(x, dtype=torch.float64)
    right = torch.zeros_like(x)
    right[:, k] = x[:, i] * x[:, j]
    out, where = _run(answer, x, i, j, k)
    same(out, right, f"{where} and x={short(x.float())}", 1e-5, note)


def _squares(answer):
    """a word of one feature is squared"""
    _multiplies(answer, [[3.0]], 0, 0, 0, "3 times 3.")
    _multiplies(answer, [[-3.0]], 0, 0, 0, "-3 times -3.")


def _pair(answer):
    """two features are multiplied, whatever their signs"""
    for a, b in ((2.0, 3.0), (-2.0, 3.0), (2.0, -3.0), (-2.0, -3.0), (0.0, 3.0)):
        _multiplies(answer, [[a, b]], 0, 1, 0, f"Feature 0 is {a:g}, feature 1 {b:g}.")


def _places(answer):
    """the product comes to its place, and nothing to the others"""
    _multiplies(answer, [[2.0, 3.0, 5.0]], 0, 1, 2)
    for seed, (i, j, k) in enumerate(((2, 0, 3), (3, 1, 1), (1, 3, 1), (2, 2, 0), (0, 0, 0))):
        _multiplies(answer, numbers(3, 4, seed=seed, dtype=torch.float64), i, j, k)


def _far_and_near(answer):
    """numbers may be tiny, or far from 0"""
    for size in (0.01, 50.0, 1000.0):
        x = size * numbers(2, 3, seed=7, dtype=torch.float64)
        i, j = 1, 2
        out, where = _run(answer, x, i, j, 0)
        note = "silu(z) - silu(-z) is z, for any z."
        where = f"{where} and numbers around {size:g}, as a share of x_i · x_j"
        same(out[:, 0] / (x[:, i] * x[:, j]), [1.0, 1.0], where, 1e-5, note)


PRODUCT = Exercise(
    id="11.3",
    title="two units that multiply",
    difficulty=2,
    minutes=7,
    statement=(
        "Write `my_product(d_model, i, j, k)`, which returns weights `(w_1, w_3, w_2)` for "
        "`SwiGLU(d_model, 2)`, a network with two units. Feature k of its output has to be feature "
        "i of the input times feature j, and every other feature 0. The shapes are those of "
        "`nn.Linear`, (out, in): `w_1` and `w_3` are `(2, d_model)`, and `w_2` is `(d_model, 2)`. "
        "The indices i, j and k may be equal. Any weights that do this are right."
    ),
    hint=(
        "Let feature i be the gate of one unit and its negative the gate of the other. What should "
        "both units let pass, and how must `w_2` combine them?"
    ),
    function=my_product,
    tests=(_squares, _pair, _places, _far_and_near),
)


# 11.4 the network as a table


def my_recall(x, keys, thresholds, values):
    """Return the output of a network with a key and a value per unit, and the activities.

    x is (C,), keys (d_ff, C), thresholds (d_ff,), values (d_ff, C). Returns (C,) and (d_ff,): the
    values' sum, weighted by activity, and the activity, relu(key · x + threshold).
    """
    raise NotImplementedError


KEYS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
THRESHOLDS = torch.tensor([-0.5, -1.0, 1.5])
VALUES = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, -40.0]])
WORD = torch.tensor([2.0, -1.0])
_MEMORY = (
    f"for x={short(WORD)}, keys={short(KEYS)}, thresholds={short(THRESHOLDS)}, "
    f"values={short(VALUES)}"
)


def _recall(x, keys, thresholds, values):
    """Unit by unit."""
    activity = [(key * x).sum() + at for key, at in zip(keys, thresholds, strict=True)]
    activity = torch.stack([a.clamp_min(0) for a in activity])
    return sum(a * value for a, value in zip(activity, values, strict=True)), activity


def _part(answer, index, x=WORD, scale=1.0):
    got = answer(x, KEYS, scale * THRESHOLDS, VALUES)
    both = isinstance(got, tuple | list) and len(got) == 2
    expect(both, "return two things, `(result, activity)`")
    exchanged = len(got[0]) == len(KEYS) and len(got[1]) == VALUES.size(1)
    expect(not exchanged, "the result, (C,), comes first, and then the activity, (d_ff,)")
    return got[index]


def _activity(answer):
    """activities are those of a ReLU, with their thresholds"""
    same(_part(answer, 1), [1.5, 0.0, 2.5], f"{_MEMORY}, the activity")


def _sum(answer):
    """the result is the weighted sum of the values"""
    same(_part(answer, 0), [11.5, -85.0], f"{_MEMORY}, the result")


def _nothing(answer):
    """where no key matches, nothing is added"""
    x = torch.tensor([-5.0, -5.0])
    note = "No activity is above 0, and there is no softmax whose weights must sum to 1."
    same(_part(answer, 0, x), [0.0, 0.0], "for x=[-5, -5] in the same memory", note=note)


def _twice(answer):
    """with thresholds of 0, twice the token gives twice the result"""
    once, twice = (_part(answer, 0, n * WORD, 0.0) for n in (1, 2))
    same(twice, 2 * once, "for thresholds of 0, the result for 2x against twice that for x")


def _any_strength(answer):
    """an activity may be small or large"""
    one, zero = torch.ones(1, 1), torch.zeros(1)
    for x in (0.001, 1000.0):
        where = f"for x=[{x:g}], keys=[[1]], thresholds=[0], values=[[1]]"
        agrees(answer, _recall, torch.tensor([x]), one, zero, one, where=where)


def _memory(c, d_ff, seed):
    """A random word, keys, thresholds and values."""
    return (numbers(c, seed=seed), numbers(d_ff, c, seed=seed + 1), numbers(d_ff, seed=seed + 2),
            numbers(d_ff, c, seed=seed + 3))  # fmt: skip


def _memory_sizes(answer):
    """one unit, as many units as numbers in a word, or more"""
    for sizes, seed in (((3, 1), 1), ((3, 3), 5), ((4, 9), 9)):
        agrees(answer, _recall, *_memory(*sizes, seed=seed), tolerance=1e-4)


def _memory_dtype(answer):
    """it works in the dtype of its arguments, and where they are"""
    double = [numbers(*part.shape, seed=i, dtype=torch.float64)
              for i, part in enumerate(_memory(3, 5, seed=13))]  # fmt: skip
    agrees(answer, _recall, *double)
    travels(answer, *_memory(3, 5, seed=13))


def _memory_gradient(answer):
    """gradients reach x, keys, thresholds and values"""
    gradients(answer, _recall, *_memory(2, 3, seed=17))
    gradients(answer, _recall, *_memory(3, 5, seed=21))


RECALL = Exercise(
    id="11.4",
    title="the network as a table",
    difficulty=2,
    minutes=7,
    statement=(
        "Write `my_recall(x, keys, thresholds, values)` for one token `x` of shape `(C,)`. A "
        "unit's activity is `relu(key · x + threshold)`, where the threshold is added, like a "
        "bias: the lower it is, the better the key has to match. The result is the sum of the "
        "values, each "
        "multiplied by its unit's activity. Return `(result, activity)`."
    ),
    hint="`keys @ x` has one entry per unit. The rest is attention with one query and no softmax.",
    function=my_recall,
    tests=(
        _activity,
        _sum,
        _nothing,
        _twice,
        _any_strength,
        _memory_sizes,
        _memory_dtype,
        _memory_gradient,
    ),
)


# 11.5 is it wide enough?


def my_fits(width, d_ff, multiple_of=1):
    """Return whether width is right for SwiGLU, True or False.

    The right one is the smallest multiple of multiple_of at which three matrices have no fewer
    weights than two of width d_ff. All are whole numbers from 1 up.
    """
    raise NotImplementedError


def _width(d_ff, multiple_of):
    """In fractions."""
    return math.ceil(Fraction(2 * d_ff, 3) / multiple_of) * multiple_of


def _judged(answer, width, d_ff, multiple_of=None, note=""):
    given = (width, d_ff) if multiple_of is None else (width, d_ff, multiple_of)
    agrees(answer, width == _width(d_ff, multiple_of or 1), *given, note=note)


def _exactly(answer):
    """where two thirds are whole, they are right"""
    _judged(answer, 2, 3, note="Three matrices of width 2 cost what two of width 3 do.")
    _judged(answer, 1, 3, note="3 · 1 weights are fewer than 2 · 3.")
    _judged(answer, 3, 3, note="A width of 2 is enough.")
    for d_ff in (6, 9, 15, 300):
        for width in (2 * d_ff // 3 - 1, 2 * d_ff // 3, 2 * d_ff // 3 + 1):
            _judged(answer, width, d_ff)


def _between(answer):
    """where they are not, the next width above is"""
    for d_ff, two_thirds in ((1, "0.67"), (2, "1.33"), (7, "4.67"), (2048, "1365.33")):
        note = f"Two thirds of {d_ff} are {two_thirds}."
        for width in (2 * d_ff // 3, 2 * d_ff // 3 + 1, 2 * d_ff // 3 + 2):
            if width > 0:
                _judged(answer, width, d_ff, note=note)


def _llama(answer):
    """Llama's 7B: of the multiples of 256 the first that is enough"""
    for width in (10923, 11008, 10752, 11264, 11007):
        _judged(answer, width, 16384, 256, note="Two thirds of 16384 are 42.67 times 256.")


def _blocks(answer):
    """a multiple that is exactly enough is right, and the next is not"""
    for width, d_ff, multiple_of in ((256, 384, 256), (512, 384, 256), (4, 1, 4), (8, 1, 4),
                                     (66, 99, 66), (66, 100, 66), (132, 100, 66), (67, 100, 66),
                                     (1400, 2048, 100), (1366, 2048, 100), (6, 7, 3), (5, 7, 3),
                                     (5, 5, 5), (4, 5, 5), (10, 5, 5), (68, 100, 4)):  # fmt: skip
        _judged(answer, width, d_ff, multiple_of)


def _long_numbers(answer):
    """numbers of any length"""
    d_ff = 300_000_000_000_000_001
    right = _width(d_ff, 1)
    note = "Floats have 16 digits."
    for width in (right - 1, right, right + 1):
        _judged(answer, width, d_ff, 1, note=note)
    for width in (1_000_000_001, 2_000_000_002):
        _judged(answer, width, 1_500_000_002, 1_000_000_001, note=note)


FITS = Exercise(
    id="11.5",
    title="is it wide enough?",
    difficulty=1,
    minutes=5,
    statement=(
        "Design a check. Write `my_fits(width, d_ff, multiple_of=1)`, which returns True if "
        "`width` is the right width for SwiGLU, and False otherwise. The right one is the smallest "
        "multiple of `multiple_of` at which three matrices have no fewer weights than two of width "
        "`d_ff`; for `d_ff = 16384` and multiples of 256, for example, it is 11008, as in Llama's "
        "7B model. Don't compute the width, but test the properties that make it right. All "
        "arguments are whole numbers from 1 up, of any length."
    ),
    hint=(
        "Three conditions must hold. For the last, ask which width is the next smaller one, and "
        "whether it is enough."
    ),
    function=my_fits,
    tests=(_exactly, _between, _llama, _blocks, _long_numbers),
)


EXERCISES = (FEED_FORWARD, COUNT, PRODUCT, RECALL, FITS)
