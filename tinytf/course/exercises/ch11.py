"""Chapter 11: the feed-forward network, its parameters, its gated form, its table."""

import math
from fractions import Fraction

import torch
from torch.nn import functional as F

from tinytf.course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    precise,
    same,
    short,
    travels,
)
from tinytf.course.grading import Exercise

# 11.1 the feed-forward network, a row per word


def my_feed_forward(x, w_1, b_1, w_2, b_2):
    """The position-wise feed-forward network, ReLU inside.

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
    """a word of zeros gives what the biases give"""
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
    note = "The ReLU stands between the two maps, not after them."
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
    """gradients reach x, both maps and both biases"""
    gradients(answer, _network, torch.ones(1, 1), *_weights(1, 2, seed=9))
    gradients(answer, _network, numbers(3, 2, seed=7), *_weights(2, 5, seed=8))


FEED_FORWARD = Exercise(
    id="11.1",
    title="the feed-forward network, a row per word",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_feed_forward(x, w_1, b_1, w_2, b_2)`: widen, ReLU, come back. A word is a *row* "
        "of `x`, so matrices stand on the right: `x` is `(T, C)`, `w_1` `(C, d_ff)`, `w_2` "
        "`(d_ff, C)`."
    ),
    hint="`torch.relu(...)` around the first map with its bias, then the second map and its bias.",
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
    """How many numbers one encoder layer learns, or, with cross_attention, one decoder layer.

    Every linear map has a bias; every sublayer has a LayerNorm with gain and bias.
    """
    raise NotImplementedError


def _torch_layer(d_model, d_ff, cross_attention=False):
    """What torch's own layers hold."""
    kind = torch.nn.TransformerDecoderLayer if cross_attention else torch.nn.TransformerEncoderLayer
    with torch.device("meta"):
        return sum(p.numel() for p in kind(d_model, 1, d_ff).parameters())


def _smallest_layer(answer):
    """of width 1, it is 16"""
    note = "Attention has 4 maps of 1 + 1, the network 2 of 1 + 1, each of the 2 norms 2."
    same(answer(1, 1), 16, "for d_model=1, d_ff=1", note=note, tolerance=0)


def _encoder(answer):
    """an encoder layer, counted by hand"""
    note = "Attention has 4 maps of 2 x 2 + 2, the network 2 x 3 + 3 and 3 x 2 + 2, each norm 4."
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
        "Write `my_layer_parameters(d_model, d_ff, cross_attention=False)`: how many numbers one "
        "encoder layer learns, or one decoder layer if `cross_attention`. Linear maps have biases; "
        "each sublayer has a LayerNorm, with a gain and a bias per feature. A decoder layer has "
        "a second attention, as a sublayer of its own."
    ),
    hint="Attention has four maps: query, key, value and output. The number of heads changes none.",
    function=my_layer_parameters,
    tests=(_smallest_layer, _encoder, _decoder, _as_torch, _paper),
)


# 11.3 SwiGLU


def my_swiglu(x, w_1, w_3, w_2):
    """The gated feed-forward network without biases.

    x is (T, C), w_1 and w_3 (C, d_ff), w_2 (d_ff, C); the result is (T, C). The gate is
    silu(x @ w_1), with silu(z) = z sigmoid(z).
    """
    raise NotImplementedError


GATE, UP, DOWN = W_1, W_1.flip(1) + 0.5, W_2


def _swiglu(x, w_1, w_3, w_2):
    """torch's own silu and maps, whose weights are stored the other way round."""
    return F.linear(F.silu(F.linear(x, w_1.T)) * F.linear(x, w_3.T), w_2.T)


def _gated(c, d_ff, seed):
    """Random w_1, w_3 and w_2."""
    return *numbers(2, c, d_ff, seed=seed), numbers(d_ff, c, seed=seed + 1)


def _shut(answer):
    """where the gate is far below 0, nothing passes"""
    one = torch.ones(1, 1)
    where = "for x=[[1]], w_1=[[-50]], w_3=[[3]], w_2=[[1]]"
    note = "The gate is shut."
    agrees(answer, [[0.0]], one, -50 * one, 3 * one, one, where=where, note=note)


