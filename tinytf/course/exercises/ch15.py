"""Chapter 15: counting a layer, accumulating, batches by length, and attention block by block."""

import math

import torch

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, short, tensor

# 15.1 operations of a layer


def my_layer_flops(length, d_model, num_heads, d_ff):
    """How many operations the matrix products of one layer take for one sentence.

    Self-attention (queries, keys, values, scores, mix, output map), then the feed-forward network.
    A multiplication and an addition count one each.
    """
    projections = 4 * 2 * length * d_model * d_model
    scores_and_mix = 2 * 2 * length * length * d_model
    feed_forward = 2 * 2 * length * d_model * d_ff
    return projections + scores_and_mix + feed_forward


def _layer(maps=4, tables=2, per_head=False, linear=1, network=lambda d, f: 2 * f, each=2):
    def count(length, d_model, num_heads, d_ff):
        n, d = length, d_model
        tables_ = tables * n * n * d * (num_heads if per_head else 1)
        return each * (maps * n * d * d * linear + tables_ + n * d * network(d, d_ff))

    return count


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
    reference=my_layer_flops,
    wrong=(
        WrongAnswer(
            "only multiplications",
            _layer(each=1),
            "for GPT-2's layer",
            "Each multiplication comes with an addition: 2·m·k·n. (Papers that count multiply-adds "
            "say half of ours.)",
        ),
        WrongAnswer(
            "only n² · d",
            _layer(maps=0, network=lambda d, f: 0),
            "One unit more adds",
            "That is what the tutorials give. At GPT-2's own length it is less than a fifth of it.",
        ),
        WrongAnswer(
            "scores without the mix",
            _layer(tables=1),
            "Scores and mix are",
            "Mixing the values takes as many operations as the scores.",
        ),
        WrongAnswer(
            "heads counted at full width",
            _layer(per_head=True),
            "4 heads of width 2",
            "Each head works in d_model / num_heads dimensions; all of them together cost one.",
        ),
        WrongAnswer(
            "output map forgotten",
            _layer(maps=3),
            "for GPT-2's layer",
            "After the heads there is w_o, a fourth map from d_model to d_model.",
        ),
        WrongAnswer(
            "d_ff taken to be 4 d_model",
            _layer(network=lambda d, f: 8 * d),
            "One unit more adds",
            "The network has a width of its own: use d_ff.",
        ),
        WrongAnswer(
            "one map in the network",
            _layer(network=lambda d, f: f),
            "One unit more adds",
            "The network maps to d_ff and back.",
        ),
    ),
    tests=(_network, _square, _heads, _whole),
    probes=(calls(3, 4, 2, 6), calls(5, 8, 4, 3)),
)


# 15.2 accumulation


def my_accumulated_gradient(w, micro):
    """The gradient of the mean squared error over all rows, one micro-batch at a time.

    w is (D,); micro is a list of (x, y) with x (n, D) and y (n,), of different n. The error of a
    row is (x · w - y)². Returns (D,), what one big batch would give.
    """
    w = w.detach().requires_grad_()
    rows = sum(len(y) for _, y in micro)
    for x, y in micro:
        loss = (x @ w - y).square().sum() / rows
        loss.backward()  # adds to w.grad, and lets go of what it kept
    return w.grad


