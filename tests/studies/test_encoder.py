"""The odds of words at a blank, from the grammar, and the parts of the encoder's studies."""

import copy
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tinytf import studies
from tinytf.attention import MultiHeadAttention
from tinytf.data.phrasebook import Phrasebook, synchronous
from tinytf.masks import causal_mask
from tinytf.studies import encoder as lab
from tinytf.studies import encoder_tables
from tinytf.studies.blanks import Blanks
from tinytf.studies.senses import SENSES, uses
from tinytf.text.words import EOS, WordTokenizer

TEXT = "the animal did not cross the street because it was too tired"
SENTENCE = TEXT.split()


@pytest.fixture(scope="module")
def book():
    return Phrasebook()


@pytest.fixture(scope="module")
def odds(book):
    return Blanks(book)


def test_odds_from_the_left_are_those_of_the_phrasebook(book, odds):
    """Against what it draws: the first word, and the second after `the`."""
    pairs = book.sample(8000, "train", seed=5)
    for head in ((), ("the",)):
        after = [p.source[len(head)] for p in pairs if p.source[: len(head)] == head]
        said = odds.odds([*head, "the"], len(head), both=False)
        assert said.sum() == pytest.approx(1)
        for word, count in Counter(after).most_common(15):
            p = said[odds.column[word]]
            error = 4 * (p * (1 - p) / len(after)) ** 0.5 + 0.02 * p
            assert count / len(after) == pytest.approx(p, abs=error), (head, word)


def test_odds_from_both_sides_are_those_from_the_left_multiplied(book):
    """Chain rule: these sentences end after the adjective, so left odds multiply to the joint."""
    because = Blanks(book, ["because"])

    def joint(words):
        steps = [because.odds(words, t, both=False)[because.column[w]] for t, w in enumerate(words)]
        return np.prod(steps)

    for blank, others in ((1, ["cat", "sheep"]), (6, ["river", "bridge"]), (11, ["wide", "slow"])):
        both = because.odds(SENTENCE, blank)
        for word in others:
            other = [*SENTENCE[:blank], word, *SENTENCE[blank + 1 :]]
            ratio = both[because.column[word]] / both[because.column[SENTENCE[blank]]]
            assert ratio == pytest.approx(joint(other) / joint(SENTENCE), rel=1e-9)


def test_both_sides_know_more_than_the_left(odds):
    """Bayes: to sum the joint odds over the words must give the same from either end."""
    verb = SENTENCE.index("cross")
    left, both = odds.odds(SENTENCE, verb, both=False), odds.odds(SENTENCE, verb)
    assert both[odds.column["cross"]] == pytest.approx(1)
    assert 0 < left[odds.column["cross"]] < 0.5
    last = len(SENTENCE) - 1  # nothing but the end lies to the right
    np.testing.assert_array_equal(
        odds.odds(SENTENCE, last) > 0, odds.odds(SENTENCE, last, False) > 0
    )


def test_what_stands_at_the_blank_is_not_looked_at(odds):
    other = [*SENTENCE[:1], "river", *SENTENCE[2:]]
    np.testing.assert_array_equal(odds.odds(SENTENCE, 1), odds.odds(other, 1))
    right = [*SENTENCE[:6], "bridge", *SENTENCE[7:-1], "wide"]
    np.testing.assert_array_equal(odds.odds(SENTENCE, 1, False), odds.odds(right, 1, False))


def test_reserved_combinations_have_no_odds(odds):
    """`black dog` is kept out of training, though `black` and `dog` are there."""
    said = odds.odds(["the", "black", "dog"], 2)
    assert said[odds.column["dog"]] == 0
    assert said[odds.column["cat"]] > 0
    eat = ["the", "cat", "did", "not", "eat", "the", "egg", *SENTENCE[7:11], "cold"]
    said = odds.odds(eat, 6)
    assert said[odds.column["egg"]] == 0  # reserved by a rule, not by a phrase
    assert said[odds.column["fish"]] > 0


def small_grammar(monkeypatch, largest):
    """A grammar with a reserved phrase and a reserved rule of large weight, and its 7 sentences.

    largest: the number of phrases up to which a symbol is written out in full.
    """
    monkeypatch.setattr(synchronous, "FLAT", largest)
    grammar = synchronous.Grammar()
    grammar.rule("noun", "cat", "mao<cat>", weight=3)
    grammar.rule("noun", "dog", "gou<dog>", weight=1)
    grammar.rule("thing", "black {n=noun}", "hei<black> {n}", weight=2)
    grammar.rule("thing", "black egg", "hei<black> dan<egg>", weight=5, reserved=True)
    grammar.rule("thing", "egg", "dan<egg>", weight=3)
    grammar.rule("because", "the {n=noun} saw {t=thing}", "{n} kan<saw> {t}", weight=1)
    grammar.rule("because", "the {t=thing} sat", "{t} zuo<sat>", weight=1)
    grammar.close()
    book = SimpleNamespace(source_words=tuple(sorted(grammar.words()[0])), grammar=grammar)
    things = {"black cat": 0.15, "black dog": 0.05, "egg": 0.3}  # of 1; 0.5 is reserved
    joint = {f"the {t} sat": 0.5 * p for t, p in things.items()}
    for noun, share in (("cat", 0.75), ("dog", 0.25)):
        joint |= {f"the {noun} saw {t}": 0.5 * share * p for t, p in things.items()}
    return book, {tuple(text.split()): p for text, p in joint.items()}


