"""Exercises of chapter 13: the decoder."""

import torch

from tinytf_course.expect import (
    Counted,
    agrees,
    expect,
    gradients,
    numbers,
    same,
    tensor,
)
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import described

# 13.1 shift right


def my_shift_right(rows, bos, eos, pad):
    """The decoder's input and its labels: two integer tensors (B, T).

    rows is a list of lists of word ids, of any lengths. T is the longest of them plus 1.
    """
    raise NotImplementedError


ROWS = [[7, 8, 9, 8], [5, 6]]
BOS, EOS, PAD = 1, 2, 0
_ROWS = f"for rows={ROWS}, bos=1, eos=2, pad=0"


def _both(answer, rows=ROWS, bos=BOS, eos=EOS, pad=PAD):
    got = answer(rows, bos, eos, pad)
    where = f"for rows={rows}"
    expect(
        isinstance(got, list | tuple) and len(got) == 2,
        f"{where}, you return a {type(got).__name__}, expected two tensors: (input, labels)",
    )
    return [tensor(part, where) for part in got]


def _two_of_a_shape(answer):
    """it returns two integer tensors of one shape"""
    parts = _both(answer)
    lists = [described(part) for part in answer(ROWS, BOS, EOS, PAD) if isinstance(part, list)]
    expect(not lists, f"{_ROWS}, you return {' and '.join(lists)}, expected two tensors")
    shapes = [tuple(part.shape) for part in parts]
    kinds = {part.dtype for part in parts if part.is_floating_point() or part.is_complex()}
    expect(not kinds, f"{_ROWS}, the dtype is {kinds}, expected integers: they are ids of words")
    expect(
        shapes == [(2, 5), (2, 5)],
        f"{_ROWS}, the shapes are {shapes[0]} and {shapes[1]}, expected (2, 5) for both: the "
        "longest row has 4 words, and <bos> or <eos>",
    )


def _reads(answer):
    """the input is <bos>, then the words"""
    same(_both(answer)[0], [[1, 7, 8, 9, 8], [1, 5, 6, 0, 0]], f"{_ROWS}, as the input")


def _says(answer):
    """the labels are the words, then <eos>"""
    same(_both(answer)[1], [[7, 8, 9, 8, 2], [5, 6, 2, 0, 0]], f"{_ROWS}, as the labels")


def _never_the_answer(answer):
    """the input at a position is the label of the position before"""
    reads, says = _both(answer, [[5, 6, 7]], 1, 2, 0)
    expect(reads.shape == says.shape and reads.dim() == 2, "the two shapes differ")
    same(
        reads[:, 1:], says[:, :-1], "for rows=[[5, 6, 7]], the input[:, 1:]",
        note="It has to be labels[:, :-1], or the decoder reads its answer, or a word too old.",
    )  # fmt: skip


@hint("Use the arguments `bos`, `eos` and `pad`, which are other numbers here.")
def _own_ids(answer):
    """the special ids are the arguments"""
    where = "for rows=[[3], [4, 0]], bos=8, eos=9, pad=5"
    note = "Here 0 is a word and 5 padding."
    reads, says = _both(answer, [[3], [4, 0]], 8, 9, 5)
    same(reads, [[8, 3, 5], [8, 4, 0]], f"{where}, as the input", note=note)
    same(says, [[3, 9, 5], [4, 0, 9]], f"{where}, as the labels", note=note)


def _place_by_place(rows, bos, eos, pad):
    """What is at each position of each row."""
    reads, says = [], []
    for row in rows:
        places = range(max(len(other) for other in rows) + 1)
        reads.append([bos if t == 0 else row[t - 1] if t <= len(row) else pad for t in places])
        says.append([row[t] if t < len(row) else eos if t == len(row) else pad for t in places])
    return torch.tensor(reads), torch.tensor(says)


def _any_rows(answer):
    """rows of any lengths, of no word too"""
    cases = (
        ([[]], 1, 2, 0), ([[5]], 1, 2, 0), ([[5], [6], [7]], 1, 2, 0), ([[], [5, 5]], 1, 2, 0),
        ([[4], [4, 5, 6, 7, 8, 9], [], [4, 4, 4]], 1, 2, 0),
    )  # fmt: skip
    for case in cases:
        agrees(answer, _place_by_place, *case, dtype=False)


