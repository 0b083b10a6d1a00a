"""Which states of a panel are drawn beforehand."""

import ipywidgets
import pytest

from tinytf_course.site.states import chosen, combinations, thinned, values_of

LAYERS = ipywidgets.Dropdown(options=[1, 0], value=1)


def slider(value=3, low=0, high=9):
    """A slider of whole numbers."""
    return ipywidgets.IntSlider(value, low, high)


@pytest.mark.parametrize(
    ("control", "values"),
    [
        (ipywidgets.Dropdown(options=[64, 4, 16], value=64), [4, 16, 64]),
        (ipywidgets.Dropdown(options=["mean", 0, 1], value="mean"), ["mean", 0, 1]),
        (ipywidgets.Dropdown(options=[("no", 0), ("yes", 1)], value=0), [0, 1]),
        (ipywidgets.Checkbox(True), [False, True]),
        (slider(2, 1, 3), [1, 2, 3]),
        (ipywidgets.FloatSlider(0.3, min=0.1, max=0.4, step=0.1), [0.1, 0.2, 0.3, 0.4]),
        (ipywidgets.IntSlider(5, 0, 9, 4), [0, 4, 5, 8]),  # its own value lies between two steps
        (ipywidgets.Text("a b"), ["a b"]),
        (ipywidgets.IntText(7), [7]),
    ],
)
def test_the_values_of_a_control(control, values):
    assert values_of(control)[0] == values


def test_only_a_slider_may_leave_values_out():
    options = {"options": list(range(9)), "value": 3}
    assert values_of(ipywidgets.SelectionSlider(**options)) == (list(range(9)), True)
    assert values_of(ipywidgets.Dropdown(**options)) == (list(range(9)), False)


def test_all_combinations_where_they_are_few():
    values, together = chosen({"layer": LAYERS, "scaled": ipywidgets.Checkbox(False)})
    assert together
    start, states = combinations(values, together, {"layer": 1, "scaled": False})
    assert start == (1, 0)
    assert states == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_long_slider_takes_even_steps_from_where_it_begins():
    values, together = chosen({"position": slider(50, 0, 100), "layer": LAYERS}, 36)
    assert together
    assert values["layer"] == [0, 1]
    assert values["position"] == [0, *range(8, 93, 6), 100]


@pytest.mark.parametrize("count", [3, 4, 7, 20])
@pytest.mark.parametrize("kept", [0, 13, 40])
def test_both_ends_and_the_first_value_stay(count, kept):
    values = thinned(list(range(41)), count, kept)
    assert {0, kept, 40} <= set(values)
    assert len(values) <= count
    assert values == sorted(values)


def test_many_choices_are_moved_one_at_a_time():
    controls = {name: ipywidgets.Dropdown(options=list("abcdefg"), value="c") for name in "xyz"}
    values, together = chosen(controls)
    assert not together
    start, states = combinations(values, together, dict.fromkeys("xyz", "c"))
    assert len(states) == 3 * 7 - 2
    assert all(sum(at != begin for at, begin in zip(state, start)) <= 1 for state in states)


def test_a_text_alone_is_read_word_by_word():
    field = ipywidgets.Text("the cat sat")
    assert chosen({"text": field}) == ({"text": ["the", "the cat", "the cat sat"]}, True)
    assert chosen({"text": field, "layer": LAYERS})[0]["text"] == ["the cat sat"]
