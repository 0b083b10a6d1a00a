"""The study of one decision, on the shipped translator and on one that is not trained."""

import pytest
import torch

from tinytf_course.exercises.ch29.donors import my_donors
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies import following
from tinytf_course.studies.twins import more_twins, twin_runs


def test_the_shipped_translator_asks_the_adjective(translator, twins):
    known = more_twins(Phrasebook(), twins, 60)
    assert not {p.english for two in known for p in two} & {p.english for two in twins for p in two}
    row = following.follow(translator, twins, known)
    assert row["memory"]["adjective"][0] > 0.9
    assert abs(row["memory"]["it"][0]) < 0.05
    assert row["sublayers"]["layers.0.cross_attention"][1] > 0.9
    shares = sum(direct for _, _, direct in row["sublayers"].values())
    assert shares == pytest.approx(1, abs=0.1)


def test_an_example_of_the_explorer_has_every_place(translator, twins):
    example = following.explored(translator, twins[2])
    maps = example["maps"]
    assert maps["encoder"]["columns"][-1] == "<eos>"
    assert maps["encoder"]["cells"][0][-2][0] == 1
    assert maps["encoder"]["cells"][0][-2][1] == example["answers"][0]
    assert len(maps["decoder"]["cells"]) == len(maps["lens"]["cells"]) == 6


@pytest.mark.parametrize("control", [True, False])
def test_donors_are_those_of_the_exercise(control):
    generator = torch.Generator().manual_seed(3)
    for count in (0, 1, 2, 9, 30):
        answers, words = (torch.randint(n, (count,), generator=generator) for n in (2, 4))
        expected = my_donors(answers, words, control)
        assert torch.equal(following.donors(answers, words, control), expected)


def test_strangers_fill_the_adjective_s_place_alone(translator, twins):
    runs = twin_runs(translator, twins)
    values = torch.randn(*runs.first.shape, 3)
    filled = following.strangers(runs, values, 1)
    at = runs.places["adjective"]
    assert torch.equal(filled[1, at[1]], values[0, at[0]])
    assert (filled != 0).any(-1).sum(1).eq(1).all()


def test_a_training_can_begin():
    trainer, translator = following.start(3, steps=100)
    trainer.run(until=2)
    assert len(translator.model.decoder.layers) == 2