@pytest.mark.parametrize("largest", [1, 2, 4, 1500])
def test_odds_are_those_of_a_grammar_written_out_by_hand(monkeypatch, largest):
    """All sentences and their odds listed, the reserved ones left out; then only sums."""
    small, joint = small_grammar(monkeypatch, largest)
    odds = Blanks(small, ["because"])
    for sentence in joint:
        for blank in range(len(sentence)):
            for both in (True, False):
                expected = np.zeros(len(odds.words))
                for other, p in joint.items():
                    fits = other[:blank] == sentence[:blank] and len(other) > blank
                    if both:
                        fits = fits and other[blank + 1 :] == sentence[blank + 1 :]
                    if fits:
                        expected[odds.column[other[blank]]] += p
                found = odds.odds(sentence, blank, both)
                np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)


def test_bad_blanks(book, odds):
    with pytest.raises(ValueError, match="blank=12 is not among"):
        odds.odds(SENTENCE, 12)
    with pytest.raises(ValueError, match="no sentence 'because ___ cat'"):
        odds.odds(["because", "the", "cat"], 1)
    few = Blanks(book, ["because"])
    with pytest.raises(ValueError, match="no sentence"):
        few.odds(["two", "black", "cats"], 1)


def test_blanks_name_the_parts_of_a_sentence(book):
    pair = book.translate(" ".join(SENTENCE))
    groups = {b.word: b.group for b in lab.blanks_of(pair)}
    assert groups["animal"] == "first noun"
    assert groups["cross"] == "verb"
    assert groups["street"] == "second noun"
    assert groups["tired"] == "adjective"
    assert groups["it"] == "the others"
    for pair in lab.sentences(book, 200):
        assert Counter(b.group for b in lab.blanks_of(pair)) >= Counter(lab.GROUPS[:4])


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
    one, two = (lab.train(lab.build(words, 0), rows, 0, steps=15) for _ in range(2))
    assert torch.equal(one, two)
    assert one.shape == (15,)
    assert one[-5:].mean() < 0.8 * one[:5].mean()


def test_starts(book):
    words = WordTokenizer(book.source_words)
    alike = {
        kind: encoder_tables.likeness(lab.build(words, 0, start=kind)) for kind in ("own", "equal")
    }
    assert abs(alike["own"]) < 0.05
    assert alike["equal"] == pytest.approx(1)
    sizes = [
        sum(p.numel() for p in lab.build(words, 0, start=kind).encoder.parameters())
        for kind in ("own", "shared")
    ]
    norm = 2 * lab.WIDTH
    assert sizes[0] - norm == 3 * (sizes[1] - norm)


def test_a_probe_finds_what_is_linear_and_not_what_is_not_there():
    x, noise = torch.randn(600, 8), torch.randn(600, 8)
    y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 1).long()
    found = lab.probe(x[:400], y[:400], x[400:])
    assert (found.argmax(dim=-1) == y[400:]).float().mean() > 0.8
    torch.testing.assert_close(found.exp().sum(dim=-1), torch.ones(200))
    none = lab.probe(noise[:400], y[:400], noise[400:])
    assert (none.argmax(dim=-1) == y[400:]).float().mean() < 0.65


def test_uses_have_the_meaning_of_the_gold_chinese(book):
    found = uses(book, "train", 1, 1500, 40)
    assert set(found) == set(SENSES)
    for word, part in found.items():
        assert all(use.words[use.at] == word for use in part)
    marks = SENSES["old"]
    for use in found["old"]:
        pair = book.translate(" ".join(use.words))
        chinese = " ".join(pair.target[t] for s, t in pair.alignment if s == use.at)
        assert marks[use.sense] in chinese


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


@pytest.mark.parametrize("name", ["cloze", "start", "bug", "senses", "layers"])
def test_tables_ship_with_five_seeds_and_their_command(name):
    study = studies.load(f"encoder_{name}")
    assert study["command"] == f"python -m tinytf.studies encoder_{name}"
    assert {row["seed"] for row in study["rows"] if "seed" in row} == set(range(5))
