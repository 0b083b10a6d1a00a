"""Files: whole or not at all, whatever the disk or the process does; nothing foreign is read."""

import errno
import os
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from support import small_model

from tinytf.training.checkpointing import CheckpointError, load_weights, model_tensors, read, write

unix = pytest.mark.skipif(os.name == "nt", reason="limits, modes and forks as Unix has them")


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


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what is mapped")
def test_what_was_read_does_not_hold_the_file_open(good):
    """Windows replaces no file that is mapped: a resumed run could not save."""
    tensors, _ = read(good)
    assert tensors
    assert str(good) not in Path("/proc/self/maps").read_text()


# ---- a disk that fails, a process that is killed


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("first", [False, True])
def test_a_save_that_fails_leaves_what_was_there(call, fault, first, good, monkeypatch):
    def fail(*_):
        raise fault

    path = good.with_name("new") if first else good
    kept = "" if first else "; the file that was there is untouched"
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises((CheckpointError, KeyboardInterrupt)) as error:
            write(path, {"w": torch.zeros(4)}, {"step": 2})
    if isinstance(fault, OSError):
        assert str(error.value) == f"could not write {path}: the disk is full{kept}"
    assert_is_good(good)
    assert files(good.parent) == [good.name]


@unix
def test_a_write_cut_short_leaves_the_earlier_checkpoint(good):
    """The system itself stops the write after its first bytes."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(CheckpointError, match=os.strerror(errno.EFBIG)):
            write(good, {"w": torch.zeros(100_000)}, {"step": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_is_good(good)
    assert files(good.parent) == [good.name]


@unix
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_kill_in_a_save_leaves_the_earlier_checkpoint(call, good):
    child = os.fork()
    if child == 0:
        setattr(os, call, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        write(good, {"w": torch.zeros(4)}, {"step": 2})
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert_is_good(good)


@unix
def test_a_checkpoint_is_as_readable_as_any_new_file(good):
    (good.parent / "plain").write_text("")
    modes = [path.stat().st_mode for path in good.parent.iterdir()]
    assert modes[0] == modes[1]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", "it is a folder; name a file in it"),
        ("folder", "it is a folder; name a file in it"),
        ("taken/x", "taken/x: a file is where a folder should be"),
    ],
)
def test_what_can_not_be_a_file_is_named(path, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken").write_text("")
    with pytest.raises(CheckpointError, match=message):
        write(path, {"w": torch.zeros(1)}, {})
    write("bare", {"w": torch.zeros(1)}, {})
    assert torch.equal(read("bare")[0]["w"], torch.zeros(1))


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


def test_a_damaged_file_is_refused(good):
    data = bytearray(good.read_bytes())
    data[-1] ^= 1
    good.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"run.safetensors is damaged: the digest of what"):
        read(good)


class Trap:
    """Unpickled, it would leave a file behind."""

    def __reduce__(self):
        return (open, ("sprung", "w"))


def test_a_pickle_is_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"w": torch.zeros(2), "trap": Trap()}, "run.pt")
    with pytest.raises(CheckpointError, match="truncated or not a safetensors file"):
        read("run.pt")
    assert files(tmp_path) == ["run.pt"]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (None, r"not a tinytf checkpoint \(format None, expected 'tinytf-2'\)"),
        ({"format": "pt"}, r"not a tinytf checkpoint \(format 'pt', expected 'tinytf-2'\)"),
        ({"format": "tinytf-2"}, "damaged: the digest of what it holds"),
        ({"format": "tinytf-2", "header": "{}"}, "damaged: the digest of what it holds"),
    ],
)
def test_a_foreign_safetensors_file_is_refused(metadata, message, tmp_path):
    save_file({"w": torch.zeros(2)}, tmp_path / "other.safetensors", metadata)
    with pytest.raises(CheckpointError, match=rf"^other\.safetensors is .*{message}"):
        read(tmp_path / "other.safetensors")


# ---- weights into a model


def test_weights_that_do_not_fit_are_refused_before_any_is_copied():
    model = small_model()
    before = {n: p.detach().clone() for n, p in model_tensors(model).items()}
    name, norm = "encoder.layers.0.feed_forward.w_1.bias", "decoder.layers.1.residual_3.norm.weight"
    zeros = {n: torch.zeros_like(p) for n, p in before.items()}
    for tensors, message in (
        ({n: t for n, t in zeros.items() if n != name}, f"missing {name}"),
        (zeros | {"stranger": torch.zeros(2)}, "unexpected stranger"),
        (zeros | {norm: torch.zeros(13)}, rf"{norm} has shape \(13,\), the model expects \(12,\)"),
        (zeros | {norm: torch.zeros(12).int()}, f"{norm} is of torch.int32, the model expects"),
        ({}, r"; and \d\d more$"),
    ):
        with pytest.raises(
            CheckpointError, match=f"^the weights do not fit the model: .*{message}"
        ):
            load_weights(model, tensors)
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
