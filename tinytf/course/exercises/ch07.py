"""Chapter 07: the feed-forward network, its parameters, its memories, and its gated form."""

import torch

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, short

# 07.1 the feed-forward network


def my_feed_forward(x, w_1, b_1, w_2, b_2):
    """The position-wise feed-forward network, ReLU inside.

    x is (T, C), w_1 (C, d_ff), b_1 (d_ff,), w_2 (d_ff, C), b_2 (C,); the result is (T, C).
    """
    hidden = torch.relu(x @ w_1 + b_1)  # (T, C) -> (T, d_ff)
    return hidden @ w_2 + b_2


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
    ),
    tests=(_by_hand, _no_input, _negative_output),
    probes=(
        calls(X, W_1, B_1, W_2, B_2),
        calls(torch.zeros(1, 2), W_1, B_1, W_2, B_2),
        calls(-X, W_1, B_1, W_2, B_2),
    ),
)


# 07.2 parameters of a layer


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
    ),
    tests=(_encoder, _decoder, _paper),
    probes=(calls(2, 3), calls(2, 3, True), calls(8, 32, True)),
)


# 07.3 keys and values


def my_recall(x, keys, thresholds, values):
    """What a memory with a key and a value per unit returns for one word, and how active it was.

    x is (C,), keys (d_ff, C), thresholds (d_ff,), values (d_ff, C). Returns (C,) and (d_ff,): the
    values' sum, weighted by activity, and the activity, relu(key · x + threshold).
    """
    activity = torch.relu(keys @ x + thresholds)
    return activity @ values, activity


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
    ),
    tests=(_activity, _sum, _nothing, _twice),
    probes=(
        calls(WORD, KEYS, THRESHOLDS, VALUES),
        lambda answer: _part(answer, 0, torch.tensor([-5.0, -5.0])),
    ),
)


# 07.4 SwiGLU


def my_swiglu(x, w_1, w_3, w_2):
    """The gated feed-forward network without biases.

    x is (T, C), w_1 and w_3 (C, d_ff), w_2 (d_ff, C); the result is (T, C). The gate is
    silu(x @ w_1), with silu(z) = z sigmoid(z).
    """
    gate = x @ w_1
    return (gate * torch.sigmoid(gate) * (x @ w_3)) @ w_2


GATE, UP, DOWN = W_1, W_1.flip(1) + 0.5, W_2
_GATED = f"for x={short(X)}, w_1={short(GATE)}, w_3={short(UP)}, w_2={short(DOWN)}"


def _gated(gate, product=True):
    def answer(x, w_1, w_3, w_2):
        left = gate(x @ w_1)
        return (left * (x @ w_3) if product else left + x @ w_3) @ w_2

    return answer


def _silu(z):
    return z * torch.sigmoid(z)


def _reference(answer):
    """it equals the equation"""
    expected = my_swiglu(X, GATE, UP, DOWN)
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
    ),
    tests=(_reference, _shut, _open),
    probes=(calls(X, GATE, UP, DOWN), calls(-X, GATE, UP, DOWN)),
)


# 07.5 how wide a gated network may be


def my_gated_width(d_ff, multiple_of=1):
    """The hidden width at which SwiGLU's three matrices cost what two of width d_ff do.

    Two thirds of d_ff, rounded up to a multiple of multiple_of.
    """
    steps = -(-2 * d_ff // (3 * multiple_of))  # rounded up, in whole numbers
    return steps * multiple_of


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
    reference=my_gated_width,
    wrong=(
        WrongAnswer(
            "rounded down",
            lambda d_ff, multiple_of=1: 2 * d_ff // (3 * multiple_of) * multiple_of,
            "1365.33",
            "`//` rounds down. Turn the sign twice, or use `math.ceil`.",
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
    ),
    tests=(_two_thirds, _rounds_up, _llama, _already),
    probes=(calls(3), calls(2048), calls(16384, 256), calls(384, 256)),
)

EXERCISES = (FEED_FORWARD, COUNT, RECALL, SWIGLU, WIDTH)
