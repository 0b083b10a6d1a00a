"""Trains in 1, 2 and 4 processes, each way, and goes on from what every other has left: FOLDER.

Imports once and forks, so that ten teams cost no more than a start of Python. Leaves in the folder
`cut.1ddp` (the run after half of its steps) and `end.1ddp`, the same for the others; `1ddp-4fsdp`,
where four sharded processes came to that began with the file of one; and what each has counted.
"""

import json
import os
import socket
import sys
from collections import Counter
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tinytf.gpt import GPT, GPTConfig
from tinytf.training.config import TrainingConfig
from tinytf.training.distributed import Team, team
from tinytf.training.losses import TextBatch, next_token_loss
from tinytf.training.sharded import local
from tinytf.training.trainer import Trainer

STEPS, CUT = 6, 3
# Who reads whose file. All ways of reading and writing are there, and all changes of number.
READS = {
    "1ddp": ["2fsdp", "4fsdp"],
    "2ddp": ["1ddp", "4fsdp"],
    "2fsdp": ["2fsdp", "2ddp", "4ddp"],
    "4ddp": ["2ddp", "4fsdp"],
    "4fsdp": ["1ddp", "2fsdp"],
}
SIZES = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "num_layers": 2, "max_len": 8}


def texts(step):
    """5 texts of 6 tokens: no number of processes that divides them but one."""
    ids = torch.randint(11, (5, 7), generator=torch.Generator().manual_seed(step))
    return TextBatch(ids[:, :-1], ids[:, 1:])


def trainer(parallel="ddp", crew=None, accumulate=2, recompute=False, dropout=0.0, half=False):
    """A small tied GPT in float64; other weights in each process, so that one's must be taken.

    With `half` it is in float32, and trains in bfloat16.
    """
    torch.manual_seed(crew.rank if crew else 0)
    model = GPT(GPTConfig(**SIZES, dropout=dropout))
    model = model if half else model.double()
    config = TrainingConfig(STEPS, 1e-2, 2, label_smoothing=0.0, clip=0.3, accumulate=accumulate,
                            parallel=parallel, recompute=recompute,
                            precision="bfloat16" if half else "float32")  # fmt: skip
    return Trainer(model, texts, config, next_token_loss, crew)


class Calls(TorchDispatchMode):
    """Counts what is sent between processes, by the name of the operation: calls, and bytes."""

    def __init__(self):
        super().__init__()
        self.counts, self.bytes = Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            self.counts[func._opname] += 1
            whole = {"_allgather_base_": args[0], "_reduce_scatter_base_": args[1]}
            tensors = args[0] if func._opname == "allreduce_" else [whole.get(func._opname)]
            self.bytes[func._opname] += sum(t.nbytes for t in tensors if t is not None)
        return func(*args, **(kwargs or {}))


def state_of(run: Trainer) -> dict[str, int]:
    """Bytes that this process keeps of weights, gradients and moments."""
    parameters = list(run.model.parameters())
    moments = [t for state in run.optimizer.state.values() for k, t in state.items() if k != "step"]
    held = {
        "weights": parameters, "gradients": [p.grad for p in parameters], "moments": moments,
    }  # fmt: skip
    return {part: sum(local(t).nbytes for t in tensors) for part, tensors in held.items()}


def begin(crew: Team, name: str, folder: Path) -> None:
    """Train to the end, saving in the middle; note what is kept and what is sent."""
    parallel = name[1:]
    run = trainer(parallel, crew)
    run.run(until=CUT, save_to=folder / f"cut.{name}")
    numbers = {"bytes": state_of(run)}
    run.run(save_to=folder / f"end.{name}", log_every=1)
    if crew.world_size == 2:
        for n in (1, 3):
            numbers[f"sent {n}"], numbers[f"bytes {n}"] = sent(parallel, crew, n)
        for kind in ("drawn", "recomputed"):
            dropping = trainer(parallel, crew, recompute=kind == "recomputed", dropout=0.3)
            dropping.run(until=2)
            dropping.save(folder / f"{kind}.{name}")
    if crew.world_size <= 2:
        trainer(parallel, crew, half=True).run(save_to=folder / f"half.{name}", log_every=1)
    (folder / f"numbers.{name}.{crew.rank}").write_text(json.dumps(numbers))


def sent(parallel: str, crew: Team, accumulate: int) -> tuple[Counter[str], Counter[str]]:
    """Count what a step of so many batches sends; the first step also finds out what to send."""
    run = trainer(parallel, crew, accumulate)
    run.run(until=1)
    with Calls() as calls:
        run.run(until=2)
    return calls.counts, calls.bytes


def go_on(crew: Team, name: str, folder: Path) -> None:
    """Go on from what others have left."""
    for other in READS[name]:
        run = trainer(name[1:], crew)
        run.load(folder / f"cut.{other}")
        run.run(save_to=folder / f"{other}-{name}", log_every=1)


def fork(job, name: str, folder: Path) -> None:
    """Let so many processes do a job together."""
    size = int(name[0])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ |= {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            status = 1
            try:
                with team(torch.device("cpu")) as (crew, _):
                    job(crew, name, folder)
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        sys.exit(f"{job.__name__} {name}: {statuses}")


if __name__ == "__main__":
    import torch._dynamo  # what every child would import, and takes a second
    import torch.distributed.fsdp

    torch.set_num_threads(1)
    for job in (begin, go_on):
        for name in READS:
            fork(job, name, Path(sys.argv[1]))
