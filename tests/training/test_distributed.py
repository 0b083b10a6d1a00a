"""Several processes, sharded or not, train as one; a run's file is anybody's, whoever wrote it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parallel_worker import KILLED_IN, READS, SIZES, STEPS, trainer, translator
from support import assert_same_file, bounded

from tinytf.gpt import GPT, GPTConfig
from tinytf.training import checkpointing
from tinytf.training.distributed import Team, gathered, part_of, shard, team, whole
from tinytf.training.losses import make_batch
from tinytf_course.lessons.scaling import memory_per_gpu, sent_per_step

WORKER = Path(__file__).parents[1] / "parallel_worker.py"
MANY = [name for name in READS if name != "1ddp"]
PAIRS = ["2ddp", "2fsdp"]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The folder with what one, two and four processes have left, each way."""
    folder = tmp_path_factory.mktemp("teams")
    paths = [str(WORKER.parents[1]), str(WORKER.parents[1] / "notebooks")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
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
    files = [folder / f"numbers.{name}.{rank}" for rank in range(int(name[0]))]
    return [json.loads(file.read_text()) for file in files]


# ---- equal to one process


@needs_fork
@pytest.mark.parametrize("name", MANY)
def test_a_team_takes_the_steps_that_one_would(left, name):
    """Tied embeddings, two uneven batches a step, and a gradient that is cut by its whole norm."""
    assert_near(left / f"end.{name}", left / "end.1ddp")
    norms = [row["grad_norm"] for row in checkpointing.read(left / f"end.{name}")[1]["history"]]
    assert min(norms[-3:]) > 0.3  # so each step was cut


@needs_fork
def test_a_team_of_which_one_has_no_row_takes_the_steps_that_one_would(left, tmp_path):
    translator().run(log_every=2, save_to=tmp_path / "alone")
    assert_near(left / "pairs", tmp_path / "alone")


@needs_fork
@pytest.mark.parametrize(("reader", "writer"), [(r, w) for r in READS for w in READS[r]])
def test_any_team_goes_on_from_anybodys_file(left, reader, writer):
    assert_near(left / f"{writer}-{reader}", left / "end.1ddp")


@needs_fork
def test_runs_go_on_to_the_bit(left):
    """A sharded one, and one of which a process was killed, with dropout."""
    assert_same_file(left / "2fsdp-2fsdp", left / "end.2fsdp")
    assert_same_file(left / "resumed", left / "dropout")


@needs_fork
@pytest.mark.parametrize("name", PAIRS)
def test_recomputed_activations_change_no_bit(left, name):
    """With dropout: what is computed again drops the same."""
    assert_same_file(left / f"recomputed.{name}", left / f"drawn.{name}")


@needs_fork
@pytest.mark.parametrize("name", PAIRS)
def test_a_team_trains_in_bfloat16_as_one_does(left, name):
    (mine, header), (alone, want) = (checkpointing.read(left / f"half.{n}") for n in (name, "1ddp"))
    assert {n: t.dtype for n, t in mine.items()} == {n: t.dtype for n, t in alone.items()}
    for row, wanted in zip(header["history"], want["history"], strict=True):
        assert row["loss"] == pytest.approx(wanted["loss"], rel=2e-3)


@needs_fork
def test_processes_have_the_same_weights_and_drop_other_units(left):
    """Two shares with the same masks would not be the two halves of one batch."""
    first, second = (torch.load(left / f"weights.{rank}") for rank in (0, 1))
    assert all(map(torch.equal, first, second))
    seeds = [json.loads((left / f"seeds.{rank}").read_text()) for rank in (0, 1)]
    assert len({*seeds[0], *seeds[1]}) == 2 * (STEPS - 1)


# ---- a process that dies, or is told to stop


@needs_fork
def test_a_killed_process_ends_the_job_with_a_clear_word(left):
    said = (left / "error.0").read_text()
    assert said.startswith(f"process 0 of 2 lost another one in step {KILLED_IN}: ")
    assert "the last checkpoint is whole" in said
    assert checkpointing.read(left / "killed")[1]["step"] == KILLED_IN - 1
    alone = translator(dropout=0.3)  # one process resumes what two began
    alone.load(left / "killed")
    assert len(alone.run(log_every=1)) == STEPS - KILLED_IN + 2


@needs_fork
def test_all_stop_after_the_same_step_when_one_is_told_to(left):
    assert checkpointing.read(left / "stopped")[1]["step"] == 1
    for rank in (0, 1):
        assert (left / f"stopped.{rank}").read_text() == f"stopped after step 1 of {STEPS}"


# ---- what is kept, and what is sent: numbers of 8 bytes here, of 4 in the formulas


@needs_fork
@pytest.mark.parametrize("name", READS)
def test_a_sharded_process_keeps_its_part_of_everything(left, name):
    (alone,) = counts(left, "1ddp")
    held = [numbers["bytes"] for numbers in counts(left, name)]
    formula = memory_per_gpu(GPTConfig(**SIZES), int(name[0]), name[1:])
    for part, size in alone["bytes"].items():
        if "fsdp" not in name:
            assert [each[part] for each in held] == [size] * len(held)
        else:
            assert sum(each[part] for each in held) == size
        for each in held:
            assert each[part] == pytest.approx(2 * formula[part], rel=0.02)  # rows have no parts


@needs_fork
@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_sent_once_a_step_however_many_batches_it_has(left, name):
    """In a ring of two, a sum of s bytes sends s, to fetch or to add up in parts sends s / 2."""
    sums = {"ddp": "allreduce_", "fsdp": "_reduce_scatter_base_"}[name[1:]]
    for numbers in counts(left, name):
        one, three = numbers["sent 1"], numbers["sent 3"]
        assert one[sums] == three[sums] > 0
        if sums != "allreduce_":
            assert one["allreduce_"] == three["allreduce_"] == 2  # the loss; whether to stop
            # embeddings and two layers on the way there, the layers again on the way back
            assert one["_allgather_base_"] == 5
            assert three["_allgather_base_"] == 15
        for batches in (1, 3):
            found = numbers[f"bytes {batches}"]
            parts = found.get("_allgather_base_", 0) + found.get("_reduce_scatter_base_", 0)
            whole_sums = found["allreduce_"] if "fsdp" not in name else 0
            want = 2 * sent_per_step(GPTConfig(**SIZES), 2, name[1:], batches)
            assert whole_sums + parts / 2 == pytest.approx(want, rel=0.02)


# ---- one process


@bounded
@given(rows=st.integers(1, 9), size=st.integers(1, 5))
def test_every_row_is_somebodys_and_only_theirs(rows, size):
    batch = make_batch([[3 + i] for i in range(rows)], [[3]] * rows)
    shares = [Team(rank, size).share(batch) for rank in range(size)]
    taken = [row for share, counts in shares if counts for row in share.src[:, 0].tolist()]
    assert sorted(taken) == [3 + i for i in range(rows)]
    assert all(type(share) is type(batch) and len(share.src) >= 1 for share, _ in shares)
    assert sum(share.num_tokens * counts for share, counts in shares) == batch.num_tokens


def test_alone_nothing_is_shared_or_sharded(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with team(torch.device("cpu")) as (crew, device):
        assert (crew.alone, crew.is_main, device) == (True, True, torch.device("cpu"))
    batch = make_batch([[3]], [[4]])
    assert crew.share(batch) == (batch, 1.0)
    assert crew.total([1.5, 2], device) == [1.5, 2.0]
    one, other = trainer("fsdp"), trainer("ddp")
    for run in (one, other):
        run.run(until=2)
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(a, b)
        assert whole(a) is a
        assert part_of(b, a) is b
    assert crew.spare(one.model, "fsdp") is one.model
    assert gathered({"a": a}, keep=False) == {}


def test_only_the_main_process_writes_and_judges_a_copy(tmp_path):
    run = trainer()
    run.run(until=1)
    assert Team(1, 2).spare(run.model, "fsdp") is run.model
    copy = Team(0, 2).spare(run.model, "fsdp")
    assert copy is not run.model
    assert copy.output.weight is copy.embedding.weight
    other = trainer("ddp", Team(3, 1)).model
    run.weights_into(other)
    assert torch.equal(other.embedding.weight, run.model.embedding.weight)
    run.team = Team(1, 2)
    run.save(tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_what_can_not_be_is_said(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with (
        pytest.raises(ValueError, match=r"process 3 .* no GPU of its own: there are 2;"),
        team(torch.device("cuda")),
    ):
        pass
    with (
        pytest.raises(ValueError, match="4 processes can't share one MPS device"),
        team(torch.device("mps")),
    ):
        pass
    model = GPT(GPTConfig(11, 12, 3, 1, max_len=8))
    model.compile()
    with pytest.raises(ValueError, match="a compiled model can't be sharded"):
        shard(model, model)
    with pytest.raises(RuntimeError, match="out of memory"), Team(0, 2).words(0):
        raise RuntimeError("out of memory")  # which is not the network's