def _open(answer):
    """what passes may be negative"""
    one = torch.ones(1, 1)
    where = "for x=[[1]], w_1=[[50]], w_3=[[-3]], w_2=[[1]]"
    note = "An open gate multiplies: 50 times -3."
    agrees(answer, [[-150.0]], one, 50 * one, -3 * one, one, where=where, note=note)


def _half_open(answer):
    """a gate of 1 and one of -1 let 0.731 and -0.269 through"""
    one = torch.ones(1, 1)
    for gate, note in ((1, "1 · sigmoid(1) = 0.7311."), (-1, "-1 · sigmoid(-1) = -0.2689.")):
        agrees(answer, _swiglu, one, gate * one, one, one, note=note)


def _gated_words(answer):
    """it equals the equation, whatever the sizes"""
    agrees(answer, _swiglu, X, GATE, UP, DOWN)
    agrees(answer, _swiglu, numbers(1, 3, seed=1), *_gated(3, 5, seed=2), tolerance=1e-4)
    agrees(answer, _swiglu, numbers(4, 4, seed=3), *_gated(4, 4, seed=4), tolerance=1e-4)


def _far_gates(answer):
    """a gate of -1,000 or 1,000 gives no NaN"""
    x, one = torch.tensor([[1000.0], [-1000.0]]), torch.ones(1, 1)
    agrees(answer, _swiglu, x, one, one, one, note="e^89 is past float32.")


def _far_gradients(answer):
    """nor do its gradients"""
    x, one = torch.tensor([[1000.0], [-1000.0]]), torch.ones(1, 1)
    note = "In z / (1 + e^-z) e^1000 is inf, and its slope times 0 NaN: take `torch.sigmoid`."
    gradients(answer, _swiglu, x, one, one, one, note=note)


def _gated_dtype(answer):
    """it works in the dtype of its arguments, and where they are"""
    double = [numbers(*part.shape, seed=i, dtype=torch.float64)
              for i, part in enumerate((X, GATE, UP, DOWN))]  # fmt: skip
    agrees(answer, _swiglu, *double)
    one = torch.ones(1, 1, dtype=torch.float64)
    for gate in (-8.0, -12.0, -20.0, 12.0):
        agrees(answer, _swiglu, gate * one, one, one, 100 * one, note="A gate closes slowly.")
    travels(answer, X, GATE, UP, DOWN)


def _gated_gradient(answer):
    """gradients reach x and the three maps"""
    gradients(answer, _swiglu, torch.ones(1, 1), *_gated(1, 2, seed=5))
    gradients(answer, _swiglu, numbers(3, 2, seed=7), *_gated(2, 5, seed=8))


SWIGLU = Exercise(
    id="11.3",
    title="SwiGLU",
    difficulty=2,
    minutes=7,
    statement=(
        "Write `my_swiglu(x, w_1, w_3, w_2)`: two views of each word, `x @ w_1` and `x @ w_3`, "
        "multiplied entry by entry, the first one through silu, `z * sigmoid(z)`; then `w_2` on "
        "the way back. No biases. It has to be right for numbers like ±1,000, and its "
        "gradients too."
    ),
    hint="The product is of two tensors of shape `(T, d_ff)`; only the first went through silu.",
    function=my_swiglu,
    tests=(
        _shut,
        _open,
        _half_open,
        _gated_words,
        _far_gates,
        _far_gradients,
        _gated_dtype,
        _gated_gradient,
    ),
)


# 11.4 repair: equal parameters


def my_gated_width(d_ff, multiple_of=1):
    """The hidden width at which SwiGLU's three matrices cost what two of width d_ff do.

    Two thirds of d_ff, rounded up to a multiple of multiple_of.
    """
    raise NotImplementedError


def _two_thirds(answer):
    """it is two thirds, a whole number"""
    note = "Three matrices of width 2 cost what two of width 3 do."
    same(answer(3), 2, "for d_ff=3", note=note)
    got = answer(3)
    expect(isinstance(got, int), f"for d_ff=3, you get {short(got)}, a {type(got).__name__}, "
           "expected an int: the width of a matrix")  # fmt: skip


