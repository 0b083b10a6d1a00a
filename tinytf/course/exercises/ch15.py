"""Chapter 15: counting a layer, accumulating, batches by length, and attention block by block."""

import torch

from tinytf.course.expect import expect, same, short, tensor
from tinytf.course.grading import Exercise

# 15.1 count a layer


def my_layer_flops(length, d_model, num_heads, d_ff):
    """How many operations the matrix products of one layer take for one sentence.

    Self-attention (queries, keys, values, scores, mix, output map), then the feed-forward network.
    A multiplication and an addition count one each.
    """
    raise NotImplementedError


def _network(answer):
    """the feed-forward network is counted by its own width"""
    more = tensor(answer(3, 4, 2, 7), "the answer") - tensor(answer(3, 4, 2, 6), "the answer")
    note = "One unit more adds a row of w_1 and a column of w_2, for each of 3 positions."
    same(more, 2 * 2 * 3 * 4, "for d_ff=7 instead of 6, with length=3, d_model=4, the", note=note)


def _square(answer):
    """what grows with the square of the length are scores and mix"""
    one, two, four = (
        tensor(answer(n, 4, 2, 6), "the answer").double() for n in (0, 1, 2)
    )  # the second difference leaves only the square
    note = "Scores and mix are 2 · n · n · d_model each."
    where = "the part that grows with length², for length=1, d_model=4, num_heads=2: there"
    same((four - 2 * two + one) / 2, 16, where, note=note)


def _heads(answer):
    """heads cost nothing"""
    one, four = (tensor(answer(3, 8, h, 6), "the answer") for h in (1, 4))
    note = "4 heads of width 2 multiply as much as one of width 8."
    same(four, one, "with num_heads=4 instead of 1, for length=3, d_model=8, d_ff=6,", note=note)


def _whole(answer):
    """a layer of GPT-2 small takes 17.7 billion at 1,024 tokens"""
    note = "24 · n · d² for the linear maps, 4 · n² · d for attention."
    same(answer(1024, 768, 12, 3072), 17_716_740_096, "for GPT-2's layer", 1e-9, note)


FLOPS = Exercise(
    id="15.1",
    title="count a layer",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_layer_flops(length, d_model, num_heads, d_ff)`: the operations (multiplications "
        "and additions) of one layer's matrix products, for one sentence of `length` tokens: "
        "self-attention with its four maps, then the feed-forward network. Biases, softmax and "
        "norms are not counted."
    ),
    hint="A product of (m, k) and (k, n) takes 2·m·k·n. There are eight; the heads share d_model.",
    function=my_layer_flops,
    tests=(_network, _square, _heads, _whole),
)


# 15.2 a big batch in small pieces


def my_accumulated_gradient(w, micro):
    """The gradient of the mean squared error over all rows, one micro-batch at a time.

    w is (D,); micro is a list of (x, y) with x (n, D) and y (n,), of different n. The error of a
    row is (x · w - y)². Returns (D,), what one big batch would give.
    """
    raise NotImplementedError


_W = torch.tensor([1.0, -2.0])
_X = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0], [1.0, -1.0], [3.0, 2.0], [-1.0, 1.0]])
_Y = torch.tensor([0.0, 1.0, -5.0, 2.0, 0.5, -1.0])


def _micro(*sizes):
    return list(zip(_X.split(sizes), _Y.split(sizes), strict=True))


def _whole_gradient(scale=1.0):
    return scale * 2 * _X.T @ (_X @ _W - _Y) / len(_Y)


def _big(answer):
    """one micro-batch is the big batch"""
    same(answer(_W, _micro(6)), _whole_gradient(), "for one micro-batch of 6 rows")


def _even(answer):
    """equal micro-batches add up to it"""
    note = "Each row counts 1/6, whichever micro-batch it is in."
    same(answer(_W, _micro(2, 2, 2)), _whole_gradient(), "for 3 micro-batches of 2", note=note)


def _uneven(answer):
    """unequal micro-batches do too"""
    note = "The mean over 6 rows is not the mean of the two means over 5 and 1."
    same(answer(_W, _micro(5, 1)), _whole_gradient(), "for micro-batches of 5 and 1", note=note)


ACCUMULATION = Exercise(
    id="15.2",
    title="a big batch in small pieces",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_accumulated_gradient(w, micro)`: the gradient of the mean squared error over "
        "*all* rows, computed one micro-batch at a time, so that only one of them needs memory "
        "(which the tests can't see). `micro` is a list of `(x, y)`, `x` of shape `(n, D)`, `y` "
        "of shape `(n,)`; their `n` differ."
    ),
    hint="Sum each micro-batch's errors, and divide by the rows of all of them, counted first.",
    function=my_accumulated_gradient,
    tests=(_big, _even, _uneven),
)


# 15.3 batches by length


def my_batches(lengths, size):
    """Put sentences of similar length together: a list of lists of indices, `size` in each.

    Every index stands in one batch; one batch may be smaller. A batch is padded to its longest
    sentence.
    """
    raise NotImplementedError


_LENGTHS = [9, 2, 11, 2, 8, 30, 1, 10]