def _accumulated(weigh=None, last=False):
    def gradient(w, micro):
        rows, parts = sum(len(y) for _, y in micro), []
        for x, y in micro:
            parts.append(2 * x.T @ (x @ w - y) * weigh(len(y), rows, len(micro)))
        return parts[-1] if last else sum(parts)

    return gradient


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
    reference=my_accumulated_gradient,
    wrong=(
        WrongAnswer(
            "mean of means",
            _accumulated(lambda n, rows, count: 1 / n / count),
            "is not the mean of the two means",
            "loss.mean() / len(micro) is right for equal micro-batches only. Text batches hold "
            "unequal numbers of tokens: Hugging Face's Trainer had this bug until 2024.",
        ),
        WrongAnswer(
            "means added up",
            _accumulated(lambda n, rows, count: 1 / n),
            "Each row counts 1/6",
            "Adding the means makes the step as many times too large as there are micro-batches.",
        ),
        WrongAnswer(
            "sums, not divided",
            _accumulated(lambda n, rows, count: 1.0),
            "for one micro-batch of 6 rows",
            "This is the gradient of the summed error: divide by the number of rows.",
        ),
        WrongAnswer(
            "only the last one",
            _accumulated(lambda n, rows, count: 1 / n, last=True),
            "Each row counts 1/6",
            "zero_grad() inside the loop throws away what the others added.",
        ),
        WrongAnswer(
            "divided by the number of micro-batches",
            _accumulated(lambda n, rows, count: 1 / count),
            "for one micro-batch of 6 rows",
            "Divide by the rows, not by the micro-batches.",
        ),
        WrongAnswer(
            "the way up",
            _accumulated(lambda n, rows, count: -1 / rows),
            "for one micro-batch of 6 rows",
            "The sign is wrong: return the gradient itself. The optimiser does the subtracting.",
        ),
    ),
    tests=(_big, _even, _uneven),
    probes=(calls(_W, _micro(5, 1)), calls(_W, _micro(2, 2, 2)), calls(_W, _micro(1, 3, 2))),
)


# 15.3 batches by length


