"""What figures may be told about their axes, and how much a figure asks of its caller."""

import inspect

import pytest

from tinytf_course import drawings as viz

FUNCTIONS = [name for name in viz.__all__ if inspect.isroutine(getattr(viz, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_figure_takes_at_most_seven_arguments(name):
    assert len(inspect.signature(getattr(viz, name)).parameters) <= 7


def test_what_axes_do_not_know_is_refused():
    with pytest.raises(AttributeError, match="xlable"):
        viz.lines(None, {"a": [1, 2]}, xlable="step")
    with pytest.raises(AttributeError, match="colourbar"):
        viz.heatmap([[0.5, 0.5]], colourbar=False)
