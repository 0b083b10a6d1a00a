"""Chapter 27: attention block by block, the tiles needed, batches by length, an average."""

import math

import torch

from tinytf_course.exercises.ch26 import Held
from tinytf_course.expect import agrees, expect, numbers, same, tensor, travels
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import described, given, short

# 27.1 a softmax that never sees all scores


def my_streamed_attention(q, blocks):
    """Return attention over keys and values that come in blocks, each overwritten by the next.

    q is (T, D). `blocks` gives pairs (k, v), each (n, D), once. Returns (T, D), equal to attention
    over all keys at once, however large or small the scores are.
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
    id="27.1",
    title="a softmax that never sees all scores",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_streamed_attention(q, blocks)`, which, like a fused kernel, computes "
        "attention without ever holding all scores. `blocks` is an iterator over pairs `(k, "
        "v)`, each of shape `(n, D)`, and every block is overwritten by the next. Return the "
        "attention of `q`, of shape `(T, D)`, over all keys, scaled as usual.\n\n"
        "<details><summary>The conditions in detail</summary>\n\n"
        "The scores may have any size and sign. The result has the dtype of `q` and is on its "
        "device. Keep no copies of the blocks and no table of all scores, because there may be "
        "far too many of them.\n\n"
        "</details>"
    ),
    hint=(
        "Carry three things along: the largest score so far, the sum of exp(score - largest), "
        "and the weighted sum of the values. When a larger score comes, multiply both old sums "
        "by exp(old largest - new largest)."
    ),
    function=my_streamed_attention,
    tests=(_single, _several, _large, _negative, _kept_kinds, _no_copies),
)


# 27.2 which tiles are needed


def my_tiles_needed(length, tile, window):
    """Count the tiles of the (length, length) scores that a causal window needs.

    Tiles are tile × tile; those at the lower and right edge may be smaller. A tile is needed if at
    least one of its queries attends to one of its keys: to itself or one of the window - 1
    positions before it.
    """
    raise NotImplementedError


def _by_hand(length, tile, window):
    """Every pair that is seen, and the tile it lies in."""
    seen = [(t, s) for t in range(length) for s in range(t + 1) if t - s < window]
    return len({(t // tile, s // tile) for t, s in seen})


def _needs(answer, *sizes, note=""):
    agrees(answer, _by_hand, *sizes, note=note)


def _one_tile(answer):
    """a single tile is needed"""
    for sizes in ((1, 1, 1), (4, 4, 2), (3, 8, 2)):
        _needs(answer, *sizes, note="There is one tile, on the diagonal.")


def _diagonal(answer):
    """a window of 1 is the diagonal"""
    for sizes in ((4, 1, 1), (8, 2, 1), (9, 3, 1)):
        _needs(answer, *sizes, note="Each query attends to itself: the tiles on the diagonal.")


def _neighbours(answer):
    """a window reaches into the tile before"""
    _needs(answer, 4, 2, 2, note="Query 2 attends to key 1, which is in the tile before.")
    _needs(answer, 12, 4, 4, note="Each row of tiles except the first also needs the tile before.")
    _needs(answer, 6, 1, 3, note="Tiles of one score: count the pairs.")
    _needs(answer, 16, 4, 5, note="Query 4 attends to keys 0 to 4: still one tile before.")
    _needs(answer, 16, 4, 6, note="Query 8 attends to key 3, two tiles before.")


def _wide(answer):
    """a window as long as the text is the causal triangle"""
    for sizes in ((8, 2, 8), (8, 2, 100), (10, 4, 10)):
        _needs(answer, *sizes, note="Every tile on the diagonal or below it.")


def _ragged(answer):
    """the last tile may be smaller"""
    for sizes in ((5, 2, 2), (7, 3, 4), (10, 4, 1), (11, 4, 6), (1, 5, 3)):
        _needs(answer, *sizes)


def _any_sizes(answer):
    """it works for any sizes"""
    for length in (1, 2, 6, 13):
        for tile in (1, 2, 3, 5):
            for window in (1, 2, 3, 4, 7, 20):
                _needs(answer, length, tile, window)
    _needs(answer, 300, 16, 33)


TILES = Exercise(
    id="27.2",
    title="which tiles are needed",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_tiles_needed(length, tile, window)`: how many tiles of `tile` × `tile` scores "
        "have to be computed for a text of `length` tokens under a causal window, in which each "
        "query attends to itself and to the `window - 1` positions before it? All three are "
        "whole numbers of at least 1. If `length` is not a multiple of `tile`, the last row and "
        "the last column of tiles are smaller. Try a small drawing first."
    ),
    hint=(
        "Go through the rows of tiles. What is the oldest key that the first query of a row "
        "attends to, and in which tile is it?"
    ),
    function=my_tiles_needed,
    tests=(_one_tile, _diagonal, _neighbours, _wide, _ragged, _any_sizes),
)


# 27.3 batches by length


def my_batches(lengths, size):
    """Put sentences of similar length together; return a list of lists of `size` indices.

    Every index is in exactly one batch; one batch may be smaller. A batch is padded to its longest
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
    """all batches but one are full"""
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
    """there is no more padding than sorting leaves"""
    for lengths, size in _CASES:
        batches, where = _listed(answer, lengths, size)
        inside = [[lengths[i] for i in b if 0 <= i < len(lengths)] for b in batches]
        pads = sum(max(batch) * len(batch) - sum(batch) for batch in inside if batch)
        most = _most_padding(lengths, size)
        words = f"{where}, {pads} positions are padding, expected at most {most}: put sentences of "
        expect(pads <= most, words + "similar length together")


