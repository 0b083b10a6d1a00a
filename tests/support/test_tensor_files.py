"""Safetensors files: all of the header is checked before a tensor is read."""

import json
import struct
import tracemalloc

import pytest
import torch
from safetensors.torch import save_file

from tinytf.support.files import CheckpointError
from tinytf.support.tensor_files import check_finite, read_header, read_tensors


def write_header(folder, header, numbers=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + numbers)


def entry(shape=(2,), dtype="F32", places=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(places)}


@pytest.mark.parametrize(
    ("header", "numbers", "message"),
    [
        (b'{"a": 1, "a": 2}', b"", "'a' is given twice"),
        (b"[1]", b"", r"its header must name tensors, got \[1\]"),
        (b"[" * 100_000, b"", "is truncated or not a safetensors file: it is nested too deeply"),
        (b"\xff", b"", "can't decode byte 0xff"),
        ({"a": entry()}, b"", "its tensors take bytes 0 to 8, the file has 0 to 0"),
        ({"a": entry()}, bytes(9), "its tensors take bytes 0 to 8, the file has 0 to 9"),
        ({"a": entry((3,))}, bytes(8), r"a, F32 of \[3\], needs 12 bytes and has 8"),
        ({"a": entry(dtype="F99")}, bytes(8), "a has dtype 'F99', which is none of F64, F32"),
        ({"a": entry(dtype=["F32"])}, bytes(8), r"a has dtype \['F32'\], which is none of"),
        ({"a": entry(), "b": entry()}, bytes(16), "a ends at byte 8, but b begins at 0"),
        ({"a": entry((-2,))}, bytes(8), r"a has shape \[-2\], which no tensor has"),
        ({"a": entry((True, 2))}, bytes(8), r"a has shape \[True, 2\], which no tensor has"),
        ({"a": entry((0, 2**50, 2**50), places=(0, 0))}, b"", "which no tensor has"),
        ({"a": entry([1] * 1000)}, bytes(8), "which no tensor has"),
        ({"a": entry(places=(0,))}, bytes(8), r"a has data_offsets \[0\], not where it"),
        ({"a": entry(places=(8, 0))}, bytes(8), "needs 8 bytes and has -8"),
        ({"a": {"dtype": "F32"}}, bytes(8), "a must have dtype, shape and data_offsets, got"),
        ({"a": 7}, bytes(8), "a must have dtype, shape and data_offsets, got 7"),
        ({"__metadata__": {"a": 1}}, b"", "__metadata__ must give texts by name"),
        ({"\ud800": entry()}, bytes(8), "surrogates not allowed"),
    ],
)  # fmt: skip
def test_headers_that_are_wrong_are_named(tmp_path, header, numbers, message):
    write_header(tmp_path, header, numbers)
    with pytest.raises(CheckpointError, match=message) as caught:
        read_header(tmp_path / "model.safetensors")
    assert "model.safetensors (" in str(caught.value)


def test_a_header_is_read_without_its_tensors(tmp_path):
    """A sparse file of 8 GB takes no memory to look at."""
    size = 1 << 33
    write_header(tmp_path, {"a": entry((size // 4,), places=(0, size)), "__metadata__": {"b": "c"}})
    path = tmp_path / "model.safetensors"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + size)
    tracemalloc.start()
    try:
        tensors, words = read_header(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert tensors["a"].shape == (size // 4,)
    assert tensors["a"].is_meta
    assert words == {"b": "c"}
    assert peak < 1 << 20


def test_what_is_whole_is_read(tmp_path):
    given = {"a": torch.rand(2, 3), "b": torch.arange(4), "c": torch.rand(0, 3).half(),
             "d": torch.tensor(True)}  # fmt: skip
    save_file(given, tmp_path / "x", metadata={"format": "pt"})
    header, words = read_header(tmp_path / "x")
    found = read_tensors(tmp_path / "x")
    assert words == {"format": "pt"}
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


@pytest.mark.parametrize(
    "said", [7, entry((3,)), entry(dtype="F99"), entry((-2,)), entry(places=(0,))]
)
def test_a_name_of_any_length_is_quoted_shortened(tmp_path, said):
    name = "layer." * 20_000 + "weight"
    write_header(tmp_path, {name: said}, bytes(8))
    with pytest.raises(CheckpointError, match=r"layer\.layer\..*….*r\.weight") as caught:
        read_header(tmp_path / "model.safetensors")
    assert len(str(caught.value)) < 500


def test_names_of_tensors_that_overlap_or_are_not_finite_are_quoted_shortened(tmp_path):
    one, other = ("x" * 50_000 + c for c in "ab")
    write_header(tmp_path, {one: entry(), other: entry()}, bytes(16))
    with pytest.raises(CheckpointError, match=r"….*a ends at byte 8, but x.*….*b begins") as caught:
        read_header(tmp_path / "model.safetensors")
    assert len(str(caught.value)) < 500
    with pytest.raises(CheckpointError, match=r"….*a\[1\] is inf, and a weight") as caught:
        check_finite({one: torch.tensor([0.0, torch.inf])})
    assert len(str(caught.value)) < 500
