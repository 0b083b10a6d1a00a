"""Devices and precisions, chosen or asked for."""

import pytest
import torch

from tinytf.cli import train, write
from tinytf.support import device
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


@pytest.mark.parametrize(
    ("kind", "seconds", "native", "expected"),
    [
        ("cpu", (1.0, 0.49), None, "bfloat16"),
        ("cpu", (1.0, 0.5), None, "float32"),
        ("cuda", None, True, "bfloat16"),
        ("cuda", None, False, "float32"),
        ("mps", None, None, "float32"),
    ],
)
def test_the_faster_precision_is_chosen(kind, seconds, native, expected, monkeypatch):
    times = dict(zip((torch.float32, torch.bfloat16), seconds or ()))
    emulated = lambda including_emulation: native or including_emulation  # noqa: E731
    monkeypatch.setattr(device, "_matmul_seconds", times.get)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", emulated)
    monkeypatch.delenv("TINYTF_PRECISION", raising=False)
    choose_precision.cache_clear()
    assert choose_precision(kind) == expected
    choose_precision.cache_clear()
    monkeypatch.setenv("TINYTF_PRECISION", "bfloat16")
    assert choose_precision(kind) == "bfloat16"
    choose_precision.cache_clear()


def test_a_matmul_takes_time():
    assert 0 < device._matmul_seconds(torch.float32) < 60
