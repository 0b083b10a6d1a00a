"""What each process of the tests of distributed training runs: WORKER FOLDER killed|whole."""

import json
import os
import signal
import sys
from pathlib import Path

import torch

from tinytf.gpt import GPT, GPTConfig
from tinytf.training.distributed import Team, TeamError, team
from tinytf.training.losses import TextBatch, make_batch, next_token_loss, sequence_loss
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer, TransformerConfig

STEPS, KILLED_IN = 6, 4  # steps counted from 1


def pairs(step):
    """5 pairs of uneven lengths, then a single one, then 4, and again."""
    g = torch.Generator().manual_seed(step)
    rows = [torch.randint(3, 9, (int(n),), generator=g).tolist()
            for n in torch.randint(1, 7, ((5, 1, 4)[step % 3],), generator=g)]  # fmt: skip
    return make_batch(rows, rows[::-1])


def texts(step):
    """3 texts of 6 tokens."""
    ids = torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(step))
    return TextBatch(ids[:, :-1], ids[:, 1:])


def trainer(kind, crew=None, batches=None):
    """A small trainer, the same in every process: "pairs", "texts" or "dropout" in float64, or
    "half", texts in bfloat16."""
    torch.manual_seed(crew.rank if crew else 0)  # DDP makes the first process's weights everybody's
    recipe = {"steps": STEPS, "warmup": 2, "lr": 1e-2, "clip": 0.5}
    if kind in ("texts", "half"):
        model = GPT(GPTConfig(11, 12, 3, 2, max_len=8))
        model = model.double() if kind == "texts" else model
        precision = "float32" if kind == "texts" else "bfloat16"
        config = TrainingConfig(**recipe, accumulate=2, label_smoothing=0.0, precision=precision)
        return Trainer(model, batches or texts, config, next_token_loss, crew)
    sizes = {"d_model": 12, "num_heads": 3, "num_layers": 1, "d_ff": 20, "max_len": 24}
    dropout = 0.3 if kind == "dropout" else 0.0
    model = Transformer(TransformerConfig(9, 9, **sizes, dropout=dropout)).double()
    return Trainer(model, batches or pairs, TrainingConfig(**recipe), sequence_loss, crew)


def whole(crew: Team, folder: Path) -> None:
    """Train all four to the end, and go on from what a killed run left."""
    for kind in ("pairs", "texts", "dropout", "half"):
        run = trainer(kind, crew)
        seeds, batches = [], run.batches
        # asked for a step's batch, we see what the step before drew its dropout from
        run.batches = lambda step, read=batches, seen=seeds: (
            seen.append(torch.initial_seed()) or read(step)
        )
        run.run(save_to=folder / kind, log_every=2)
        (folder / f"{kind}.{crew.rank}.seeds").write_text(json.dumps(seeds[1:]))
        mine = torch.cat([p.detach().flatten() for p in run.model.parameters()])
        torch.save(mine, folder / f"{kind}.{crew.rank}.weights")
    run = trainer("dropout", crew)
    run.load(folder / "killed")
    run.run(save_to=folder / "resumed", log_every=2)
    run = trainer("pairs", crew)
    if crew.rank == 1:  # one process is told to stop, and all do
        run.batches = lambda step: os.kill(os.getpid(), signal.SIGINT) or pairs(step)
    try:
        run.run(save_to=folder / "stopped")
    except KeyboardInterrupt as stop:
        (folder / f"stopped.{crew.rank}").write_text(str(stop))


def killed(crew: Team, folder: Path) -> None:
    """Train until a process dies in the midst of a step."""

    def batches(step):
        if crew.rank == 1 and step + 1 == KILLED_IN:
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return pairs(step)

    run = trainer("dropout", crew, batches)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's, before the other has said its words
    try:
        run.run(save_to=folder / "killed", save_every=0.0, log_every=2)
    except TeamError as error:
        (folder / f"error.{crew.rank}").write_text(str(error))
        sys.exit(2)


if __name__ == "__main__":
    with team(torch.device("cpu")) as (crew, _):
        {"whole": whole, "killed": killed}[sys.argv[2]](crew, Path(sys.argv[1]))
