"""21.2 how likely is a sentence? (★★☆, 10 minutes)

Write `my_sentence_score(logits_of, ids, mask_id, asked)`, which returns the pseudo-log-likelihood
of one sentence in nats, as a tensor. Each word where `asked` is True is predicted with it alone
masked, all in one call of `logits_of`, on a batch with one row for each predicted word.

<details><summary>The rule in detail</summary>

`ids` (S,) is the sentence with its special tokens, `asked` (S,) is True at one word or more, and
`logits_of` maps ids (B, S) to logits (B, S, V). Logits may be of any size, and the result has their
dtype.

</details>

Hint: Repeat the sentence once for each position in `asked.nonzero()`. In row i one position is
masked. At which position do you read row i's logits, and for which word?
"""

import torch

from tinytf_course.expect import expect, numbers, same
from tinytf_course.grading import hint
from tinytf_course.words import described, short


def my_sentence_score(logits_of, ids, mask_id, asked):
    """Return a sentence's pseudo-log-likelihood under a masked language model, in nats.

    Each word where asked (S,) is True is predicted with only this word masked by mask_id and all
    other ids (S,) left as they are. logits_of maps ids (B, S) to logits (B, S, V).
    """
    places = asked.nonzero().flatten()  # (n,)
    rows = torch.arange(len(places))
    read = ids.repeat(len(places), 1)  # (S,) -> (n, S)
    read[rows, places] = mask_id
    log_p = logits_of(read)[rows, places].log_softmax(dim=-1)  # (n, S, V) -> (n, V)
    return log_p[rows, ids[places]].sum()


_VOCABULARY = 7  # the words; the mask has the next id


class _Reader:
    """A model in which every word moves the logits at every position, as in BERT."""

    __name__ = "logits_of"

    def __init__(self, length, seed=0, scale=1.0, dtype=torch.float32):
        self.said = scale * numbers(_VOCABULARY + 1, _VOCABULARY, seed=seed, dtype=dtype)
        self.reach = numbers(length, length, seed=seed + 50, dtype=dtype)
        self.sizes = []

    def __call__(self, ids):
        """Logits (B, S, V) for ids (B, S)."""
        self.sizes.append(tuple(ids.shape))
        return self.reach @ self.said[ids]


def _one_by_one(model, ids, asked):
    """Predict one word after the other, in float64."""
    said, reach = model.said.double(), model.reach.double()
    total = torch.zeros((), dtype=torch.float64)
    for place in asked.nonzero().flatten().tolist():
        read = ids.clone()
        read[place] = _VOCABULARY
        logits = (reach @ said[read])[place]
        total = total + logits[ids[place]] - logits.logsumexp(dim=0)
    return total.to(model.said.dtype)


def _scored(answer, ids, asked, note="", **how):
    """Expect the sum for these words; returns the case in words and the model that was called."""
    ids, asked = torch.tensor(ids), torch.tensor(asked, dtype=torch.bool)
    model, reading = _Reader(len(ids), **how), _Reader(len(ids), **how)
    where = f"for ids={short(ids)}, asked={short(asked.long())} and mask_id={_VOCABULARY}"
    if how.get("scale", 1.0) > 1:
        where += " and logits in the thousands"
    got = answer(reading, ids, _VOCABULARY, asked)
    tensor = isinstance(got, torch.Tensor)
    expect(tensor, f"{where}, you return {described(got)}, expected a tensor")
    same(got, _one_by_one(model, ids, asked), where, note=note, dtype=True)
    return where, reading


def test_one_word(answer):
    """one word is masked, and its log-probability is returned"""
    note = "Only position 1 is predicted: its word is 4, and the model's input has the mask there."
    _scored(answer, [1, 4, 2], [0, 1, 0], note)


def test_others_in_sight(answer):
    """all other words are visible, including those that other rows predict"""
    note = "While position 1 is predicted, position 2 shows its word, and the other way round."
    _scored(answer, [1, 4, 3, 2], [0, 1, 1, 0], note)


def test_sum_of_all(answer):
    """every word to be predicted counts once, even if the same word occurs twice"""
    note = "The 4 occurs at two positions, and each is predicted by itself."
    _scored(answer, [1, 4, 3, 4, 2], [0, 1, 1, 1, 0], note)
    _scored(answer, [1, 4, 3, 4, 5, 2], [0, 0, 1, 1, 0, 0])
    _scored(answer, [5, 5], [1, 1])


