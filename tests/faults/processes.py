"""Stopped processes: training killed, interrupted, out of space and doubled, then gone on with.

Each is a forked child that runs the command as a person does, with a smaller model. What it ends
with must be, to the bit, what an unbroken run ends with; what it says must be true.
"""

import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from tinytf.cli import pretrain, train
from tinytf.support.files import CheckpointError
from tinytf.training import checkpointing

from .report import Case
from .specimens import SIZES, TEXT, build_translator

STEPS = 30
COMMON = ["--steps", str(STEPS), "--warmup", "3", "--precision", "float32", "--device", "cpu",
          "--save-every", "0", "--batch-size", "2"]  # fmt: skip
PATIENCE = 120  # seconds for one process
_train_build = train.build


class Child:
    """A forked process that runs a command, its words in a file."""

    def __init__(self, command: Callable[[], int], words: Path) -> None:
        self.command, self.path, self.pid = command, words, os.fork()
        if self.pid == 0:
            status = 70
            try:
                out = os.open(words, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(out, 1)
                os.dup2(out, 2)
                sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1) for n in (1, 2))
                signal.alarm(PATIENCE)
                status = command()
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)

    def wait(self) -> tuple[int, str]:
        """Wait for its end; returns the status, below 0 for a signal, and what it has said."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return status, self.path.read_text(encoding="utf-8", errors="replace")


class Lab:
    """A folder in which runs are begun, and the end that each command's unbroken run comes to."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        torch.set_num_threads(1)
        build_translator()  # what is read once is then there in every child
        self.folder, self.text = folder, folder / "text"
        self.text.write_text(TEXT * 4)
        train.build = partial(_train_build, **SIZES)
        train.exact_match = lambda *_: 0.5  # of no sentences: the grading is not what is tried
        from tinytf_course.phrasebook import Phrasebook

        Phrasebook.sample = lambda *_, **__: []
        self.whole, self.seconds, self.begun = {}, {}, 0
        for name in ("train", "pretrain"):
            begun = time.monotonic()
            status, words = self.start(name, folder / f"whole.{name}").wait()
            if status != 0:
                raise RuntimeError(f"the unbroken run failed: {words}")
            self.seconds[name] = time.monotonic() - begun
            self.whole[name] = checkpointing.read(folder / f"whole.{name}")[0]

    def start(self, name: str, out: Path, before: Callable[[], None] = lambda: None) -> Child:
        """Begin a run of a command, or go on with one; `before` is called in the child."""
        arguments = [*COMMON, "--out", str(out), *(["--resume"] if out.exists() else [])]
        if name == "pretrain":
            sizes = {"vocab_size": 262, "max_len": 8} | {n: SIZES[n] for n in list(SIZES)[:3]}
            arguments += [f"--{n.replace('_', '-')}={v}" for n, v in sizes.items()]
            arguments += ["--text", str(self.text), "--evaluate-every", "10"]
        main = {"train": train.main, "pretrain": pretrain.main}[name]
        self.begun += 1
        return Child(lambda: before() or main(arguments), self.folder / f"words.{self.begun}")

    def finish(self, name: str, out: Path) -> str:
        """Go on to the end if there is a file, else begin anew; returns what is lost, or ''."""
        try:
            step = checkpointing.read(out)[1]["step"] if out.exists() else None
        except CheckpointError as error:
            return f"lost: the file is broken: {error}"
        status, words = self.start(name, out).wait()
        if status != 0:
            return f"lost: going on from step {step} ended with {status}: {words[-200:]}"
        ended, whole = checkpointing.read(out)[0], self.whole[name]
        if ended.keys() != whole.keys() or any(not torch.equal(ended[n], whole[n]) for n in whole):
            return f"lost: going on from step {step} came to another end"
        left = [p.name for p in out.parent.iterdir() if p != out]
        return f"lost: left behind: {', '.join(left)}" if left else ""


def try_processes(folder: Path, seed: int, count: int, until: float) -> Iterator[Case]:
    """Stop `count` processes, or as many as there is time for; yields what became of each."""
    draw, lab = random.Random(seed), Lab(folder)
    for number in range(count):
        if time.monotonic() > until:
            return
        kind, name = list(FAULTS)[number % len(FAULTS)], draw.choice(["train", "pretrain"])
        out = folder / f"run.{number}" / "run"
        out.parent.mkdir()
        outcome, _, words = FAULTS[kind](lab, draw, name, out).partition(": ")
        yield Case(kind, f"{name} {number}", outcome, words)


