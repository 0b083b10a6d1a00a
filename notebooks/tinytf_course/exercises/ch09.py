"""Chapter 09: rotary scores by distance, and linear biases under a causal mask."""

import math

import torch

from tinytf_course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    precise,
    same,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise, hint

# 09.1 scores by distance


def my_rope_scores(q, k, distances, base=10000.0):
    """RoPE's scores of queries and keys (..., D) at each of these distances (N,): (..., N).

    A distance is the query's position minus the key's. Pair i, which is (x[2i], x[2i + 1]), turns
    counterclockwise by base^(-2i / D) per position. The result has the dtype and the device of q;
    angles are float32 even for half precision.
    """
    raise NotImplementedError


def _scores(q, k, distances, base=10000.0):
    """A distance and a pair at a time, each angle in Python's own numbers."""
    columns = []
    for distance in distances.tolist():
        total = 0
        for i in range(0, q.size(-1), 2):
            angle = distance / base ** (i / q.size(-1))
            c, s, a, b = math.cos(angle), math.sin(angle), q[..., i], q[..., i + 1]
            total = total + (a * c - b * s) * k[..., i] + (a * s + b * c) * k[..., i + 1]
        columns.append(total)
    return torch.stack(columns, dim=-1)


def _at_distance_0(answer):
    """at distance 0 the score is the dot product"""
    note = "Nothing has turned against anything else."
    q, k = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    agrees(answer, _scores, q, k, torch.tensor([0]), note=note)
    q, k = torch.tensor([1.0, 2.0, 0.0, 1.0]), torch.tensor([3.0, 4.0, 5.0, 6.0])
    agrees(answer, _scores, q, k, torch.tensor([0]), note=note)


@hint("In which direction does the query turn against the key when its position is further on?")
def _one_on(answer):
    """a query one position further on has turned by the pair's angle, counterclockwise"""
    note = "Turned by 1 radian, (1, 0) is (cos 1, sin 1)."
    q, k = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    agrees(answer, _scores, q, k, torch.tensor([1]), note=note)
    q, k = torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.tensor([2.0, 1.0, 0.0, 0.0])
    agrees(answer, _scores, q, k, torch.tensor([1]), note=note)


def _given_distances(answer):
    """distances count as they are given, in any order, and below 0"""
    note = "Below 0 the query is before the key."
    q, k = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    agrees(answer, _scores, q, k, torch.tensor([-1]), note=note)
    agrees(answer, _scores, q, k, torch.tensor([3, 0, -2, 3]), note=note)


def _own_frequency(answer):
    """each pair has its frequency, which the base sets"""
    note = "Pair i turns by base^(-2i/D) per position."
    q, k = torch.tensor([0.0, 0.0, 1.0, 0.0]), torch.tensor([0.0, 0.0, 0.0, 1.0])
    agrees(answer, _scores, q, k, torch.tensor([1]), note=note)
    agrees(answer, _scores, q, k, torch.tensor([1]), 100.0, note=note)
    q, k = numbers(8, seed=2), numbers(8, seed=3)
    agrees(answer, _scores, q, k, torch.tensor([1, 4]), 100.0, tolerance=1e-4, note=note)


def _leading_axes(answer):
    """there may be batch and heads, and as many distances as one likes"""
    q, k = numbers(2, 4, seed=4), numbers(2, 4, seed=5)
    agrees(answer, _scores, q, k, torch.tensor([1]), tolerance=1e-4)
    q, k = numbers(2, 3, 6, seed=6), numbers(2, 3, 6, seed=7)
    agrees(answer, _scores, q, k, torch.tensor([2, -1, 0, 5]), tolerance=1e-4)
    q, k = numbers(3, 1, 2, 2, seed=8), numbers(3, 1, 2, 2, seed=9)
    agrees(answer, _scores, q, k, torch.arange(7), tolerance=1e-4)