def _listed(answer, lengths, size):
    where = f"for lengths={lengths}, size={size}"
    got = answer(lengths, size)
    expect(isinstance(got, list | tuple), f"{where}, you return a {type(got).__name__}, expected "
           "a list of lists")  # fmt: skip
    batches = []
    for batch in got:
        held = isinstance(batch, list | tuple | torch.Tensor)
        expect(held, f"{where}, one batch is a {type(batch).__name__}, expected a list of indices")
        for index in batch:
            whole = isinstance(index, int) or (isinstance(index, torch.Tensor) and index.dim() == 0)
            expect(whole and not isinstance(index, bool), f"{where}, a batch holds {index!r}, "
                   "expected an index")  # fmt: skip
        batches.append([int(index) for index in batch])
    return batches, where


def _once(answer):
    """every sentence is in one batch"""
    for size in (2, 3):
        batches, where = _listed(answer, _LENGTHS, size)
        found = sorted(index for batch in batches for index in batch)
        note = "expected each of 0 to 7 once"
        expect(found == list(range(8)), f"{where}, the batches hold {short(found)}, {note}")


def _full(answer):
    """batches are full, but for one"""
    for size, sizes in ((2, [2, 2, 2, 2]), (3, [2, 3, 3])):
        batches, where = _listed(answer, _LENGTHS, size)
        found = sorted(map(len, batches))
        expect(found == sizes, f"{where}, the batches' sizes are {found}, expected {sizes}")


def _little(answer):
    """little of them is padding"""
    for size, most in ((2, 27), (3, 48)):  # the smaller batch may be the longest or the shortest
        batches, where = _listed(answer, _LENGTHS, size)
        pads = sum(max(_LENGTHS[i] for i in b) - _LENGTHS[j] for b in batches if b for j in b)
        note = f"{most} are enough: put sentences of similar length together"
        expect(pads <= most, f"{where}, {pads} places are padding, {note}")


BUCKETS = Exercise(
    id="15.3",
    title="batches by length",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_batches(lengths, size)`: given the lengths of all sentences, divide them into "
        "batches of `size` so that little of them is padding. Return a list of lists of "
        "indices, each index once; one batch may be smaller. (Training then shuffles the batches; "
        "here their order is free.)"
    ),
    hint="Sort the indices by length, then cut.",
    function=my_batches,
    tests=(_once, _full, _little),
)


# 15.4 a softmax that never sees all scores


def my_streamed_attention(q, blocks):
    """Attention over keys and values that come in blocks, each overwritten by the next.

    q is (T, D). `blocks` gives pairs (k, v), each (n, D), once. Returns (T, D), equal to attention
    over all of them, whatever the scores' size.
    """
    raise NotImplementedError


def _numbers(seed, rows):
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))


_Q = _numbers(0, 3)
_KV = _numbers(1, 7), _numbers(2, 7)


def _passing(sizes, scale=1.0):
    """Blocks that share one memory, as those of a kernel do: each overwrites the one before."""
    room = torch.empty(2, max(sizes), 4)
    start = 0
    for size in sizes:
        k, v = (room[i, :size] for i in (0, 1))
        k.copy_(_KV[0][start : start + size] * scale)
        v.copy_(_KV[1][start : start + size])
        yield k, v
        start += size


def _expected(count=7, scale=1.0):
    k, v = (part[:count] for part in _KV)
    return (_Q @ (k * scale).T / 2).softmax(-1) @ v


def _single(answer):
    """one block gives plain attention"""
    same(answer(_Q, _passing([3])), _expected(3), "for a single block of 3 keys, D=4")


def _several(answer):
    """several blocks give the same as all keys at once"""
    note = "All 7 keys share one softmax."
    same(answer(_Q, _passing([3, 2, 2])), _expected(), "for blocks of 3, 2 and 2 keys", 1e-4, note)


def _large(answer):
    """scores of hundreds do not overflow"""
    got = tensor(answer(_Q, _passing([3, 2, 2], 400.0)), "with scores in the hundreds")
    message = (
        "with scores in the hundreds, the result is not finite: exp(100) overflows float32, and "
        "exp(-200) is 0, so that 0 may be divided by 0"
    )
    expect(bool(got.isfinite().all()), message)
    same(got, _expected(scale=400.0), "with scores in the hundreds", 1e-4)


def _negative(answer):
    """scores that are all far below 0 are not lost"""
    values = _KV[1]
    k, q = -200.0 - 8 * _KV[0].abs(), torch.ones(2, 4)
    got = tensor(answer(q, iter([(k[:3], values[:3]), (k[3:], values[3:])])), "with all scores < 0")
    message = "with all scores below -300, the result is not finite: where does your largest start?"
    expect(bool(got.isfinite().all()), message)
    wanted = (q @ k.T / 2).softmax(-1) @ values
    same(got, wanted, "with all scores below -300", 1e-4, "The largest of them is below 0 too.")


STREAM = Exercise(
    id="15.4",
    title="a softmax that never sees all scores",
    difficulty=3,
    minutes=20,
    statement=(
        "The fused kernel's trick. Write `my_streamed_attention(q, blocks)`: `blocks` is an "
        "iterator over `(k, v)`, each `(n, D)`, and each block is overwritten by the next. Return "
        "the attention of `q`, `(T, D)`, over all keys, scaled as always, whatever the scores' "
        "size and sign. (Copies of all blocks would pass, and miss the point.)"
    ),
    hint=(
        "Carry three things: the largest score so far, the sum of exp(score - largest), and the "
        "values mixed with the same weights. When a larger score comes, multiply the old sum and "
        "the old mix by exp(old largest - new largest)."
    ),
    function=my_streamed_attention,
    tests=(_single, _several, _large, _negative),
)


EXERCISES = (FLOPS, ACCUMULATION, BUCKETS, STREAM)
