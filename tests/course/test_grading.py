"""Two results are compared, and the difference is named."""

import math

import pytest
import torch

from tinytf.course.grading import Mismatch, same


def test_same_says_where():
    with pytest.raises(Mismatch, match=r"here, the shape is \(2,\), expected \(3,\)"):
        same(torch.zeros(2), torch.zeros(3), "here")
    with pytest.raises(Mismatch, match=r"position \[0, 3\] is 1, expected 0"):
        same(torch.eye(4).roll(3, 1), torch.zeros(4, 4), "here")
    with pytest.raises(Mismatch, match="dtype"):
        same(torch.ones(2), torch.ones(2, dtype=torch.bool), "here")
    with pytest.raises(Mismatch, match="nan"):
        same(torch.tensor([math.nan]), torch.zeros(1), "here")


# graduation


def here(n: int, eps: float = 1e-5) -> float:
    """Another docstring."""
    if n < 1:
        raise ValueError(f"n={n}")
    assert eps > 0
    check_nothing(n)
    scale: float = 2.0
    return scale * n + eps


def check_nothing(n):
    return n
