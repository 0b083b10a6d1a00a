"""Devices and precisions, chosen or asked for."""

import pytest
import torch

from tinytf.cli import train
from tinytf.support.device import choose_device, choose_precision
from tinytf.training.trainer import TrainingConfig


@pytest.fixture(autouse=True)
def graded(monkeypatch):
    """Stand in for the long grading of 2,000 sentences; collects what would be graded."""
    calls = []
    monkeypatch.setattr(train.Phrasebook, "sample", lambda _, n, split, seed: [split] * n)
    monkeypatch.setattr(train, "exact_match", lambda _, pairs: calls.append(pairs) or 0.5)
    return calls


def test_what_is_not_asked_for_does_not_depend_on_timing(monkeypatch):
    seen = []
    monkeypatch.setattr(train, "_train", lambda options, *_: seen.append(options) or 0)
    assert train.main([]) == 0
    assert (seen[0].attention, seen[0].pool) == ("fused", 4)


def test_a_device_may_be_torchs_own():
    assert choose_device(torch.device("cpu")) == torch.device("cpu")
    trainer, _ = train.build(TrainingConfig(), 4, torch.device("cpu"), d_model=8, d_ff=8)
    assert trainer.model.device.type == "cpu"


@pytest.mark.parametrize("wanted", ["auto", "fp16"])
def test_a_wrong_precision_in_the_environment_is_named(wanted, monkeypatch):
    choose_precision.cache_clear()
    monkeypatch.setenv("TINYTF_PRECISION", wanted)
    with pytest.raises(ValueError, match=f"TINYTF_PRECISION='{wanted}' is not one of float32"):
        choose_precision("cpu")
    choose_precision.cache_clear()
