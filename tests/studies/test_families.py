"""The three families: equal starts and sizes, who sees what, and grades that mean what they say."""

import math

import pytest
import torch
import torch.nn.functional as F

from tinytf import studies
from tinytf.course.answers.ch14_families import my_fill
from tinytf.data.phrasebook import Phrasebook
from tinytf.data.phrasebook.lexicon import MASSES, NOUNS
from tinytf.decoding.search import greedy
from tinytf.metrics.counting import count_parameters
from tinytf.studies import families as lab
from tinytf.studies import families_tables, families_tasks
from tinytf.studies.encoder import sentences
from tinytf.text.words import BOS, EOS, PAD

ENCODER, DECODER, BOTH = lab.FAMILIES


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def text():
    return lab.Text(40)


@pytest.fixture(scope="module")
def odds(text):
    return families_tasks.Odds(text, sentences(Phrasebook(), 2, "test", 1))


@pytest.fixture(scope="module")
def models(text):
    return {family: lab.build(family, text, 3) for family in lab.FAMILIES}


def test_sizes_agree_and_the_stacks_begin_alike(models):
    sizes = [count_parameters(model) for model in models.values()]
    assert max(sizes) / min(sizes) < 1.02
    one, other = models[ENCODER].state_dict(), models[DECODER].state_dict()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert [lab.family_of(model) for model in models.values()] == list(lab.FAMILIES)


def test_only_the_decoder_only_model_is_blind_to_the_right(text, models):
    row = torch.tensor([text.lines[0][0]])
    other = row.clone()
    other[0, -2] = text.english[0] if row[0, -2] != text.english[0] else text.english[1]
    for family, model in models.items():
        moved = (model.read(row) - model.read(other)).abs().amax(dim=(0, 2))
        assert (moved[0] == 0) == (family == DECODER)
        assert moved[-2] > 0


def test_rows_are_english_alone_or_both_at_even_odds(text):
    rows = text.rows(draws(), 400)
    both = sum(text.zh in row for row in rows)
    assert 160 < both < 240
    assert all(row[0] == BOS and row[-1] == EOS and PAD not in row for row in rows)
    alone, pair = (text.words.decode(text.line(text.pairs[0], b)) for b in (False, True))
    assert tuple(alone) == text.pairs[0].source
    assert pair == [*text.pairs[0].source, "<zh>", *text.pairs[0].target]


def test_what_each_family_is_asked_for(text, models):
    rows = text.rows(draws(), 300)
    words = sum(len(row) - 2 for row in rows)
    asked = {f: lab.objective(m, text, rows, draws(1))[1] for f, m in models.items()}
    assert asked[DECODER].tolist() == [token for row in rows for token in row[1:]]
    assert len(asked[ENCODER]) / words == pytest.approx(lab.SHARE, abs=0.02)
    target = asked[BOTH]
    marks = torch.isin(target, torch.tensor(text.sentinels))
    dropped = (~marks).sum().item() / (words + len(rows))  # the end of a row may be dropped too
    assert dropped == pytest.approx((lab.LOW + lab.HIGH) / 2, abs=0.03)
    assert 0.1 < (target == EOS).sum().item() / len(rows) < 0.4  # rolled: an end like any place
    for logits, tokens in (lab.objective(m, text, rows[:4], draws(1)) for m in models.values()):
        assert logits.shape == (len(tokens), len(text.words))


def test_one_gap_of_one_word_is_among_what_the_encoder_decoder_trains_on(text):
    """Else to ask it for one word would be to ask for what it never met."""
    row, found = torch.tensor(text.lines[0][0][1:]), 0
    g = draws()
    for _ in range(300):
        share = lab.LOW + (lab.HIGH - lab.LOW) * torch.rand((), generator=g).item()
        made = lab.corrupt_spans(row, text.sentinels, g, share, lab.MEAN_SPAN, roll=True)
        found += len(made.target) == 3
    assert found > 5


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


def test_operations_count_a_step_forward_and_back(text, models):
    rows = text.rows(draws(), 16)
    flops, asked = lab.operations(models[DECODER], text, rows)
    real = sum(map(len, rows))
    assert asked == real - len(rows)
    weights = count_parameters(models[DECODER])
    assert 6 * weights * 0.8 < flops / real < 6 * weights * 2.5  # padding and attention on top


def test_the_study_that_ships_is_whole():
    rows = studies.load("families")["rows"]
    runs = [(row["family"], row["seed"]) for row in rows if "family" in row]
    assert sorted(runs) == sorted((f, s) for f in lab.FAMILIES for s in families_tables.SEEDS)
    tried = studies.load("families_rates")["rows"]
    for family, best in lab.BEST.items():
        losses = {row["lr"]: row["loss"] for row in tried if row["family"] == family}
        assert losses[best] < min(losses.values()) + 0.005  # the best, or level with it
