"""Claims show their sentence, number and bound, and fail when false."""

import html
import importlib
import math

import pytest
import torch

from tinytf_course import ClaimError, claim
from tinytf_course.claims import holds, number

# claims

CLAIMS = importlib.import_module("tinytf_course.claims")
GRADUATE = importlib.import_module("tinytf_course.graduate")


@pytest.fixture(autouse=True)
def _parts_of_nobody(monkeypatch):
    monkeypatch.setattr(GRADUATE, "_readers", {})


@pytest.mark.parametrize(
    ("sentence", "measured", "text"),
    [
        ("A logit moves by up to {:.2f}", 0.3469, "A logit moves by up to 0.35"),
        ("It is right in {:.0%} of sentences", 0.8912, "It is right in 89\u00a0% of sentences"),
        ("It is ahead by {:.1pp} percentage points", 0.0537, "ahead by 5.4 percentage points"),
        ("It has {} parameters", 124_439_808, "It has 124,439,808 parameters"),
        ("The memory is {} times as large", torch.tensor([3.14159]), "is 3.14 times as large"),
        ("The translation of `cat` is {}", "猫", "The translation of `cat` is 猫"),
        ("The logits are unchanged", 3.1e-8, "The logits are unchanged"),
    ],
)
def test_a_claim_is_a_sentence_with_its_number_in_it(capsys, sentence, measured, text):
    claim("03-1", sentence, measured, "==", measured)
    shown = capsys.readouterr().out
    assert shown.startswith("✓ 03-1  ")
    assert shown.endswith(text + "\n")
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    ("measured", "relation", "bound", "text"),
    [
        (3.1e-8, "<", 1e-6, "3.1e-08 < 1e-06"),
        (0.99996, "<", 1, "0.99996 < 1"),
        (1.0000001, ">", 1.0, "1.0000001 > 1"),
        (5, ">=", 5, "5 ≥ 5"),
        (4, "<=", 5, "4 ≤ 5"),
        (124_439_808, "==", 124_439_808, "124,439,808 = 124,439,808"),
        (True, "==", True, "True"),
        ("猫", "==", "猫", "猫"),
        (torch.tensor([[0.31234]]), "in", (0.2, torch.tensor(0.4)), "0.312 in [0.2, 0.4]"),
        (math.inf, ">", 3, "inf > 3"),
    ],
)
def test_the_bound_is_recorded_and_shows_where_the_mouse_rests(
    monkeypatch, measured, relation, bound, text
):
    shown = []
    monkeypatch.setattr(CLAIMS, "show", lambda *output: shown.append(output))
    claim("03-1", "the sentence", measured, relation, bound)
    [(plain, markup, metadata)] = shown
    assert plain == "✓ 03-1  the sentence"
    assert f'title="measured: {html.escape(text)}"' in markup
    assert metadata == {"claim": {"id": "03-1", "sentence": "the sentence", "measured": text}}


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
    with pytest.raises(ClaimError, match=r"03-1  it is \d.*\n.*is false") as error:
        claim("03-1", "it is {:.0f}", measured, relation, bound)
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
