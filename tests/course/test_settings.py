"""What is set is read, compared and put back; see test_worker for what is replaced."""

import pytest
import torch

from tinytf_course.settings import Settings


def test_nothing_changed_is_nothing_told():
    settings = Settings()
    torch.rand(3)
    assert settings.put_back() == []


def test_a_folder_that_is_gone_is_no_error(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Settings().put_back() == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda: torch.set_default_dtype(torch.float64), "default dtype from float32 to float64"),
        (lambda: torch.set_default_device("meta"), "default device from cpu to meta"),
        (lambda: torch.set_grad_enabled(False), "records gradients from True to False"),
        (lambda: torch.autograd.set_detect_anomaly(True), "anomaly detection from False to True"),
    ],
)
def test_what_is_set_is_told_and_put_back(change, told):
    settings = Settings()
    change()
    (words,) = settings.put_back()
    assert told in words
    assert settings.put_back() == []
