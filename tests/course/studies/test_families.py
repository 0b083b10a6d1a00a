"""The three families: equal starts and sizes, who sees what, and grades that mean what they say."""

import pytest
import torch
from support import draws

from tinytf.metrics.counting import count_parameters
from tinytf.text.words import BOS, EOS, PAD
from tinytf_course.studies import families as lab

ENCODER, DECODER, BOTH = lab.FAMILIES


@pytest.fixture(scope="module")
def text():
    return lab.Text(40)


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


def test_operations_count_a_step_forward_and_back(text, models):
    rows = text.rows(draws(), 16)
    flops, asked = lab.operations(models[DECODER], text, rows)
    real = sum(map(len, rows))
    assert asked == real - len(rows)
    weights = count_parameters(models[DECODER])
    assert 6 * weights * 0.8 < flops / real < 6 * weights * 2.5  # padding and attention on top
