"""The table of heads draws what it is given."""

import math

import matplotlib.pyplot as plt
import pytest
import torch

from tinytf_course import drawings as viz


def test_the_table_of_heads():
    scores = {"previous": [0.5, math.nan, 0.1], "alignment": [math.nan, 0.9, 0.2]}
    costs = {"test": torch.tensor([[1.0, 3.0], [0.0, 0.5], [-1.0, 2.0]])}
    left, right = viz.head_table(["a", "b", "c"], scores, costs, xlabel="points")
    assert [t.get_text() for t in left.get_yticklabels()] == ["a", "b", "c"]
    assert len(left.patches) == 2  # hatched: the two roles that can't be played
    points = {tuple(xy) for line in right.lines for xy in zip(*line.get_data(), strict=True)}
    assert {(1, 0), (3, 0), (0, 1), (0.5, 1), (-1, 2), (2, 2)} <= points
    plt.close("all")
    with pytest.raises(ValueError, match="3 scores for 2 rows"):
        viz.head_table(["a", "b"], scores, costs)
    with pytest.raises(ValueError, match="1 costs of 'test' for 3 rows"):
        viz.head_table(["a", "b", "c"], scores, {"test": [[1.0]]})
    plt.close("all")
