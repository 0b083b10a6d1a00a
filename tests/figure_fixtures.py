"""Fixtures for the tests of figures: a machine without the Chinese font, and what is displayed."""

from itertools import combinations

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from tinytf.viz import style
from tinytf_course import drawings as viz


@pytest.fixture(autouse=True)
def figures(house_style):
    """Every figure that a test leaves can be read on a page; none is found by the next test."""
    yield
    for number in plt.get_fignums():
        check_type(plt.figure(number))


def check_type(figure):
    """Fail unless `figure`, as a notebook shows it, can be read on a page, a dark one too.

    It has paper of its own. Type is 9 points or more where the picture is 900 pixels wide, of 96 to
    an inch. No text stands on another; words that are turned are left out of that, since the boxes
    around them overlap where they do not.
    """
    assert to_hex(figure.get_facecolor(), keep_alpha=True) == f"{style.PAPER}ff"
    texts = drawn(style.legible(figure))
    margin = 2 * plt.rcParams["savefig.pad_inches"]
    wide = (figure.get_tightbbox().width + margin) * figure.dpi
    points = {t: t.get_size() * figure.dpi / 96 * min(1, 900 / wide) for t in texts}
    small = {text.get_text(): round(p, 2) for text, p in points.items() if p < 8.99}
    assert not small, f"type of less than 9 points where the figure is 900 pixels wide: {small}"
    flat = [text for text in texts if text.get_rotation() in (0, 90)]
    boxes = [text.get_window_extent().padded(-1) for text in flat]
    hidden = [
        tuple(flat[i].get_text() for i in pair)
        for pair in combinations(range(len(flat)), 2)
        if boxes[pair[0]].overlaps(boxes[pair[1]])
    ]
    assert not hidden, f"text over text: {hidden}"


def drawn(figure):
    """The texts that are drawn, and say something."""
    texts, draw = {}, Text.draw

    def noted(text, *args, **kwargs):
        texts[text] = text.get_visible() and text.get_text().strip()
        return draw(text, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", noted)
        figure.canvas.draw()
    return [text for text, says in texts.items() if says]


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
