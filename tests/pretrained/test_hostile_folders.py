"""Folders broken on purpose: whatever is wrong, it is a CheckpointError, and little is allocated.

Configs are edited entry by entry, from a fixed seed. Bytes are changed in tests/faults.
"""

import json
import random
import resource
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
