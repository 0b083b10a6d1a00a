"""Chapter 15: counting a layer, accumulating, batches by length, and attention block by block."""

import math
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tinytf.course.expect import agrees, expect, numbers, same, tensor, travels
from tinytf.course.grading import Exercise, hint
from tinytf.course.words import described, given, short


class Held(TorchDispatchMode):
    """A block that counts the numbers that stand in memory for what is computed in it.

    `peak` is the most at one time; what was there before is not counted.
    """

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self._given, self._made = {}, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Compute, and count what is new."""
        for storage in _storages((args, kwargs)):
            if storage._cdata not in self._made:
                self._given[storage._cdata] = storage
        result = function(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            for storage in _storages(x):
                self._count(storage, storage.nbytes() // x.element_size())
        return result

    def _count(self, storage, size):
        key = storage._cdata
        if key not in self._given and key not in self._made:
            self._made[key] = size
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, key)

    def _drop(self, key):
        self.now -= self._made.pop(key)


def _storages(value):
    return [x.untyped_storage() for x in tree_leaves(value) if isinstance(x, torch.Tensor)]


# 15.1 count a layer


def my_layer_flops(length, d_model, num_heads, d_ff):
    """How many operations the matrix products of one layer take for one sentence.

    Self-attention (queries, keys, values, scores, mix, output map), then the feed-forward network.
    A multiplication and an addition count one each.
    """
    raise NotImplementedError


def _count(answer, *sizes):
    """What the answer counts for these sizes, a number."""
    where = given(my_layer_flops, sizes)
    got = tensor(answer(*sizes), where)
    expect(got.dim() == 0, f"{where}, you return {described(got)}, expected a number")
    return got.item()


def _counts(answer, sizes, expected, note):
    got, where = _count(answer, *sizes), given(my_layer_flops, sizes)
    expect(got == expected, f"{where}, you get {got:,}, expected {expected:,}. {note}")


def _of_ones(answer):
    """one number meets one number eight times"""
    note = "Four maps, scores, mix, and two maps of the network: 8 products, 2 operations each."
    _counts(answer, (1, 1, 1, 1), 16, note)


def _network(answer):
    """the feed-forward network is counted by its own width"""
    more = _count(answer, 3, 4, 2, 7) - _count(answer, 3, 4, 2, 6)
    where = "for length=3, d_model=4, num_heads=2, one unit more in the network (d_ff=7, not 6)"
    note = "A row of w_1 and a column of w_2, for each of 3 positions: 2 · 2 · 3 · 4."
    expect(more == 48, f"{where} takes {more:,} more, expected 48. {note}")


def _square(answer):
    """what grows with the square of the length are scores and mix"""
    more = _count(answer, 2, 4, 2, 6) - 2 * _count(answer, 1, 4, 2, 6)
    where = "for d_model=4, a sentence of 2 tokens takes"
    note = "Each of 2 tokens meets 2 keys and 2 values where it met one: 2 · 2 · (4 - 2) · 4."
    expect(more == 32, f"{where} {more:,} more than 2 sentences of one, expected 32. {note}")


def _maps(answer):
    """the four maps of attention are d_model wide, on both sides"""
    more = _count(answer, 1, 2, 1, 0) - 2 * _count(answer, 1, 1, 1, 0)
    where = "for one token and no network (d_ff=0), d_model=2 takes"
    note = "A map is (d_model, d_model): 4 maps · 2 · (4 - 2); scores and mix just double."
    expect(more == 16, f"{where} {more:,} more than twice d_model=1, expected 16. {note}")


def _heads(answer):
    """heads cost nothing"""
    one, four = (_count(answer, 3, 8, heads, 6) for heads in (1, 4))
    note = "4 heads of width 2 multiply as much as one of width 8."
    where = "for length=3, d_model=8, d_ff=6, 4 heads take"
    expect(one == four, f"{where} {four:,} and one head {one:,}, expected the same. {note}")


def _whole(answer):
    """a layer of GPT-2 small takes 17.7 billion at 1,024 tokens"""
    note = "The maps take 4 · 2 · 5 · 6 · 6 = 1440, scores and mix 2 · 2 · 5 · 5 · 6 = 600, the "
    note += "network 2 · 2 · 5 · 6 · 7 = 840."
    _counts(answer, (5, 6, 3, 7), 2880, note)
    note = "24 · n · d² for the linear maps, 4 · n² · d for attention."
    _counts(answer, (1024, 768, 12, 3072), 17_716_740_096, note)


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
    tests=(_of_ones, _network, _square, _maps, _heads, _whole),
)


# 15.2 a big batch in small pieces


def my_accumulated_gradient(w, micro):
    """The gradient of the mean squared error over all rows, one micro-batch at a time.

    w is (D,); micro is a list of (x, y) with x (n, D) and y (n,), of different n. The error of a
    row is (x · w - y)². Returns (D,), what one big batch would give.
    """
    raise NotImplementedError


def _micro(*sizes, width=3, dtype=torch.float32):
    """A weight, and micro-batches of so many rows each."""
    drawn = [numbers(n, width + 1, seed=i, dtype=dtype) for i, n in enumerate(sizes)]
    return numbers(width, seed=99, dtype=dtype), [(rows[:, 1:], rows[:, 0]) for rows in drawn]


def _row_by_row(w, micro):
    """The formula, 2 · error · x, for each row in float64, and the mean over all rows."""
    rows = [(x.double(), y.double()) for xs, ys in micro for x, y in zip(xs, ys, strict=True)]
    found = [2 * ((x * w.double()).sum() - y) * x for x, y in rows]
    return (sum(found) / len(rows)).to(w.dtype)


def _one_row(answer):
    """for one row it is 2 · error · x"""
    w, x, y = torch.tensor([1.0, -2.0]), torch.tensor([[3.0, 1.0]]), torch.tensor([2.0])
    note = "The error is 3 - 2 - 2 = -1."
    agrees(answer, _row_by_row, w, [(x, y)], note=note)


def _big(answer):
    """one micro-batch is the big batch"""
    x, y = torch.tensor([[3.0], [1.0]]), torch.tensor([2.0, 5.0])
    note = "The errors are 1 and -4, so the rows' gradients are 6 and -8: the mean is -1."
    agrees(answer, _row_by_row, torch.tensor([1.0]), [(x, y)], note=note)
    agrees(answer, _row_by_row, *_micro(6))


def _even(answer):
    """equal micro-batches add up to it"""
    parts = [
        (torch.tensor([[3.0]]), torch.tensor([2.0])),
        (torch.tensor([[1.0]]), torch.tensor([5.0])),
    ]
    note = "The rows' gradients are 6 and -8, in two micro-batches of one: the mean is -1."
    agrees(answer, _row_by_row, torch.tensor([1.0]), parts, note=note)
    where = "for 3 micro-batches of 2 rows"
    agrees(answer, _row_by_row, *_micro(2, 2, 2), where=where, note="Each row counts 1/6.")


def _uneven(answer):
    """unequal micro-batches do too"""
    note = "The mean over 6 rows is not the mean of the two means over 5 and 1."
    where = "for micro-batches of 5 rows and 1"
    agrees(answer, _row_by_row, *_micro(5, 1), where=where, note=note)
    where = "for micro-batches of 1, 4, 2 and 9 rows"
    agrees(answer, _row_by_row, *_micro(1, 4, 2, 9, width=5), where=where)


def _other_kinds(answer):
    """it has the dtype of w, and is where w is"""
    w, micro = _micro(3, 1, dtype=torch.float64)
    agrees(answer, _row_by_row, w, micro, where="for micro-batches of 3 rows and 1 (float64)")
    travels(answer, *_micro(3, 1), where="for micro-batches of 3 rows and 1")


_MANY = (30, 12, 25, 7, 30, 20, 28, 30, 9, 24, 30, 16)


def _one_at_a_time(answer):
    """only one micro-batch at a time needs memory"""
    w, micro = _micro(*_MANY, width=2)
    before = w.numel() + sum(x.numel() + y.numel() for x, y in micro)
    where = f"for 12 micro-batches of at most 30 rows of 2 numbers, {sum(_MANY)} rows in all"
    with Held() as held:
        answer(w, micro)
    most = held.peak - before  # the answer gets copies
    kept = "as many numbers as all rows have" if most > before else "something of every micro-batch"
    expect(most <= 250, f"{where}, you hold {kept} at one time: let go of each micro-batch before "
           "the next, by one `backward` each or a sum of gradients")  # fmt: skip


ACCUMULATION = Exercise(
    id="15.2",
    title="a big batch in small pieces",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_accumulated_gradient(w, micro)`: the gradient of the mean squared error over "
        "*all* rows, computed one micro-batch at a time, so that only one of them needs memory. "
        "`micro` is a list of `(x, y)`, `x` of shape `(n, D)`, `y` "
        "of shape `(n,)`; their `n` differ."
    ),
    hint="Sum each micro-batch's errors, and divide by the rows of all of them, counted first.",
    function=my_accumulated_gradient,
    tests=(_one_row, _big, _even, _uneven, _other_kinds, _one_at_a_time),
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
    where = given(my_batches, (lengths, size))
    got = answer(lengths, size)
    message = f"{where}, you return {described(got)}, expected a list of lists"
    expect(isinstance(got, list | tuple), message)
    batches = []
    for batch in got:
        held = isinstance(batch, list | tuple | torch.Tensor)
        expect(held, f"{where}, one batch is {described(batch)}, expected a list of indices")
        for index in batch:
            whole = isinstance(index, int) or (isinstance(index, torch.Tensor) and index.dim() == 0)
            expect(whole and not isinstance(index, bool), f"{where}, a batch holds {index!r}, "
                   "expected an index")  # fmt: skip
        batches.append([int(index) for index in batch])
    return batches, where


_CASES = (
    ([5], 1), ([17, 3], 1), ([17, 3], 2), ([3, 12, 4], 2), ([4, 4, 4], 2), ([6, 2], 5),
    (_LENGTHS, 2), (_LENGTHS, 3), ([12, 9, 8, 5, 3], 2),
    (numbers(50, seed=1).abs().mul(20).long().add(1).tolist(), 7),
    (numbers(3000, seed=2).abs().mul(1000).long().add(1).tolist(), 2),
)  # fmt: skip


def _once(answer):
    """every sentence is in one batch"""
    for lengths, size in _CASES:
        batches, where = _listed(answer, lengths, size)
        found = sorted(index for batch in batches for index in batch)
        note = f"expected each of 0 to {len(lengths) - 1} once"
        right = found == list(range(len(lengths)))
        expect(right, f"{where}, the batches hold {short(found)}, {note}")


def _full(answer):
    """batches are full, but for one"""
    for lengths, size in _CASES:
        batches, where = _listed(answer, lengths, size)
        found, left = sorted(map(len, batches)), len(lengths) % size
        sizes = [left] * bool(left) + [size] * (len(lengths) // size)
        expect(found == sizes, f"{where}, the batches' sizes are {found}, expected {sizes}")


def _most_padding(lengths, size):
    """The padding of batches cut from the sorted lengths, wherever the smaller batch is cut."""
    ordered, left = sorted(lengths), len(lengths) % size
    found = []
    for start in range(0, len(lengths) - left + 1, size) if left else [0]:
        small, rest = ordered[start : start + left], ordered[:start] + ordered[start + left :]
        batches = [small] * bool(left) + [rest[i : i + size] for i in range(0, len(rest), size)]
        found.append(sum(max(batch) * len(batch) - sum(batch) for batch in batches))
    return max(found)


def _little(answer):
    """no more of them is padding than sorting leaves"""
    for lengths, size in _CASES:
        batches, where = _listed(answer, lengths, size)
        inside = [[lengths[i] for i in b if 0 <= i < len(lengths)] for b in batches]
        pads = sum(max(batch) * len(batch) - sum(batch) for batch in inside if batch)
        most = _most_padding(lengths, size)
        words = f"{where}, {pads} places are padding, expected at most {most}: put sentences of "
        expect(pads <= most, words + "similar length together")


BUCKETS = Exercise(
    id="15.3",
    title="batches by length",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_batches(lengths, size)`: given the lengths of all sentences, divide them into "
        "batches of `size` so that little of them is padding, no more than sorting all of them, "
        "in either direction, leaves. Return "
        "a list of lists of indices, each index once; one batch may be smaller. (Training then "
        "shuffles the batches; here their order is free.)"
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


def _passing(k, v, sizes):
    """Blocks that share one memory, as those of a kernel do: each overwrites the one before."""
    room = [x.new_empty(max(sizes), x.size(-1)) for x in (k, v)]
    return _overwritten(room, zip(k.split(sizes), v.split(sizes), strict=True))


def _overwritten(room, blocks):
    for block in blocks:
        for place, part in zip(room, block, strict=True):
            place[: len(part)].copy_(part)
        yield tuple(place[: len(part)] for place, part in zip(room, block, strict=True))


def _at_once(q, k, v):
    """Query by query over all keys, in float64."""
    out = []
    for row in q.double():
        scores = (k.double() * row).sum(-1) / q.size(-1) ** 0.5
        weights = (scores - scores.logsumexp(0)).exp()
        out.append(sum(w * value for w, value in zip(weights, v.double(), strict=True)))
    return torch.stack(out).to(q.dtype)


def _streams(answer, q, k, v, sizes, note="", where="", tolerance=None):
    many = sizes if len(sizes) < 6 else [*sizes[:3], "…"]
    where = where or (
        f"for q of shape {tuple(q.shape)}, keys of width {k.size(-1)} in blocks of "
        f"{', '.join(map(str, many))}"
    )
    got = tensor(answer(q, _passing(k, v, sizes)), where)
    expected = _at_once(q, k, v)
    message = f"{where}, the shape is {tuple(got.shape)}, expected {tuple(expected.shape)}"
    expect(got.shape == expected.shape, message)
    message = f"{where}, the result is not finite: exp(100) overflows float32, and exp(-200) is 0, "
    message += "so that 0 may be divided by 0. Where does your largest start?"
    expect(bool(got.isfinite().all()), message)
    same(got, expected, where, tolerance, note, dtype=True)


def _drawn(queries, keys, width, seed=1, dtype=torch.float32):
    """q, k and v at random."""
    q = numbers(queries, width, seed=seed, dtype=dtype)
    return q, *numbers(2, keys, width, seed=seed + 1, dtype=dtype)


def _column(*values):
    return torch.tensor(values)[:, None]


_LN3 = math.log(3)


def _single(answer):
    """one block gives plain attention"""
    note = "Its weights are 1/4 and 3/4."
    where = "for q=[[1]] and a block of two keys, scores 0 and ln 3, values 10 and 20"
    _streams(answer, _column(1.0), _column(0.0, _LN3), _column(10.0, 20.0), [2], note, where)
    q = torch.tensor([[2.0, 0, 0, 0]])
    k = torch.tensor([[0.0, 0, 0, 0], [_LN3, 0, 0, 0]])
    note = "The score is 2 · ln 3 / √4, the weights 1/4 and 3/4."
    where = "for q=[[2, 0, 0, 0]] and a block of keys [0, 0, 0, 0] and [ln 3, 0, 0, 0]"
    _streams(answer, q, k, torch.eye(4)[:2] * 4, [2], note, where)
    _streams(answer, *_drawn(3, 4, 5), [4])


def _several(answer):
    """several blocks give the same as all keys at once"""
    note = "All keys share one softmax: their weights are 1/4 and 3/4."
    for k, v, says in (((0.0, _LN3), (10.0, 20.0), "0, then ln 3, values 10, 20"),
                       ((_LN3, 0.0), (20.0, 10.0), "ln 3, then 0, values 20, 10")):  # fmt: skip
        where = f"for q=[[1]] and two blocks of one key, scores {says}"
        _streams(answer, _column(1.0), _column(*k), _column(*v), [1, 1], note, where)
    note = "All keys share one softmax."
    _streams(answer, *_drawn(3, 8, 5), [4, 4], note)
    _streams(answer, *_drawn(2, 9, 4, seed=5), [1, 5, 3], note)
    _streams(answer, *_drawn(4, 30, 3, seed=7), [1] * 30, note)


def _large(answer):
    """scores of hundreds do not overflow"""
    where = "for q=[[1]] and two blocks of one key, scores 200, then 100"
    _streams(answer, _column(1.0), _column(200.0, 100.0), _column(1.0, 2.0), [1, 1], where=where)
    q, k, v = _drawn(3, 7, 4, seed=3)
    where = "for blocks of 3, 2 and 2 keys, with scores in the hundreds"
    _streams(answer, q * 20, k * 20, v, [3, 2, 2], where=where, tolerance=1e-4)


def _negative(answer):
    """scores that are all far below 0 are not lost"""
    note = "The weights are 1/4 and 3/4."
    where = "for q=[[1]] and two blocks of one key, scores -300, then -300 + ln 3"
    _streams(answer, _column(1.0), _column(-300.0, -300 + _LN3), _column(10.0, 20.0), [1, 1], note,
             where, 1e-4)  # fmt: skip
    k, v = numbers(2, 7, 4, seed=4)
    q, k = torch.ones(2, 4) * 1e4, -200.0 - 8 * k.abs()
    where = "for blocks of 3 and 4 keys, with all scores below -3,000,000"
    _streams(answer, q, k, v, [3, 4], "The largest of them is below 0 too.", where, 1e-4)


def _kept_kinds(answer):
    """the result has the dtype of q, and is where q is"""
    _streams(answer, *_drawn(2, 5, 3, dtype=torch.float64), [2, 3], where="for float64")
    half = [x.half() for x in _drawn(2, 5, 3)]
    _streams(answer, *half, [2, 3], where="for float16", tolerance=1e-2)
    q, k, v = _drawn(2, 5, 3)
    travels(lambda q, k, v: answer(q, iter([(k, v)])), q, k, v, where="for a block of 5 keys")


@hint("What do you need to know of a block that is gone?")
def _no_copies(answer):
    """it never holds all scores, nor all keys or values"""
    q, k, v = _drawn(3, 120, 4, seed=9)
    room, sizes = [torch.empty(3, 4) for _ in "kv"], [3] * 40
    blocks = list(zip(k.split(sizes), v.split(sizes), strict=True))
    with Held() as held:
        answer(q, _overwritten(room, blocks))
    most = held.peak - q.numel()  # the answer gets a copy
    words = "for 3 queries, D=4, and 40 blocks of 3 keys, you hold more than 200 numbers at one "
    words += "time: all scores are 360, all keys 480. Carry a sum, not blocks"
    expect(most <= 200, words)


STREAM = Exercise(
    id="15.4",
    title="a softmax that never sees all scores",
    difficulty=3,
    minutes=20,
    statement=(
        "The fused kernel's trick. Write `my_streamed_attention(q, blocks)`: `blocks` is an "
        "iterator over `(k, v)`, each `(n, D)`, and each block is overwritten by the next. Return "
        "the attention of `q`, `(T, D)`, over all keys, scaled as always, whatever the scores' "
        "size and sign, in the dtype and on the device of `q`. Keep no copies of the blocks and no "
        "table of all scores: there may be far too many."
    ),
    hint=(
        "Carry three things: the largest score so far, the sum of exp(score - largest), and the "
        "values mixed with the same weights. When a larger score comes, multiply the old sum and "
        "the old mix by exp(old largest - new largest)."
    ),
    function=my_streamed_attention,
    tests=(_single, _several, _large, _negative, _kept_kinds, _no_copies),
)


EXERCISES = (FLOPS, ACCUMULATION, BUCKETS, STREAM)
