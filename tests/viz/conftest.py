"""Fixtures for the tests of figures: a machine without the Chinese font, and what is displayed."""

import pytest

from tinytf import viz
from tinytf.viz import style


@pytest.fixture
def no_cjk(monkeypatch):
    monkeypatch.setattr(style.font, "register", lambda: style.BASE_FONT)
    viz.use_house_style()


@pytest.fixture
def shown(monkeypatch):
    ipywidgets = pytest.importorskip("ipywidgets")
    displayed = []

    class Handle:
        def update(self, data, raw):
            displayed.append(data)

    def display(data, raw, display_id=None):
        displayed.append(data)
        return Handle() if display_id else None

    monkeypatch.setattr("IPython.display.display", display)
    assert ipywidgets
    return displayed
