"""A definition graduates if the package has the same."""

import pytest

from tinytf_course import GraduationError, graduate
from tinytf_course.graduate import definition

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


def test_docstrings_annotations_and_validation_do_not_count():
    wanted = "def here(n, eps=1e-05):\n    scale = 2.0\n    return scale * n + eps"
    assert definition(here) == wanted


def test_graduate_accepts_the_package_itself(capsys):
    from tinytf.attention import MultiHeadAttention, attention_weights

    graduate(attention_weights, "tinytf.attention")
    graduate(MultiHeadAttention, "tinytf.attention")
    graduate(attention_weights, "tinytf.attention.attention_weights")
    assert capsys.readouterr().out.count("graduates") == 3


def test_a_constant_graduates_by_its_full_name(capsys):
    graduate("causal", "tinytf.masks.CAUSAL")
    assert "`CAUSAL` graduates: the same value" in capsys.readouterr().out
    with pytest.raises(GraduationError, match="is 'causal', and here it is 'full'"):
        graduate("full", "tinytf.masks.CAUSAL")


def test_graduate_shows_the_difference():
    def attention_weights(q, k, mask=None):
        return (q @ k.transpose(-2, -1)).softmax(-1)

    with pytest.raises(GraduationError, match=r"(?s)differ:.*-    return .*\+    scores = "):
        graduate(attention_weights, "tinytf.attention")
    with pytest.raises(AttributeError):
        graduate(here, "tinytf.attention")
