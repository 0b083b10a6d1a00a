"""What is set is read, compared and put back; see test_contain for all of it at once."""

import os
import sys
import types

import pytest
import torch

from tinytf_course.settings import Randomness, Settings


@pytest.mark.parametrize("briefly", [False, True])
def test_nothing_changed_is_nothing_told(briefly):
    settings = Settings(briefly)
    torch.rand(3)
    assert settings.put_back() == []


def test_a_folder_that_is_gone_is_no_error(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Settings().put_back() == []


def test_an_attribute_taken_away_comes_back():
    settings, kept = Settings(), torch.softmax
    del torch.softmax
    assert settings.put_back() == ["replaces torch.softmax"]
    assert torch.softmax is kept


def test_environment_variables_are_put_back_in_silence(monkeypatch):
    settings = Settings()
    monkeypatch.setenv("TINYTF_TEST", "1")
    assert settings.put_back() == []
    assert "TINYTF_TEST" not in os.environ


def test_what_torchs_compiler_wraps_is_left_to_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    settings, kept = Settings(), torch.manual_seed

    def wrapped(seed):
        return kept(seed)

    wrapped.__module__, wrapped.__name__ = "torch._compile", "manual_seed"
    monkeypatch.setitem(sys.modules, "torch._dynamo", types.ModuleType("torch._dynamo"))
    monkeypatch.setattr(torch, "manual_seed", wrapped)
    assert settings.put_back() == []
    assert torch.manual_seed is wrapped


def test_the_stream_goes_on_as_if_nothing_had_been_drawn():
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    with Randomness():
        torch.rand(100)
        torch.manual_seed(7)
    assert torch.equal(torch.rand(2), wanted)