def _one_id_for_all(answer):
    """one id may have several jobs"""
    note = "Here <eos> is the padding, too, as in GPT-2."
    agrees(answer, _place_by_place, [[3, 4], [5]], 1, 2, 2, dtype=False, note=note)
    note = "Here one id is <bos>, <eos> and padding, as in GPT-2."
    agrees(answer, _place_by_place, [[3, 4], [5]], 2, 2, 2, dtype=False, note=note)


def _begin_is_end(answer):
    """<bos> and <eos> may be one id"""
    note = "Here 2 is <bos> and <eos>: first in the input, and last in the labels."
    agrees(answer, _place_by_place, [[3]], 2, 2, 0, dtype=False, note=note)
    agrees(answer, _place_by_place, [[3, 4], [5]], 2, 2, 0, dtype=False, note=note)


def _large_ids(answer):
    """a large id is not rounded"""
    agrees(answer, _place_by_place, [[16777217, 50001], [33333]], 70001, 70003, 70005, dtype=False)


SHIFT = Exercise(
    id="13.1",
    title="shift right",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_shift_right(rows, bos, eos, pad)` for a list of lists of word ids, of any "
        "lengths. It returns two integer tensors of the same shape `(B, T)`: the decoder's input, "
        "which is `bos` followed by the words, and the labels, which are the words followed by "
        "`eos`. Shorter rows are "
        "filled with `pad` on the right. The `eos` of a row is never in the input, and two or all "
        "three of `bos`, `eos` and `pad` may have the same id."
    ),
    hint=(
        "The input gets `bos` in front, and the labels get `eos` after the last word. The padding "
        "comes last."
    ),
    function=my_shift_right,
    tests=(
        _two_of_a_shape,
        _reads,
        _says,
        _never_the_answer,
        _own_ids,
        _any_rows,
        _one_id_for_all,
        _begin_is_end,
        _large_ids,
    ),
)


# 13.2 the order of a decoder layer


def my_decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norms):
    """One Pre-LN decoder layer: x (B, T, C) and memory (B, S, C) to (B, T, C).

    self_attention(y) is masked already; cross_attention(y, memory) and feed_forward(y) return
    (B, T, C) too. norms holds three functions, one for each sublayer.
    """
    raise NotImplementedError


X_IN, MEMORY = numbers(2, 3, 4, seed=1), numbers(2, 5, 4, seed=2)


def _own(y):
    """A stand-in for masked self-attention: the mean of the positions so far."""
    count = torch.arange(1, y.size(1) + 1)[:, None]
    return y.cumsum(dim=1) / count * 2 + 0.1 * y * y


def _cross(y, memory):
    """A stand-in for cross-attention: unlike in its two arguments."""
    return y * 0.5 + memory.mean(dim=1, keepdim=True) * (1 + 0.1 * y) + 0.1 * memory.size(1)


def _ffn(y):
    return y.relu() * 3 - 1 + 0.1 * y.flip(-1) * y


NORMS = (
    lambda y: y * 0.5 + 1,
    lambda y: y * 0.25 - 1 + 0.1 * y * y,
    lambda y: y * 2 + 0.5 - 0.1 * y * y,
)
_IN_TURN = "First self-attention, then cross-attention, each added to the stream."
_SMALL = "for the small example"


def _in_a_loop(x, memory, self_attention, cross_attention, feed_forward, norms):
    """A block for each sublayer, in a loop."""
    sublayers = (self_attention, lambda y: cross_attention(y, memory), feed_forward)
    for norm, sublayer in zip(norms, sublayers, strict=True):
        x = sublayer(norm(x)) + x
    return x


def _zero(*arguments):
    return torch.zeros_like(arguments[0])


def _same_layer(answer, where, own=_own, cross=_cross, ffn=_ffn, norms=NORMS, note=""):
    for x, memory in ((X_IN[:1, :1, :2], MEMORY[:1, :1, :2]), (X_IN, MEMORY)):
        agrees(answer, _in_a_loop, x, memory, own, cross, ffn, norms, note=note,
               where=f"{where}, x of shape {tuple(x.shape)}")  # fmt: skip


def _whole(answer):
    """it is the layer: three sublayers in order"""
    _same_layer(answer, _SMALL)


@hint("What is added is x as it was, not the normalised x.")
def _stream(answer):
    """when the sublayers return zeros, x comes out as it went in"""
    _same_layer(
        answer, "when every sublayer returns 0", _zero, _zero, _zero,
        note="The residual carries x itself, not the normalised x.",
    )  # fmt: skip


def _self_first(answer):
    """cross-attention gets what self-attention found"""
    where = "when only the attentions return anything but zeros"
    _same_layer(answer, where, ffn=_zero, note=_IN_TURN)


def _ffn_once(answer):
    """there is one feed-forward network, at the end"""
    counted = Counted(_ffn)
    answer(X_IN, MEMORY, _own, _cross, counted, NORMS)
    expect(counted.count == 1, f"feed_forward is called {counted.count} times, expected once")


def _ffn_last(answer):
    """the feed-forward network reads what both attentions left in the stream"""
    counted = Counted(_ffn)
    answer(X_IN, MEMORY, _own, _cross, counted, NORMS)
    expect(counted.count > 0, "feed_forward is not called")
    attended = _in_a_loop(X_IN, MEMORY, _own, _cross, _zero, NORMS)
    same(
        counted.calls[-1][0],
        NORMS[2](attended),
        "what feed_forward is given",
        note="It has to be norms[2] of the stream after both attentions.",
    )


def _memory_is_read(answer):
    """cross-attention reads the memory as it is"""
    counted = Counted(_cross)
    answer(X_IN, MEMORY, _own, counted, _ffn, NORMS)
    expect(counted.count == 1, f"cross_attention is called {counted.count} times, expected once")
    same(
        counted.calls[0][1], MEMORY, "the second argument of cross_attention",
        note="It has to be the memory itself, which the encoder has normalised.",
    )  # fmt: skip


def _equals_torchs(answer):
    """with the parts of torch's decoder layer it is torch's layer"""
    layer = torch.nn.TransformerDecoderLayer(
        4, 2, 6, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    with torch.no_grad():
        for seed, weight in enumerate(layer.parameters()):
            weight.copy_(numbers(*weight.shape, seed=seed, scale=0.7, dtype=torch.float64))
    future = torch.ones(3, 3, dtype=torch.bool).triu(1)

    def own(y):
        return layer.self_attn(y, y, y, attn_mask=future, need_weights=False)[0]

    def cross(y, memory):
        return layer.multihead_attn(y, memory, memory, need_weights=False)[0]

    def ffn(y):
        return layer.linear2(layer.linear1(y).relu())

    def oracle(x, memory, *_):
        return layer(x, memory, tgt_mask=future)

    x, memory = (numbers(2, n, 4, seed=n, dtype=torch.float64) for n in (3, 5))
    parts = (own, cross, ffn, (layer.norm1, layer.norm2, layer.norm3))
    where = "for the parts of `nn.TransformerDecoderLayer`, in float64"
    agrees(answer, oracle, x, memory, *parts, where=where)


def _layer_gradients(answer):
    """gradients reach x and the memory along every path"""
    parts = (_own, _cross, _ffn, list(NORMS))
    gradients(answer, _in_a_loop, X_IN, MEMORY, *parts, where=_SMALL)


ORDER = Exercise(
    id="13.2",
    title="the order of a decoder layer",
    difficulty=2,
    minutes=8,
    statement=(
        "Write `my_decoder_layer(x, memory, self_attention, cross_attention, feed_forward, "
        "norms)`, the Pre-LN decoder layer of the drawing. Its parts are given as functions: "
        "`self_attention(y)` has its mask already, and `cross_attention(y, memory)` takes the "
        "queries first. `norms` holds three functions, one for each sublayer."
    ),
    hint="It takes three lines, each of the form `x = x + sublayer(norm(x))`.",
    function=my_decoder_layer,
    tests=(
        _whole,
        _stream,
        _self_first,
        _ffn_once,
        _ffn_last,
        _memory_is_read,
        _equals_torchs,
        _layer_gradients,
    ),
)


