"""Several processes train as one: equal weights, one writer, one end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parallel_worker import KILLED_IN, STEPS, trainer
from support import assert_same_file, bounded

from tinytf.training import checkpointing
from tinytf.training.distributed import Team, team
from tinytf.training.losses import make_batch

WORKER = Path(__file__).parents[1] / "parallel_worker.py"


def launch(folder, what):
    """Start two processes as a person does, and return what became of the job."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
               "--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0",
               str(WORKER), str(folder), what]  # fmt: skip
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(
            [str(WORKER.parents[1]), str(WORKER.parents[1] / "notebooks")]
        ),
    }
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder that a killed job, and then a whole one, have left; and how the first ended."""
    folder = tmp_path_factory.mktemp("runs")
    first = launch(folder, "killed")
    second = launch(folder, "whole")
    assert second.returncode == 0, second.stderr
    return folder, first


# ---- shares


@bounded
@given(rows=st.integers(1, 9), size=st.integers(1, 5))
def test_every_row_is_somebodys_and_only_theirs(rows, size):
    batch = make_batch([[3 + i] for i in range(rows)], [[3]] * rows)
    shares = [Team(rank, size).share(batch) for rank in range(size)]
    taken = [row for share, counts in shares if counts for row in share.src[:, 0].tolist()]
    assert sorted(taken) == [3 + i for i in range(rows)]
    assert all(type(share) is type(batch) and len(share.src) >= 1 for share, _ in shares)
    assert sum(share.num_tokens * counts for share, counts in shares) == batch.num_tokens


def test_alone_nothing_is_shared_or_wrapped():
    crew, batch = Team(), make_batch([[3]], [[4]])
    assert crew.alone
    assert crew.is_main
    assert crew.share(batch)[0] is batch
    assert crew.total([1.5, 2], torch.device("cpu")) == [1.5, 2.0]


# ---- two processes


@pytest.mark.parametrize("kind", ["pairs", "texts"])
def test_two_processes_are_one(runs, kind):
    """Six steps in float64, with batches of 5, 1 and 4 sentences, or two batches a step."""
    folder, _ = runs
    alone = trainer(kind)
    alone.run(log_every=2)
    theirs, header = checkpointing.read(folder / kind)
    for name, parameter in alone.model.named_parameters():
        torch.testing.assert_close(theirs[f"model/{name}"], parameter, rtol=0, atol=1e-9, msg=name)
    for row, want in zip(header["history"], alone.history, strict=True):
        for key in ("step", "loss", "lr", "grad_norm"):
            assert row[key] == pytest.approx(want[key], rel=1e-6)  # summed in float32


def test_float32_stays_near_too(runs):
    """What 1e-6 means where sums round: the losses, since Adam makes steps of rounding errors."""
    folder, _ = runs
    alone = trainer("pairs")
    alone.model.float()
    alone.run(log_every=2)
    history = checkpointing.read(folder / "pairs")[1]["history"]
    for row, want in zip(history, alone.history, strict=True):
        assert row["loss"] == pytest.approx(want["loss"], rel=1e-4)


def test_two_processes_are_one_in_bfloat16_too(runs):
    """Each casts its matrices once a step, and sums are of float32: losses are near."""
    folder, _ = runs
    alone = trainer("half")
    alone.run(log_every=2)
    assert alone.matrices._copies
    tensors, header = checkpointing.read(folder / "half")
    assert {t.dtype for n, t in tensors.items() if n.startswith("model/")} == {torch.float32}
    for row, want in zip(header["history"], alone.history, strict=True):
        assert row["loss"] == pytest.approx(want["loss"], rel=2e-3)
        assert row["grad_norm"] == pytest.approx(want["grad_norm"], rel=2e-2)


@pytest.mark.parametrize("kind", ["pairs", "texts", "dropout", "half"])
def test_both_end_with_the_same_bits(runs, kind):
    folder, _ = runs
    first, second = (torch.load(folder / f"{kind}.{rank}.weights") for rank in (0, 1))
    assert torch.equal(first, second)


def test_each_process_drops_other_units_at_each_step(runs):
    """Two shares with the same masks would not be the two halves of one batch."""
    folder, _ = runs
    seeds = [json.loads((folder / f"dropout.{rank}.seeds").read_text()) for rank in (0, 1)]
    assert len({*seeds[0], *seeds[1]}) == 2 * (STEPS - 1)


# ---- a process that dies


def test_a_killed_process_ends_the_job_with_a_clear_word(runs):
    folder, job = runs
    assert job.returncode != 0
    said = (folder / "error.0").read_text()
    assert said.startswith(f"process 0 of 2 lost another one in step {KILLED_IN}: ")
    assert "the last checkpoint is whole" in said
    assert checkpointing.read(folder / "killed")[1]["step"] == KILLED_IN - 1


def test_two_processes_resume_to_the_same_bits(runs):
    folder, _ = runs
    assert_same_file(folder / "resumed", folder / "dropout")


def test_one_process_resumes_what_two_began(runs):
    folder, _ = runs
    alone = trainer("dropout")
    alone.load(folder / "killed")
    assert alone.step == KILLED_IN - 1
    alone.run(log_every=2)
    assert alone.step == STEPS
    again = trainer("dropout")
    again.load(folder / "killed")
    again.run(log_every=2)
    for a, b in zip(alone.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_all_stop_after_the_same_step_when_one_is_told_to(runs):
    folder, _ = runs
    assert checkpointing.read(folder / "stopped")[1]["step"] == 1
    for rank in (0, 1):
        assert (folder / f"stopped.{rank}").read_text() == f"stopped after step 1 of {STEPS}"


def test_only_the_first_writes(tmp_path):
    run = trainer("pairs")
    run.team = Team(1, 2)
    run.save(tmp_path / "file")
    assert not (tmp_path / "file").exists()


# ---- what can't be


def test_processes_that_find_no_device_of_their_own_are_told(monkeypatch):
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


def test_without_torchrun_a_process_is_alone(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with team(torch.device("cpu")) as (crew, device):
        assert crew.alone
        assert device == torch.device("cpu")


def test_an_error_that_is_not_the_networks_stays_what_it_is():
    with pytest.raises(RuntimeError, match="out of memory"), Team(0, 2).words(0):
        raise RuntimeError("out of memory")
