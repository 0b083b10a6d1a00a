"""N-gram models against counting by hand."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import log2

import pytest
import torch

from tinytf_course.lessons.ngrams import bigram_bits, unigram_bits

TRAIN = torch.tensor([0, 1, 1, 2, 0, 2, 3, 1, 1])  # two kinds follow 1, three come before it
TEXT = torch.tensor([1, 1, 0, 4, 2, 3])
MODELS = pytest.mark.parametrize("model", [unigram_bits, bigram_bits])


def unigram_by_hand(train, size):
    count = Counter(train)
    return [Fraction(count[i] + 1, len(train) + size) for i in range(size)]


def bigram_by_hand(train, a, b, size):
    single = unigram_by_hand(train, size)
    pairs = Counter(pairwise(train))
    after = {y for (x, y) in pairs if x == a}
    total = sum(n for (x, _), n in pairs.items() if x == a)
    if not total:
        return single[b]
    return (pairs[a, b] + len(after) * single[b]) / (total + len(after))


def test_unigram_equals_counting():
    expected = [-log2(unigram_by_hand(TRAIN.tolist(), 5)[i]) for i in TEXT.tolist()]
    got = unigram_bits(TRAIN, TEXT, 5)
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64))


def test_bigram_equals_counting():
    train, text = TRAIN.tolist(), TEXT.tolist()
    expected = [-log2(unigram_by_hand(train, 5)[text[0]])]
    for a, b in pairwise(text):
        expected.append(-log2(bigram_by_hand(train, a, b, 5)))
    got = bigram_bits(TRAIN, TEXT, 5)
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("before", range(5))  # 3 is followed once, 4 is never seen
def test_bigram_probabilities_sum_to_one(before):
    rows = [bigram_bits(TRAIN, torch.tensor([before, b]), 5)[1] for b in range(5)]
    assert torch.stack(rows).neg().exp2().sum().item() == pytest.approx(1, abs=1e-12)


def test_bigram_of_a_single_training_token_falls_back():
    one = torch.tensor([2])
    torch.testing.assert_close(bigram_bits(one, TEXT, 5), unigram_bits(one, TEXT, 5))


def test_known_entropy():
    """Where each id decides the next, a bigram model pays next to nothing, a unigram log2 n."""
    cycle = torch.arange(8).repeat(2000)
    assert bigram_bits(cycle, cycle[:800], 8).mean().item() < 0.05
    assert unigram_bits(cycle, cycle[:800], 8).mean().item() == pytest.approx(3, abs=1e-3)


@MODELS
def test_validation_text_is_not_fitted(model):
    """The first tokens cost the same, whatever the validation text says later."""
    one, other = TEXT.clone(), TEXT.clone()
    other[3:] = 1
    torch.testing.assert_close(model(TRAIN, one, 5)[:3], model(TRAIN, other, 5)[:3])


@MODELS
def test_large_vocabularies_fit(model):
    ids = torch.randint(50257, (500,), generator=torch.Generator().manual_seed(0))
    assert model(ids, ids, 50257).shape == (500,)


@MODELS
def test_bad_ids(model):
    with pytest.raises(ValueError, match=r"id 5 of text is outside the vocabulary 0\.\.4"):
        model(TRAIN, torch.tensor([5]), 5)
    with pytest.raises(ValueError, match="id -1 of train"):
        model(torch.tensor([-1, 2]), TEXT, 5)
    with pytest.raises(ValueError, match=r"text must be ids of shape \(N,\), N ≥ 1, got \(0,\)"):
        model(TRAIN, TEXT[:0], 5)
    with pytest.raises(ValueError, match=r"train must be .* got \(3, 3\)"):
        model(TRAIN.view(3, 3), TEXT, 5)
