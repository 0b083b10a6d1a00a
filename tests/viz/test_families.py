"""Spoiled rows are drawn word by word."""

import matplotlib.pyplot as plt
import pytest

from tinytf import viz
from tinytf.studies import families as lab


@pytest.fixture(scope="module")
def text():
    return lab.Text(40)


def test_spoiled_rows_draws_every_word_and_mark():
    ax = viz.spoiled_rows({"text": [("a", 0), ("b", 1)], "noised": [("<mask>", None), ("b", 1)]})
    assert [t.get_text() for t in ax.texts] == ["a", "b", "<mask>", "b"]
    colors = [patch.get_facecolor() for patch in ax.patches]
    assert colors[1] == colors[3] != colors[0]
    assert colors[2] == pytest.approx(plt.matplotlib.colors.to_rgba(viz.style.GOLD))
    plt.close("all")
    with pytest.raises(ValueError, match="at least one word in each text"):
        viz.spoiled_rows({"empty": []})
