"""What the tests of training share: a small run, and all the bits that it is."""

import torch
from support import small_model

from tinytf.support.randomness import seeded
from tinytf.training.checkpointing import model_tensors
from tinytf.training.losses import make_batch
from tinytf.training.trainer import Trainer, TrainingConfig


def batch_of(step, size=6):
    """A batch that depends on its step alone: to copy a sentence, with words renamed."""
    draw = torch.Generator().manual_seed(step)
    lengths = torch.randint(1, 6, (size,), generator=draw).tolist()
    rows = [torch.randint(3, 9, (n,), generator=draw).tolist() for n in lengths]
    return make_batch(rows, rows)


def trainer(device="cpu", batches=batch_of, dropout=0.0, dtype=torch.float32, seed=0, **settings):
    with seeded(7):
        model = small_model(device, dtype, dropout=dropout)
    settings = {"steps": 12, "warmup": 3, "seed": seed, **settings}
    return Trainer(model, batches, TrainingConfig(**settings))


def bits(run):
    """Everything a run is: weights, moments, step."""
    state = {n: p.detach().cpu().clone() for n, p in model_tensors(run.model).items()}
    for n, p in model_tensors(run.model).items():
        for key, value in run.optimizer.state[p].items():
            state[f"{n}/{key}"] = value.detach().cpu().clone()
    return state


def assert_same_bits(a, b):
    assert a.keys() == b.keys()
    differ = [n for n in a if not torch.equal(a[n], b[n])]
    assert not differ
