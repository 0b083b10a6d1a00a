"""Fixtures for the tests of what heads do: the shipped translator, sentences, a small model."""

import pytest
import torch
from support import random_ids, randomise, small_model

from tinytf.apps.translator import Translator
from tinytf.text.words import BOS
from tinytf.training.losses import Batch
from tinytf_course.phrasebook import Phrasebook


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
def model():
    return randomise(small_model()).eval()


@pytest.fixture
def batch():
    src, out = random_ids([6, 3], 11), random_ids([4, 5], 9)
    return Batch(src, torch.cat([torch.full((2, 1), BOS), out[:, :-1]], dim=1), out)
