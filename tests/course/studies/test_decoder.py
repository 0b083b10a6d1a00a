"""The small language, the slips and the figures of chapter 13."""

import matplotlib
import pytest
import torch
from support import randomise, small_model

from tinytf.training.losses import Batch, make_batch
from tinytf_course.studies import chain, load
from tinytf_course.studies.decoder import BUGS, CHECKS, bugs_scored, check, sublayer_costs

matplotlib.use("Agg")


@pytest.fixture
def rows():
    return chain.draw(4000, torch.Generator().manual_seed(0))


def test_shipped_tables_have_five_seeds():
    bugs = load("decoder_bugs")["rows"]
    assert {row["bug"] for row in bugs} == set(BUGS)
    for name in BUGS:
        assert sorted(row["seed"] for row in bugs if row["bug"] == name) == list(range(5))
    parts = load("decoder_sublayers")["rows"]
    assert [row["seed"] for row in parts] == list(range(5))
    assert all(len(row["parts"]) == 5 for row in parts)


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


def test_stored_studies_are_read_by_mistake_and_by_sublayer():
    scores = bugs_scored("words, forced")
    assert list(scores) == list(BUGS)
    assert {len(runs) for runs in scores.values()} == {5}
    assert min(scores["mask inverted"]) > max(scores["right"])
    row = load("decoder_sublayers")["rows"][2]
    costs = sublayer_costs()
    assert list(costs) == list(row["parts"])
    own = row["parts"]["decoder cross-attention"]
    lost = costs["decoder cross-attention"]
    assert lost["mean"][2] == own["mean"][1]
    assert lost["never had it"][2] == own["retrained"][1] - row["intact"][1]