# 13.3 does it leak?


def my_leaks(function, x):
    """Whether an output of `function` depends on a later input.

    x is (B, T, C); function maps it to (B, T, C). Position t may depend on inputs 0 to t.
    """
    raise NotImplementedError


def _mix(allowed):
    """Average, at each position, the inputs where allowed (T, T) is not 0."""
    return lambda x: torch.tensor(allowed, dtype=x.dtype) @ x


def _normed(function):
    """Bring each output vector to mean 0 and variance 1, as a layer does that ends in a norm."""

    def run(x):
        out = function(x)
        return (out - out.mean(-1, keepdim=True)) / (out.var(-1, keepdim=True) + 1e-5).sqrt()

    return run


_PAST = _mix([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.3, 0.3, 0.4, 0], [0.25] * 4])
_BEFORE = _mix([[0.0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
_ITSELF = _mix([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
_FIRST = _mix([[1.0, 0, 0, 0], [1, 0, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]])
_NEXT = _mix([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0.5, 0.5, 0.25], [0, 0, 0, 1]])
_FAR = _mix([[1.0, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
_EARLY = _mix([[0.5, 0.5, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
_FUTURE = _mix([[0.0, 0.3, 0.3, 0.4], [0, 0, 0.5, 0.5], [0, 0, 0, 1], [0.25] * 4])


def _one_number(x):
    """Causal but for one number: feature 0 of output 0 holds feature 2 of input 1."""
    leak = torch.zeros_like(x)
    leak[:, 0, 0] = 1
    return _PAST(x) + leak * x[:, 1:2, 2:]


def _second_row(x):
    """Causal in the first sentence of the batch, and not in the second."""
    return torch.cat([_PAST(x[:1]), _FUTURE(x[1:])])


X = torch.tensor(
    [
        [[0.5, -1.0, 2.0], [1.5, 0.3, -0.4], [-0.7, 0.9, 0.2], [0.1, -1.3, 0.8]],
        [[1.1, 0.6, -0.5], [0.4, -0.8, 1.9], [1.2, -0.2, 0.7], [-1.4, 0.5, 0.3]],
    ]
)


def _says_of(answer, function, wanted, what, x=X):
    got = answer(function, x)
    kind = type(got).__name__
    is_bool = isinstance(got, bool) or (isinstance(got, torch.Tensor) and got.numel() == 1)
    is_bool = is_bool or kind in ("bool_", "bool")
    expect(is_bool, f"for {what}, you return a {kind}, expected True or False")
    expect(
        bool(got) == wanted,
        f"for {what}, you return {bool(got)}, expected {wanted}",
    )


def _causal(answer):
    """a function that averages the past does not leak"""
    _says_of(answer, _PAST, False, "the mean of inputs 0 to t")
    _says_of(answer, _BEFORE, False, "the input before")


def _causal_without_last(answer):
    """nor does one that never reads the last input"""
    _says_of(answer, _FIRST, False, "some of the inputs 0 to t")


def _itself(answer):
    """nor does the identity"""
    _says_of(answer, _ITSELF, False, "the identity")


def _future_only(answer):
    """one that sees the future leaks"""
    _says_of(answer, _FUTURE, True, "the mean of the inputs after t")


def _one_step(answer):
    """a leak of one step, at one position, is one"""
    _says_of(answer, _NEXT, True, "an output 2 that sees input 3, the others causal")
    _says_of(answer, _EARLY, True, "an output 0 that sees input 1, the others causal")


def _one_feature(answer):
    """so is one from a single number to a single number"""
    _says_of(answer, _one_number, True, "an output 0 that sees feature 2 of input 1 only")


def _long_way(answer):
    """so is one from the last input to the first output"""
    _says_of(answer, _FAR, True, "an output 0 that sees input 3, the others causal")


def _behind_a_norm(answer):
    """a norm at the end does not hide it"""
    _says_of(answer, _normed(_FUTURE), True, "the mean of the inputs after t, then normalised")
    _says_of(answer, _normed(_PAST), False, "the mean of inputs 0 to t, then normalised")


def _every_sentence(answer):
    """every sentence of the batch counts"""
    _says_of(answer, _second_row, True, "one that leaks in the second sentence only")


def _leak(t, s, sentence=None, reads=None, says=None, by=1.0):
    """Causal, but `by` times input s enters output t.

    reads and says are weights of the features that leak; sentence is the only one that leaks.
    """

    def run(x):
        told = x[:, s] @ reads.to(x)[:, None] if reads is not None else x[:, s]
        told = told * (says.to(x) if says is not None else 1.0)
        if sentence is not None:
            told = told * (torch.arange(x.size(0)) == sentence).to(x)[:, None]
        at = (torch.arange(x.size(1)) == t).to(x)
        return _PAST(x) + by * at[:, None] * told[:, None]

    return run


_PAIRS = [(t, s) for t in range(4) for s in range(t + 1, 4)]


@hint("Ask for every output, and for all inputs after it.")
def _each_pair(answer):
    """whichever input it comes from, whichever output it goes to"""
    for t, s in _PAIRS:
        _says_of(answer, _leak(t, s), True, f"an output {t} that sees input {s} as well")


def _each_sentence(answer):
    """whichever sentence it is in"""
    for b in range(2):
        _says_of(
            answer, _leak(1, 2, b), True, f"an output 1 that sees input 2, in sentence {b} only"
        )


def _features(*weights):
    return torch.tensor(weights, dtype=torch.float64)


def _each_feature(answer):
    """whichever features it takes"""
    for i in range(3):
        one = torch.eye(3, dtype=torch.float64)[i]
        what = f"an output 0 that sees feature {i} of input 2"
        _says_of(answer, _leak(0, 2, reads=one), True, what)
        what = f"an output 0 that sees input 2 in its feature {i}"
        _says_of(answer, _leak(0, 2, says=one), True, what)


@hint("What is the same in all features cancels here: a sum of features, or 1 added to each.")
def _differences(answer):
    """a leak that cancels in the sum of the features is one"""
    reads = _leak(0, 2, reads=_features(1, -1, 0))
    _says_of(answer, reads, True, "an output 0 that sees feature 0 less feature 1 of input 2")
    says = _leak(0, 2, says=_features(1, -1, 0), reads=_features(1, 0, 0))
    _says_of(answer, says, True, "an output 0 that has input 2 in feature 0, and less in feature 1")


def _later_less_later(x):
    """Causal, but the difference of inputs 2 and 3 enters output 0."""
    return _leak(0, 2)(x) - _leak(0, 3)(x) + _PAST(x)


@hint("Setting the later inputs to 0 changes nothing where they are 0. Use random numbers.")
def _zero_words(answer):
    """inputs that are all 0, or equal, do not hide it"""
    x = X.clone()
    x[:, 2:] = 0
    _says_of(answer, _FUTURE, True, "the mean of the inputs after t, words 2 and 3 all 0", x)
    _says_of(answer, _leak(1, 3), True, "an output 1 that sees input 3, which is all 0", x)
    x[:, 2:] = X[:, :1]
    what = "an output 0 that sees input 2 less input 3, which are equal"
    _says_of(answer, _later_less_later, True, what, x)


@hint("A threshold hides a small leak. What does not depend on the future is exactly the same.")
def _small(answer):
    """a small leak is a leak"""
    what = "an output 0 that sees 1/10000 of input 2"
    _says_of(answer, _leak(0, 2, by=1e-4), True, what, X.double())
    _says_of(answer, _PAST, False, "the mean of inputs 0 to t, in float64", X.double())
    what = "an output 0 that sees -1/10000 of input 3"
    _says_of(answer, _leak(0, 3, by=-1e-4), True, what, X.double())


def _alone(by):
    """The input before, and at position 0, where there is none, `by` times input 2."""
    return lambda x: _BEFORE(x) + by * torch.eye(4).to(x)[:, :1] * x[:, 2:3]


@hint("A threshold hides a small leak. What does not depend on the future is exactly the same.")
def _tiny(answer):
    """however small, where nothing else is"""
    for by in (1e-7, 1e-12):
        what = f"an output 0 that is {by:g} of input 2, and nothing else"
        _says_of(answer, _alone(by), True, what, X.double())


def _shortest(answer):
    """one position has no future, two have one"""
    one, two = X[:, :1], X[:, :2]
    _says_of(answer, lambda x: 2 * x, False, "one position", one)
    _says_of(answer, lambda x: x.cumsum(1), False, "the sum so far of two positions", two)
    _says_of(answer, lambda x: x.flip(1), True, "two positions that change places", two)


LEAK = Exercise(
    id="13.3",
    title="does it leak?",
    difficulty=3,
    minutes=15,
    statement=(
        "You are given a function, whose code you can't see, and an input `x` of shape "
        "`(B, T, C)`; the output has the same shape. Write `my_leaks(function, x)`, which returns "
        "True if some output depends on an input at a later position, and False if position t "
        "depends on inputs 0 to t only. However small, a leak counts. The function can be "
        "differentiated, and it takes T positions, no fewer."
    ),
    hint=(
        "For each t, take the gradient of output t in a random direction with "
        "`torch.autograd.grad`, and look at its part for the inputs after t. Or change the inputs "
        "after t and compare outputs 0 to t."
    ),
    function=my_leaks,
    tests=(
        _causal,
        _causal_without_last,
        _itself,
        _future_only,
        _one_step,
        _long_way,
        _one_feature,
        _behind_a_norm,
        _every_sentence,
        _each_pair,
        _each_sentence,
        _each_feature,
        _differences,
        _zero_words,
        _small,
        _tiny,
        _shortest,
    ),
)


EXERCISES = (SHIFT, ORDER, LEAK)
