"""Colours for every kind of eye: lines told apart, text and numbers that can be read."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from colour_support import EYES, apart, contrast, delta_e
from matplotlib.colors import to_hex

from tinytf.viz import style
from tinytf_course import drawings as viz

COLOURS = list(dict.fromkeys([*style.CYCLE, *style.COLOURS.values(), style.GOLD]))
LEAST = 15  # ΔE2000


def look_alike(one, other):
    return min(apart(one, other, eye) for eye in EYES) < LEAST


def test_the_formula_gives_the_published_differences():
    pairs = [((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
             ((50, 2.5, 0), (73, 25, -18), 27.1492), ((2.0776, 0.0795, -1.1350),
             (0.9033, -0.0636, -0.5514), 0.9082), ((50, 0, 0), (50, -1, 2), 2.3669)]  # fmt: skip
    for one, other, published in pairs:
        assert delta_e(one, other) == pytest.approx(published, abs=1e-4)
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert apart("#0d6cb0", "#9c5fb5", "protanopia") < 2 < 25 < apart("#0d6cb0", "#9c5fb5")


def test_the_list_of_colours_that_look_alike_is_what_eyes_see():
    seen = {frozenset(pair) for pair in combinations(COLOURS, 2) if look_alike(*pair)}
    assert seen == style.ALIKE


@pytest.mark.parametrize("count", [2, 5, 8, 12])
def test_any_two_lines_of_a_figure_differ_in_colour_or_in_dashes(count):
    series = {f"line {number}": [number, 2.0] for number in range(count)}
    ax = viz.lines(None, {**series, "level": 0.5})
    looks = [(to_hex(line.get_color()), str(line._unscaled_dash_pattern)) for line in ax.lines]
    for (one, dash), (other, another) in combinations(looks, 2):
        assert dash != another or not (one == other or look_alike(one, other))


def test_lines_of_things_that_look_alike_get_dashes():
    norms = {name: [0.0, 1.0] for name in ("Pre-LN", "RMSNorm", "Post-LN")}
    ax = viz.lines(None, norms, colors={name: style.COLOURS[name] for name in norms})
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--", "-"]


def test_text_can_be_read_on_paper():
    for colour in (style.INK, plt.rcParams["text.color"], plt.rcParams["xtick.color"]):
        assert contrast(colour, style.PAPER) >= 4.5
    assert contrast(style.FAINT, style.PAPER) >= 4.5


@pytest.mark.parametrize("scale", ["attention", "signed"])
def test_each_number_of_a_heat_map_can_be_read_on_its_cell(scale):
    low = -1.0 if scale == "signed" else 0.01
    values = np.linspace(low, 1, 64).reshape(8, 8)
    ax = viz.heatmap(values, scale=scale, annotate=True)
    mesh = ax.collections[0]
    cells = {(round(t.get_position()[1]), round(t.get_position()[0])): t for t in ax.texts}
    assert len(cells) == 64
    for (row, column), number in cells.items():
        ground = mesh.cmap(mesh.norm(values[row, column]))[:3]
        assert contrast(number.get_color(), ground) >= 4.5, number.get_text()


def test_the_explorer_s_inks_can_be_read_on_every_step_of_both_ramps():
    from tinytf.viz import explorer

    for ramp in (style.ATTENTION, explorer._DARK):
        for step in range(explorer.LEVELS + 1):
            ground = ramp(step / explorer.LEVELS)[:3]
            ink = style.readable_on(ground, explorer._DARK_INK)
            assert contrast(ink, ground) >= 4.5
    light = dict(line.split(":") for line in _first_rule(explorer._asset("explorer.css")))
    for ink, ground in (("ink", "paper"), ("soft", "paper"), ("soft", "panel"),
                        ("on-accent", "accent")):  # fmt: skip
        assert contrast(light[f"--{ink}"].strip(), light[f"--{ground}"].strip()) >= 4.5


def _first_rule(sheet):
    body = sheet[sheet.index("{") + 1 : sheet.index("/*light*/")]
    return [part.strip() for part in body.split(";") if part.strip()]
