"""Fixtures for the tests of figures: a machine without the Chinese font, and what is displayed."""

import matplotlib.pyplot as plt
import pytest

from tinytf.viz import style
from tinytf_course import drawings as viz


@pytest.fixture(autouse=True)
def closed():
    """No test finds the figures of another."""
    yield
    plt.close("all")


@pytest.fixture
def no_cjk(monkeypatch):
    monkeypatch.setattr(style.font, "register", lambda: style.BASE_FONT)
    viz.use_house_style()


class Displayed(list):
    """What was displayed; `about` is the metadata of the last."""

    about = None


@pytest.fixture
def shown(monkeypatch):
    ipywidgets = pytest.importorskip("ipywidgets")
    displayed = Displayed()

    class Handle:
        def update(self, data, raw, metadata):
            displayed.append(data)
            displayed.about = metadata

    def display(data, raw, metadata=None, display_id=None):
        displayed.append(data)
        displayed.about = metadata
        return Handle() if display_id else None

    monkeypatch.setattr("IPython.display.display", display)
    assert ipywidgets
    return displayed
