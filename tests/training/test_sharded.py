"""A sharded model trains as a whole one; a run's file is anybody's, however many wrote it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from sharding_worker import READS, SIZES, trainer

from tinytf.gpt import GPT, GPTConfig
from tinytf.training import checkpointing
from tinytf.training.distributed import Team
from tinytf.training.sharded import gathered, local, part_of, shard, whole
from tinytf.training.trainer import TrainingConfig
from tinytf_course.lessons.scaling import memory_per_gpu, sent_per_step

WORKER = Path(__file__).parents[1] / "sharding_worker.py"
MANY = [name for name in READS if name != "1ddp"]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The folder with what one, two and four processes have left, each way."""
    folder = tmp_path_factory.mktemp("teams")
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(
            [str(WORKER.parents[1]), str(WORKER.parents[1] / "notebooks")]
        ),
    }
    command = [sys.executable, str(WORKER), str(folder)]
    done = subprocess.run(command, env=environment, timeout=300, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def assert_near(path, other):
    """Weights and moments differ by the rounding of sums alone, in float64."""
    (mine, header), (theirs, second) = (checkpointing.read(p) for p in (path, other))
    assert mine.keys() == theirs.keys()
    assert header["step"] == second["step"]
    for name, tensor in mine.items():
        if not name.startswith("random/"):
            torch.testing.assert_close(tensor, theirs[name], rtol=1e-9, atol=1e-9, msg=name)
    for row, want in zip(header["history"], second["history"], strict=False):
        for key in ("loss", "grad_norm"):
            assert row[key] == pytest.approx(want[key], rel=1e-6)  # summed in float32


def counts(folder, name):
    """What each process of a team has counted."""
    return [
        json.loads((folder / f"numbers.{name}.{rank}").read_text()) for rank in range(int(name[0]))
    ]


# ---- equal to one process


@needs_fork
@pytest.mark.parametrize("name", MANY)
def test_a_team_takes_the_steps_that_one_would(left, name):
    """Tied embeddings, two uneven batches a step, and a gradient that is cut by its whole norm."""
    assert_near(left / f"end.{name}", left / "end.1ddp")
    norms = [row["grad_norm"] for row in checkpointing.read(left / f"end.{name}")[1]["history"]]
    assert min(norms[-3:]) > 0.3  # so each step was cut


@needs_fork
@pytest.mark.parametrize(("reader", "writer"), [(r, w) for r in READS for w in READS[r]])
def test_any_team_goes_on_from_anybodys_file(left, reader, writer):
    assert_near(left / f"{writer}-{reader}", left / "end.1ddp")


@needs_fork
def test_a_sharded_run_goes_on_to_the_bit(left):
    mine, whole_run = (
        checkpointing.read(left / n)[0] for n in ("2fsdp-2fsdp", "end.2fsdp")
    )  # fmt: skip
    assert not [name for name in mine if not torch.equal(mine[name], whole_run[name])]


@needs_fork
@pytest.mark.parametrize("name", ["2ddp", "2fsdp"])
def test_recomputed_activations_change_no_bit(left, name):
    """With dropout: what is computed again drops the same."""
    mine, plain = (checkpointing.read(left / f"{k}.{name}")[0] for k in ("recomputed", "drawn"))
    assert not [n for n in mine if not torch.equal(mine[n], plain[n])]


@needs_fork
@pytest.mark.parametrize("name", ["2ddp", "2fsdp"])
def test_a_team_trains_in_bfloat16_as_one_does(left, name):
    (mine, header), (alone, want) = (checkpointing.read(left / f"half.{n}") for n in (name, "1ddp"))
    assert {n: t.dtype for n, t in mine.items()} == {n: t.dtype for n, t in alone.items()}
    for row, wanted in zip(header["history"], want["history"], strict=True):
        assert row["loss"] == pytest.approx(wanted["loss"], rel=2e-3)


# ---- what is kept, and what is sent


@needs_fork
@pytest.mark.parametrize("name", ["2ddp", "2fsdp"])
def test_gradients_are_sent_once_a_step_however_many_batches_it_has(left, name):
    sums = {"ddp": "allreduce_", "fsdp": "_reduce_scatter_base_"}[name[1:]]
    for numbers in counts(left, name):
        one, three = numbers["sent 1"], numbers["sent 3"]
        assert one[sums] == three[sums] > 0
        if sums != "allreduce_":
            assert one["allreduce_"] == three["allreduce_"] == 2  # the loss; whether to stop
            # embeddings and two layers on the way there, the layers again on the way back
            assert one["_allgather_base_"] == 5
            assert three["_allgather_base_"] == 15


@needs_fork
@pytest.mark.parametrize("name", READS)
def test_a_sharded_process_keeps_its_part_of_everything(left, name):
    (alone,) = counts(left, "1ddp")
    held = [numbers["bytes"] for numbers in counts(left, name)]
    for part, size in alone["bytes"].items():
        if "fsdp" not in name:
            assert [each[part] for each in held] == [size] * len(held)
        else:
            assert sum(each[part] for each in held) == size
            assert max(each[part] for each in held) < 1.02 * size / len(held)


# ---- what is counted by hand is what is used: numbers of 8 bytes here, of 4 in the formulas


@needs_fork
@pytest.mark.parametrize("name", READS)
def test_the_formula_of_memory(left, name):
    want = memory_per_gpu(GPTConfig(**SIZES), int(name[0]), name[1:])
    for numbers in counts(left, name):
        for part, size in numbers["bytes"].items():
            assert size == pytest.approx(2 * want[part], rel=0.02)  # parts of rows are no parts


@needs_fork
@pytest.mark.parametrize("name", ["2ddp", "2fsdp"])
@pytest.mark.parametrize("batches", [1, 3])
def test_the_formula_of_what_is_sent(left, name, batches):
    """In a ring of two, a sum of s bytes sends s, to fetch or to add up in parts sends s / 2."""
    want = 2 * sent_per_step(GPTConfig(**SIZES), 2, name[1:], batches)
    for numbers in counts(left, name):
        found = numbers[f"bytes {batches}"]
        parts = found.get("_allgather_base_", 0) + found.get("_reduce_scatter_base_", 0)
        sums = found["allreduce_"] if "fsdp" not in name else 0
        assert sums + parts / 2 == pytest.approx(want, rel=0.02)


# ---- alone


def test_alone_nothing_is_sharded():
    one, other = trainer("fsdp"), trainer("ddp")
    one.run(until=2)
    other.run(until=2)
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(a, b)
        assert whole(a) is a
        assert local(a) is a
        assert part_of(b, a) is b
    assert Team().spare(one.model, "fsdp") is one.model
    assert gathered({"a": a}, keep=False) == {}


def test_the_main_process_judges_a_copy():
    model = trainer().model
    assert Team(1, 2).spare(model, "fsdp") is model
    copy = Team(0, 2).spare(model, "fsdp")
    assert copy is not model
    assert copy.output.weight is copy.embedding.weight


def test_weights_go_into_another_model_whole():
    run = trainer()
    run.run(until=1)
    other = trainer("ddp", Team(3, 1)).model
    run.weights_into(other)
    assert torch.equal(other.embedding.weight, run.model.embedding.weight)


def test_another_way_of_dividing_is_refused_by_name():
    with pytest.raises(ValueError, match=r"parallel='zero' is not one of \('ddp', 'fsdp'\)"):
        TrainingConfig(parallel="zero")


def test_a_compiled_model_is_not_sharded():
    model = GPT(GPTConfig(11, 12, 3, 1, max_len=8))
    model.compile()
    with pytest.raises(ValueError, match="a compiled model can't be sharded"):
        shard(model, model)
