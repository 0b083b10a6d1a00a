"""The study of heads: its twins, its rows and its answers."""

import pytest
import torch
from support import random_ids

from tinytf.apps.translator import Translator
from tinytf.interpret.head_roles import (
    heads_of,
)
from tinytf.metrics.translation import batch_of
from tinytf.text.words import BOS
from tinytf.training.losses import Batch
from tinytf_course.lessons.ablation import ablation_effect
from tinytf_course.lessons.coreference import noun_shares
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies.heads import answers, describe, noun_rows, unseen_twins


@pytest.fixture(scope="module")
def shipped():
    return Translator.load(device="cpu")


@pytest.fixture(scope="module")
def pairs():
    return Phrasebook().sample(30, "test", seed=1)


@pytest.fixture(scope="module")
def twins():
    return [tuple(sorted(p, key=lambda p: p.antecedent[1])) for p in Phrasebook().twins(12, 3)]


@pytest.fixture
def batch():
    src, out = random_ids([6, 3], 11), random_ids([4, 5], 9)
    return Batch(src, torch.cat([torch.full((2, 1), BOS), out[:, :-1]], dim=1), out)


def test_answers_go_round_the_ring():
    found = answers(torch.tensor([[5, 6, 7, 8]]), (-1, 2))
    assert found.tolist() == [[[8, 7], [5, 8], [6, 5], [7, 6]]]


def test_twins_of_the_studies_were_never_trained_on():
    book = Phrasebook()
    for first, second in unseen_twins(book):
        assert first.antecedent[1] < second.antecedent[1]
        assert first.source[:-1] == second.source[:-1]
        assert "train" not in {book.split_of(first.source), book.split_of(second.source)}


def test_rows_of_the_studies(shipped, pairs, twins):
    heads = heads_of(shipped.model)
    rows = noun_rows(shipped, twins)
    assert list(rows)[:7] == ["nothing", "enc 0", "enc 1", "dec 0", "dec 1", "cross 0", "cross 1"]
    assert list(rows)[7:] == [str(head) for head in heads]
    assert rows["cross 0"] == pytest.approx(noun_shares(shipped, twins, heads[16:20]), abs=1e-4)
    row, batch = describe(shipped, pairs[:6], twins[:3]), batch_of(shipped, pairs[:6])

    def cost(*silent):
        found = ablation_effect(shipped.model, batch, silent)
        return pytest.approx([100 * found.exact, found.loss], abs=0.01)

    assert row["test"]["zero"][9] == cost(heads[9])
    assert row["test"]["all but"][9] == cost(heads[8], heads[10], heads[11])
    assert row["test"]["pairs"]["cross 1.0, cross 1.3"] == cost(heads[20], heads[23])
    assert row["test"]["layers"]["dec 0"] == cost(*heads[8:12])
    assert row["scores"]["next"][8:] == [None] * 16
    assert row["scores"]["antecedent"][23] > 0.5
