"""What every command does about files, signals and bad options, before and after it computes."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import interrupt_at

from tinytf.cli import pretrain, train, write
from tinytf.training import checkpointing
from tinytf_course.phrasebook.batches import PhrasebookBatches
from tinytf_course.studies import __main__ as studies_command

TINY = ["--steps", "6", "--warmup", "2", "--batch-size", "4", "--precision", "float32"]
unix = pytest.mark.skipif(os.name == "nt", reason="links and modes as Unix has them")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run `train`, graded at once, its file in a folder of its own."""
    monkeypatch.setattr(train, "exact_match", lambda *_: 0.5)
    return lambda *options, out="run": train.main([*TINY, "--out", str(tmp_path / out), *options])


@pytest.fixture
def idle(monkeypatch):
    """Building anything at all is an error: what is wrong must be said before."""
    for module in (train, pretrain):
        monkeypatch.setattr(module, "build", lambda *_, **__: pytest.fail("it began to build"))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ---- the file is tried before the first step


def test_where_nothing_can_be_written_nothing_is_computed(run, idle, tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    for out, words in (
        ("taken/run", "a file is where a folder should be"),
        ("x" * 300, "its name is too long"),
        (".", "it is a folder; name a file in it"),
    ):
        assert run(out=out) == 2
        assert words in capsys.readouterr().err
        assert run("--export", str(tmp_path / out), out="run") == 2
        assert words in capsys.readouterr().err
    assert names(tmp_path) == ["taken"]


@unix
def test_a_device_is_not_replaced(run, idle, capsys):
    assert run(out="/dev/null") == 2
    assert "could not write /dev/null: it is a device, not a file" in capsys.readouterr().err


def test_what_is_not_permitted_is_called_that_and_not_missing(
    run, idle, tmp_path, capsys, monkeypatch
):
    (tmp_path / "there").write_text("a text " * 100)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert run(out="there") == 2
        assert "there: the file that is there is read-only" in capsys.readouterr().err
    kept = Path.open

    def closed(path, *mode, **named):
        if path.parent == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return kept(path, *mode, **named)

    monkeypatch.setattr(Path, "open", closed)
    assert run() == 2
    assert "run: there is no permission" in capsys.readouterr().err
    there = str(tmp_path / "there")
    for main in (
        lambda: run("--resume", out="there"),
        lambda: pretrain.main(["--text", there, "--out", str(tmp_path / "far" / "run")]),
        lambda: write.main(["a", "--model", there]),
    ):
        assert main() == 2
        assert "there: there is no permission" in capsys.readouterr().err


def test_a_text_that_is_none_is_named(idle, tmp_path, capsys):
    for path, words in ((tmp_path, "it is a folder"), (tmp_path / "none", "there is no such file")):
        assert pretrain.main(["--text", str(path), "--out", str(tmp_path / "run")]) == 2
        assert f"error: {path}: {words}" in capsys.readouterr().err
    assert pretrain.main(["--text", "x" * 300, "--out", str(tmp_path / "run")]) == 2
    assert "its name is too long" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lr", "inf"], "lr must be a finite number of at least 0, got inf"),
        (["--lr", "nan"], "lr must be a finite number of at least 0, got nan"),
        (["--lr", "-1"], "lr must be a finite number of at least 0, got -1"),
        (["--lr", "0"], "--lr 0 would leave every weight as it is"),
        (["--min-lr", "1"], "min_lr must lie in 0..lr="),
        (["--steps", "0"], "steps must be at least 1, got 0"),
        (["--batch-size", "0"], "at least one pair, got size=0"),
        (["--save-every", "-1"], "--save-every must be at least 0 seconds, got -1"),
        (["--save-every", "nan"], "--save-every must be at least 0 seconds, got nan"),
    ],
)
def test_bad_rates_and_times_are_refused(run, tmp_path, capsys, options, message):
    assert run(*options) == 2
    assert message in capsys.readouterr().err
    assert names(tmp_path) == []


# ---- one file, one meaning


