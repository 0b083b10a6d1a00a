"""Tables that turn tensors both ways."""

import pytest
import torch

from tinytf.pretrained.rows import Row, to_ours, to_theirs
from tinytf.support.files import CheckpointError


def test_rows_join_parts_of_different_heights_and_part_them_again():
    rows = (Row("kv", ("k", "v"), torch.t, torch.t), Row("x", ("x",), lambda t: t + 1))
    ours = {"k": torch.rand(4, 3), "v": torch.rand(2, 3), "x": torch.zeros(2)}
    theirs = to_theirs(rows, ours)
    assert theirs["kv"].shape == (3, 6)
    assert theirs["kv"].is_contiguous()
    assert theirs["x"].tolist() == [1, 1]
    back = to_ours(rows[:1], {"kv": theirs["kv"]}, ours, "these sizes")
    assert torch.equal(back["k"], ours["k"])
    assert torch.equal(back["v"], ours["v"])


def test_tensors_that_do_not_fit_are_all_named():
    parameters = {"a": torch.rand(2, 3), "b": torch.rand(4)}
    rows = (Row("A", ("a",)), Row("B", ("b",)))
    with pytest.raises(CheckpointError, match=r"do not fit d=3: missing B; unexpected C; A has "):
        to_ours(rows, {"A": torch.rand(3, 2), "C": torch.rand(1)}, parameters, "d=3")
    with pytest.raises(CheckpointError, match=r"B holds torch\.int64, not floats"):
        to_ours(rows, {"A": torch.rand(2, 3), "B": torch.arange(4)}, parameters, "d=3")
    with pytest.raises(CheckpointError, match=r"unexpected x+…x+$") as caught:
        to_ours([], {"x" * 100_000: torch.zeros(1)}, {}, "d=3")
    assert len(str(caught.value)) < 500