def test_one_call(answer):
    """the model is called once, with a row for each word to be predicted"""
    where, reading = _scored(answer, [1, 4, 3, 5, 2], [0, 1, 1, 1, 0])
    calls = [f"{rows} rows" if rows > 1 else "one row" for rows, *_ in reading.sizes]
    message = f"{where}, the model is called {len(calls)} times, with {', '.join(calls)}"
    expect(len(calls) == 1, f"{message}; expected one call, with 3 rows")
    rows = reading.sizes[0][0]
    expect(rows == 3, f"{where}, the model gets {rows} rows, expected 3: a row for each word")


@hint("`log_softmax` never computes a probability, so none can be rounded to 0.")
def test_large(answer):
    """logits may be of any size"""
    for seed in (1, 2):
        _scored(answer, [1, 4, 3, 2], [0, 1, 1, 0], "No probability is 0.", seed=seed, scale=3e3)


def test_any_sentence(answer):
    """any sentence and any words to be predicted, also in float64"""
    for size, seed in ((1, 3), (3, 4), (8, 5), (15, 6)):
        draws = torch.Generator().manual_seed(seed)
        ids = torch.randint(_VOCABULARY, (size,), generator=draws)
        asked = torch.rand(size, generator=draws) < 0.6
        asked[-1] = True
        _scored(answer, ids.tolist(), asked.tolist(), seed=seed)
        _scored(answer, ids.tolist(), asked.tolist(), seed=seed, dtype=torch.float64)


MISTAKES = r"""
nothing hidden
    read[rows, places] = mask_id =>
    says: Only position 1 is predicted
    The word is in the input, so the model only has to copy it.
all hidden at once
    read[rows, places] => read[:, places]
    says: While position 1 is predicted, position 2 shows its word
    Words that are predicted later help with this one: mask one word per row.
all later words hidden, too
    read[rows, places] => read[torch.arange(len(ids)) >= places[:, None]]
    says: Only position 1 is predicted
    That is GPT's task. BERT sees both sides.
always the first word of the vocabulary
    log_p[rows, ids[places]] => log_p[rows, 0]
    says: Only position 1 is predicted
    The target is the original word, `ids[places]`.
logits added up
    .log_softmax(dim=-1) =>
    says: Only position 1 is predicted
    A logit means nothing without the others: take `log_softmax` first.
probabilities added up
    log_softmax => softmax
    says: Only position 1 is predicted
    Probabilities are multiplied, so their logarithms are added.
the mean
    sum() => mean()
    says: While position 1 is predicted, position 2 shows its word
    Return the sum. (The mean compares sentences of different lengths.)
the loss
    return log_p => return -log_p
    says: Only position 1 is predicted
    A loss should be small, whereas the likelier sentence has the larger sum.
every position predicted
    asked.nonzero().flatten() => torch.arange(len(ids))
    says: Only position 1 is predicted
    [CLS] and [SEP] are not words of the sentence: sum where `asked` is True.
each word once
    places = asked.nonzero().flatten() =>
        last = {word: place for place, word in enumerate(ids.tolist()) if asked[place]}
        places = torch.tensor(list(last.values()))
    says: each is predicted by itself
    A word that occurs twice is predicted twice: count positions, not words.
a call for each word
    … =>
        total = 0.0
        for place in asked.nonzero().flatten().tolist():
            read = ids.clone()
            read[place] = mask_id
            total = total + logits_of(read[None])[0, place].log_softmax(dim=-1)[ids[place]]
        return total
    says: expected one call, with 3 rows
    The sum is right. One batch of n rows is a single pass through the model.
a row for each position
    rows = torch.arange(len(places)) => places = rows = torch.arange(len(ids))
    log_p[rows, ids[places]] => log_p[rows, ids][asked]
    says: expected 3: a row for each word
    The sum is right, but the model gets rows that are not needed.
the logarithm of a probability of 0
    log_softmax(dim=-1) => softmax(dim=-1).log()
    says: No probability is 0
    `softmax` rounds a small probability to 0, and its logarithm is minus infinity.
a plain number
    sum() => sum().item()
    says: expected a tensor
    `.item()` leaves torch: two scores can no longer be stacked or sent to a device.
always float32
    sum() => sum().float()
    says: expected float64
    The result has the logits' dtype.
hidden in the caller's sentence
    return log_p[rows, ids[places]].sum() =>
        score = log_p[rows, ids[places]].sum()
        ids[asked] = mask_id
        return score
    says: your code changes the caller's `ids`
    `ids[asked] = mask_id` writes into the caller's sentence; `repeat` makes a copy.
"""

HARMLESS = r"""
… => …len(rows)…
    a row for each place
… => …[rows, asked]…
    a mask picks the same places in the same order
… => …ids[asked]…
    a mask picks the same places in the same order
… => …log_softmax(dim=1)
    the second of two axes is the last
"""
