"""Chapter 26: counting a layer, a batch in pieces, and what decoding can reach."""

import math
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tinytf_course.expect import agrees, expect, numbers, tensor, travels
from tinytf_course.grading import Exercise
from tinytf_course.words import described, given


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


# 26.1 count a layer


def my_layer_flops(length, d_model, num_heads, d_ff):
    """Count the operations of the matrix products of one layer for one text of `length` tokens.

    Self-attention has four projections, the scores and the weighted sum; then comes the
    feed-forward network. A multiplication and an addition count as one operation each.
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
    note = "Four projections, scores, weighted sum, two layers of the network: 8 products, 2 "
    note += "operations each."
    _counts(answer, (1, 1, 1, 1), 16, note)


def _network(answer):
    """the feed-forward network is counted by its own width"""
    more = _count(answer, 3, 4, 2, 7) - _count(answer, 3, 4, 2, 6)
    where = "for length=3, d_model=4, num_heads=2, one unit more in the network (d_ff=7, not 6)"
    note = "A row of w_1 and a column of w_2, for each of 3 positions: 2 · 2 · 3 · 4."
    expect(more == 48, f"{where} takes {more:,} more, expected 48. {note}")


def _square(answer):
    """what grows with the square of the length are scores and weighted sum"""
    more = _count(answer, 2, 4, 2, 6) - 2 * _count(answer, 1, 4, 2, 6)
    where = "for d_model=4, a sentence of 2 tokens takes"
    note = "Each of 2 tokens meets 2 keys and 2 values where it met one: 2 · 2 · (4 - 2) · 4."
    expect(more == 32, f"{where} {more:,} more than 2 sentences of one, expected 32. {note}")


def _maps(answer):
    """the four projections of attention are d_model wide, on both sides"""
    more = _count(answer, 1, 2, 1, 0) - 2 * _count(answer, 1, 1, 1, 0)
    where = "for one token and no network (d_ff=0), d_model=2 takes"
    note = "A projection is (d_model, d_model): 4 projections · 2 · (4 - 2); the rest just doubles."
    expect(more == 16, f"{where} {more:,} more than twice d_model=1, expected 16. {note}")


def _heads(answer):
    """heads cost nothing"""
    one, four = (_count(answer, 3, 8, heads, 6) for heads in (1, 4))
    note = "4 heads of width 2 multiply as much as one of width 8."
    where = "for length=3, d_model=8, d_ff=6, 4 heads take"
    expect(one == four, f"{where} {four:,} and one head {one:,}, expected the same. {note}")


def _whole(answer):
    """a layer of GPT-2 small takes 17.7 billion at 1,024 tokens"""
    note = "The projections take 4 · 2 · 5 · 6 · 6 = 1440, scores and weighted sum 2 · 2 · 5 · "
    note += "5 · 6 = 600, the network 2 · 2 · 5 · 6 · 7 = 840."
    _counts(answer, (5, 6, 3, 7), 2880, note)
    note = "24 · n · d² for the linear layers, 4 · n² · d for scores and weighted sum."
    _counts(answer, (1024, 768, 12, 3072), 17_716_740_096, note)


FLOPS = Exercise(
    id="26.1",
    title="count a layer",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_layer_flops(length, d_model, num_heads, d_ff)`, which counts the "
        "operations of one layer's forward pass for a single text of `length` tokens: those "
        "of the eight matrix products of self-attention and the feed-forward network. A "
        "multiplication and an addition count as one operation each. Biases, softmax and "
        "norms are left out."
    ),
    hint=(
        "A product of (m, k) and (k, n) takes 2·m·k·n operations. All heads together are d_model "
        "wide."
    ),
    function=my_layer_flops,
    tests=(_of_ones, _network, _square, _maps, _heads, _whole),
)


# 26.2 a big batch in small pieces


def my_accumulated_gradient(w, micro):
    """Return the gradient of the mean squared error over all rows, one micro-batch at a time.

    w is (D,); micro is a list of (x, y) with x (n, D) and y (n,), of different n. The error of a
    row is (x · w - y)². Returns (D,), the gradient of one big batch.
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
    id="26.2",
    title="a big batch in small pieces",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_accumulated_gradient(w, micro)`, which returns the gradient of the mean "
        "squared error of the predictions `x @ w` over *all* rows of all micro-batches, "
        "computed one micro-batch at a time, so that only one of them takes up memory at any "
        "moment. `micro` is a list of pairs `(x, y)`, with `x` of shape `(n, D)` and `y` of "
        "shape `(n,)`; n differs from pair to pair."
    ),
    hint=(
        "Sum the errors of each micro-batch, and divide by the number of rows in all of them, "
        "which you count first."
    ),
    function=my_accumulated_gradient,
    tests=(_one_row, _big, _even, _uneven, _other_kinds, _one_at_a_time),
)


# 26.3 tokens a second, at best


def my_tokens_per_second(weights, cache, batch, rate, bandwidth, bytes_each):
    """Return how many tokens per second decoding reaches at best, all texts together.

    A step generates one token for each of `batch` texts. It fetches `weights` numbers once and
    `cache` numbers for each text. Each weight takes a multiplication and an addition for each text,
    and so does each number of a cache for its own text. rate is in operations per second,
    bandwidth in bytes per second.
    """
    raise NotImplementedError


def _fast(answer, sizes, expected, note):
    """What the answer says for these sizes, in the order of its arguments."""
    got, where = answer(*sizes), given(my_tokens_per_second, sizes)
    got = tensor(got, where)
    expect(got.dim() == 0, f"{where}, you return {described(got)}, expected a number")
    close = math.isclose(got.item(), expected, rel_tol=1e-6)
    expect(close, f"{where}, you get {got.item():g}, expected {expected:g}. {note}")


def _fetching(answer):
    """one text waits for its weights"""
    note = "200 bytes are fetched, 50 a second: a step takes 4 seconds and generates one token."
    _fast(answer, (100, 0, 1, 1e9, 50.0, 2), 0.25, note)


def _shared(answer):
    """texts share the weights"""
    note = "The step still fetches 200 bytes and takes 4 seconds, but it generates 3 tokens."
    _fast(answer, (100, 0, 3, 1e9, 50.0, 2), 0.75, note)


def _own_caches(answer):
    """each text has a cache of its own"""
    note = "2 · (100 + 3 · 50) bytes are fetched, 50 a second: 10 seconds for 3 tokens."
    _fast(answer, (100, 50, 3, 1e9, 50.0, 2), 0.3, note)


def _multiplying(answer):
    """many texts wait for the arithmetic"""
    note = "Each of 4 texts takes 2 · (10 + 5) operations, 120 in all, 60 a second: 2 seconds."
    _fast(answer, (10, 5, 4, 60.0, 1e9, 4), 2.0, note)


def _slower(answer):
    """the slower of the two decides, not their sum"""
    note = "Fetching takes 3 seconds and arithmetic 2, at the same time: 3 seconds for 2 tokens."
    _fast(answer, (10, 10, 2, 40.0, 40.0, 4), 2 / 3, note)
    note = "Fetching takes 1.5 seconds and arithmetic 2, at the same time."
    _fast(answer, (10, 10, 2, 40.0, 80.0, 4), 1.0, note)


def _served(answer):
    """GPT-2 XL on one card, for one person and for a thousand"""
    # Keys and values of 1,024 tokens, 48 layers of width 1,600; an H100's bfloat16 and memory.
    sizes = (1_557_611_200, 2 * 48 * 1600 * 1024)
    note = "At one text the weights are fetched for one token."
    _fast(answer, (*sizes, 1, 989e12, 3.35e12, 2), 976.7347, note)
    note = "At a thousand the caches are nearly all that is fetched."
    _fast(answer, (*sizes, 1000, 989e12, 3.35e12, 2), 10544.936, note)


SERVING = Exercise(
    id="26.3",
    title="tokens a second, at best",
    difficulty=2,
    minutes=8,
    statement=(
        "How many tokens per second can a machine generate at best? Write "
        "`my_tokens_per_second(weights, cache, batch, rate, bandwidth, bytes_each)` for decode "
        "steps that generate one token for each of `batch` texts. Return the tokens per second "
        "of all texts together.\n\n"
        "<details><summary>What a step computes and fetches</summary>\n\n"
        "A step fetches the model's `weights`, given as a count of numbers, once. For each text "
        "it also fetches the `cache` numbers of that text's own KV cache. A number has "
        "`bytes_each` bytes. Each weight takes a multiplication and an addition for each text, "
        "and each number of a cache takes them for its own text. `rate` is in operations per "
        "second and `bandwidth` in bytes per second. The machine computes and fetches at the "
        "same time, so a step takes as long as the slower of the two.\n\n"
        "</details>"
    ),
    hint=(
        "Write down the operations and the bytes of one step, turn each into seconds, and compare."
    ),
    function=my_tokens_per_second,
    tests=(_fetching, _shared, _own_caches, _multiplying, _slower, _served),
)


EXERCISES = (FLOPS, ACCUMULATION, SERVING)