def _far(answer):
    """30,000 positions apart is as right as three"""
    q, k = numbers(2, 4, seed=10), numbers(2, 4, seed=11)
    agrees(answer, _scores, q, k, torch.tensor([30000, 29999]), tolerance=3e-3)


def _rope_dtype(answer):
    """the result has the dtype of q, its angles all their digits"""
    places = torch.tensor([301, 302])
    where = "for q and k of shape (3, 2) in bfloat16, distances=[301, 302]"
    note = "bfloat16 has no 301: the angle has to be float32."
    q, k = numbers(3, 2, seed=12), numbers(3, 2, seed=13)
    precise(_at(answer, places), _at(_scores, places), q, k,
            dtype=torch.bfloat16, where=where, note=note)  # fmt: skip
    near = torch.tensor([0, 2])
    q, k = numbers(2, 4, seed=14), numbers(2, 4, seed=15)
    for dtype, tolerance in ((torch.float16, None), (torch.float64, 1e-5)):
        where = f"for q and k of shape (2, 4) in {str(dtype).split('.')[1]}, distances=[0, 2]"
        precise(_at(answer, near), _at(_scores, near), q, k,
                dtype=dtype, tolerance=tolerance, where=where)  # fmt: skip


def _at(scores, places):
    """A function of q and k alone, whose numbers are to be rounded; the places are not."""
    return lambda q, k: scores(q, k, places)


def _rope_travels(answer):
    """it turns where its arguments are"""
    travels(answer, numbers(2, 3, 4, seed=16), numbers(2, 3, 4, seed=17), torch.arange(3))


def _rope_gradient(answer):
    """gradients reach the query and the key"""
    q, k, places = numbers(2, seed=18), numbers(2, seed=19), torch.tensor([1])
    gradients(answer, _scores, q, k, places, tolerance=1e-5)
    q, k, places = numbers(2, 3, 4, seed=20), numbers(2, 3, 4, seed=21), torch.tensor([2, -5])
    gradients(answer, _scores, q, k, places, tolerance=1e-5)


