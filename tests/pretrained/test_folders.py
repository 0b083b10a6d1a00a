"""Folders: their config, their one file or their shards, written and read."""

import json

import pytest
import torch
from safetensors.torch import save_file

from tinytf.pretrained.folders import open_folder, write_folder
from tinytf.support.files import CheckpointError


def read_folder(folder):
    opened = open_folder(folder)
    tensors = opened.read()
    assert tensors.keys() == opened.tensors.keys()
    for name, tensor in tensors.items():
        assert opened.tensors[name].is_meta
        assert opened.tensors[name].shape == tensor.shape
        assert opened.tensors[name].dtype == tensor.dtype
    return opened.config, tensors


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
