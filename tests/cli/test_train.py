"""`python -m tinytf train`: training, stopping and resuming as a person does it."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from support import assert_same_file, interrupt_at

from tinytf.apps.translator import Translator
from tinytf.cli import train
from tinytf.training import checkpointing
from tinytf.training.trainer import TrainingConfig
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.phrasebook.batches import PhrasebookBatches

TINY = ["--steps", "6", "--warmup", "2", "--batch-size", "4", "--precision", "float32"]


@pytest.fixture(autouse=True)
def graded(monkeypatch):
    """Stand in for the long grading of 2,000 sentences; collects what would be graded."""
    calls = []
    monkeypatch.setattr(Phrasebook, "sample", lambda _, n, split, seed: [split] * n)
    monkeypatch.setattr(train, "exact_match", lambda _, pairs: calls.append(pairs) or 0.5)
    return calls


@pytest.fixture
def run(tmp_path):
    """Run the command, its file in a folder of its own unless it is named."""
    return lambda *options, out="run": train.main([*TINY, "--out", str(tmp_path / out), *options])


def tensors(path):
    return checkpointing.read(path)[0]


# ---- the command


def test_it_trains_saves_and_grades(run, tmp_path, graded, capsys):
    assert run("--export", str(tmp_path / "small")) == 0
    assert graded == [["validation"] * 2000]
    assert "exact match on 2,000 held-out sentences: 50.00 %" in capsys.readouterr().out
    assert checkpointing.read(tmp_path / "run")[1]["step"] == 6
    exported, whole = (Translator.load(tmp_path / name) for name in ("small", "run"))
    for a, b in zip(exported.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(a, b.half().float())
    assert os.path.getsize(tmp_path / "small") < 0.2 * os.path.getsize(tmp_path / "run")


def test_an_interrupted_run_resumes_to_the_same_bits(run, tmp_path, graded, capsys, monkeypatch):
    assert run(out="whole") == 0
    with monkeypatch.context() as patch:
        interrupt_at(patch, PhrasebookBatches, 3)
        assert run() == 130
    assert "stopped after step 4 of 6; add --resume to go on" in capsys.readouterr().out
    assert len(graded) == 1  # only the whole one
    assert checkpointing.read(tmp_path / "run")[1]["step"] == 4
    assert run("--resume") == 0
    assert_same_file(tmp_path / "run", tmp_path / "whole")


def test_seeds_differ_and_repeat(run, tmp_path):
    for name, seed in (("a", "0"), ("b", "0"), ("c", "5")):
        run("--seed", seed, out=name)
    assert_same_file(tmp_path / "a", tmp_path / "b")
    name = "model/src_embedding.weight"
    assert not torch.equal(tensors(tmp_path / "a")[name], tensors(tmp_path / "c")[name])


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to a child")
def test_ctrl_c_in_a_terminal_loses_nothing(tmp_path):
    """A real process: Ctrl-C while it trains, exit status 130, and every finished step on disk."""
    path = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "tinytf",
        "train",
        *TINY,
        "--steps",
        "100000",
        "--device",
        "cpu",
    ]
    with subprocess.Popen(
        [*command, "--out", path, "--save-every", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        deadline = time.monotonic() + 60
        while not path.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    step = checkpointing.read(path)[1]["step"]
    assert f"stopped after step {step} of 100000; add --resume to go on" in out
    config = TrainingConfig(steps=100000, warmup=2, precision="float32")
    trainer, _ = train.build(config, batch_size=4, device="cpu", pool=4)
    trainer.run(until=step)
    trainer.save(tmp_path / "again")
    assert_same_file(path, tmp_path / "again")


# ---- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", "8"], "trained with batch_size=4, but this run has batch_size=8"),
        (["--pool", "3"], "trained with pool=4, but this run has pool=3"),
        (["--attention", "explicit"], "attention=fused, but this run has attention=explicit"),
        (["--steps", "9"], "trained with steps=6, but this run has steps=9"),
        (["--seed", "1"], "trained with seed=0, but this run has seed=1"),
        (["--lr", "0.5", "--warmup", "3"],
         "lr=0.002, warmup=2, but this run has lr=0.5, warmup=3"),
    ],
)  # fmt: skip
def test_a_run_is_not_resumed_with_other_options(run, tmp_path, capsys, options, message):
    run()
    before = (tmp_path / "run").read_bytes()
    assert run("--resume", *options) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "run").read_bytes() == before


def test_a_run_with_other_words_is_not_resumed(run, tmp_path, capsys):
    """The same number of words in another order would change what every id means."""
    run()
    held, header = checkpointing.read(tmp_path / "run")
    header["source_words"] = header["source_words"][::-1]
    checkpointing.write(tmp_path / "run", held, header)
    assert run("--resume") == 2
    assert "words" in capsys.readouterr().err


def test_a_run_is_not_overwritten_and_there_must_be_one_to_resume(run, tmp_path, capsys):
    assert run("--resume") == 2
    assert "there is no checkpoint at" in capsys.readouterr().err
    (tmp_path / "run").write_bytes(b"junk")
    assert run("--resume") == 2
    assert "run (4 bytes) is truncated" in capsys.readouterr().err
    assert run() == 2
    assert "run exists: add --resume to go on, or choose another --out" in capsys.readouterr().err
    assert (tmp_path / "run").read_bytes() == b"junk"


@pytest.mark.parametrize(("steps", "warmup"), [(1, 1), (5, 2), (300, 150), (3000, 200)])
def test_the_warm_up_fits_a_short_run_and_nothing_depends_on_timing(
    steps, warmup, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    seen = []
    monkeypatch.setattr(train, "_train", lambda o, c, *_: seen.append((c, o.pool)) or 0)
    assert train.main(["--steps", str(steps)]) == 0
    assert [(c.warmup, c.attention, pool) for c, pool in seen] == [(warmup, "fused", 4)]


def test_a_run_goes_on_by_itself_and_in_another_way(run, tmp_path, graded, monkeypatch):
    """`--resume auto` begins where there is no file; how a step is computed may change."""
    assert run("--resume", "auto", out="whole") == 0
    with monkeypatch.context() as patch:
        interrupt_at(patch, PhrasebookBatches, 3)
        assert run("--resume", "auto") == 130
    assert run("--resume", "auto", "--recompute", "--parallel", "fsdp") == 0
    assert_same_file(tmp_path / "run", tmp_path / "whole")
    assert checkpointing.read(tmp_path / "run")[1]["training"]["recompute"]


def test_a_run_from_before_pools_could_be_chosen_goes_on(run, tmp_path, capsys):
    run("--pool", "50", "--steps", "4")
    held, header = checkpointing.read(tmp_path / "run")
    del header["pool"]
    checkpointing.write(tmp_path / "run", held, header)
    assert run("--resume", "--steps", "4") == 2
    assert "trained with pool=50, but this run has pool=4" in capsys.readouterr().err
    assert run("--resume", "--steps", "4", "--pool", "50") == 0


def test_a_checkpoint_from_elsewhere_is_not_resumed(run, tmp_path, capsys):
    """A notebook's `trainer.run(save_to=...)` writes no vocabularies unless it is asked to."""
    trainer, _ = train.build(TrainingConfig(steps=6, warmup=2), batch_size=4, device="cpu")
    trainer.run(until=1, save_to=tmp_path / "run")
    assert run("--resume", "--device", "cpu") == 2
    assert "run was not written by this command: it lacks batch_size" in capsys.readouterr().err


def test_without_the_course_it_says_what_to_install(run, monkeypatch, capsys):
    monkeypatch.setattr("tinytf.support.handed_in._PLACES", {})
    monkeypatch.setattr("tinytf.support.handed_in._installed", dict)
    assert run() == 2
    assert "the phrasebook is part of the course" in capsys.readouterr().err
