"""Chapter 07: the feed-forward network, its parameters, its memories, and its gated form."""

import torch

from tinytf.course.expect import expect, same, short
from tinytf.course.grading import Exercise, reference

# 07.1 the feed-forward network, a row per word


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
_NETWORK = (
    f"for x={short(X)}, w_1={short(W_1)}, b_1={short(B_1)}, w_2={short(W_2)}, b_2={short(B_2)}"
)


def _by_hand(answer):
    """three words come out as by hand"""
    same(answer(X, W_1, B_1, W_2, B_2), [[2.75, -1.5], [4.75, -5.5], [0.75, -2.0]], _NETWORK)


def _no_input(answer):
    """a word of zeros gives what the biases give"""
    where = "for x of zeros, w_1 and w_2 of ones, b_1 = [1, -2], b_2 = [10]"
    ones = torch.ones(1, 2), torch.tensor([1.0, -2.0]), torch.ones(2, 1), torch.tensor([10.0])
    same(answer(torch.zeros(1, 1), *ones), [[11.0]], where)


def _negative_output(answer):
    """the output may be negative"""
    where = "for x=[[1]], w_1=[[1]], b_1=[0], w_2=[[-3]], b_2=[0]"
    one, zero = torch.ones(1, 1), torch.zeros(1)
    note = "The ReLU stands between the two maps, not after them."
    same(answer(one, one, zero, -3 * one, zero), [[-3.0]], where, note=note)


FEED_FORWARD = Exercise(
    id="07.1",
    title="the feed-forward network, a row per word",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_feed_forward(x, w_1, b_1, w_2, b_2)`: widen, ReLU, come back. A word is a *row* "
        "of `x`, so matrices stand on the right: `x` is `(T, C)`, `w_1` `(C, d_ff)`, `w_2` "
        "`(d_ff, C)`. (`nn.Linear` stores its weight the other way round, `(out, in)`.)"
    ),
    hint="`torch.relu(...)` around the first map with its bias, then the second map and its bias.",
    function=my_feed_forward,
    tests=(_by_hand, _no_input, _negative_output),
)


# 07.2 count a layer


def my_layer_parameters(d_model, d_ff, cross_attention=False):
    """How many numbers one encoder layer learns, or, with cross_attention, one decoder layer.

    Every linear map has a bias; every sublayer has a LayerNorm with gain and bias.
    """
    raise NotImplementedError


def _encoder(answer):
    """an encoder layer, counted by hand"""
    note = "Attention has 4 maps of 2 x 2 + 2, the network 2 x 3 + 3 and 3 x 2 + 2, each norm 4."
    same(answer(2, 3), 49, "for d_model=2, d_ff=3", note=note)


def _decoder(answer):
    """a decoder layer has a second attention and a third norm"""
    note = "24 and 4 more than the encoder's 49: there is still one feed-forward network."
    same(answer(2, 3, True), 77, "for d_model=2, d_ff=3, cross_attention=True", note=note)


def _paper(answer):
    """the paper's base model has 44 million in its layers"""
    got = 6 * answer(512, 2048) + 6 * answer(512, 2048, True)
    same(got, 44_138_496, "for 6 layers of each, d_model=512, d_ff=2048", tolerance=0)


COUNT = Exercise(
    id="07.2",
    title="count a layer",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_layer_parameters(d_model, d_ff, cross_attention=False)`: how many numbers one "
        "encoder layer learns, or one decoder layer if `cross_attention`. Linear maps have biases; "
        "each sublayer has a LayerNorm, with a gain and a bias per feature."
    ),
    hint="Attention has four maps: query, key, value and output. The number of heads changes none.",
    function=my_layer_parameters,
    tests=(_encoder, _decoder, _paper),
)


# 07.3 the network as a memory