@unix
def test_the_export_must_not_take_the_runs_place(run, idle, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("a text")
    os.symlink("run", tmp_path / "link")
    os.symlink(".", tmp_path / "folder")
    os.link(tmp_path / "there", tmp_path / "hard")
    for export in ("run", "./run", "link", "folder/run"):
        assert run("--export", export) == 2
        assert "is the file of --out: one would destroy the other" in capsys.readouterr().err
    assert run("--resume", "--export", "hard", out="there") == 2
    assert "is the file of --out" in capsys.readouterr().err
    for text in ("there", "hard"):
        command = ["--text", text, "--export", "there", "--out", "run"]
        assert pretrain.main(command) == 2
        assert "is the file of --export" in capsys.readouterr().err


@unix
def test_links_are_followed_and_modes_kept(run, tmp_path):
    (tmp_path / "far").mkdir()
    os.symlink("far/real", tmp_path / "run")
    assert run("--steps", "4") == 0
    real = tmp_path / "far" / "real"
    assert (tmp_path / "run").is_symlink()
    assert real.is_file()
    real.chmod(0o640)
    assert run("--resume", "--steps", "4") == 0
    assert (tmp_path / "run").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path / "far") == ["real"]


# ---- two writers, and what killed ones leave


HOLD = """
import sys, time
from tinytf.support.locks import sole_writer
with sole_writer(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name == "nt", reason="kills as Unix does")
def test_two_runs_do_not_write_one_file(run, tmp_path, capsys):
    os.symlink(tmp_path / "run", tmp_path / "alias")
    command = [sys.executable, "-c", HOLD, str(tmp_path / "alias")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        assert run() == 2
        assert "another run is writing" in capsys.readouterr().err
        other.kill()
    assert run() == 0  # the killed one's lock was its own, and is gone with it
    assert names(tmp_path) == ["alias", "run"]


# ---- Ctrl-C


def twice_at(patch, step, raising=False):
    """Press Ctrl-C twice when this step's batch is asked for."""
    asked = PhrasebookBatches.__call__

    def interrupting(self, number):
        if number == step:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return asked(self, number)

    patch.setattr(PhrasebookBatches, "__call__", interrupting)


def test_two_ctrl_c_before_the_first_save_do_not_promise_a_file(run, tmp_path, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        twice_at(patch, 3)
        assert run() == 130
    assert "stopped at once, after step 3 of 6: nothing was saved" in capsys.readouterr().out
    assert names(tmp_path) == []
    with monkeypatch.context() as patch:
        twice_at(patch, 3)
        assert run("--save-every", "0") == 130
    assert "stopped after step 3 of 6; add --resume to go on" in capsys.readouterr().out
    assert checkpointing.read(tmp_path / "run")[1]["step"] == 3


def test_two_ctrl_c_after_a_save_say_what_the_file_holds(run, tmp_path, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_at(patch, PhrasebookBatches, 1)
        assert run() == 130
    with monkeypatch.context() as patch:
        twice_at(patch, 4)
        assert run("--resume") == 130
    said = capsys.readouterr().out
    assert f"stopped at once, after step 4 of 6: {tmp_path / 'run'} holds the first 2;" in said
    assert run("--resume") == 0


def test_ctrl_c_while_it_grades_is_quiet(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(train, "exact_match", lambda *_: signal.raise_signal(signal.SIGINT))
    assert run() == 130
    assert "Traceback" not in capsys.readouterr().err
    assert checkpointing.read(tmp_path / "run")[1]["step"] == 6


STARTING = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"


@unix
@pytest.mark.parametrize("command", ["train", "pretrain", "write"])
def test_ctrl_c_while_it_starts_is_quiet(command, tmp_path):
    """A torch that is interrupted while it is imported."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(STARTING)
    root = Path(train.__file__).parents[2]
    paths = os.pathsep.join([str(tmp_path), str(root), str(root / "notebooks")])
    done = subprocess.run(
        [sys.executable, "-m", "tinytf", command],
        capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_importing_the_package_leaves_ctrl_c_alone():
    ask = "import signal, tinytf; print(signal.getsignal(2) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n"


# ---- studies


@pytest.fixture
def quick(monkeypatch):
    """One study, that takes no time."""
    begun = []
    known = {"quick": lambda: begun.append(1) or [{"a": 1}]}
    monkeypatch.setattr(studies_command, "available", lambda: known)
    return begun


def test_a_study_looks_at_the_folder_first(quick, tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert studies_command.main(["quick", "--folder", str(tmp_path / "taken")]) == 2
    assert "a file is where a folder should be" in capsys.readouterr().err
    assert quick == []
    assert studies_command.main(["quick", "--folder", str(tmp_path / "new")]) == 0
    assert names(tmp_path / "new") == ["quick.json"]


def test_a_study_stopped_is_quiet(quick, tmp_path, capsys, monkeypatch):
    stopped = {"quick": lambda: signal.raise_signal(signal.SIGINT) or time.sleep(9)}
    monkeypatch.setattr(studies_command, "available", lambda: stopped)
    assert studies_command.main(["quick", "--folder", str(tmp_path)]) == 130
    assert names(tmp_path) == []
