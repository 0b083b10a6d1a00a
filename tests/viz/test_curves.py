"""Curves draw each record once, and name what disagrees."""

import numpy as np
import pytest

from tinytf_course import drawings as viz


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: viz.lines([1, 2], {"a": [1, 2, 3]}), "'a' has 3 values for 2 x values"),
        (lambda: viz.lines([1], {}), "at least one"),
        (lambda: viz.lines({"b": [1]}, {"a": [1]}), "no x for series 'a'"),
        (lambda: viz.lines(None, {"a": [1, 2]}, band={"a": [1, 2, 3]}), r"shape \(3,\) for 2"),
        (lambda: viz.lines(None, {"a": [1]}, band={"b": 1}), r"band for \['b'\]"),
        (lambda: viz.bars({"a": 1, "b": {"c": 2}}), "either every bar is a group"),
        (lambda: viz.histogram({"a": [np.nan, 1]}), "1 NaN or infinite values of 2"),
        (lambda: viz.activation_statistics({"a": []}), "'a' is empty"),
        (lambda: viz.learning_curve([{"step": 1}]), r"both 'step' and 'loss'; it has \['step'\]"),
        (lambda: viz.positional_curves(np.zeros((4, 8)), [8]), "dimension 8 is outside .* width 8"),
    ],
)
def test_curves_name_what_disagrees(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_learning_curve_passes_over_records_without_the_value():
    history = [
        {"step": s, "loss": 10 - s} | ({"exact_match": s / 10} if s % 2 else {}) for s in range(6)
    ]
    ax = viz.learning_curve({"run": history}, y="exact_match")
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [1, 3, 5])
    smooth = viz.learning_curve(history, smooth=1)
    np.testing.assert_allclose(smooth.lines[0].get_ydata()[:2], [9.5, 9])
    np.testing.assert_allclose(smooth.lines[1].get_ydata(), [10, 9, 8, 7, 6, 5])
