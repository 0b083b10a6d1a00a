"""The small language, the slips and the figures of chapter 13."""

import pytest
from support import randomise, small_model

from tinytf.training.losses import Batch, make_batch
from tinytf_course.studies.decoder import BUGS, CHECKS, check

ROUNDING = 1e-10


@pytest.fixture
def model():
    return randomise(small_model(max_len=40)).eval()


@pytest.fixture
def batch():
    sources = [[3, 4, 5, 6, 7], [8, 9], [4, 4, 4]]
    return make_batch(sources, [[3, 4, 5], [6, 7, 8, 3], [4, 5]])


@pytest.mark.parametrize("name", BUGS)
def test_every_planted_mistake_is_found_and_the_right_model_passes(name, model, batch):
    bug = BUGS[name]
    bug.plant(model)
    found = check(model, bug.prepare(batch))
    assert list(found) == list(CHECKS)
    failed = {name for name, number in found.items() if not number <= ROUNDING}
    expected = {
        "right": set(),
        "mask inverted": {
            "Gradient from the future", "One pass, or prefix by prefix", "One pass, or cached steps"
        },
        "caller's mask instead": {
            "Gradient from the future", "One pass, or prefix by prefix", "One pass, or cached steps"
        },
        "target not shifted": {"Target shifted by one"},
        "memory mask forgotten": {"Ten more source pads"},
        "positions along the batch": {"Another row of the batch"},
        "cache starts at 0": {"One pass, or cached steps"},
    }  # fmt: skip
    assert failed == expected[name]


def test_checks_are_deterministic(model, batch):
    assert check(model, batch) == check(model, Batch(*batch))
