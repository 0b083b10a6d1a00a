"""Exhaustive search: against an enumeration by itertools, pruned against unpruned."""

import itertools
import math

import pytest
import torch
from support import random_ids, small_model

from tinytf.decoding.search import beam_search
from tinytf.text.words import BOS, EOS, PAD
from tinytf_course.lessons.exact import best_of_all, every_sentence

SEEDS = pytest.mark.parametrize("seed", range(4))
ALPHAS = pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])


@pytest.fixture
def case(seed, exact):
    """A model of three words with opinions, and one source sentence."""
    torch.manual_seed(seed)
    model = small_model(exact, tie_output=False, tgt_vocab_size=6, num_layers=1)
    with torch.no_grad():
        model.src_embedding.weight.mul_(3)
        model.output.weight.normal_(std=0.7)
    return model, random_ids([4], 11, exact)


def by_itertools(model, src, max_len, alpha):
    """Score every sentence with a teacher-forced pass of its own."""
    scored = []
    for n in range(max_len + 1):
        for body in itertools.product(range(EOS + 1, 6), repeat=n):
            ids = [*body, EOS][:max_len]
            logits = model(src, torch.tensor([[BOS, *ids[:-1]]], device=src.device))[0]
            logits[:, [PAD, BOS]] = -math.inf
            each = logits.log_softmax(-1)[range(len(ids)), ids]
            total = each.sum().item()
            scored.append((total / ((5 + len(ids)) / 6) ** alpha, total, ids))
    return sorted(scored, reverse=True)


@ALPHAS
@SEEDS
def test_every_sentence_is_every_sentence(case, alpha):
    found = every_sentence(*case, max_len=4, alpha=alpha)
    expected = by_itertools(*case, 4, alpha)
    assert len(found) == 1 + 3 + 9 + 27 + 81
    assert [h.ids for h in found] == [ids for _, _, ids in expected]
    assert [h.log_prob for h in found] == pytest.approx([t for _, t, _ in expected])
    assert [h.score for h in found] == pytest.approx([s for s, _, _ in expected])


@SEEDS
def test_the_probabilities_of_all_sentences_sum_to_one(case):
    total = math.fsum(math.exp(h.log_prob) for h in every_sentence(*case, max_len=5))
    assert total == pytest.approx(1, abs=1e-9)


@ALPHAS
@SEEDS
@pytest.mark.parametrize("help", [False, True])
def test_the_pruned_search_finds_the_best_of_all(case, alpha, help):
    model, src = case
    expected = every_sentence(model, src, 5, alpha)
    known = expected[3].score if help else -math.inf
    found = best_of_all(model, src, 5, alpha, at_least=known)
    assert found.proven
    assert found.hypothesis.ids == expected[0].ids
    assert found.hypothesis.score == pytest.approx(expected[0].score)
    assert found.prefixes < 1 + 3 + 9 + 27 + 81  # something was left out


@SEEDS
def test_a_better_bound_leaves_more_out(case):
    model, src = case
    best = every_sentence(model, src, 6)[0]
    blind = best_of_all(model, src, 6)
    told = best_of_all(model, src, 6, at_least=best.score - 1e-6)
    assert told.prefixes <= blind.prefixes
    assert told.hypothesis == blind.hypothesis
    beaten = best_of_all(model, src, 6, at_least=best.score + 1e-6)
    assert beaten.proven
    assert beaten.hypothesis is None


@SEEDS
def test_it_reads_no_prefix_that_it_could_have_left_out(case):
    """Level by level: what is not likelier than the best finished sentence so far is dropped."""
    model, src = case
    total = {}
    for _, log_prob, ids in by_itertools(model, src, 6, 0.0):
        total[tuple(ids)] = log_prob
        for n in range(6):  # a prefix is as likely as all that begins with it
            key = ("prefix", *ids[:n])
            total[key] = total.get(key, 0.0) + math.exp(log_prob)
    alive, best, read = [()], -math.inf, 0
    while alive and len(alive[0]) < 6:
        read += len(alive)
        best = max([best, *(total[(*p, EOS)] for p in alive)])
        longer = [(*p, word) for p in alive for word in range(EOS + 1, 6)]
        alive = [p for p in longer if len(p) == 6 or math.log(total[("prefix", *p)]) > best]
    assert best_of_all(model, src, 6).prefixes == read


@SEEDS
def test_no_beam_beats_it(case):
    model, src = case
    best = best_of_all(model, src, 6).hypothesis
    for beam in (1, 2, 3, 50):
        assert beam_search(model, src, beam, 0.0, 6)[0][0].log_prob <= best.log_prob + 1e-6


@pytest.mark.parametrize("seed", [0])
def test_it_gives_up_where_it_is_told_to(case):
    model, src = case
    found = best_of_all(model, src, 6, alpha=1.0, most=3)
    assert not found.proven
    assert found.prefixes <= 3


@pytest.mark.parametrize("seed", [0])
def test_the_model_is_left_as_it_was(case):
    model, src = case
    for training in (True, False):
        model.train(training)
        every_sentence(model, src, 2)
        best_of_all(model, src, 2)
        assert all(m.training is training for m in model.modules())


@pytest.mark.parametrize("search", [every_sentence, best_of_all])
def test_dropout_is_off(search, exact):
    torch.manual_seed(0)
    model = small_model(exact, tie_output=False, tgt_vocab_size=6, num_layers=1, dropout=0.5)
    src = random_ids([4], 11, exact)
    expected = search(model.eval(), src, 3)
    assert search(model.train(), src, 3) == expected


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("search", [every_sentence, best_of_all])
def test_bad_input_is_refused(case, search):
    model, src = case
    with pytest.raises(ValueError, match=r"src must be \(1, S\), got \(2, 4\)"):
        search(model, src.repeat(2, 1), 3)
    with pytest.raises(ValueError, match=r"max_len=25 must lie in 1\.\.24"):
        search(model, src, 25)


@SEEDS
def test_prefixes_are_read_in_parts(case, monkeypatch):
    whole = every_sentence(*case, max_len=4)
    monkeypatch.setattr("tinytf_course.lessons.exact.ROWS", 5)
    parts = every_sentence(*case, max_len=4)
    assert [h.ids for h in parts] == [h.ids for h in whole]
    assert best_of_all(*case, max_len=4).hypothesis.ids == whole[0].ids
