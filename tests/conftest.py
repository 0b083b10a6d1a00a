"""Fixtures for the tests of the package."""

import pytest
import torch
from support import warnings_as_errors

from tinytf.support.randomness import seed_all


@pytest.fixture(autouse=True)
def seeded():
    """Each test starts from the same seed, whatever ran before it."""
    seed_all(0)


@pytest.fixture
def device():
    """The device under test: that of --device, or the one the course would choose."""
    from tinytf.support.device import choose_device

    return choose_device()


@pytest.fixture
def exact(device):
    """The device under test, or the CPU where that has no float64."""
    return torch.device("cpu") if device.type == "mps" else device


@pytest.fixture
def house_style():
    """Figures in the house style; what matplotlib warns of, a missing glyph say, is an error."""
    import matplotlib.pyplot as plt

    from tinytf_course import drawings as viz

    plt.switch_backend("agg")
    with plt.rc_context(), warnings_as_errors():
        viz.use_house_style()
        yield
        plt.close("all")
