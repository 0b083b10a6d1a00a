"""Files: whole or not at all, whatever the disk or the process does; nothing foreign is read."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from support import small_model

from tinytf.training.checkpointing import CheckpointError, load_weights, model_tensors, read, write


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def good(tmp_path):
    """An earlier checkpoint, which must survive."""
    path = tmp_path / "run.safetensors"
    write(path, {"w": torch.arange(4.0)}, {"step": 1})
    return path


def assert_is_good(path):
    tensors, header = read(path)
    assert header == {"step": 1}
    assert torch.equal(tensors["w"], torch.arange(4.0))
    assert files(path.parent) == [path.name]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_what_was_written_is_read(dtype, device, tmp_path):
    path = tmp_path / "new" / "folders" / "x.safetensors"
    tensors = {
        "matrix": torch.arange(12).reshape(3, 4).to(device, dtype).t(),  # not contiguous
        "scalar": torch.tensor(3, device=device).to(dtype),
    }
    header = {"words": ["猫", "māo"], "nested": {"a": [1, 2.5, None]}}
    write(path, tensors, header)
    back, same = read(path)
    assert same == header
    assert back.keys() == tensors.keys()
    assert all(torch.equal(back[n], tensors[n].cpu()) for n in back)
    assert all(back[n].dtype == dtype for n in back)
    write(str(path), {"matrix": torch.zeros(1)}, {})
    assert read(str(path), device)[0]["matrix"].device.type == device.type
    assert files(path.parent) == [path.name]


# ---- a disk that fails


def assert_refused_and_kept(good, reason, size=4):
    with pytest.raises(CheckpointError) as error:
        write(good, {"w": torch.zeros(size)}, {"step": 2})
    assert str(error.value) == (
        f"could not write {good}: {reason}; the file that was there is untouched"
    )


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_earlier_checkpoint(call, good, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        assert_refused_and_kept(good, "the disk is full")
    assert_is_good(good)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of files")
def test_a_write_cut_short_leaves_the_earlier_checkpoint(good):
    """The system itself stops the write after its first bytes."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        assert_refused_and_kept(good, os.strerror(errno.EFBIG), size=100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_is_good(good)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_checkpoint_is_as_readable_as_any_new_file(good):
    (good.parent / "plain").write_text("")
    modes = [path.stat().st_mode for path in good.parent.iterdir()]
    assert modes[0] == modes[1]


def test_a_first_save_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError) as error:
        write(tmp_path / "a.safetensors", {"w": torch.zeros(4)}, {})
    assert str(error.value) == f"could not write {tmp_path}/a.safetensors: the disk is full"
    assert files(tmp_path) == []


def test_an_interrupt_in_a_save_leaves_the_earlier_checkpoint(good, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(good, {"w": torch.zeros(4)}, {"step": 2})
    monkeypatch.undo()
    assert_is_good(good)


def test_a_parent_that_is_a_file_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(
        CheckpointError, match=r"taken/x\.safetensors: a file is where a folder should be"
    ):
        write(tmp_path / "taken" / "x.safetensors", {"w": torch.zeros(1)}, {})


SAVE_AND_STALL = """
import os, sys, time
import torch
from tinytf.training.checkpointing import write

path, call = sys.argv[1:]
write(path, {"w": torch.arange(4.0)}, {"step": 1})

def stall(*_):
    print("in the middle", flush=True)
    time.sleep(60)

setattr(os, call, stall)
write(path, {"w": torch.zeros(4)}, {"step": 2})
"""


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_kill_in_a_save_leaves_the_earlier_checkpoint(call, tmp_path):
    path = tmp_path / "run.safetensors"
    command = [sys.executable, "-c", SAVE_AND_STALL, str(path), call]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "in the middle\n"
        child.kill()
    tensors, header = read(path)
    assert header == {"step": 1}
    assert torch.equal(tensors["w"], torch.arange(4.0))


# ---- files that are not ours


def test_a_missing_file_is_named(tmp_path):
    for path in (tmp_path / "none.safetensors", tmp_path):  # a folder is not a file
        with pytest.raises(CheckpointError, match="there is no checkpoint at"):
            read(path)


@pytest.mark.parametrize("keep", [0, 4, 8, 40, -1])
def test_a_truncated_file_is_refused(keep, good):
    data = good.read_bytes()[:keep]
    good.write_bytes(data)
    message = rf"run.safetensors \({len(data)} bytes\) is truncated or not a safetensors file"
    with pytest.raises(CheckpointError, match=message):
        read(good)


class Trap:
    """Unpickled, it would leave a file behind."""

    def __reduce__(self):
        return (open, ("sprung", "w"))


def test_a_pickle_is_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.pt"
    torch.save({"w": torch.zeros(2), "trap": Trap()}, path)
    with pytest.raises(CheckpointError, match="truncated or not a safetensors file"):
        read(path)
    assert files(tmp_path) == ["run.pt"]


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}], ids=str)
def test_a_foreign_safetensors_file_is_refused(metadata, tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"w": torch.zeros(2)}, path, metadata)
    found = repr(metadata and metadata["format"])
    with pytest.raises(CheckpointError) as error:
        read(path)
    assert "other.safetensors is a safetensors file, but not a tinytf checkpoint" in str(
        error.value
    )
    assert f"(format {found}, expected 'tinytf-2')" in str(error.value)


# ---- weights into a model


def drop(name):
    return lambda tensors: tensors.pop(name)


def put(name, *shape):
    return lambda tensors: tensors.update({name: torch.zeros(shape)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("encoder.layers.0.feed_forward.w_1.bias"),
         "missing encoder.layers.0.feed_forward.w_1.bias"),
        (put("stranger", 2), "unexpected stranger"),
        (put("decoder.layers.1.residual_3.norm.weight", 13),
         r"decoder.layers.1.residual_3.norm.weight has shape (13,), the model expects (12,)"),
        (lambda tensors: tensors.clear(), " more"),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused_before_any_is_copied(change, message):
    model = small_model()
    before = {n: p.detach().clone() for n, p in model_tensors(model).items()}
    tensors = {n: torch.zeros_like(p) for n, p in before.items()}
    change(tensors)
    with pytest.raises(CheckpointError) as error:
        load_weights(model, tensors)
    assert str(error.value).startswith("the weights do not fit the model: ")
    assert message in str(error.value)
    assert all(torch.equal(p, before[n]) for n, p in model_tensors(model).items())


@pytest.mark.parametrize("tie", [True, False])
def test_weights_pass_through_a_file(tie, exact, tmp_path):
    choices = {"share_embeddings": True, "tgt_vocab_size": 11, "tie_output": tie}
    first, second = small_model(exact, **choices), small_model(exact, **choices)
    names = model_tensors(first)
    assert ("output.weight" in names) is not tie  # a shared tensor is written once
    assert "tgt_embedding.weight" not in names
    write(tmp_path / "w", names, {})
    load_weights(second, read(tmp_path / "w")[0])
    assert (second.output.weight is second.src_embedding.weight) is tie
    for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what is mapped")
def test_what_was_read_does_not_hold_the_file_open(good):
    """Windows replaces no file that is mapped: a resumed run could not save."""
    tensors, _ = read(good)
    assert tensors
    assert str(good) not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("path", [".", "folder"])
def test_a_folder_is_not_written_over(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(CheckpointError, match="it is a folder; name a file in it"):
        write(path, {"w": torch.zeros(1)}, {})
    write("bare", {"w": torch.zeros(1)}, {})
    assert torch.equal(read("bare")[0]["w"], torch.zeros(1))