def my_batches(lengths, size):
    """Put sentences of similar length together: a list of lists of indices, `size` in each.

    Every index stands in one batch; one batch may be smaller. A batch is padded to its longest
    sentence.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[i : i + size] for i in range(0, len(order), size)]


def _cut(order):
    def batches(lengths, size):
        at = order(lengths)
        return [at[i : i + size] for i in range(0, len(at), size)]

    return batches


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
    reference=my_batches,
    wrong=(
        WrongAnswer(
            "in the order they come",
            _cut(lambda lengths: list(range(len(lengths)))),
            "places are padding",
            "A short sentence next to a long one is mostly padding. Sort first.",
        ),
        WrongAnswer(
            "sorted within batches",
            lambda lengths, size: [
                sorted(range(i, min(i + size, len(lengths))), key=lambda j: lengths[j])
                for i in range(0, len(lengths), size)
            ],
            "places are padding",
            "The order within a batch does not matter; what matters is who shares one.",
        ),
        WrongAnswer(
            "lengths, not indices",
            lambda lengths, size: [
                sorted(lengths)[i : i + size] for i in range(0, len(lengths), size)
            ],
            "the batches hold [1, 2, 2, 8",
            "You sort the lengths and lose whose they are: sort the indices by length.",
        ),
        WrongAnswer(
            "the rest left out",
            lambda lengths, size: [
                b for b in my_batches(lengths, size) if len(b) == size
            ],  # as drop_last=True does
            "expected each of 0 to 7 once",
            "A sampler that drops the last batch never shows the longest sentences.",
        ),
        WrongAnswer(
            "sorted as text",
            _cut(lambda lengths: sorted(range(len(lengths)), key=lambda i: str(lengths[i]))),
            "places are padding",
            "As text, 10 comes before 2.",
        ),
        WrongAnswer(
            "a batch for each length",
            lambda lengths, size: [
                [i for i, n in enumerate(lengths) if n == length] for length in sorted(set(lengths))
            ],
            "the batches' sizes are",
            "No padding at all, but most batches hold one sentence: the machine waits for work.",
        ),
        WrongAnswer(
            "every how-manyth",
            lambda lengths, size: [
                my_batches(lengths, len(lengths))[0][i :: -(-len(lengths) // size)]
                for i in range(-(-len(lengths) // size))
            ],
            "places are padding",
            "A stride through the sorted list puts a short and a long one into every batch.",
        ),
    ),
    tests=(_once, _full, _little),
    probes=(
        calls(_LENGTHS, 2),
        lambda answer: [sorted(map(len, answer(_LENGTHS, 3)))],
        calls(_LENGTHS, 3),
    ),
)


# 15.4 attention from blocks that pass by


def my_streamed_attention(q, blocks):
    """Attention over keys and values that come in blocks, each overwritten by the next.

    q is (T, D). `blocks` gives pairs (k, v), each (n, D), once. Returns (T, D), equal to attention
    over all of them, whatever the scores' size.
    """
    largest = torch.full((len(q), 1), float("-inf"))
    total, mixed = torch.zeros(len(q), 1), torch.zeros_like(q)
    for k, v in blocks:
        scores = q @ k.T / q.size(-1) ** 0.5
        new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        weights, old = (scores - new).exp(), (largest - new).exp()
        total = total * old + weights.sum(dim=-1, keepdim=True)
        mixed = mixed * old + weights @ v
        largest = new
    return mixed / total


def _streamed(scale=True, rescale=True, output=True, safe=True, mean=False, start=-math.inf):
    """`my_streamed_attention` with one step left out."""

    def attend(q, blocks):
        largest, count = torch.full((len(q), 1), start if safe else 0.0), 0
        total, mixed, means = torch.zeros(len(q), 1), torch.zeros_like(q), torch.zeros_like(q)
        for k, v in blocks:
            scores = q @ k.T / (math.sqrt(q.size(-1)) if scale else 1)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True)) if safe else largest
            weights, old = (scores - new).exp(), (largest - new).exp()
            total = total * (old if rescale else 1) + weights.sum(-1, keepdim=True)
            mixed = mixed * (old if output else 1) + weights @ v
            largest, count = new, count + 1
            means = means + scores.softmax(-1) @ v
        return means / count if mean else mixed / total

    return attend


def _collected(q, blocks):
    k, v = (torch.cat(parts) for parts in zip(*list(blocks), strict=True))
    return (q @ k.T / math.sqrt(q.size(-1))).softmax(-1) @ v


def _last_block(q, blocks):
    for k, v in blocks:
        mixed = (q @ k.T / math.sqrt(q.size(-1))).softmax(-1) @ v
    return mixed


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
    reference=my_streamed_attention,
    wrong=(
        WrongAnswer(
            "the blocks collected",
            _collected,
            "All 7 keys share one softmax",
            "By the time you join them, all hold the last block. In the kernel, too, a block's "
            "place is used again.",
        ),
        WrongAnswer(
            "the old sum not brought down",
            _streamed(rescale=False),
            "All 7 keys share one softmax",
            "The old sum was taken against a smaller maximum: multiply it by exp(old - new).",
        ),
        WrongAnswer(
            "the old mix not brought down",
            _streamed(output=False),
            "All 7 keys share one softmax",
            "The mixed values need the same factor as the sum.",
        ),
        WrongAnswer(
            "no largest score",
            _streamed(safe=False),
            "the result is not finite",
            "exp of a score of 100 is more than float32 holds. Subtract the largest seen so far.",
        ),
        WrongAnswer(
            "the largest starts at 0",
            _streamed(start=0.0),
            "where does your largest start",
            "If all scores lie far below 0, every exp(score - 0) is 0. Start at -inf.",
        ),
        WrongAnswer(
            "a softmax for each block",
            _streamed(mean=True),
            "All 7 keys share one softmax",
            "Averaging the blocks' results gives each block the same say.",
        ),
        WrongAnswer(
            "only the last block",
            _last_block,
            "All 7 keys share one softmax",
            "What earlier blocks gave is overwritten.",
        ),
        WrongAnswer(
            "no scale",
            _streamed(scale=False),
            "for a single block of 3 keys",
            "Divide the scores by √D, as always.",
        ),
    ),
    tests=(_single, _several, _large, _negative),
    probes=(
        lambda answer: answer(_Q, _passing([3, 2, 2])),
        lambda answer: answer(_Q, _passing([3])),
        lambda answer: answer(_Q, _passing([2, 5], 400.0)),
    ),
)

EXERCISES = (FLOPS, ACCUMULATION, BUCKETS, STREAM)