def my_recall(x, keys, thresholds, values):
    """What a memory with a key and a value per unit returns for one word, and how active it was.

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


RECALL = Exercise(
    id="07.3",
    title="the network as a memory",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_recall(x, keys, thresholds, values)` for one word `x` of shape `(C,)`: a "
        "unit's activity is the ReLU of its key's dot product with `x` plus its threshold (a bias: "
        "the lower, the harder the unit is to wake); the result is the sum of the values, each "
        "times its unit's activity. Return both: `(result, activity)`."
    ),
    hint="`keys @ x` has an entry per unit. It is attention with one query, less the softmax.",
    function=my_recall,
    tests=(_activity, _sum, _nothing, _twice),
)


# 07.4 SwiGLU


def my_swiglu(x, w_1, w_3, w_2):
    """The gated feed-forward network without biases.

    x is (T, C), w_1 and w_3 (C, d_ff), w_2 (d_ff, C); the result is (T, C). The gate is
    silu(x @ w_1), with silu(z) = z sigmoid(z).
    """
    raise NotImplementedError


GATE, UP, DOWN = W_1, W_1.flip(1) + 0.5, W_2
_GATED = f"for x={short(X)}, w_1={short(GATE)}, w_3={short(UP)}, w_2={short(DOWN)}"


def _reference(answer):
    """it equals the equation"""
    expected = reference("07.4")(X, GATE, UP, DOWN)
    same(answer(X, GATE, UP, DOWN), expected, _GATED)


def _shut(answer):
    """where the gate is far below 0, nothing passes"""
    one = torch.ones(1, 1)
    where = "for x=[[1]], w_1=[[-50]], w_3=[[3]], w_2=[[1]]"
    same(answer(one, -50 * one, 3 * one, one), [[0.0]], where, note="The gate is shut.")


def _open(answer):
    """what passes may be negative"""
    one = torch.ones(1, 1)
    where = "for x=[[1]], w_1=[[50]], w_3=[[-3]], w_2=[[1]]"
    note = "An open gate multiplies: 50 times -3."
    same(answer(one, 50 * one, -3 * one, one), [[-150.0]], where, note=note)


SWIGLU = Exercise(
    id="07.4",
    title="SwiGLU",
    difficulty=2,
    minutes=8,
    statement=(
        "Write `my_swiglu(x, w_1, w_3, w_2)`: two views of each word, `x @ w_1` and `x @ w_3`, "
        "multiplied entry by entry, the first one through silu, `z * sigmoid(z)`; then `w_2` on "
        "the way back. No biases."
    ),
    hint="The product is of two tensors of shape `(T, d_ff)`; only the first went through silu.",
    function=my_swiglu,
    tests=(_reference, _shut, _open),
)


# 07.5 equal parameters


def my_gated_width(d_ff, multiple_of=1):
    """The hidden width at which SwiGLU's three matrices cost what two of width d_ff do.

    Two thirds of d_ff, rounded up to a multiple of multiple_of.
    """
    raise NotImplementedError


def _two_thirds(answer):
    """it is two thirds"""
    note = "Three matrices of width 2 cost what two of width 3 do."
    same(answer(3), 2, "for d_ff=3", note=note)


def _rounds_up(answer):
    """it is rounded up"""
    same(answer(2048), 1366, "for d_ff=2048", note="Two thirds of it are 1365.33.")


def _llama(answer):
    """with a multiple of 256 it is Llama's"""
    same(answer(16384, 256), 11008, "for d_ff=16384, multiple_of=256", note="42.67 times 256.")


def _already(answer):
    """a width that fits is left alone"""
    same(answer(384, 256), 256, "for d_ff=384, multiple_of=256")


WIDTH = Exercise(
    id="07.5",
    title="equal parameters",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_gated_width(d_ff, multiple_of=1)`: how wide SwiGLU, with three matrices, may "
        "be to cost what two matrices of hidden width `d_ff` cost. Round up once, at the end, to a "
        "multiple of `multiple_of`."
    ),
    hint="3 matrices x width = 2 matrices x d_ff. Rounding up: `-(-a // b)`.",
    function=my_gated_width,
    tests=(_two_thirds, _rounds_up, _llama, _already),
)


EXERCISES = (FEED_FORWARD, COUNT, RECALL, SWIGLU, WIDTH)