def kill(lab: Lab, draw: random.Random, name: str, out: Path) -> str:
    """Kill -9 at any time, up to three times, before it is let go on."""
    for _ in range(draw.randint(1, 3)):
        child = lab.start(name, out)
        time.sleep(draw.uniform(0, 1.1) * lab.seconds[name])
        os.kill(child.pid, signal.SIGKILL)
        status, words = child.wait()
        if status not in (-signal.SIGKILL, 0, 2) or "Traceback" in words:
            return f"crash: ended with {status}: {words[-200:]}"
    return lab.finish(name, out) or "unharmed"


def interrupt(lab: Lab, draw: random.Random, name: str, out: Path) -> str:
    """Ctrl-C, or termination, once to three times."""
    child = lab.start(name, out)
    time.sleep(draw.uniform(0.1, 1.1) * lab.seconds[name])
    number = draw.choice([signal.SIGINT, signal.SIGTERM])
    for _ in range(draw.randint(1, 3)):
        os.kill(child.pid, number)
        time.sleep(draw.choice([0, 0.001, 0.02]))
    status, words = child.wait()
    # a SIGTERM may come before there is anything to save
    if status not in (0, 130, -signal.SIGTERM) or "Traceback" in words:
        return f"crash: ended with {status}: {words[-200:]}"
    held = checkpointing.read(out)[1]["step"] if out.exists() else None
    if "add --resume to go on" in words and (
        held is None or (f"step {held} of" not in words and f"the first {held};" not in words)
    ):
        return f"lost: it promised what is not there: {words[-200:]}"
    if "nothing was saved" in words and held is not None:
        return f"lost: there is a file: {words[-200:]}"
    return lab.finish(name, out) or "unharmed"


def fill(lab: Lab, draw: random.Random, name: str, out: Path) -> str:
    """A disk that takes no more than so many bytes of a file, at once or after some steps."""
    if draw.random() < 0.7:
        child = lab.start(name, out)
        time.sleep(draw.uniform(0.3, 0.9) * lab.seconds[name])
        os.kill(child.pid, signal.SIGINT)
        child.wait()
    held = out.read_bytes() if out.exists() else None
    room = draw.randrange(os.path.getsize(lab.folder / f"whole.{name}") - 1000)
    # what is said is in a file too, and needs some room
    limit = (max(room, 4096), resource.RLIM_INFINITY)
    status, words = lab.start(
        name, out, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    ).wait()
    finished = held is not None and status == 0  # there was no step left to save
    if "Traceback" in words or not (finished or (status == 2 and "could not write" in words)):
        return f"raw error: ended with {status}: {words[-200:]}"
    if not finished and held != (out.read_bytes() if out.exists() else None):
        return "lost: the file that was there, or none, is another one"
    return lab.finish(name, out) or f"clear error: {words[-100:].strip()}"


def two_writers(lab: Lab, draw: random.Random, name: str, out: Path) -> str:
    """Two runs on one path, begun together or one a little later: one may write."""
    first = lab.start(name, out)
    time.sleep(draw.choice([0, 0, 0.005, 0.05, 0.5 * lab.seconds[name]]))
    second = Child(first.command, lab.folder / f"words.{lab.begun}.second")
    (_, one), (status, refused) = ended = sorted(child.wait() for child in (first, second))
    if "Traceback" in one + refused:
        return f"raw error: {refused[-200:]}"
    if [status for status, _ in ended] != [0, 2]:
        return f"lost: one ended with {status}: {refused[-200:]}"
    if not ("another run is writing" in refused or "exists: add --resume" in refused):
        return f"raw error: {refused[-200:]}"
    return lab.finish(name, out) or "clear error: " + refused.strip()[-100:]


FAULTS: dict[str, Callable[[Lab, random.Random, str, Path], str]] = {
    "kill": kill,
    "interrupt": interrupt,
    "fill": fill,
    "two writers": two_writers,
}
