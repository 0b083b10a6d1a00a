"""A small slice of the campaign of faults; `python -m tests.faults` runs all of it."""

import os
import signal
import time

import pytest
import torch
from faults import specimens
from faults.files import try_files
from faults.nodes import NEAR, STEPS, Job, differs
from faults.processes import FAULTS, try_processes
from faults.report import BAD, Case, table

from tinytf.cli import pretrain, train
from tinytf.gpt import GPT
from tinytf.training import checkpointing
from tinytf_course.phrasebook import Phrasebook

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA does not survive a fork")


def assert_nothing_is_lost(cases):
    """All of them were tried, and none came to a bad end."""
    bad = [case for case in cases if case.outcome in BAD]
    assert not bad, "\n" + "\n".join(map(str, bad)) + "\n" + table(cases)


@no_gpu
def test_broken_files_are_refused_or_mean_what_they_say(tmp_path):
    cases = list(try_files(tmp_path, seed=7, count=84, until=time.monotonic() + 600))
    assert len(cases) == 84
    assert_nothing_is_lost(cases)
    assert {case.outcome for case in cases} >= {"clear error", "unharmed"}


@no_gpu
def test_stopped_runs_lose_nothing(tmp_path, monkeypatch):
    for name in ("build", "exact_match"):  # the campaign puts others there
        monkeypatch.setattr(train, name, getattr(train, name))
    monkeypatch.setattr(Phrasebook, "sample", Phrasebook.sample)
    count = len(FAULTS)
    cases = list(try_processes(tmp_path, seed=7, count=count, until=time.monotonic() + 600))
    assert len(cases) == count
    assert_nothing_is_lost(cases)


def test_a_killed_node_leaves_its_work_to_the_other(tmp_path, monkeypatch):
    """Two nodes, sharded; one is killed in the midst, and what is left goes on from the file."""
    job = Job(tmp_path / "job", "fsdp", least=1)
    try:
        assert job.wait_for(15)
        assert job.out.exists()
    finally:
        job.kill_node("b")
        ended = job.wait()
    words = (job.folder / "a.words").read_text()
    assert ended == [0, -signal.SIGKILL], words[-2000:]
    assert "of 2 lost another one in step" in words  # so it was not alone before
    assert checkpointing.read(job.out)[1]["step"] == STEPS
    monkeypatch.setattr(pretrain, "GPT", lambda config: GPT(config).double())
    assert pretrain.main(job.arguments(tmp_path / "whole")) == 0
    assert differs(job.out, tmp_path / "whole") < NEAR


# ---- the campaign can see what it looks for


def test_a_crash_a_raw_error_and_a_loss_are_told_apart(tmp_path, monkeypatch):
    """Loaders that end the process, raise anything, or take damage for whole."""
    ends = {
        "crash": lambda folder: os._exit(99),
        "raw error": lambda folder: {}["missing"],
        "lost": lambda folder: "other" if "broken" in str(folder) else "whole",
    }

    def make(folder):
        for name in ends:
            (folder / name).mkdir()
            (folder / name / "file").write_bytes(bytes(99))

    def load(name):
        return lambda folder: "whole" if folder.name == name else ends[name](folder)

    wrong = [specimens.Specimen(name, "model", ("file",), load(name)) for name in ends]
    monkeypatch.setattr("faults.files.make", make)
    monkeypatch.setattr("faults.files.specimens", lambda: wrong)
    cases = list(try_files(tmp_path, seed=0, count=3, until=time.monotonic() + 60))
    assert [case.outcome for case in cases] == ["crash", "raw error", "lost"]


def test_the_table_adds_up():
    lines = table([Case("a", "x", "lost"), Case("a", "y", "crash"), Case("bb", "z", "unharmed")])
    assert lines.splitlines()[1:] == [
        "a           2            0         0         0          0      1     1",
        "bb          1            0         1         0          0      0     0",
        "in all      3            0         1         0          0      1     1",
    ]
