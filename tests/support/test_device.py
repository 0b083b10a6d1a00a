"""Devices and precisions, chosen or asked for."""

import pytest
import torch

from tinytf.cli import train, write
from tinytf.support.device import choose_device, choose_precision
from tinytf.training.trainer import TrainingConfig


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


@pytest.mark.parametrize("wanted", ["cuda", "cuda:1"])
def test_the_variable_is_blamed_for_a_device_that_is_not_here(wanted, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("TINYTF_DEVICE", wanted)
    said = f"the variable TINYTF_DEVICE='{wanted}' was asked for, but torch sees none"
    with pytest.raises(ValueError, match=said):
        choose_device()
    for command in (lambda: write.main(["a"]), lambda: train.main([])):
        assert command() == 2
        assert f"error: {said}" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"^device 'cuda' was asked"):
        choose_device("cuda")


def test_devices_that_are_none_are_refused(monkeypatch):
    for wanted in ("cpu:x", "gpu", "cuda:-1", ":"):
        with pytest.raises(ValueError, match=r"is not one of cuda, mps, cpu"):
            choose_device(wanted)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match="device 'cuda:2' was asked for, but there are 2"):
        choose_device("cuda:2")
