"""The words of tests say what is wrong, shape first, and accept what is right."""

import contextlib
import math
import signal
import sys
import time
from fractions import Fraction

import numpy
import pytest
import torch

from tinytf_course.evidence import Watched, start_evidence
from tinytf_course.expect import (
    Counted,
    Mismatch,
    agrees,
    expect,
    gradients,
    has_parameters,
    number,
    numbers,
    precise,
    refuses,
    same,
    saved,
    travels,
)  # fmt: skip
from tinytf_course.noting import noting


def scaled(x, factor=2.0):
    """The right answer."""
    return x * factor


def into_a_table(x):
    """A result that stays on the CPU, filled number by number."""
    table = torch.zeros(x.shape)
    for place, value in enumerate(x):
        table[place] = value * 2
    return table


X = torch.tensor([1.0, 2.0])


def says(words, test, *arguments, **named):
    with pytest.raises(Mismatch, match=words) as error:
        test(*arguments, **named)
    assert "\n" not in str(error.value)


def test_same_says_where():
    says(
        r"here, the shape is \(2,\), expected \(3,\)", same, torch.zeros(2), torch.zeros(3), "here"
    )
    rolled = torch.eye(4).roll(3, 1)
    says(r"position \[0, 3\] is 1, expected 0", same, rolled, torch.zeros(4, 4), "here")
    says("dtype", same, torch.ones(2), torch.ones(2, dtype=torch.bool), "here")
    says("nan", same, torch.tensor([math.nan]), torch.zeros(1), "here")
    says("return None", same, None, torch.zeros(1), "here")


def test_same_compares_what_functions_return():
    same([[1, 2], [3]], [[1, 2], [3]], "here")
    same("text", "text", "here")
    same((X, 2 * X), [X, 2 * X], "here")
    same({"a": X}, {"a": X}, "here")
    same([], [], "here")
    same(True, True, "here")
    says(r"you get \[\[1\], \[3\]\], expected \[\[1, 2\], \[3\]\]", same, [[1], [3]],
         [[1, 2], [3]], "here")  # fmt: skip
    says("for result 1, you get", same, (X, X), (X, 2 * X), "here")
    says("a tuple of 1, expected 2 tensors", same, (X,), (X, X), "here")
    says("you get 'a b', expected 'a'", same, "a b", "a", "here")
    says("the keys are b", same, {"b": X}, {"a": X}, "here")
    says("for 'a', you get", same, {"a": X}, {"a": 2 * X}, "here")


def test_a_number_may_be_of_numpy_or_a_tensor():
    for one in (0.2, numpy.float64(0.2), torch.tensor(0.2), numpy.array(0.2), Fraction(1, 5)):
        same(one, 0.2, "here")
        assert number(one, "here") == pytest.approx(0.2)
    for yes in (True, numpy.True_, torch.tensor(True), torch.tensor([True])):
        same(yes, True, "here")
    same([numpy.int64(1), torch.tensor(2)], [1, 2], "here")
    same([[numpy.int64(1)], []], [[1], []], "here")
    says(
        "you return a list of 1, expected a number. Twice.", same, [0.2], 0.2, "here", note="Twice."
    )
    says("you return the text '0.2', expected a number", same, "0.2", 0.2, "here")
    says(r"you return \(0.2\+0j\), expected a number", same, 0.2 + 0j, 0.2, "here")
    says("you return 1, expected True or False", same, 1, True, "here")
    says("return None: is a `return` missing", same, None, 0.2, "here")
    says(r"you return None, expected \[1, 0\]", same, None, [1, 0], "here")


def test_a_list_of_tensors_that_require_a_gradient_warns_of_nothing():
    same([x.requires_grad_() for x in torch.ones(2)], torch.ones(2), "here")


def test_numbers_that_differ_late_are_shown_to_differ():
    says("is 0.333333, expected 0.333373|you get 0.3333.*expected 0.3334", same, 1 / 3, 0.333373,
         "here")  # fmt: skip


def test_agrees_names_the_arguments():
    agrees(scaled, lambda x: 2 * x, X)
    agrees(scaled, X * 2, X)
    words = r"for x=\[1, 2\], factor=3, you get \[3, 6\], expected \[4, 8\]. Twice."
    says(words, agrees, scaled, lambda x, factor: 4 * x, X, 3, note="Twice.")
    says(r"for x of shape \(4, 5\)", agrees, scaled, lambda x: x, torch.ones(4, 5))
    says("the dtype is float64, expected float32", agrees, lambda x: x.double(), lambda x: x, X)
    agrees(lambda x: x.double(), lambda x: x, X, dtype=False)


def test_gradients_are_compared_input_by_input():
    def product(x, y):
        return x * y

    gradients(product, lambda x, y: y * x, X, X)
    says("no gradient reaches `y`", gradients, lambda x, y: x * y.detach(), product, X, X)
    says("no gradient reaches `x`", gradients, lambda x, y: (x * y).detach(), product, X, X)
    wrong = "for the gradient to `x`, you get"
    says(wrong, gradients, lambda x, y: x + (y - 1) * x.detach(), product, X, X)
    says(r"`maps\[1\]`", gradients, lambda maps: maps[0] * maps[1].detach(),
         lambda maps: maps[0] * maps[1], [X, X])  # fmt: skip


