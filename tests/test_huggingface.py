"""What every loader shares: rows that turn tensors both ways, and models filled without a draw."""

import pytest
import torch
from torch import nn

from tinytf.files import CheckpointError
from tinytf.huggingface import Row, check_settings, fill, read_sizes, to_ours, to_theirs


class Tied(nn.Module):
    """A table that is also the output's matrix, and a map."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.inner = nn.Sequential(nn.Linear(3, 3))
        self.output = nn.Linear(3, 5, bias=False)
        self.output.weight = self.table.weight


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


def test_a_model_on_the_meta_device_is_filled_with_copies_and_stays_tied():
    with torch.device("meta"):
        model = Tied()
    given = {"table.weight": torch.rand(5, 3).half(), "inner.0.weight": torch.rand(3, 3).t(),
             "inner.0.bias": torch.rand(3)}  # fmt: skip
    before = torch.get_rng_state()
    model = fill(model, given)
    assert torch.equal(before, torch.get_rng_state())
    assert not model.training
    assert model.output.weight is model.table.weight
    for name, p in model.named_parameters():
        assert torch.equal(p, given[name].float()), name
        assert p.requires_grad
        assert p.is_contiguous()
        assert p.dtype == torch.float32
        assert p.data_ptr() != given[name].data_ptr()


def test_what_has_no_value_is_named():
    with torch.device("meta"):
        model = Tied()
        model.register_buffer("positions", torch.arange(3.0))
    with pytest.raises(ValueError, match=r"no values yet: inner\.0\.bias, positions$"):
        fill(model, {"table.weight": torch.rand(5, 3), "inner.0.weight": torch.rand(3, 3)})


def test_tensors_that_do_not_fit_are_all_named():
    parameters = {"a": torch.rand(2, 3), "b": torch.rand(4)}
    rows = (Row("A", ("a",)), Row("B", ("b",)))
    with pytest.raises(CheckpointError, match=r"do not fit d=3: missing B; unexpected C; A has "):
        to_ours(rows, {"A": torch.rand(3, 2), "C": torch.rand(1)}, parameters, "d=3")
    with pytest.raises(CheckpointError, match=r"B holds torch\.int64, not floats"):
        to_ours(rows, {"A": torch.rand(2, 3), "B": torch.arange(4)}, parameters, "d=3")


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
