"""Targets of `graduate`: a module, or the full name of an object."""

import pytest

from tinytf.course.resolve import resolve
from tinytf.masks import causal_mask


def test_a_target_is_a_module_or_a_full_name():
    assert resolve("tinytf.masks", "causal_mask") is causal_mask
    assert resolve("tinytf.masks.causal_mask", "mine") is causal_mask


def test_what_is_not_there_is_an_error():
    with pytest.raises(AttributeError, match="nothing"):
        resolve("tinytf.masks", "nothing")
    with pytest.raises(AttributeError, match="nothing"):
        resolve("tinytf.masks.nothing", "mine")
