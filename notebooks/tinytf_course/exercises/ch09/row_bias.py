"""09.2 one row for all queries (★★☆, 10 minutes)

Under a causal mask a query sees no key after itself, and then one row of biases per head is enough
for all queries. Write `my_row_bias(slopes, length)`, which returns for slopes `(H,)` a bias `(H, 1,
length)`. Added to the scores before the causal mask and the softmax, it must give the same weights
as ALiBi's table.

Hint: A number can be added to a whole row of scores, a different one for each query, without
changing any weight.

Hint: For keys up to the query, the table contains −slope · (query − key), which is slope · key −
slope · query. Which of the two terms affects the softmax?
"""

import torch

from tinytf_course.expect import expect, numbers, same, tensor, travels


def my_row_bias(slopes, length):
    """One bias for all queries, (H, 1, length), that replaces ALiBi's table (H, length, length).

    Added to the scores before the causal mask and the softmax, it gives the same weights as the
    table. It has the dtype of the slopes (H,), and is on their device.
    """
    key = torch.arange(length, device=slopes.device)
    return slopes[:, None, None] * key


def _causal_weights(scores, bias):
    """The weights of scores (H, T, T) plus bias, where no query sees what comes later."""
    later = torch.ones(scores.shape[-2:]).triu(1).bool()
    return (scores + bias).masked_fill(later, -torch.inf).softmax(dim=-1)


def _table(slopes, length):
    """ALiBi's, for all queries."""
    place = torch.arange(length)
    return -slopes[:, None, None] * (place[:, None] - place).abs()


def test_row_shape(answer):
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


def test_two_words(answer):
    """nearer words get more, by the slope"""
    note = "The first word is one step further from the second than that is from itself."
    _weights_agree(answer, [1.0], 2, 1, note, torch.zeros(1, 2, 2))
    _weights_agree(answer, [0.5], 3, 1, note, torch.zeros(1, 3, 3))


def test_any_scores(answer):
    """whatever the scores are, the weights are those of the table"""
    note = "All rows of the table give the same weights but for what was added to a whole row."
    _weights_agree(answer, [0.5], 3, 2, note)
    _weights_agree(answer, [2.0], 6, 3, note)


def test_own_slopes(answer):
    """each head has its own slope, and a slope of 0 changes nothing"""
    note = "A row for each of the slopes, in their order."
    _weights_agree(answer, [0.5, 0.0], 3, 4, note)
    _weights_agree(answer, [0.25, 1.0, 0.5], 5, 5, note)
    _weights_agree(answer, [0.5, 2.0], 1, 6, note)


def test_long(answer):
    """in a long text, too"""
    _weights_agree(answer, [0.25, 1 / 256], 300, 7, "", tolerance=1e-4)


def test_row_place(answer):
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


def _row(of=lambda key: key, slopes=lambda m: m):
    """A `my_row_bias` with one thing wrong."""

    def bias(m, length):
        return slopes(m)[:, None, None] * of(torch.arange(length, device=m.device))

    return bias


MISTAKES = r"""
far keys rewarded
    … =>
        return _row(lambda key: -key)(slopes, length)
    says: one step further
    This is the first row of the table, for a query at position 0. For any later query the first
    key is the farthest, and has to get the least.
the whole table
    … =>
        place = torch.arange(length)
        return -slopes[:, None, None] * (place[:, None] - place).abs()
    says: the shape is (1, 3, 3), expected (1, 1, 3)
    The table has a row for each query. One row is to do for all.
no slope
    … =>
        return _row(slopes=torch.ones_like)(slopes, length)
    says: for slopes=[0.5]
    How much each step counts is the slope's to say.
one slope for all heads
    … =>
        return _row(slopes=lambda m: m[:1].expand(len(m)))(slopes, length)
    says: A row for each of the slopes
    With one slope every head is equally nearsighted, and none can see far.
slopes in another order
    … =>
        return _row(slopes=lambda m: m.flip(0))(slopes, length)
    says: A row for each of the slopes
    Row h belongs to slope h.
a fraction of the length
    … =>
        return _row(lambda key: key / max(len(key), 1))(slopes, length)
    says: one step further
    A step costs the slope, however long the text is.
the middle is best
    … =>
        return _row(lambda key: -(key - len(key) // 2).abs())(slopes, length)
    says: for slopes=[0.5], length=3
    Bias grows with the position of the key throughout: the later a key that is seen, the nearer
    it is.
no axis for the queries
    … =>
        return my_row_bias(slopes, length)[:, 0]
    says: the shape is (1, 3), expected (1, 1, 3)
    (H, length) would be added to (H, length, length) as if heads were queries: the axis of the
    queries has size 1.
the mask as well
    … =>
        return (
                                   my_row_bias(slopes, length).masked_fill(
                torch.arange(length) > 0, -torch.inf
            )
        )
    says: one step further
    What later queries may see, one row can't hide: the mask comes afterwards.
squares of positions
    … =>
        return _row(lambda key: key**2)(slopes, length)
    says: for slopes=[0.5], length=3
    Every step costs the same.
float32 whatever the slopes
    … =>
        return my_row_bias(slopes, length).float()
    says: the dtype is float32, expected float64
    The bias is added to scores in the dtype of the slopes.
on the CPU whatever the device
    … =>
        return slopes[:, None, None] * torch.arange(length)
    says: on another device than the CPU it fails
    `torch.arange(...)` is on the CPU unless it is told `device=slopes.device`.
"""

HARMLESS = r"""
key = torch.arange(length, device=slopes.device) => key = torch.arange(length, device=slopes.device).detach()
    positions, distances and angles have no gradient to lose
key = torch.arange(length, device=slopes.device) => key = torch.arange(length, device=slopes.device).float()
    it is float32 already, or will be, or small whole numbers
key = torch.arange(length, device=slopes.device) => key = torch.arange(length, device=slopes.device).half()
    half precision has all whole numbers up to 2,048
return slopes[:, None, None] * key => return (slopes[:, None, None] * key).detach()
    positions, distances and angles have no gradient to lose
return slopes[:, None, None] * key => return slopes[:, None, None] * key.detach()
    positions, distances and angles have no gradient to lose
return slopes[:, None, None] * key => return slopes.detach()[:, None, None] * key
    positions, distances and angles have no gradient to lose
return slopes[:, None, None] * key => return slopes[:, None, None] * key.float()
    it is float32 already, or will be, or small whole numbers
"""
