"""Folders broken on purpose: whatever is wrong, it is a CheckpointError, and little is allocated.

Configs are edited entry by entry and bytes of the files changed at random, from fixed seeds.
"""

import json
import random
import resource
import struct
import sys

import pytest
import torch
from family_support import FAMILIES

from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")

VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 10**12, 10**18, 10**40, 10**400, 0.5, -0.0, 1e300,
    float("nan"), float("inf"), "", "x", "24", "\ud800", "x" * 10_000, [], [1], {}, {"type": "y"},
    [[[]]], {"a": {"b": [None]}},
]  # fmt: skip


@pytest.fixture(scope="module", params=FAMILIES)
def made(request, tmp_path_factory):
    """A family's loader, a folder of its own, and what its two files hold when they are whole."""
    case = FAMILIES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(0)
    case.theirs().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    return case.module.load, folder, config, (folder / "model.safetensors").read_bytes()


def outcome(load, folder):
    """Load; only a CheckpointError may come out. Returns its words, or None."""
    try:
        model = load(folder)
    except CheckpointError as error:
        str(error).encode("utf-8", "backslashreplace")
        return str(error)
    assert all(p.isfinite().all() for p in model.parameters())
    return None


def restore(folder, config, data):
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(data)


def test_every_entry_of_a_config_may_be_anything(made):
    load, folder, config, data = made
    restore(folder, config, data)
    draw, faults = random.Random(0), 0
    names = [*config, "n_inner", "n_ctx", "head_dim", "rope_theta", "rope_parameters", "dropout",
             "resid_pdrop", "pad_token_id", "type_vocab_size", "decoder_vocab_size"]  # fmt: skip
    for name in dict.fromkeys(names):
        for value in draw.sample(VALUES, 3):
            (folder / "config.json").write_text(json.dumps(config | {name: value}))
            faults += outcome(load, folder) is not None
        without = {n: v for n, v in config.items() if n != name}
        (folder / "config.json").write_text(json.dumps(without))
        outcome(load, folder)
    assert faults > 20


def test_bytes_changed_cut_and_added(made):
    """In the header a change is found; in the numbers only what makes one infinite."""
    load, folder, config, data = made
    draw, faults = random.Random(0), 0
    header = 8 + struct.unpack("<Q", data[:8])[0]
    for _ in range(80):
        broken = bytearray(data)
        kind = draw.choice(["header", "length", "cut", "add", "swap"])
        if kind == "header":
            for _ in range(draw.randint(1, 4)):
                broken[draw.randrange(8, header)] = draw.randrange(256)
        elif kind == "length":
            broken[:8] = struct.pack("<Q", draw.choice([0, 1, 2**63, 2**64 - 1, header, len(data)]))
        elif kind == "cut":
            del broken[draw.randrange(len(broken)) :]
        elif kind == "add":
            broken += bytes(draw.randint(1, 100))
        else:
            a, b = sorted(draw.sample(range(8, header), 2))
            broken[a], broken[b] = broken[b], broken[a]
        restore(folder, config, bytes(broken))
        fault = outcome(load, folder)
        faults += fault is not None
        assert fault is None or "model.safetensors" in fault or str(folder) in fault
    assert faults > 60


def test_a_folder_that_asks_for_much_takes_little(made):
    """Time and memory of the refusals, whatever the sizes: the process grows by no 100 MB."""
    load, folder, config, data = made
    restore(folder, config, data)
    outcome(load, folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, value in config.items():
        if type(value) is int:
            for size in (10**5, 2**31 - 1):
                (folder / "config.json").write_text(json.dumps(config | {name: size}))
                outcome(load, folder)
    unit = 1024 if sys.platform == "darwin" else 1
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit < 100_000


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 50_000, "9" * 5000, '{"a": 1, "a": 1}'])
def test_json_that_breaks_readers_is_refused(made, text):
    load, folder, config, data = made
    restore(folder, config, data)
    (folder / "config.json").write_text(text)
    assert "config.json" in outcome(load, folder)


def test_files_that_can_not_be_read_are_named(made):
    load, folder, config, data = made
    restore(folder, config, data)
    for name in ("config.json", "model.safetensors"):
        (folder / name).unlink()
        (folder / name).mkdir()
        assert name in outcome(load, folder)
        (folder / name).rmdir()
        restore(folder, config, data)
    assert "there is no f" in outcome(load, folder / ("x" * 300))
    assert "there is no f" in outcome(load, str(folder) + "\0")


def test_a_config_of_many_megabytes_is_not_read(made):
    load, folder, config, data = made
    restore(folder, config, data)
    (folder / "config.json").write_text(json.dumps(config | {"more": ["x"] * 1_000_000}))
    assert "config.json has 5" in (said := outcome(load, folder))
    assert said.endswith(f"bytes, at most {1 << 22} are read")


def test_a_tensors_name_of_any_length_is_quoted_shortened(made):
    load, folder, config, data = made
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    first = next(name for name in header if name != "__metadata__")
    header["layer." * 20_000] = header.pop(first)
    text = json.dumps(header).encode()
    restore(folder, config, struct.pack("<Q", len(text)) + text + data[8 + length :])
    assert len(outcome(load, folder)) < 1500
