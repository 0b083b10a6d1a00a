"""Safetensors files: all of the header is checked before a tensor is read."""

import json
import resource
import struct

import pytest
import torch
from safetensors.torch import save_file

from tinytf.support.files import CheckpointError
from tinytf.support.tensor_files import check_finite, read_tensors


def write_header(folder, header, numbers=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + numbers)


def entry(shape=(2,), dtype="F32", places=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(places)}


@pytest.mark.parametrize(
    ("header", "numbers"),
    [
        (b"[1]", b""),
        (b"[" * 100_000, b""),
        (b"\xff", b""),
        ({"a": entry()}, b""),
        ({"a": entry()}, bytes(9)),
        ({"a": entry((3,))}, bytes(8)),
        ({"a": entry(dtype="F99")}, bytes(8)),
        ({"a": entry(), "b": entry()}, bytes(16)),
        ({"a": entry((-2,))}, bytes(8)),
        ({"a": entry((True, 2))}, bytes(8)),
        ({"a": entry([1] * 1000)}, bytes(8)),
        ({"a": entry(places=(8, 0))}, bytes(8)),
        ({"a": {"dtype": "F32"}}, bytes(8)),
        ({"__metadata__": {"a": 1}}, b""),
        ({"layer." * 20_000: entry((3,))}, bytes(8)),
        ({"layer." * 20_000: 7}, bytes(8)),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_files_that_are_wrong_are_named(tmp_path, header, numbers, device):
    write_header(tmp_path, header, numbers)
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors \(\d+ bytes\) is truncated or not a safetensors"
    ) as caught:
        read_tensors(tmp_path / "model.safetensors", device)
    assert len(str(caught.value)) < 500


def test_a_header_is_read_without_its_tensors(tmp_path):
    """A sparse file of 8 GB takes no memory to look at."""
    size = 1 << 33
    write_header(tmp_path, {"a": entry((size // 4,), places=(0, size))})
    path = tmp_path / "model.safetensors"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tensors = read_tensors(path, "meta")
    assert tensors["a"].shape == (size // 4,)
    assert tensors["a"].is_meta
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * before


def test_what_is_whole_is_read(tmp_path):
    given = {"a": torch.rand(2, 3), "b": torch.arange(4), "c": torch.rand(0, 3).half(),
             "d": torch.tensor(True)}  # fmt: skip
    save_file(given, tmp_path / "x", metadata={"format": "pt"})
    header, found = read_tensors(tmp_path / "x", "meta"), read_tensors(tmp_path / "x")
    assert header.keys() == found.keys() == given.keys()
    for name, tensor in given.items():
        assert torch.equal(found[name], tensor)
        assert (header[name].shape, header[name].dtype) == (tensor.shape, tensor.dtype)


def test_weights_must_be_finite():
    check_finite({"a": torch.ones(2), "b": torch.arange(3)})
    for value in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(CheckpointError, match=r"b\[1, 0\] is -?(nan|inf), and a weight"):
            check_finite({"a": torch.ones(2), "b": torch.tensor([[1.0], [value]])})
    with pytest.raises(CheckpointError, match=r"a\[\] is 1e\+200, and a weight"):
        check_finite({"a": torch.tensor(1e200, dtype=torch.float64)})
    with pytest.raises(CheckpointError, match=r"x….*x\[1\] is inf, and a weight") as caught:
        check_finite({"x" * 100_000: torch.tensor([0.0, torch.inf])})
    assert len(str(caught.value)) < 500