def test_gradients_reach_the_tests_own_tensors_through_watched_copies():
    trail = start_evidence()
    gradients(Watched(scaled, scaled), lambda x: 2 * x, X)
    assert list(trail[-1]) == [(0,)]  # the gradient is evidence


def test_precise_wants_the_dtype_and_its_precision():
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        precise(scaled, lambda x: 2 * x, X, dtype=dtype)
    says("expected float16", precise, lambda x: 2 * x.float(), scaled, X, dtype=torch.float16)
    says("float64", precise, lambda x: (x.float() / 3).double(), lambda x: x / 3, X,
         dtype=torch.float64)  # fmt: skip


def test_refuses_wants_the_error():
    def strict(x):
        raise ValueError

    refuses(strict, X)
    says(r"you return a tensor of shape \(2,\), expected a ValueError. 2 is odd.", refuses, scaled,
         X, note="2 is odd.")  # fmt: skip
    with pytest.raises(ValueError):
        refuses(strict, X, error=KeyError)


def test_travels_to_another_device():
    travels(scaled, X)
    says("what you make is on the CPU", travels, lambda x: x + torch.arange(2), X)
    says("stays on the CPU", travels, lambda x: torch.arange(2), X)
    says("another device", travels, into_a_table, X)
    says("turned into NumPy's numbers", travels, lambda x: torch.tensor(x.numpy()), X)
    says("stays on the CPU", travels, lambda x: x.cpu() * 2, X)
    travels(lambda x: (x.cpu() * 2).to(x.device), X)
    travels(lambda x: torch.tensor(x.cpu().numpy() * 2, device=x.device), X)


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: torch.tensor([float(a) * 2 for a in x], device=x.device),
        lambda x: torch.tensor(x.tolist(), device=x.device) * 2,
        lambda x: x * 2 if x.sum() > 0 else x,
        lambda x: torch.cat([x[x > 0], x[x <= 0]]) * 2,
    ],
    ids=["numbers", "list", "if", "choice"],
)
def test_of_a_loop_that_looks_at_values_nothing_is_said(loop):
    travels(loop, X)


def test_calls_and_memory_are_counted():
    loss = Counted(lambda w: (w * w).exp().sum())
    w = torch.ones(100, requires_grad=True)
    with saved() as each:
        for _ in range(4):
            loss(w).backward()
    with saved() as whole:
        sum(loss(w) for _ in range(4)).backward()
    assert loss.count == 8
    assert whole.peak > 3 * each.peak > 0
    assert each.now == 0


def test_parameters_are_named():
    layer = torch.nn.Linear(2, 3)
    has_parameters(layer, {"weight": (3, 2), "bias": (3,)}, "here")
    says("`weight` has shape", has_parameters, layer, {"weight": (2, 3), "bias": (3,)}, "here")
    says("no parameter `w`", has_parameters, layer, {"w": (2, 3)}, "here")
    says("too many: bias", has_parameters, layer, {"weight": (3, 2)}, "here")
    says("expected an `nn.Module`", has_parameters, 3, {}, "here")


def test_numbers_have_no_symmetry():
    drawn = numbers(3, 3, seed=1)
    assert torch.equal(drawn, numbers(3, 3, seed=1))
    assert not torch.allclose(drawn, drawn.T)
    assert numbers(2, seed=1, shift=100.0, scale=1e-3, dtype=torch.float64).std() < 1


def test_a_mismatch_that_is_noted_does_not_end_a_test():
    trail = start_evidence()
    watched = Watched(scaled, scaled)
    with noting() as noted:
        assert torch.equal(agrees(watched, lambda x: 3 * x, X), 2 * X)
        expect(False, "second")
        same(torch.zeros(2), torch.zeros(3), "third")  # one word notes one mismatch
        gradients(watched, lambda x: 3 * x, X)
        refuses(watched, X)
        travels(into_a_table, X)
        has_parameters(3, {"w": (2, 3)}, "here")
        same(X, X, "right")
    assert [str(each)[:6] for each in noted[1:3]] == ["second", "third,"]
    assert len(noted) == 7
    assert len(trail) == 4  # three results, and a gradient
    with pytest.raises(Mismatch):
        expect(False, "raised again")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no alarm signal")
def test_what_never_ends_after_a_mismatch_is_ended(monkeypatch):
    monkeypatch.setattr(sys.modules["tinytf_course.noting"], "_REST", 0.1)
    before = signal.getsignal(signal.SIGALRM)

    def endless():
        expect(False, "noted")
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.01)

    with noting() as noted, contextlib.suppress(BaseException):
        endless()
    assert [str(each) for each in noted] == ["noted"]
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert signal.getsignal(signal.SIGALRM) is before


def test_other_errors_end_a_test_all_the_same():
    def broken(x):
        raise KeyError

    with noting() as noted:
        expect(False, "noted")
        with pytest.raises(KeyError):
            agrees(broken, X, X)
    assert len(noted) == 1
