"""Every drawing of a chapter: what stands on it, what is said of it, and what it refuses.

The fixture `figures` looks at each figure as a notebook shows it: no text over text, none too
small. The cases are in drawing_cases; drawings with more to them have files in drawings/.
"""

import ast
import importlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from drawing_cases import CASES, REFUSED
from figure_fixtures import figures  # noqa: F401
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

from tinytf.viz.spoken import spoken
from tinytf.viz.style import legible
from tinytf_course.places import COURSE

HERE = Path(__file__).parent
# drawings with texts beside their page, for which a notebook makes the page wider
WIDER = {"dropped spans", "unfolded", "kept", "tiles"}

for part in ("tokens", "layers", "models", "families", "writing", "costs", "looking"):
    importlib.import_module(f"drawing_cases.{part}")


def axes_of(made):
    """The axes of what a drawing returned: a Drawing, axes, or several."""
    if isinstance(made, Axes):
        return [made]
    return [made.ax] if hasattr(made, "ax") else [ax for ax in np.ravel(made) if ax]


def texts(axes):
    return [text.get_text().strip() for ax in axes for text in ax.texts if text.get_text().strip()]


def all_of(attribute, name):
    """A probe: what `name` gives of each artist that the axes hold under `attribute`, in order."""

    def probe(axes):
        artists = [artist for ax in axes for artist in getattr(ax, attribute)]
        artists = [artist for artist in artists if hasattr(artist, name)]
        return [getattr(artist, name)() for artist in artists]

    return probe


def labels(axis):
    return lambda axes: [
        " ".join(tick.get_text().split()) for ax in axes for tick in getattr(ax, axis)()
    ]


def legend(axes):
    entries = [ax.get_legend().get_texts() for ax in axes if ax.get_legend()]
    return [text.get_text() for texts in entries for text in texts]


def titles(axes):
    return [ax.get_title() or ax.get_title(loc="left") for ax in axes]


def marked(axes):
    return [line for ax in axes for line in ax.lines if line.get_marker() == "o"]


# What a case may say, and what it is compared with; a list that ends with ... may go on.
PROBES = {
    "texts": texts,
    "xticks": labels("get_xticklabels"),
    "yticks": labels("get_yticklabels"),
    "legend": legend,
    "titles": titles,
    "widths": all_of("patches", "get_width"),
    "heights": all_of("patches", "get_height"),
    "bottoms": all_of("patches", "get_y"),
    "corners": all_of("patches", "get_xy"),
    "inks": all_of("patches", "get_facecolor"),
    "xs": all_of("lines", "get_xdata"),
    "ys": all_of("lines", "get_ydata"),
    "dots": lambda axes: [line.get_xdata() for line in marked(axes)],
    "dot_heights": lambda axes: [line.get_ydata() for line in marked(axes)],
    "scales": all_of("collections", "get_clim"),
    "images": all_of("images", "get_array"),
    "image_scales": all_of("images", "get_clim"),
    "patches": lambda axes: sum(len(ax.patches) for ax in axes),
    "lines": lambda axes: sum(len(ax.lines) for ax in axes),
    "arrows": lambda axes: sum(
        isinstance(patch, FancyArrowPatch) for ax in axes for patch in ax.patches
    ),
    "hatched": lambda axes: sum(bool(patch.get_hatch()) for ax in axes for patch in ax.patches),
    "xlim": lambda axes: axes[0].get_xlim(),
    "colour_of": lambda axes: {line.get_label(): line.get_color() for line in axes[0].lines},
    "points": lambda axes: {line.get_label(): line.get_xydata() for line in axes[0].lines},
}


def filled(axes):
    """How many patches have which colour; cells of a mesh count too."""
    found = [patch.get_facecolor() for ax in axes for patch in ax.patches
             if patch.get_fill() and not isinstance(patch, FancyArrowPatch)]  # fmt: skip
    return Counter(map(to_hex, found))


def same(found, wanted):
    """Whether what was found is what a case says, numbers to rounding."""
    if isinstance(wanted, dict):
        return all(same(found[name], value) for name, value in wanted.items())
    if isinstance(wanted, list) and wanted[-1:] == [...]:
        wanted = wanted[:-1]
        found = found[: len(wanted)]
    if isinstance(wanted, list | tuple) and not isinstance(found, str):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return found == (pytest.approx(wanted, abs=1e-6) if isinstance(wanted, float) else wanted)


@pytest.mark.parametrize("name", CASES)
def test_a_drawing_shows_and_says_what_it_is_of(name):
    draw, expected = CASES[name]
    axes, expected = axes_of(draw()), dict(expected)
    drawing = axes[0].get_aspect() == 1  # else it is a computed figure
    shown, said = texts(axes), spoken(axes[0].figure)
    written, counted = "\n".join(shown), Counter(shown)
    assert len(said) > (30 if drawing else 0)
    strings = {key: expected.pop(key, ()) for key in ("said", "unsaid", "within", "has", "end")}
    said_too = [strings["said"]] if isinstance(strings["said"], str) else strings["said"]
    assert [one for one in said_too if one not in said] == []
    assert [one for one in strings["unsaid"] if one in said] == []
    assert [one for one in strings["within"] if one not in written] == []
    assert [one for one in strings["has"] if one not in counted] == []
    assert shown[len(shown) - len(strings["end"]) :] == [*strings["end"]]
    count = expected.pop("count", {})
    assert {text: counted[text] for text in count} == count
    mentions = expected.pop("mentions", {})
    assert {text: written.count(text) for text in mentions} == mentions
    fills = {to_hex(colour): n for colour, n in expected.pop("filled", {}).items()}
    assert {colour: filled(axes)[colour] for colour in fills} == fills
    holds = expected.pop("holds", None)
    assert holds is None or holds(*axes)
    for probe, wanted in expected.items():
        found = PROBES[probe](axes)
        assert same(found, wanted), (probe, found, wanted)
    if drawing and name not in WIDER:
        figure = legible(axes[0].figure)
        page, renderer = figure.bbox.padded(1), figure.canvas.get_renderer()
        boxes = [text.get_window_extent(renderer) for ax in axes for text in ax.texts]
        assert all(page.x0 <= b.x0 and b.x1 <= page.x1 for b in boxes)
        assert all(page.y0 <= b.y0 and b.y1 <= page.y1 for b in boxes)


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_drawn_is_refused(number):
    draw, match, error = REFUSED[number]
    with pytest.raises(error, match=match):
        draw()


def test_every_drawing_is_drawn_here():
    """Each `draw_…` of the folder is called in a file of cases or of tests."""
    folder = COURSE / "drawings"
    named = {
        node.name
        for path in folder.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    here = [*(HERE / "drawing_cases").glob("*.py"), *(HERE / "drawings").glob("*.py")]
    words = "\n".join(path.read_text(encoding="utf-8") for path in here)
    assert {name for name in named if name not in words} == set()
