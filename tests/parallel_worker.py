"""Trains in 1, 2 and 4 processes, each way, and goes on from what every other has left: FOLDER.

Imports once and forks, so that many teams cost no more than a start of Python. Leaves in the folder
`cut.1ddp` (the run after half of its steps) and `end.1ddp`, the same for the others; `1ddp-4fsdp`,
where four sharded processes came to that began with the file of one; and what each has counted.
"""

import json
import os
import signal
import socket
import sys
from collections import Counter
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tinytf.gpt import GPT, GPTConfig
from tinytf.training.distributed import Team, TeamError, team
from tinytf.training.losses import TextBatch, make_batch, next_token_loss, sequence_loss
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer, TransformerConfig

STEPS, CUT, KILLED_IN = 6, 3, 4  # the last counted from 1
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


def pairs(step):
    """5 pairs of uneven lengths, then a single one, then 4, and again."""
    g = torch.Generator().manual_seed(step)
    rows = [torch.randint(3, 9, (int(n),), generator=g).tolist()
            for n in torch.randint(1, 7, ((5, 1, 4)[step % 3],), generator=g)]  # fmt: skip
    return make_batch(rows, rows[::-1])


def trainer(parallel="ddp", crew=None, dropout=0.0, half=False, **settings):
    """A small tied GPT in float64; other weights in each process, so that one's must be taken.

    With `half` it is in float32, and trains in bfloat16.
    """
    torch.manual_seed(crew.rank if crew else 0)
    model = GPT(GPTConfig(**SIZES, dropout=dropout))
    model = model if half else model.double()
    config = TrainingConfig(STEPS, 1e-2, 2, label_smoothing=0.0, clip=0.3, parallel=parallel,
                            precision="bfloat16" if half else "float32",
                            **{"accumulate": 2} | settings)  # fmt: skip
    return Trainer(model, texts, config, next_token_loss, crew)


def translator(crew=None, dropout=0.0, batches=pairs):
    """A small encoder-decoder in float64, on uneven pairs."""
    torch.manual_seed(crew.rank if crew else 0)
    model = Transformer(TransformerConfig(9, 9, 12, 3, 1, 20, dropout, 24)).double()
    config = TrainingConfig(STEPS, 1e-2, 2, clip=0.5)
    return Trainer(model, batches, config, sequence_loss, crew)


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


def local(tensor):
    """What this process keeps of a tensor: its part of a sharded one, all of another."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


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
            dropping = trainer(parallel, crew, 0.3, recompute=kind == "recomputed")
            dropping.run(until=2)
            dropping.save(folder / f"{kind}.{name}")
    if crew.world_size <= 2:
        trainer(parallel, crew, half=True).run(save_to=folder / f"half.{name}", log_every=1)
    (folder / f"numbers.{name}.{crew.rank}").write_text(json.dumps(numbers))


def sent(parallel: str, crew: Team, accumulate: int) -> tuple[Counter[str], Counter[str]]:
    """Count what a step of so many batches sends; the first step also finds out what to send."""
    run = trainer(parallel, crew, accumulate=accumulate)
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


def die(crew: Team, name: str, folder: Path) -> None:
    """Train until a process dies in the midst of a step."""

    def batches(step):
        if crew.rank == 1 and step + 1 == KILLED_IN:
            os.kill(os.getpid(), signal.SIGKILL)
        return pairs(step)

    try:
        translator(crew, 0.3, batches).run(save_to=folder / "killed", save_every=0.0, log_every=2)
    except TeamError as error:
        (folder / f"error.{crew.rank}").write_text(str(error))


def stop_and_go_on(crew: Team, name: str, folder: Path) -> None:
    """Train to the end, go on from what a killed run left, and stop where one is told to."""
    translator(crew).run(save_to=folder / "pairs", log_every=2)
    run, seeds = translator(crew, 0.3), []
    # asked for a step's batch, we see what the step before drew its dropout from
    run.batches = lambda step: seeds.append(torch.initial_seed()) or pairs(step)
    run.run(save_to=folder / "dropout", log_every=2)
    (folder / f"seeds.{crew.rank}").write_text(json.dumps(seeds[1:]))
    torch.save([p.detach() for p in run.model.parameters()], folder / f"weights.{crew.rank}")
    run = translator(crew, 0.3)
    run.load(folder / "killed")
    run.run(save_to=folder / "resumed", log_every=2)
    run = translator(crew)
    if crew.rank == 1:  # one process is told to stop, and all do
        run.batches = lambda step: os.kill(os.getpid(), signal.SIGINT) or pairs(step)
    try:
        run.run(save_to=folder / "stopped")
    except KeyboardInterrupt as stop:
        (folder / f"stopped.{crew.rank}").write_text(str(stop))


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
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(statuses) and not (job is die and statuses[1] == -signal.SIGKILL):
        sys.exit(f"{job.__name__} {name}: {statuses}")


if __name__ == "__main__":
    import torch._dynamo  # what every child would import, and takes a second
    import torch.distributed.fsdp

    torch.set_num_threads(1)
    for job, names in (
        (begin, READS), (go_on, READS), (die, ["2ddp"]), (stop_and_go_on, ["2ddp"]),
    ):  # fmt: skip
        for name in names:
            fork(job, name, Path(sys.argv[1]))