def _rounds_up(answer):
    """it is rounded up"""
    same(answer(2048), 1366, "for d_ff=2048", note="Two thirds of it are 1365.33.")
    same(answer(7), 5, "for d_ff=7", note="Two thirds of it are 4.67.")


def _llama(answer):
    """with a multiple of 256 it is Llama's"""
    same(answer(16384, 256), 11008, "for d_ff=16384, multiple_of=256", note="42.67 times 256.")


def _already(answer):
    """a width that fits is left alone"""
    same(answer(384, 256), 256, "for d_ff=384, multiple_of=256")
    for d_ff in (9, 15, 18, 21):
        same(answer(d_ff), 2 * d_ff // 3, f"for d_ff={d_ff}", tolerance=0.01)


def _width(d_ff, multiple_of):
    """In fractions."""
    return math.ceil(Fraction(2 * d_ff, 3) / multiple_of) * multiple_of


def _once(answer):
    """rounded up once, at the end, whatever the numbers"""
    for d_ff, multiple_of in ((1, 1), (1, 4), (7, 3), (5, 5), (100, 66), (10_000, 64), (2048, 100)):
        where = f"for d_ff={d_ff}, multiple_of={multiple_of}"
        note = f"Two thirds of {d_ff} are {2 * d_ff / 3:.6g}."
        same(answer(d_ff, multiple_of), _width(d_ff, multiple_of), where, tolerance=0, note=note)
    large = (300_000_000_000_000_001, 1), (1_500_000_002, 1_000_000_001)
    for d_ff, multiple_of in large:
        got, wanted = answer(d_ff, multiple_of), _width(d_ff, multiple_of)
        where = f"for d_ff={d_ff}, multiple_of={multiple_of}"
        expect(got == wanted, f"{where}, you get {got}, expected {wanted}: floats lose a remainder")


WIDTH = Exercise(
    id="11.4",
    title="repair: equal parameters",
    difficulty=1,
    minutes=5,
    statement=(
        "How wide may SwiGLU, with three matrices, be to cost what two matrices of hidden width "
        "`d_ff` cost, rounded up to a multiple of `multiple_of`? Somebody wrote:\n\n"
        "```python\n"
        "def my_gated_width(d_ff, multiple_of=1):\n"
        "    width = round(2 * d_ff / 3)\n"
        "    return width // multiple_of * multiple_of\n"
        "```\n\n"
        "For `d_ff = 16384` and multiples of 256 it says 10752; Llama's 7B has 11008. Repair it: "
        "round *up*, *once*, at the end, and return an int, right for any whole numbers from 1 up."
    ),
    hint="3 matrices x width = 2 matrices x d_ff. Rounding up: `-(-a // b)`.",
    function=my_gated_width,
    tests=(_two_thirds, _rounds_up, _llama, _already, _once),
)


# 11.5 the network as a table


def my_recall(x, keys, thresholds, values):
    """What a table with a key and a value per unit returns for one word, and how active it was.

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
    note = "No activity is above 0, and there is no softmax that must share out a 1."
    same(_part(answer, 0, x), [0.0, 0.0], "for x=[-5, -5] in the same memory", note=note)


def _twice(answer):
    """with no thresholds, a word twice as loud recalls twice as much"""
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
    id="11.5",
    title="the network as a table",
    difficulty=2,
    minutes=7,
    statement=(
        "Write `my_recall(x, keys, thresholds, values)` for one word `x` of shape `(C,)`: a "
        "unit's activity is the ReLU of its key's dot product with `x` plus its threshold (a bias: "
        "the lower, the harder the unit is to wake); the result is the sum of the values, each "
        "times its unit's activity. Return both: `(result, activity)`."
    ),
    hint="`keys @ x` has an entry per unit. It is attention with one query, less the softmax.",
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


EXERCISES = (FEED_FORWARD, COUNT, SWIGLU, WIDTH, RECALL)