BUCKETS = Exercise(
    id="27.3",
    title="batches by length",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_batches(lengths, size)`, which divides sentences of the given lengths into "
        "batches of `size` with little padding: no more than if all sentences are sorted by "
        "length, in either direction. Return a list of lists of indices, with every index in "
        "exactly one of them; one batch may be smaller. (Training shuffles the batches "
        "afterwards, so their order doesn't matter here.)"
    ),
    hint="Sort the indices by length, then cut.",
    function=my_batches,
    tests=(_once, _full, _little),
)


# 27.4 repair the average


def my_average(gradients, tokens):
    """Return the gradient of the mean loss over all tokens of all processes.

    gradients is a list of tensors of one shape, each the gradient of one process's mean loss;
    tokens holds the number of tokens of each mean. Returns a new tensor.
    """
    raise NotImplementedError


def _token_by_token(gradients, tokens):
    """Every token brings its process's gradient, in float64."""
    rows = [g.double() for g, n in zip(gradients, tokens, strict=True) for _ in range(n)]
    return (sum(rows) / len(rows)).to(gradients[0].dtype)


def _averages(answer, gradients, tokens, **more):
    agrees(answer, _token_by_token, gradients, tokens, **more)


def _equal_shares(answer):
    """equal shares count equally"""
    pair = [torch.tensor([2.0]), torch.tensor([6.0])]
    _averages(answer, pair, [3, 3], note="(2 + 6) / 2.")
    alone = torch.tensor([2.0, -4.0])
    _averages(answer, [alone], [5], note="There is no other process to average with.")
    alone = torch.nn.Parameter(alone, requires_grad=False)  # of which an answer gets no copy
    got = answer([alone], [5])
    message = "for one process, you return its own tensor, expected a new one: return a copy"
    expect(got is not alone and got.data_ptr() != alone.data_ptr(), message)


def _unequal_shares(answer):
    """a process with three times the tokens counts three times"""
    pair = [torch.tensor([2.0]), torch.tensor([6.0])]
    _averages(answer, pair, [3, 1], note="Of four tokens, three have gradient 2 and one has 6.")
    _averages(answer, pair, [1, 3], note="Of four tokens, one has gradient 2 and three have 6.")
    three = [torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([10.0])]
    _averages(
        answer,
        three,
        [2, 7, 1],
        note="Of ten tokens, two have gradient 1, seven have 0, one has 10.",
    )


def _matrices(answer):
    """gradients have any shape"""
    drawn = numbers(3, 4, 2, seed=1)
    _averages(answer, list(drawn), [5, 1, 2], where="for three gradients of (4, 2)")
    _averages(answer, list(drawn[:, 0, 0]), [4, 4, 9], where="for three gradients of one number")


def _kinds_of_gradients(answer):
    """the result has the gradients' dtype, and is where they are"""
    drawn = numbers(2, 3, 2, seed=2, dtype=torch.float64)
    _averages(answer, list(drawn), [1, 4], where="for gradients in float64")
    half = [torch.tensor([400.0], dtype=torch.float16), torch.tensor([-80.0], dtype=torch.float16)]
    note = "In float16, 400 · 900 is infinite; the mean is not."
    _averages(answer, half, [900, 100], where="for [400] and [-80] in float16", note=note)
    travels(answer, list(drawn.float()), [1, 4], where="for two gradients of (3, 2)")


AVERAGE = Exercise(
    id="27.4",
    title="repair the average",
    difficulty=2,
    minutes=8,
    statement=(
        "Each process has computed the gradient of *its own* mean loss. The function below "
        "should turn these into the gradient of the mean over all tokens of all processes. Two "
        "things in it are wrong, and one of them harms the caller.\n\n"
        "```python\n"
        "def my_average(gradients, tokens):\n"
        "    total = gradients[0]\n"
        "    for gradient in gradients[1:]:\n"
        "        total += gradient\n"
        "    return total / len(gradients)\n"
        "```\n\n"
        "Write it correctly. `gradients` is a list of tensors of one shape, and `tokens` holds "
        "the number of tokens of each process, which is at least one.\n\n"
        "<details><summary>The result in detail</summary>\n\n"
        "Return a new tensor with the dtype and the device of the gradients. This includes "
        "float16, in which a gradient times its number of tokens may exceed the largest number.\n\n"
        "</details>"
    ),
    hint=(
        "A process's mean times its number of tokens is its sum. What do the sums have to be "
        "divided by?"
    ),
    function=my_average,
    tests=(_equal_shares, _unequal_shares, _matrices, _kinds_of_gradients),
)

EXERCISES = (STREAM, TILES, BUCKETS, AVERAGE)
