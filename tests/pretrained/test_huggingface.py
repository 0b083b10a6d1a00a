"""Settings and sizes that a config says; one interface is tested in test_families.py."""

import pytest

from tinytf.pretrained.huggingface import check_settings, read_number, read_sizes
from tinytf.support.files import CheckpointError


def test_settings_and_sizes_that_do_not_fit_are_named():
    check_settings({"other": 3}, {"act": ("relu",)}, "Ours")  # not mentioned: the usual one
    with pytest.raises(CheckpointError, match="act='gelu', but Ours computes act='relu' only"):
        check_settings({"act": "gelu"}, {"act": ("relu", "RELU")}, "Ours")
    with pytest.raises(CheckpointError, match="must name sizes and settings, got 7"):
        check_settings(7, {}, "Ours")
    assert read_sizes({"n": 3}, {"d_model": "n"}) == {"d_model": 3}
    for value in (None, "3", True, 3.0):
        with pytest.raises(CheckpointError, match="n a whole number"):
            read_sizes({"n": value}, {"d_model": "n"})
    for value in (None, "3", True, float("nan"), float("inf"), 10**400, [1.0]):
        with pytest.raises(CheckpointError, match="eps a finite number"):
            read_number({"eps": value}, "eps", 1.0)
    assert read_number({}, "eps", 2) == 2.0
    with pytest.raises(
        CheckpointError, match=r"n a whole number, got 1000000.*: more than 2147483"
    ):
        read_sizes({"n": 10**400}, {"d_model": "n"})
