"""Claims show their sentence, number and bound, and fail when false."""

import importlib
import math

import pytest
import torch

from tinytf_course import ClaimError, claim
from tinytf_course.claims import holds, number

# claims

GRADUATE = importlib.import_module("tinytf_course.graduate")


@pytest.fixture(autouse=True)
def _parts_of_nobody(monkeypatch):
    monkeypatch.setattr(GRADUATE, "_readers", {})


@pytest.mark.parametrize(
    ("measured", "relation", "bound", "text"),
    [
        (3.1e-8, "<", 1e-6, "3.1e-08 < 1e-06"),
        (0.99996, "<", 1, "0.99996 < 1"),
        (1.0000001, ">", 1.0, "1.0000001 > 1"),
        (5, ">=", 5, "5 ≥ 5"),
        (4, "<=", 5, "4 ≤ 5"),
        (124_439_808, "==", 124_439_808, "124,439,808 = 124,439,808"),
        (True, "==", True, "measured True"),
        ("猫", "==", "猫", "measured 猫"),
        (torch.tensor([[0.31234]]), "in", (0.2, torch.tensor(0.4)), "0.312 in [0.2, 0.4]"),
        (math.inf, ">", 3, "inf > 3"),
    ],
)
def test_a_claim_shows_sentence_number_and_bound(capsys, measured, relation, bound, text):
    claim("03-1", "the sentence", measured, relation, bound)
    shown = capsys.readouterr().out
    assert shown.startswith("✓ 03-1  the sentence")
    assert text in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    ("measured", "relation", "bound"),
    [
        (2.0000001, "<", 2),
        (2, "<", 2),
        (2, ">", 2),
        (3, "<=", 2),
        (1, ">=", 2),
        (1, "==", 2),
        (False, "==", True),
        (1.1, "~=", 1.0),
        (5, "in", (0, 4)),
    ],
)
def test_a_false_claim_fails_with_the_same_content(measured, relation, bound):
    with pytest.raises(ClaimError, match=r"03-1  the sentence\n.*is false") as error:
        claim("03-1", "the sentence", measured, relation, bound)
    assert isinstance(error.value, AssertionError)


@pytest.mark.parametrize("relation", ["<", "<=", ">", ">=", "==", "~=", "in"])
def test_nan_never_holds(relation):
    bound = (0, math.inf) if relation == "in" else 1.0
    nan_bound = (math.nan, math.nan) if relation == "in" else math.nan
    assert not holds(math.nan, relation, bound)
    assert not holds(1.0, relation, nan_bound)
    assert not holds(math.nan, relation, nan_bound)


def test_a_claim_is_about_one_number():
    with pytest.raises(TypeError, match=r"shape \(3,\).*reduce it"):
        claim("x", "s", torch.zeros(3), "==", 0)
    with pytest.raises(TypeError, match="list"):
        claim("x", "s", [1], "==", 1)
    with pytest.raises(ValueError, match="is not one of"):
        claim("x", "s", 1, "=", 1)


def test_tolerance_decides():
    claim("x", "s", 1.05, "~=", 1.0, tolerance=0.1)
    with pytest.raises(ClaimError):
        claim("x", "s", 1.05, "~=", 1.0, tolerance=0.01)


def test_numbers_read_well():
    values = (0.03123, 1234.56, 0.0, 1 / 3, 3.14e-9, 100000.0, 1e12, -0.5, 7)
    wanted = ["0.0312", "1,235", "0", "0.333", "3.14e-09", "100,000", "1e+12", "-0.5", "7"]
    assert [number(value) for value in values] == wanted


def test_with_a_readers_parts_a_claim_that_fails_is_shown_and_the_notebook_goes_on(
    monkeypatch, capsys
):
    GRADUATE.runs_on("attend")
    claim("03-1", "the sentence", 2.0, "<", 1.0)
    said = capsys.readouterr().out
    assert "does not hold: measured 2 < 1 is false" in said
    assert "Here run yours: `attend`." in said
    claim("03-1", "the sentence", 0.5, "<", 1.0)
    assert "✓ 03-1" in capsys.readouterr().out
