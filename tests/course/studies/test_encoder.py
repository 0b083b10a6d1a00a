"""The odds of words at a blank, from the grammar, and the parts of the encoder's studies."""

import copy

import pytest
import torch

from tinytf.attention import MultiHeadAttention
from tinytf.masks import causal_mask
from tinytf.text.words import EOS, WordTokenizer
from tinytf_course.studies import encoder as lab

TEXT = "the animal did not cross the street because it was too tired"
SENTENCE = TEXT.split()


def test_a_blank_batch_hides_the_word_and_keeps_its_id(book):
    words = WordTokenizer(book.source_words)
    pair = book.translate(" ".join(SENTENCE))
    batch = lab.blank_batch(words, lab.blanks_of(pair))
    assert (batch.ids[batch.chosen] == len(words)).all()
    assert batch.chosen.sum(dim=1).tolist() == [1] * len(SENTENCE)
    assert [words.tokens[i] for i in batch.word] == SENTENCE


def test_left_only_sees_no_right_and_both_sides_do(book):
    words = WordTokenizer(book.source_words)
    ids = torch.tensor([words.encode(SENTENCE)])
    other = ids.clone()
    other[0, -1] = 7
    for left_only in (True, False):
        model = lab.build(words, 0, left_only)
        same = torch.equal(model.read(ids)[:, :-1], model.read(other)[:, :-1])
        assert same == left_only
    one, two = (lab.build(words, 1, left_only) for left_only in (True, False))
    assert all(map(torch.equal, one.parameters(), two.parameters()))


def test_the_accident_is_a_causal_mask_and_leaves_cross_attention_alone():
    torch.manual_seed(0)
    ours = MultiHeadAttention(8, 2)
    wrong = copy.deepcopy(ours)
    wrong.__class__ = lab.CausalByAccident
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, None]
    assert torch.equal(wrong(x, mask=real), ours(x, mask=real & causal_mask(5, x.device)))
    assert not torch.equal(wrong(x, mask=real), ours(x, mask=real))
    there = torch.ones(2, 1, 1, 4, dtype=torch.bool)
    assert torch.equal(wrong(x, memory, mask=there), ours(x, memory, mask=there))


def test_training_is_the_same_each_time_and_brings_the_loss_down(book):
    words = WordTokenizer(book.source_words)
    rows = [[*words.encode(p.source), EOS] for p in lab.sentences(book, 200)]
    one, two = (lab.train(lab.build(words, 0), rows, 0, steps=25) for _ in range(2))
    assert torch.equal(one, two)
    assert one.shape == (25,)
    assert one[-5:].mean() < 0.8 * one[:5].mean()


def test_a_probe_finds_what_is_linear_and_not_what_is_not_there():
    x, noise = torch.randn(600, 8), torch.randn(600, 8)
    y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 1).long()
    found = lab.probe(x[:400], y[:400], x[400:])
    assert (found.argmax(dim=-1) == y[400:]).float().mean() > 0.8
    torch.testing.assert_close(found.exp().sum(dim=-1), torch.ones(200))
    none = lab.probe(noise[:400], y[:400], noise[400:])
    assert (none.argmax(dim=-1) == y[400:]).float().mean() < 0.65


def test_layer_losses_find_what_a_layer_holds_and_a_constant_guess_is_the_entropy(book):
    words = WordTokenizer(book.source_words)
    pairs = lab.sentences(book, 400)
    known, asked = (lab.blank_batch(words, lab.first_nouns(p)) for p in (pairs[:300], pairs[300:]))
    assert len(known.word) == 300
    model = lab.build(words, 0)
    found = lab.layer_losses(model, known, known, steps=60)
    assert found.shape == (4, 300)
    counts = known.word.bincount().float()
    share = counts[counts > 0] / counts.sum()
    entropy = -(share * share.log()).sum().item()
    guess = lab.constant_losses(known, known).mean().item()
    assert guess == pytest.approx(entropy, abs=0.02)
    means = found.mean(dim=1)
    assert means[0] == pytest.approx(entropy, abs=0.5)  # the position, and nothing else
    assert means[1:].max() < means[0] - 0.5  # what it has read, by heart
    model.left_only = True
    model.embedding.weight.data[:-1] = 0  # the words before the blank are gone, too
    blind = lab.layer_losses(model, known, asked, steps=60).mean(dim=1)
    assert blind.min() > 0.8 * lab.constant_losses(known, asked).mean()
