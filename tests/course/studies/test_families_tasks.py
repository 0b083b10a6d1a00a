"""What the families are asked to do, against the grammar and against writing word by word."""

import math

import pytest
import torch
import torch.nn.functional as F
from support import draws

from tinytf.decoding.search import greedy
from tinytf.text.words import BOS, EOS
from tinytf_course.exercises.ch22.fill import my_fill
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.phrasebook.lexicon import MASSES, NOUNS
from tinytf_course.studies import families as lab
from tinytf_course.studies import families_tasks
from tinytf_course.studies.encoder import sentences

ENCODER, DECODER, BOTH = lab.FAMILIES


@pytest.fixture(scope="module")
def text():
    return lab.Text(40)


@pytest.fixture(scope="module")
def odds(text):
    return families_tasks.Odds(text, sentences(Phrasebook(), 2, "test", 1))


@pytest.fixture(scope="module")
def models(text):
    return {family: lab.build(family, text, 3) for family in lab.FAMILIES}


def test_divergence_is_zero_for_the_truth_and_known_for_a_guess():
    truth = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    assert families_tasks.divergence(truth, truth.log()).abs().max() < 1e-6
    even = torch.full((2, 3), 1 / 3).log()
    expected = [math.log(3) - math.log(2), math.log(3)]
    assert families_tasks.divergence(truth, even).tolist() == pytest.approx(expected)


def test_the_grammars_odds_sum_to_one_and_the_right_side_tells_more(odds):
    for table in (odds.both, odds.left, odds.next):
        assert torch.allclose(table.sum(1), torch.ones(len(table)), atol=1e-5)
    assert {b.group for b in odds.blanks} == set(families_tasks.GROUPS)
    assert families_tasks.divergence(odds.both, odds.left.log()).mean() > 0.2


def test_grades_are_log_odds_of_the_english_words(text, models, odds):
    for model in models.values():
        for found, table in (
            (families_tasks.fill, odds.both),
            (families_tasks.continue_, odds.next),
        ):
            scores = found(model, odds)
            assert scores.shape == table.shape
            assert torch.allclose(scores.exp().sum(1), torch.ones(len(table)), atol=1e-4)


def test_rescoring_is_bayes_rule(text, models, odds):
    """Against the exercise's loop over all words of the vocabulary, narrowed to English."""
    model = models[DECODER]

    @torch.no_grad()
    def log_probs(ids):
        return model.output(model.read(ids[None])).log_softmax(-1)[0]

    blank = odds.blanks[1]
    row = torch.tensor([BOS, *text.words.encode(blank.words), EOS])
    slow = my_fill(log_probs, row, 1 + blank.at)[text.english]
    fast = families_tasks.fill_by_rescoring(model, odds)[1].exp()
    assert torch.allclose(fast, slow / slow.sum(), atol=1e-5)


def test_the_left_side_does_not_look_right(text, models, odds):
    """At the last word of a sentence rescoring differs by the odds of the end alone."""
    first = [i for i, b in enumerate(odds.blanks) if b.group == "first noun"]
    changed = [b._replace(words=(*b.words[:-1], odds.blanks[0].words[0])) for b in odds.blanks]
    other = type("Odds", (), {"text": text, "blanks": changed})
    here, there = (families_tasks.fill(models[DECODER], o)[first] for o in (odds, other))
    assert torch.equal(here, there)
    assert not torch.equal(*(families_tasks.fill(models[ENCODER], o)[first] for o in (odds, other)))


def test_labels_say_which_noun_it_is(text):
    _, labels = families_tasks.labelled(text, text.pairs)
    nouns = set(NOUNS) | set(MASSES)
    for pair, label in zip(text.pairs, labels.tolist(), strict=True):
        later = nouns & set(pair.source[pair.antecedent[1] + 1 :])
        assert label == (not later), pair.english
    assert 0 < labels.sum() < len(labels)


def test_one_pass_tells_what_writing_word_by_word_gives(text):
    """For an encoder-decoder that learned four of eight pairs by heart: some right, some wrong."""
    model, pairs = lab.build(BOTH, text, 0), text.pairs[:8]
    g = draws()

    def loss(_):
        return F.cross_entropy(*families_tasks.translation_loss(model, text, pairs[:4], g))

    lab.optimise_with_warmup(model.parameters(), loss, 45, 4e-3, 9)
    right = []
    for pair in pairs:
        src = torch.tensor([[*text.line(pair)[:-1], text.zh]])
        written = greedy(model, src, max_len=30)[0].tolist()
        right.append(written[: len(pair.target) + 1] == [*text.words.encode(pair.target), EOS])
    assert families_tasks.translated(model, text, pairs) == sum(right) / len(right)
    assert 0 < sum(right) < len(right)


def test_the_encoder_writes_a_word_into_every_mask(text, models):
    pair = text.pairs[0]
    written = families_tasks._written(models[ENCODER], text, pair)
    assert len(written) == len(pair.target)
    assert text.mask not in written
