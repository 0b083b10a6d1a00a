"""What every loader shares: files and shards, rows that turn tensors both ways, models filled."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tinytf.pretrained.huggingface import (
    Row,
    check_settings,
    fill,
    read_folder,
    read_sizes,
    to_ours,
    to_theirs,
    write_folder,
)
from tinytf.support.files import CheckpointError


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


# ---- weights in shards, as large models come

SHARDS = tuple(f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3))
INDEX = "model.safetensors.index.json"


@pytest.fixture
def sharded(tmp_path):
    """A folder of five tensors in three files; returns it and the tensors."""
    tensors = {name: torch.rand(n + 1) for n, name in enumerate("abcde")}
    places = dict(zip("abcde", (*SHARDS, *SHARDS), strict=False))
    (tmp_path / "config.json").write_text('{"n": 3}')
    (tmp_path / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    for shard in SHARDS:
        save_file({n: t for n, t in tensors.items() if places[n] == shard}, tmp_path / shard)
    return tmp_path, tensors


def edit_index(folder, change):
    said = json.loads((folder / INDEX).read_text())
    change(said["weight_map"])
    (folder / INDEX).write_text(json.dumps(said))


def test_shards_are_read_as_one_file(sharded):
    folder, tensors = sharded
    (folder / "other.safetensors").write_text("not among those that the index names")
    config, found = read_folder(folder)
    assert config == {"n": 3}
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor), name


def test_one_file_goes_before_shards(sharded):
    folder, _ = sharded
    write_folder(folder, {"n": 4}, {"whole": torch.ones(2)})
    assert read_folder(folder)[1].keys() == {"whole"}


def test_missing_shards_are_named(sharded):
    folder, _ = sharded
    (folder / SHARDS[1]).unlink()
    with pytest.raises(CheckpointError, match=f"{INDEX} names files .* not there: {SHARDS[1]}$"):
        read_folder(folder)
    (folder / SHARDS[2]).unlink()
    with pytest.raises(CheckpointError, match=f"not there: {SHARDS[1]}, {SHARDS[2]}$"):
        read_folder(folder)


def test_a_truncated_shard_is_named(sharded):
    folder, _ = sharded
    (folder / SHARDS[2]).write_bytes((folder / SHARDS[2]).read_bytes()[:-2])
    with pytest.raises(CheckpointError, match=rf"{SHARDS[2]} \(\d+ bytes\) is truncated or not a"):
        read_folder(folder)


def test_shards_that_are_not_what_the_index_says_are_named(sharded):
    folder, _ = sharded
    edit_index(folder, lambda places: places.update(f=SHARDS[0]))
    with pytest.raises(CheckpointError, match=f"{SHARDS[0]} lacks f, which {INDEX} places there"):
        read_folder(folder)
    edit_index(folder, lambda places: [places.pop("f"), places.pop("d")])
    with pytest.raises(CheckpointError, match=f"{SHARDS[0]} holds d, which {INDEX} does not say"):
        read_folder(folder)


def test_a_tensor_in_two_shards_is_refused(sharded):
    """Which of them is meant? The index says one; the other file disagrees."""
    folder, tensors = sharded
    save_file({n: tensors[n] for n in "bea"}, folder / SHARDS[1])
    with pytest.raises(CheckpointError, match=f"{SHARDS[1]} holds a, which {INDEX} does not say"):
        read_folder(folder)


@pytest.mark.parametrize("place", ["../x.safetensors", "/tmp/x", "a/b", "a\\b", "C:x", 3, None])
def test_an_index_leads_to_no_other_folder(sharded, place):
    folder, _ = sharded
    edit_index(folder, lambda places: places.update(a=place))
    with pytest.raises(CheckpointError, match=r"places a in .*, not a file beside it"):
        read_folder(folder)


@pytest.mark.parametrize("text", ["[]", "{}", '{"weight_map": []}', '{"weight_map": {}}'])
def test_an_index_without_a_map_is_named(sharded, text):
    folder, _ = sharded
    (folder / INDEX).write_text(text)
    with pytest.raises(CheckpointError, match=f"{INDEX} must say in weight_map which file"):
        read_folder(folder)


@pytest.mark.parametrize(
    "pickle", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.bin"]
)
def test_without_weights_pickles_are_named_and_not_opened(tmp_path, pickle):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / pickle).write_text("x")
    with pytest.raises(CheckpointError, match=r"there is no model\.safetensors in ") as caught:
        read_folder(tmp_path)
    assert (f"({pickle} is a pickle" in str(caught.value)) == (pickle != "model.bin")
