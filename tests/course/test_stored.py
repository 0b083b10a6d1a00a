"""Tables that stand in the places of functions."""

from dataclasses import dataclass

import pytest
import torch

from tinytf_course import stored as stored_module
from tinytf_course.evidence import Watched
from tinytf_course.noting import Mismatch
from tinytf_course.stored import Told, close, look, store, stored


def same(one, other):
    return close(look(one), look(other))


def table(**results):
    """A `Told` of {place: {argument: result}}."""
    return Told({place: [(look(((given,), {})), result) for given, result in held.items()]
                 for place, held in results.items()})  # fmt: skip


def test_a_table_stands_in_the_place_of_a_function():
    told = table(double={1: 2, 3: 6, 0.1 + 0.2: 0.6})

    @told("double")
    def double(x):
        """Twice x."""

    assert [double(1), double(3), double(0.3)] == [2, 6, 0.6]
    assert double.__doc__ == "Twice x."
    assert told("double")(...)(3) == 6
    with pytest.raises(Mismatch, match="tested where you hand it in"):
        double(4)
    with pytest.raises(Mismatch, match="tested where you hand it in"):
        told("half")(...)(4)


def test_arguments_of_other_kinds_have_results_of_their_own():
    held = [(look(((given,), {})), str(given)) for given in (True, 1, 1.0)]
    told = Told({"p": held})("p")(...)
    assert (told(True), told(1), told(1.0)) == ("True", "1", "1.0")


def test_a_table_is_no_answer():
    double = table(double={1: 2})("double")(...)
    assert double(1) == 2
    with pytest.raises(RuntimeError, match="may not call"):
        Watched(lambda x: double(x), lambda x: x)(1)


def test_what_a_test_does_with_a_result_does_not_change_the_table():
    told = table(ones={3: [torch.ones(3)]})("ones")(...)
    told(3)[0].zero_()
    assert torch.equal(told(3)[0], torch.ones(3))


def test_tensors_are_told_from_each_other_and_rounding_is_not_seen():
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
    assert same(x, x.clone())
    assert same(x, x * (1 + 2e-7))
    others = (x.mT, x.double(), -x, x * 1.001, x.flip(0), x.flip(1), x[:2], x.reshape(20),
              torch.cat([x[:, 1:], x[:, :1]], 1), x.to("meta"), x.masked_fill(x > 1.5, torch.nan),
              x.masked_fill(x > 1.5, torch.inf))  # fmt: skip
    assert (x > 1.5).any()
    for other in others:
        assert not same(x, other), other
    ids = torch.arange(6).reshape(2, 3)
    assert same(ids, ids.clone())
    assert not same(ids, ids.flip(0))
    assert not same(torch.tensor([True, False]), torch.tensor([False, True]))
    assert not same(torch.zeros(3), torch.tensor([0.0, 1e-30, 0.0]))
    assert same(torch.zeros(0), torch.zeros(0))
    assert not same(torch.tensor([1 + 1j]), torch.tensor([1 - 1j]))


@dataclass
class _Sizes:
    width: int


class _Holds:
    def __init__(self, inside):
        self.inside, self.itself = inside, self


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0), (1, True), (1, 2), ("a", "b"), (None, 0), ([1, 2], [2, 1]), ({1: 2}, {1: 3}),
        ({1, 2}, {1, 3}), (float("nan"), 1.0), (float("inf"), float("-inf")), (1e-9, 2e-9),
        (torch.float16, torch.float32), (range(2), range(3)), (len, max), (int, float),
        (_Sizes(1), _Sizes(2)), (_Holds([1]), _Holds([2])),
        (torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)), (torch.nn.ReLU(), torch.nn.GELU()),
    ],
)  # fmt: skip
def test_values_are_told_from_each_other(one, other):
    assert not same(one, other)
    assert same(one, one)
    assert same([one, {"a": (one,)}], [one, {"a": (one,)}])


def test_what_differs_by_rounding_alone_is_found_where_nothing_is_equal():
    x = torch.tensor([0.15, 2.0], dtype=torch.float64)
    near = torch.tensor([0.15 - 1e-9, 2.0], dtype=torch.float64)
    told = Told({"p": [(look(((each,), {})), i) for i, each in enumerate((x, near))]})("p")(...)
    assert (told(x), told(near), told(x + 1e-12)) == (0, 1, 0)


def _reader(of):
    return lambda x: of[x]


def test_functions_are_told_from_each_other_by_what_they_hold():
    assert same(_reader([1]), _reader([1]))
    assert not same(_reader([1]), _reader([2]))


def test_what_is_stored_comes_back(tmp_path, monkeypatch):
    held = {"a place": [([1, "x"], {"t": torch.ones(2), "d": torch.float16, 3: (None, 0.5)})]}
    (tmp_path / "exercises" / "ch99").mkdir(parents=True)
    store(tmp_path / "exercises" / "ch99" / "made.py", "results", held)
    monkeypatch.setattr(stored_module, "__file__", str(tmp_path / "stored.py"))
    assert str(stored("tinytf_course.exercises.ch99.made", "results")) == str(held)


def test_the_full_course_stores_nothing():
    with pytest.raises(FileNotFoundError, match=r"ch05.lookup\.results\.gz"):
        stored("tinytf_course.exercises.ch05.lookup", "results")
