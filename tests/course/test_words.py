"""Values in a line."""

import torch

from tinytf_course.words import apart, described, given, parameter_names, short, which


def attend(x, maps=None):
    """Something with named arguments."""


def test_values_are_short():
    values = (torch.tensor([[1.0, 1 / 3]]), (1,), {"a": [True]}, attend, torch.nn.ReLU(), None)
    wanted = ["[[1, 0.3333]]", "(1,)", "{a: [True]}", "attend", "ReLU", "None"]
    assert [short(value) for value in values] == wanted
    assert len(short("x" * 1000)) < 250


def test_kinds_are_described():
    values = (torch.ones(2, 3), [1, 2], None, 3.0, object())
    wanted = ["a tensor of shape (2, 3)", "a list of 2", "None", "3", "a object"]
    assert [described(value) for value in values] == wanted


def test_arguments_are_named():
    large, half = torch.ones(4, 5), torch.ones(1).half()
    assert given(attend, (large, half)) == "for x of shape (4, 5), maps=[1] (float16)"
    assert given(attend, (), {"x": 1}) == "for x=1"
    assert given(attend, ([[0] * 50],)) == "for x (a list of 1)"
    assert given(attend, ()) == "without arguments"
    assert parameter_names(attend, 3) == ["x", "maps", "argument 3"]
    assert which(["x", "maps"], (1, 0)) == "`maps[0]`"


def test_two_values_are_told_apart():
    assert apart(torch.tensor(1.0), torch.tensor(2.0)) == "1, expected 2"
    assert apart(1.000001, 1.0) == "1.000001, expected 1"
