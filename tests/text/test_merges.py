"""Merges learned and applied in quick ways are those of the plain ones."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.text.merges import (
    apply_merges,
    apply_merges_by_heap,
    apply_merges_by_rank,
    count_pairs,
    learn_merges,
    learn_merges_by_queue,
    merge_pair,
)
from tinytf.text.pretokenize import split


def test_incremental_learning_equals_counting_anew(manual):
    words = Counter(tuple(piece.encode()) for piece in split(manual[:20_000]))
    assert learn_merges_by_queue(words, 100) == learn_merges(words, 100)


@bounded
@given(st.dictionaries(st.text("ab", min_size=1, max_size=9), st.integers(1, 5), min_size=1))
def test_incremental_learning_where_pairs_overlap(words):
    words = {tuple(word.encode()): times for word, times in words.items()}
    assert learn_merges_by_queue(words, 20) == learn_merges(words, 20)


def test_merge_goes_from_left_to_right():
    assert merge_pair([1, 1, 1], (1, 1), 9) == [9, 1]
    assert merge_pair([1, 1, 1, 1, 2, 1], (1, 1), 9) == [9, 9, 2, 1]
    assert merge_pair([], (1, 1), 9) == []
    assert count_pairs({(1, 1, 1): 2, (1, 2): 3}) == {(1, 1): 4, (1, 2): 3}


@pytest.mark.parametrize("learn", [learn_merges, learn_merges_by_queue])
def test_ties_go_to_the_smaller_pair(learn):
    assert learn({(5, 9): 1, (7, 2): 1, (5, 8): 1}, 9) == [(5, 8), (5, 9), (7, 2)]


@pytest.mark.parametrize("learn", [learn_merges, learn_merges_by_queue])
def test_the_words_are_not_changed(learn):
    words = {(1, 2, 1, 2): 3}
    assert learn(words, 9) == [(1, 2), (256, 256)]
    assert words == {(1, 2, 1, 2): 3}


@bounded
@given(st.text("abc", max_size=60))
def test_many_ids_merge_like_few(text):
    learned = learn_merges({tuple(b"abcabaabbcccaab"): 1}, 9)
    merges = {pair: 256 + i for i, pair in enumerate(learned)}
    expected = apply_merges(text.encode(), merges)
    assert apply_merges_by_rank(text.encode(), merges) == expected
    assert apply_merges_by_heap(text.encode(), merges) == expected
