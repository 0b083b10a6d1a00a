"""Processes and nodes killed: two `torchrun`s on the loopback, which meet at a store of their own.

A node is a `torchrun` and its processes. The store where they meet is a third machine's, as it
should be: with torch's default it is one of the nodes, and that one must not die.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from torch.distributed import TCPStore

from tinytf.training import checkpointing

from .report import Case

STEPS = 40
NEAR = 1e-6  # of weights and moments, in float64, where fewer processes than two went on
WORKER = Path(__file__).with_name("node.py")
PATIENCE = 300  # seconds for a job
QUICKLY = "is_host=0,last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=2"


class Job:
    """Two nodes that train one model: `a` and `b`."""

    def __init__(self, folder: Path, parallel: str, least: int) -> None:
        folder.mkdir(parents=True)
        self.folder, self.out = folder, folder / "run"
        self.parallel, self.least = parallel, least
        self.store = TCPStore(
            "localhost", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=30)
        )
        (folder / "text").write_text("the cat sat on the mat, and the dog ate the log.\n" * 200)
        self.nodes: dict[str, subprocess.Popen] = {}
        for name in "ab":
            self.start(name)

    def arguments(self, out: Path) -> list[str]:
        """What `pretrain` is told: a small model, and a file at `out`."""
        return ["--vocab-size=262", "--d-model=24", "--num-heads=2", "--num-layers=2",
                "--max-len=16", "--dropout=0", "--batch-size=3", f"--steps={STEPS}", "--warmup=3",
                "--precision=float32", "--device=cpu", "--save-every=0.1", "--resume=auto",
                f"--text={self.folder / 'text'}", f"--out={out}",
                f"--parallel={self.parallel}"]  # fmt: skip

    def start(self, name: str) -> None:
        """Start a node, for the first time or again."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={self.least}:2",
                   "--nproc-per-node=1", "--max-restarts=9", "--monitor-interval=0.1",
                   "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{self.store.port}",
                   f"--rdzv-conf={QUICKLY}", str(WORKER), *self.arguments(self.out)]  # fmt: skip
        root = Path(__file__).parents[2]
        paths = [str(root), str(root / "notebooks"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "TINYTF_NODE": str(place), "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths),
            # else a node says where its processes meet in its first round only: those of a node
            # that comes later would wait for it in vain (torch 2.13; pytorch pull request 167301)
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }  # fmt: skip
        with (self.folder / f"{name}.words").open("a") as words:
            self.nodes[name] = subprocess.Popen(
                command, stdout=words, stderr=words, env=environment, start_new_session=True
            )

    def processes(self, name: str) -> list[int]:
        """The processes of a node that have begun and not ended by themselves."""
        return [int(p.name) for p in (self.folder / name).iterdir() if p.name.isdigit()]

    def kill_processes(self, name: str) -> None:
        """Kill -9 what computes on a node; its `torchrun` stays."""
        for pid in self.processes(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            (self.folder / name / str(pid)).unlink(missing_ok=True)

    def kill_node(self, name: str) -> None:
        """Kill -9 a node: `torchrun` first, so that it starts nothing again."""
        self.nodes[name].kill()
        self.nodes[name].wait()
        self.kill_processes(name)

    def wait_for(self, step: int) -> bool:
        """Wait until some node has begun this step; False if both ended before, or never did."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for name in "ab":
                said = self.folder / name / "step"
                with contextlib.suppress(OSError, ValueError):
                    if int(said.read_text()) >= step:
                        return True
            if all(node.poll() is not None for node in self.nodes.values()):
                return False
            time.sleep(0.02)
        return False

    def wait(self) -> list[int]:
        """Wait for the end of both nodes; what does not end is killed."""
        end = time.monotonic() + PATIENCE
        for name, node in self.nodes.items():
            try:
                node.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.kill_node(name)
        return [node.returncode for node in self.nodes.values()]


FAULTS = {"process": 2, "node, back": 2, "node, for good": 1, "both nodes": 2}  # so many go on


def act(kind: str, job: Job, draw: random.Random) -> None:
    """Kill a process, which its node begins again, or nodes, which come back or stay away."""
    job.wait_for(draw.randrange(STEPS))
    gone = "ab" if kind == "both nodes" else draw.choice("ab")
    if kind == "process":
        job.kill_processes(gone)
        return
    for name in gone:
        job.kill_node(name)
    time.sleep(draw.uniform(0, 3))
    for name in gone if kind != "node, for good" else "":
        job.start(name)


def differs(path: Path, whole: Path) -> float:
    """The largest difference of weights and moments of two runs' files."""
    mine, theirs = (checkpointing.read(p)[0] for p in (path, whole))
    names = [n for n in theirs if not n.startswith("random/")]
    return max((mine[n].double() - theirs[n].double()).abs().max().item() for n in names)


def try_kind(kind: str, folder: Path, draw: random.Random, whole: Path, parallel: str) -> Case:
    """Do one fault to a job, let it end, and hold its weights against the undisturbed run's."""
    job = Job(folder, parallel, FAULTS[kind])
    act(kind, job, draw)
    statuses, what = job.wait(), f"{parallel} {folder.name}"
    alive = [code for code in statuses if code != -signal.SIGKILL]
    if not job.out.exists() or any(alive) or not alive:
        return Case(kind, what, "crash", f"the nodes ended with {statuses}: {folder}")
    step, gap = checkpointing.read(job.out)[1]["step"], differs(job.out, whole)
    lost = step != STEPS or not gap <= (0 if FAULTS[kind] == 2 else NEAR)
    return Case(kind, what, "lost" if lost else "unharmed", f"step {step}, differs by {gap:.0e}")


def try_nodes(folder: Path, seed: int, count: int) -> Iterator[Case]:
    """Kill something in `count` jobs, by turns of each kind, sharded or not; yields what came."""
    whole = {}
    for parallel in ("ddp", "fsdp") if count else ():
        job = Job(folder / f"whole.{parallel}", parallel, 2)
        if any(statuses := job.wait()):
            raise RuntimeError(f"the undisturbed job ended with {statuses}: see {folder}")
        whole[parallel] = job.out
    draw = random.Random(seed)
    for number in range(count):
        kind, parallel = list(FAULTS)[number % len(FAULTS)], ("ddp", "fsdp")[number // 4 % 2]
        yield try_kind(kind, folder / f"job.{number}", draw, whole[parallel], parallel)
