"""Pairs of sentences: which are made up and how, and how they are written for BERT."""

from collections import Counter

import pytest
import torch

from tinytf.text.words import BOS, EOS, PAD
from tinytf.training.next_sentence import (
    another_document,
    join,
    join_batch,
    same_document,
    sentence_pairs,
    swapped,
)

# sentence s of document d is the one word (d, s): every sentence says where it is from
DOCUMENTS = [[[(d, s)] for s in range(3 + d % 5)] for d in range(400)]


def places(pair):
    return (*pair.first[0], *pair.second[0])


def test_half_of_the_pairs_follow_each_other():
    pairs = sentence_pairs(DOCUMENTS, seed=1)
    assert len(pairs) == sum(len(d) - 1 for d in DOCUMENTS)
    share = sum(p.is_next for p in pairs) / len(pairs)
    assert share == pytest.approx(0.5, abs=0.03)
    for pair in pairs:
        d, s, other, t = places(pair)
        if pair.is_next:
            assert (d, s + 1) == (other, t)
        else:
            assert d != other
    assert pairs == sentence_pairs(DOCUMENTS, seed=1)
    assert pairs != sentence_pairs(DOCUMENTS, seed=2)


def test_wrong_sentences_come_from_everywhere():
    wrong = [places(p) for p in sentence_pairs(DOCUMENTS) if not p.is_next]
    assert len({place[2] for place in wrong}) > 300
    firsts = Counter(place[3] for place in wrong)
    assert set(firsts) == set(range(7))  # any sentence of a document, not only the first


def test_a_wrong_sentence_of_the_same_document_is_neither_itself_nor_the_next():
    pairs = sentence_pairs(DOCUMENTS, made_up=same_document)
    gaps = Counter()
    for d, s, other, t in (places(p) for p in pairs if not p.is_next):
        assert d == other
        gaps[t - s] += 1
    assert not gaps.keys() & {0, 1}
    assert gaps[-1]
    assert gaps[2]


def test_swapped_pairs_are_neighbours_the_wrong_way_round():
    pairs = sentence_pairs(DOCUMENTS, made_up=swapped)
    for pair in pairs:
        d, s, other, t = places(pair)
        assert d == other
        assert t - s == (1 if pair.is_next else -1)


def test_what_can_not_be_made_up_is_refused():
    two = [[["a"], ["b"]]]
    with pytest.raises(ValueError, match="there is only one document"):
        sentence_pairs(two, seed=0)  # its one pair is made up
    with pytest.raises(ValueError, match="document 0 has two sentences"):
        sentence_pairs(two, seed=0, made_up=same_document)
    with pytest.raises(ValueError, match="no document has two sentences"):
        sentence_pairs([[["a"]], []])
    assert another_document([*two, [], [["c"]]], 0, 0, lambda: 0.9) == (["a"], ["c"])


def test_a_pair_is_written_with_its_marks_and_segments():
    assert join([7, 8], [9]) == ([BOS, 7, 8, EOS, 9, EOS], [0, 0, 0, 0, 1, 1])
    assert join([7, 8]) == ([BOS, 7, 8, EOS], [0, 0, 0, 0])
    ids, segments = join_batch([([7, 8], [9]), ([4], None)])
    assert torch.equal(ids[1], torch.tensor([BOS, 4, EOS, PAD, PAD, PAD]))
    assert not segments[1].any()


def test_long_pairs_lose_the_end_of_the_longer_sentence():
    ids, segments = join([4, 5, 6, 7, 8], [9, 10], max_len=8)
    assert ids == [BOS, 4, 5, 6, EOS, 9, 10, EOS]
    assert segments == [0] * 5 + [1] * 3
    assert join([4, 5, 6], [9, 10, 11], max_len=8)[0] == [BOS, 4, 5, 6, EOS, 9, 10, EOS]
    assert join([4, 5, 6], max_len=4)[0] == [BOS, 4, 5, EOS]
    with pytest.raises(ValueError, match="max_len=4 leaves no room: 2 sentences need 5 places"):
        join([4], [5], max_len=4)
    with pytest.raises(ValueError, match="a sentence is empty"):
        join([4], [])
    with pytest.raises(ValueError, match="the batch is empty"):
        join_batch([])


def test_the_default_made_up_pair_is_of_another_document():
    documents = [[[1], [2]], [[3], [4]]] * 20
    assert sentence_pairs(documents, 3) == sentence_pairs(documents, 3, another_document)
