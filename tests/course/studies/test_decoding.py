"""The studies of chapter 16: decoding in every way, the mode, samples and grades."""

import functools

import pytest
import torch

from tinytf.apps.translator import Translator
from tinytf.decoding.search import beam_search, greedy
from tinytf.metrics.translation import batch_of
from tinytf.text.words import EOS, PAD
from tinytf_course.lessons.exact import best_of_all
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies import decoding as study


@pytest.fixture(scope="module")
def pairs():
    return Phrasebook().sample(12, "test", seed=3)


@pytest.fixture
def translator(device):
    return Translator.load(device=device)


@pytest.fixture(scope="module")
def novice():
    """Too short a training to know much: its outputs are unsure, and of all lengths."""
    return study.train(seed=0, steps=80)


def test_a_gloss_is_the_source_word_linked_most_often(pairs):
    meant = study.glosses(Phrasebook().sample(300, seed=1))
    assert meant["猫"] == "cat"
    assert meant["书"] in ("book", "books")
    one = study.glosses(pairs[:1])
    links = {pairs[0].target[t] for _, t in pairs[0].alignment}
    assert set(one) == links


def test_training_depends_on_seed_and_smoothing():
    def weights(translator):
        return torch.cat([p.flatten() for p in translator.model.parameters()])

    first = weights(study.train(seed=0, steps=3))
    assert torch.equal(first, weights(study.train(seed=0, steps=3)))
    assert not torch.equal(first, weights(study.train(seed=1, steps=3)))
    assert not torch.equal(first, weights(study.train(seed=0, steps=3, smoothing=0.0)))


def test_a_beam_of_one_is_greedy_without_padding(novice, pairs):
    found = study.decode_all(novice, pairs)
    src = batch_of(novice, pairs).src
    ids = greedy(novice.model, src, 30)
    assert len(set(map(len, found.ids))) > 2  # otherwise nothing would be padded
    for one, row, ours, log_prob in zip(src, ids, *found, strict=True):
        assert ours == row[row != PAD].tolist()
        alone = study.log_probs(novice.model, one[one != PAD][None], row[row != PAD][None])
        assert log_prob == pytest.approx(alone.item(), abs=1e-3)


def test_log_probs_are_those_that_the_search_reports(novice, pairs):
    found = study.decode_all(novice, pairs, 3, 0.6)
    src = batch_of(novice, pairs).src
    best = [h[0] for h in beam_search(novice.model, src, 3, 0.6, 30)]
    assert found.ids == [h.ids for h in best]
    for row, ids, log_prob in zip(src, *found, strict=True):
        one, said = row[row != PAD][None], torch.tensor([ids], device=src.device)
        assert study.log_probs(novice.model, one, said).item() == pytest.approx(log_prob, abs=1e-3)


def test_modes_beat_what_is_known_and_keep_it_where_nothing_does(translator, pairs):
    pairs = pairs[:6]
    best = study.decode_all(translator, pairs, 8)
    worse = study.Decoded([[EOS]] * len(pairs), [-30.0] * len(pairs))
    assert study.modes(translator, pairs, worse).ids == best.ids
    kept = study.modes(translator, pairs, best)
    assert kept.ids == best.ids
    assert kept.log_probs == best.log_probs


def test_modes_say_where_they_have_no_proof(novice, pairs, monkeypatch):
    unlikely = study.Decoded([[EOS]] * len(pairs), [-60.0] * len(pairs))
    hasty = functools.partial(best_of_all, most=1)
    monkeypatch.setattr("tinytf_course.studies.decoding.best_of_all", hasty)
    with pytest.raises(RuntimeError, match="gave up after"):
        study.modes(novice, pairs, unlikely)


def test_samples_follow_the_seed_and_end(translator, pairs):
    first = study.sampled(translator, pairs, seed=0)
    assert first == study.sampled(translator, pairs, seed=0)
    assert len({str(study.sampled(translator, pairs, seed=s)) for s in range(4)}) > 1
    assert all(ids.count(EOS) <= 1 and PAD not in ids for ids in first)
    assert sum(ids[-1] == EOS for ids in first) >= len(first) - 1


def test_grades_count_words_without_the_end():
    gold = [[5, 6, 7, 8, EOS], [5, 6, 7, 8, EOS]]
    assert study.grade(gold, gold) == {"exact": 1, "bleu": 100, "length": 1, "empty": 0}
    found = study.grade([[5, 6, 7, 8, EOS], [EOS]], gold)
    assert (found["exact"], found["length"], found["empty"]) == (0.5, 0.5, 0.5)
    assert 0 < found["bleu"] < 100
    assert study.grade([[5, 6, 7, 8], [5, 6, 7, 8, EOS]], gold)["exact"] == 0.5  # cut, not ended


def test_kinds_tell_search_from_model():
    cases = {"right": ([1], [1]), "wrong": ([1], [2]), "lucky": ([2], [2]), "other": ([2], [3])}
    told = [cases[name] for name in ("right", "wrong", "wrong", "lucky", "lucky", "lucky", "other")]
    outputs, gold = zip(*told, strict=True)
    assert study.kinds(outputs, [[1]] * 7, gold) == [1, 2, 3, 1]
