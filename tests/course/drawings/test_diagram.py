"""Drawings: text stays inside its box, arrows meet the sides that face each other."""

import matplotlib.pyplot as plt
import pytest

from tinytf.viz.spoken import spoken
from tinytf.viz.style import COLOURS, legible
from tinytf_course import drawings as viz


def drawing(width=8, height=4):
    return viz.Diagram(width, height, alt="a drawing")


def arrows(d):
    return [patch for patch in d.ax.patches if hasattr(patch, "get_arrowstyle")]


@pytest.mark.parametrize("width", [8, 20])  # wider than a page it has larger type
@pytest.mark.parametrize("size", [(None, None), (0.5, 0.5)])
def test_a_box_is_as_large_as_its_text_needs(width, size):
    d = drawing(width)
    box = d.box(4, 2, "a rather long name\nof two lines", shape="(B, T, d_model)", size=size)
    legible(d.ax.figure)
    for text in d.ax.texts:
        extent = text.get_window_extent(d.ax.figure.canvas.get_renderer())
        (left, low), (right, high) = d.ax.transData.inverted().transform(extent.get_points())
        assert box.left[0] < left < right < box.right[0]
        assert box.bottom[1] < low < high < box.top[1]


def test_a_box_takes_a_size_and_the_colour_of_its_role():
    d = drawing()
    assert d.box(4, 2, "Q", role="query", size=(3, 1))[2:] == (3, 1)
    assert plt.matplotlib.colors.to_hex(d.ax.patches[0].get_edgecolor()) == COLOURS["query"]
    with pytest.raises(KeyError, match="quary"):
        d.box(4, 2, "Q", role="quary")


@pytest.mark.parametrize(
    ("where", "sides"),
    [((6, 2.1), "right left"), ((1, 2), "left right"), ((3, 3.5), "top bottom"),
     ((3, 0.5), "bottom top")],
)  # fmt: skip
def test_an_arrow_joins_the_sides_that_face_each_other(where, sides):
    d = drawing()
    a, b = d.box(3, 2, "a"), d.box(*where, "b")
    d.arrow(a, b, "W", bend=0.2)
    leaves, meets = sides.split()
    (arrow,) = arrows(d)
    assert arrow._posA_posB == [getattr(a, leaves), getattr(b, meets)]


def test_an_arrow_takes_points():
    d = drawing()
    d.arrow((1, 1), (3, 1))
    assert arrows(d)[0]._posA_posB == [(1, 1), (3, 1)]


def test_a_matrix_shows_its_numbers_and_hides_what_is_hidden():
    d = drawing()
    box = d.matrix(
        4, 2, [[0.25, -1], [3, 0.5]], rows=["one", "two"], columns="ab", hidden=[[0, 0], [0, 1]],
        title="M",
    )  # fmt: skip
    assert [text.get_text() for text in d.ax.texts] == [
        "0.25",
        "−1",
        "3",
        "one",
        "two",
        "a",
        "b",
        "M",
    ]
    assert box.width > 2 * 0.62
    assert box.height > 2 * 0.62


def test_a_frame_holds_its_boxes():
    d = drawing()
    boxes = d.box(2, 1, "a"), d.box(5, 3, "b")
    frame = d.frame(boxes, "both")
    assert all(frame.left[0] < box.left[0] and box.top[1] < frame.top[1] for box in boxes)
    assert all(frame.bottom[1] < box.bottom[1] for box in boxes)


def test_a_drawing_says_what_it_shows():
    assert spoken(drawing().ax) == "a drawing"
    with pytest.raises(ValueError, match="0 × 3 units"):
        viz.Diagram(0, 3, alt="nothing")
    with pytest.raises(ValueError, match="empty alternative text"):
        viz.Diagram(3, 3, alt=" ")


def test_columns_stand_equally_far_apart_and_make_rows_where_they_are_equally_long():
    d = drawing(9, 5)
    (x, none), (q, k), (out,) = d.columns(
        [("X", None, "input"), None],
        [("a long query", "(B, T, D)", "query"), ("K", None, "key", True)],
        [("output", None, "output")],
        low=1,
        high=4,
    )
    assert none is None
    assert (q.x, q.width, x.y, x.height) == (k.x, k.width, q.y, q.height)
    assert (q.y, out.y, k.y) == (3.25, 2.5, 1.75)
    gaps = [x.left[0], q.left[0] - x.right[0], out.left[0] - k.right[0], 9 - out.right[0]]
    assert gaps == pytest.approx([gaps[0], 2 * gaps[0], 2 * gaps[0], gaps[0]])


def test_a_chain_leads_from_each_box_to_the_next():
    d = drawing()
    a, b, c = (d.box(x, 2, "word") for x in (1, 4, 7))
    d.chain(a, b, c)
    assert [arrow._posA_posB for arrow in arrows(d)] == [[a.right, b.left], [b.right, c.left]]
