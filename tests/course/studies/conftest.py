"""What studies of one decision share: the shipped translator, and twins it has not seen."""

import pytest

from tinytf.apps.translator import Translator
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies.heads import unseen_twins


@pytest.fixture(scope="module")
def translator():
    return Translator.load(device="cpu")


@pytest.fixture(scope="session")
def book():
    return Phrasebook()


@pytest.fixture(scope="module")
def twins():
    return unseen_twins(Phrasebook())[:12]
