"""A function is broken in every single step, and in no other way."""

import pytest
import torch
from torch import nn

from tinytf_course.mutants import mutants


def scores(q, k, mask=None, *, scale=2.0):
    """What is said here is not mutated."""
    if q.size(-1) != k.size(-1):
        raise ValueError(f"{q.size(-1)} is not {k.size(-1)}")
    x = (q @ k.transpose(-2, -1)) / scale
    for i in range(len(x)):
        x[i] = x[i] + _helper(i, [1, 2])
    return x.softmax(dim=-1) if mask is None else x * mask


def _helper(i, rows):
    return max(i, 0) if rows[1:] and i < 3 else [row for row in rows if row]


@pytest.fixture(scope="module")
def changes():
    return [mutant.change for mutant in mutants(scores)]


def test_every_kind_of_step_is_made(changes):
    matmul = "x = q @ k.transpose(-2, -1) / scale => x = "
    result = "return x.softmax(dim=-1) if mask is None else x * mask => return "
    helper = "return max(i, 0) if rows[1:] and i < 3 else [row for row in rows if row] => return "
    for change in (
        f"{matmul}q @ k.transpose(-2, -1) * scale",  # operators
        f"{matmul}q @ k.transpose(-2, -1)",  # terms dropped
        f"{matmul}q @ k / scale",  # transposes dropped
        f"{matmul}q @ k.transpose(-1, -1) / scale",  # axes
        f"{matmul}k.transpose(-2, -1) @ q / scale",  # swapped
        f"{matmul}k @ k.transpose(-2, -1) / scale",  # parameters for one another
        f"{matmul}q @ k.detach().transpose(-2, -1) / scale",  # gradients cut
        f"{matmul}(q @ k.transpose(-2, -1) / scale).double()",  # dtypes
        f"{result}x.log_softmax(dim=-1) if mask is None else x * mask",  # twins
        f"{result}x.softmax() if mask is None else x * mask",  # keywords dropped
        f"{result}x.softmax(dim=-2) if mask is None else x * mask",
        f"{result}x.softmax(dim=-1)",  # branches
        f"{result}x.softmax(dim=-1) if mask is not None else x * mask",
        "x[i] = x[i] + _helper(i, [1, 2]) => x[i] += _helper(i, [1, 2])",  # in place
        "x[i] = x[i] + _helper(i, [1, 2]) => pass",  # statements dropped
        "for i in range(len(x)): => for i in range(1, len(x)):",  # bounds
        "for i in range(len(x)): => for i in range(len(x) - 1):",
        f"{helper}max(i, 0) if rows[1:] or i < 3 else [row for row in rows if row]",  # booleans
        f"{helper}max(i, 0) if rows[1:] and i <= 3 else [row for row in rows if row]",
        f"{helper}min(i, 0) if rows[1:] and i < 3 else [row for row in rows if row]",
        f"{helper}max(i, 0) if rows[1:] and i < 3 else [row for row in rows]",
        f"{helper}max(i, 0) if rows[2:] and i < 3 else [row for row in rows if row]",
        f"{helper}max(i, 1) if rows[1:] and i < 3 else [row for row in rows if row]",  # constants
    ):
        assert change in changes, change
    assert any("scale=4.0" in change for change in changes)  # defaults
    assert any("not q.size(-1) != k.size(-1)" in change for change in changes)


def test_no_step_is_made_twice_and_none_is_empty(changes):
    assert len(changes) == len(set(changes))
    for change in changes:
        old, _, new = change.partition(" => ")
        assert old != new


def test_words_are_not_mutated(changes):
    assert not [change for change in changes if "What is said" in change]
    raised = [change for change in changes if change.startswith("raise ")]
    assert all(change.endswith(("(nothing)", "pass")) for change in raised), raised


def test_mutants_run(changes):
    q = torch.arange(6.0).reshape(2, 3)
    wanted = scores(q, q)
    differ = 0
    for mutant in mutants(scores):
        try:
            differ += not torch.equal(mutant.function(q.clone(), q.clone()), wanted)
        except Exception:
            differ += 1
    assert differ > 0.5 * len(changes)
    assert torch.equal(scores(q, q), wanted)


class Scaled(nn.Module):
    """What is said of a class is not mutated."""

    def __init__(self, width, size=2.0):
        """Nor what is said of a method."""
        super().__init__()
        self.weight = nn.Parameter(torch.full((width,), size))

    def forward(self, x):
        """Map (B, C) to (B, C)."""
        return x * self.weight


def test_a_class_is_mutated_method_by_method():
    made = {mutant.change: mutant.function for mutant in mutants(Scaled)}
    for change in (
        "return x * self.weight => return x + self.weight",
        "return x * self.weight => return x.detach() * self.weight",
        "self.weight = nn.Parameter(torch.full((width,), size)) => "
        "self.weight = torch.full((width,), size)",
        "super().__init__() => (nothing)",
    ):
        assert change in made, change
    assert not [change for change in made if "said" in change]
    broken = made["return x * self.weight => return x + self.weight"](3)
    assert torch.equal(broken(torch.ones(1, 3)), torch.full((1, 3), 3.0))
    assert torch.equal(Scaled(3)(torch.ones(1, 3)), torch.full((1, 3), 2.0))


def masked(x, ids):
    """A tensor that learns, and others that do not."""
    hidden = ids == 0
    share = hidden.float().mean()
    return _twice(x).masked_fill(hidden, 0.0) * share


def _twice(x):
    return x + x


def test_what_carries_no_gradient_is_not_cut_off():
    def use(function):
        function(torch.ones(2), torch.tensor([0, 1]))
        function(torch.ones(2).requires_grad_(), torch.tensor([0, 1]))

    everything = {mutant.change for mutant in mutants(masked)}
    offered = {mutant.change for mutant in mutants(masked, use=use)}
    left_out = everything - offered
    assert offered < everything
    endings = (".detach()", ".float()", ".double()", ".half()")
    assert all(any(ending in change for ending in endings) for change in left_out)
    assert {change.split(" => ")[0] for change in left_out} == {
        "hidden = ids == 0",
        "share = hidden.float().mean()",
        "return _twice(x).masked_fill(hidden, 0.0) * share",  # `hidden.detach()`
    }
    assert "share = hidden.float().mean() => share = hidden.float().mean().detach()" in left_out
    line = "return _twice(x).masked_fill(hidden, 0.0) * share => return "
    assert f"{line}(_twice(x).masked_fill(hidden, 0.0) * share).detach()" in offered
    assert f"{line}_twice(x.detach()).masked_fill(hidden, 0.0) * share" in offered
    assert "return x + x => return x.float() + x" in offered  # in what it calls, too
    without = {mutant.change for mutant in mutants(masked, use=lambda function: None)}
    assert not any(".detach()" in change for change in without)
