"""Measures of repetition and spread: by counting with plain Python, by definition, on bad input."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.metrics.repetition import (
    distinct_ngrams,
    ends_in_loop,
    entropy,
    longest_repeat,
    repeated_ngrams,
)

texts = st.lists(st.lists(st.integers(0, 2), min_size=9, max_size=9), min_size=1, max_size=4)


def grams(row, n):
    return [tuple(row[i : i + n]) for i in range(len(row) - n + 1)]


def loops(row, times, shortest):
    return any(
        row[-times * size :] == row[-size:] * times
        for size in range(shortest, len(row) // times + 1)
    )


def longest(row):
    spans = [n for n in range(1, len(row)) if len(set(grams(row, n))) < len(grams(row, n))]
    return max(spans, default=0)


# ---- ids


@bounded
@given(texts, st.integers(1, 9))
def test_ngrams_are_those_that_python_counts(rows, n):
    expected = [len(set(grams(row, n))) / len(grams(row, n)) for row in rows]
    found = distinct_ngrams(torch.tensor(rows), n)
    assert found.tolist() == pytest.approx(expected)
    assert repeated_ngrams(torch.tensor(rows), n).tolist() == pytest.approx(
        [1 - share for share in expected]
    )


def test_four_grams_unless_told(device):
    ids = torch.tensor([[1, 2, 3, 4] * 2, list(range(8))], device=device)
    assert repeated_ngrams(ids).tolist() == pytest.approx([1 / 5, 0.0])
    assert repeated_ngrams(ids).device == ids.device


@bounded
@given(texts, st.integers(2, 4), st.integers(1, 2))
def test_loops_are_those_that_python_finds(rows, times, shortest):
    expected = [loops(row, times, shortest) for row in rows]
    assert ends_in_loop(torch.tensor(rows), times, shortest).tolist() == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([9, 9, 1, 2, 1, 2, 1, 2], True),
        ([1, 2, 1, 2, 1, 2, 9, 9], False),  # a loop that was left
        ([9, 9, 9, 9, 1, 2, 1, 2], False),  # twice is not yet a loop
        ([1, 2, 3, 4, 5, 6, 6, 6], False),  # a single token three times
        ([1, 2, 6, 6, 6, 6, 6, 6], True),  # six times: a phrase of two, three times
    ],
)
def test_a_loop_is_a_phrase_of_two_at_the_end_three_times(row, expected, device):
    assert ends_in_loop(torch.tensor([row], device=device)).tolist() == [expected]


@bounded
@given(texts)
def test_the_longest_repeat_is_the_one_that_python_finds(rows):
    assert longest_repeat(torch.tensor(rows)).tolist() == [longest(row) for row in rows]


# ---- logits


def test_entropy_equals_torchs():
    logits = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    oracle = torch.distributions.Categorical(logits=logits).entropy()
    torch.testing.assert_close(entropy(logits), oracle, atol=1e-12, rtol=0)
    ours, theirs = (torch.autograd.grad(h.sum(), logits)[0] for h in (entropy(logits), oracle))
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_entropy_of_what_is_ruled_out_and_of_all_alike(device):
    logits = torch.zeros(2, 8, device=device)
    logits[0, 2:] = -math.inf
    assert entropy(logits).tolist() == pytest.approx([math.log(2), math.log(8)])
    certain = torch.tensor([0.0, -math.inf], requires_grad=True)
    entropy(certain).backward()
    assert entropy(certain) == 0
    assert certain.grad.isfinite().all()


# ---- bad input


@pytest.mark.parametrize("n", [0, -1, 9])
def test_n_must_fit_the_text(n):
    for measure in (distinct_ngrams, repeated_ngrams):
        with pytest.raises(ValueError, match=rf"n={n} must lie in 1..8, the length of a row"):
            measure(torch.zeros(2, 8, dtype=torch.long), n)


@pytest.mark.parametrize("ids", [torch.zeros(8, dtype=torch.long), torch.zeros(2, 8)])
def test_what_are_no_texts_is_refused(ids):
    for measure in (repeated_ngrams, ends_in_loop, longest_repeat):
        with pytest.raises(ValueError, match=r"ids must be whole numbers \(B, T\), got"):
            measure(ids)


def test_loops_that_cannot_be_are_refused():
    ids = torch.zeros(1, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=r"times \* shortest=6 must lie in 1..5"):
        ends_in_loop(ids)
    with pytest.raises(ValueError, match="times=1 must be at least 2, shortest=0 at least 1"):
        ends_in_loop(ids, times=1, shortest=0)