SCORES = Exercise(
    id="09.1",
    title="scores by distance",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_rope_scores(q, k, distances, base=10000.0)`, which returns RoPE's scores of "
        "queries and keys `(..., D)` at each of the `distances` `(N,)`, with the shape `(..., N)`. "
        "A distance is the query's position minus the key's, so it can be negative. Pair i, "
        "`(x[2i], x[2i + 1])`, turns counterclockwise by `base ** (-2i / D)` per position, and "
        "scores are not scaled."
    ),
    hint=(
        "The two positions themselves are not given, and they don't matter. Put the key at "
        "position 0, where it is not rotated.",
        "A turn by a takes (x, y) to (x cos a - y sin a, x sin a + y cos a). With "
        "`q[..., None, 0::2]`, (..., 1, D / 2), and angles (N, D / 2), the rotated queries have "
        "a row for each distance.",
    ),
    function=my_rope_scores,
    tests=(
        _at_distance_0,
        _one_on,
        _given_distances,
        _own_frequency,
        _leading_axes,
        _far,
        _rope_dtype,
        _rope_travels,
        _rope_gradient,
    ),
)


# 09.2 one row for all queries


def my_row_bias(slopes, length):
    """One bias for all queries, (H, 1, length), that replaces ALiBi's table (H, length, length).

    Added to the scores before the causal mask and the softmax, it gives the same weights as the
    table. It has the dtype of the slopes (H,), and is on their device.
    """
    raise NotImplementedError


def _causal_weights(scores, bias):
    """The weights of scores (H, T, T) plus bias, where no query sees what comes later."""
    later = torch.ones(scores.shape[-2:]).triu(1).bool()
    return (scores + bias).masked_fill(later, -torch.inf).softmax(dim=-1)


def _table(slopes, length):
    """ALiBi's, for all queries."""
    place = torch.arange(length)
    return -slopes[:, None, None] * (place[:, None] - place).abs()


def _row_shape(answer):
    """there is one row a head"""
    for slopes, length in ((torch.tensor([0.5]), 3), (torch.tensor([0.5, 0.25]), 4)):
        where = f"for slopes={slopes.tolist()}, length={length}"
        got, expected = tensor(answer(slopes, length), where), (len(slopes), 1, length)
        message = f"{where}, the shape is {tuple(got.shape)}, expected {expected}"
        expect(got.shape == expected, message)


def _weights_agree(answer, slopes, length, seed, note, scores=None, tolerance=1e-5):
    slopes = torch.tensor(slopes)
    scores = numbers(len(slopes), length, length, seed=seed) if scores is None else scores
    alike = " of words that are all alike" if not scores.any() else ""
    where = f"for slopes={slopes.tolist()}, length={length}, the causal weights{alike}"
    got = tensor(answer(slopes, length), where)
    fits = got.shape == (len(slopes), 1, length)
    expect(fits, f"{where} need a bias of one row a head, and it is {tuple(got.shape)}")
    weights = _causal_weights(scores, got)
    same(weights, _causal_weights(scores, _table(slopes, length)), where, tolerance, note)


def _two_words(answer):
    """nearer words get more, by the slope"""
    note = "The first word is one step further from the second than that is from itself."
    _weights_agree(answer, [1.0], 2, 1, note, torch.zeros(1, 2, 2))
    _weights_agree(answer, [0.5], 3, 1, note, torch.zeros(1, 3, 3))


def _any_scores(answer):
    """whatever the scores are, the weights are those of the table"""
    note = "All rows of the table give the same weights but for what was added to a whole row."
    _weights_agree(answer, [0.5], 3, 2, note)
    _weights_agree(answer, [2.0], 6, 3, note)


def _own_slopes(answer):
    """each head has its own slope, and a slope of 0 changes nothing"""
    note = "A row for each of the slopes, in their order."
    _weights_agree(answer, [0.5, 0.0], 3, 4, note)
    _weights_agree(answer, [0.25, 1.0, 0.5], 5, 5, note)
    _weights_agree(answer, [0.5, 2.0], 1, 6, note)


def _long(answer):
    """in a long text, too"""
    _weights_agree(answer, [0.25, 1 / 256], 300, 7, "", tolerance=1e-4)


def _row_place(answer):
    """it has the dtype of the slopes, and is where they are"""
    for dtype in (torch.float32, torch.float64):
        slopes, name = torch.tensor([0.3, 0.7], dtype=dtype), str(dtype).split(".")[1]
        where = f"for slopes=[0.3, 0.7] in {name}, length=3"
        got = tensor(answer(slopes, 3), where)
        found = str(got.dtype).split(".")[1]
        expect(found == name, f"{where}, the dtype is {found}, expected {name}")
        expected = _causal_weights(torch.zeros(2, 3, 3), _table(slopes, 3))
        same(_causal_weights(torch.zeros(2, 3, 3), got), expected, f"{where}, the causal weights")
    travels(answer, torch.tensor([0.5, 0.25]), 3)


ROW = Exercise(
    id="09.2",
    title="one row for all queries",
    difficulty=2,
    minutes=10,
    statement=(
        "Under a causal mask a query sees no key after itself, and then one row of biases per head "
        "is enough for all queries. Write `my_row_bias(slopes, length)`, which returns for slopes "
        "`(H,)` a bias `(H, 1, length)`. Added to the scores before the causal mask and the "
        "softmax, it must give the same weights as ALiBi's table."
    ),
    hint=(
        "A number can be added to a whole row of scores, a different one for each query, without "
        "changing any weight.",
        "For keys up to the query, the table contains −slope · (query − key), which is "
        "slope · key − slope · query. Which of the two terms affects the softmax?",
    ),
    function=my_row_bias,
    tests=(_row_shape, _two_words, _any_scores, _own_slopes, _long, _row_place),
)


EXERCISES = (SCORES, ROW)
