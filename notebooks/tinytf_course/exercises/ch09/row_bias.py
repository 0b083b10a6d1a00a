"""09.2 one row for all queries (★★☆, 10 minutes)

Under a causal mask a query sees no key after itself, and then one row of biases per head is enough
for all queries. Write `my_row_bias(slopes, length)`, which returns for slopes `(H,)` a bias `(H, 1,
length)`: added to the scores before the causal mask and the softmax, it must give the same weights
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
        got, expected = tuple(tensor(answer(slopes, length), where).shape), (len(slopes), 1, length)
        expect(got == expected, f"{where}, the shape is {got}, expected {expected}")


def _weights_agree(answer, slopes, length, seed=None, note="", tolerance=1e-5):
    """With random scores of this seed, or of words that are all alike."""
    slopes = torch.tensor(slopes)
    shape = len(slopes), length, length
    scores = numbers(*shape, seed=seed) if seed else torch.zeros(shape)
    alike = "" if seed else " of words that are all alike"
    where = f"for slopes={slopes.tolist()}, length={length}, the causal weights{alike}"
    got = tensor(answer(slopes, length), where)
    fits = got.shape == (len(slopes), 1, length)
    expect(fits, f"{where} need a bias of one row a head, and it is {tuple(got.shape)}")
    weights = _causal_weights(scores, got)
    same(weights, _causal_weights(scores, _table(slopes, length)), where, tolerance, note)


def test_two_words(answer):
    """nearer words get more, by the slope"""
    note = "The first word is one step further from the second than that is from itself."
    _weights_agree(answer, [1.0], 2, note=note)
    _weights_agree(answer, [0.5], 3, note=note)


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
    _weights_agree(answer, [0.25, 1 / 256], 300, 7, tolerance=1e-4)


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


MISTAKES = r"""
far keys rewarded
    * key => * -key
    says: one step further
    This is the first row of the table, for a query at position 0. For any later query the first
    key is the farthest, and has to get the least.
the whole table
    * key => * -(key[:, None] - key).abs()
    says: the shape is (1, 3, 3), expected (1, 1, 3)
    The table has a row for each query. One row is enough for all.
no slope
    slopes[:, None, None] => torch.ones_like(slopes)[:, None, None]
    says: for slopes=[0.5]
    A step costs as much as the slope of its head.
one slope for all heads
    slopes[:, None, None] => slopes[:1].expand(len(slopes))[:, None, None]
    says: A row for each of the slopes
    With one slope every head is equally nearsighted, and none can see far.
slopes in another order
    slopes[:, None, None] => slopes.flip(0)[:, None, None]
    says: A row for each of the slopes
    Row h belongs to slope h.
a fraction of the length
    * key => * key / length
    says: one step further
    A step costs the slope, however long the text is.
the middle is best
    * key => * -(key - length // 2).abs()
    says: for slopes=[0.5], length=3
    The bias grows with the position of the key throughout: the later a key that is seen, the
    nearer it is.
no axis for the queries
    slopes[:, None, None] => slopes[:, None]
    says: the shape is (1, 3), expected (1, 1, 3)
    (H, length) would be added to (H, length, length) as if heads were queries: the axis of the
    queries has size 1.
the mask as well
    slopes[:, None, None] * key => (slopes[:, None, None] * key).masked_fill(key > 0, -torch.inf)
    says: one step further
    One row can't hide what later queries may see: the mask comes afterwards.
squares of positions
    * key => * key**2
    says: for slopes=[0.5], length=3
    Every step costs the same.
float32 whatever the slopes
    slopes[:, None, None] * key => slopes.float()[:, None, None] * key
    says: the dtype is float32, expected float64
    The bias is added to scores in the dtype of the slopes.
on the CPU whatever the device
    , device=slopes.device =>
    says: on another device than the CPU it fails
    `torch.arange(...)` is on the CPU unless it gets `device=slopes.device`.
"""
