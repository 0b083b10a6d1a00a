"""Two ways to train a translator of the phrasebook, a chunk of steps at a time.

Both see the same sentences, start from the same weights, and have the same peak rate, warm-up,
cosine, label smoothing and clipping: the second is no straw man.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.torch_seq2seq import TorchTransformer
from tinytf.cli.train import build
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import BOS, PAD
from tinytf.training.losses import Batch
from tinytf.training.schedules import warmup_cosine
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.phrasebook.batches import PhrasebookBatches

__all__ = ["Contestant", "InDrawnOrder", "contestants", "share_exact"]

OURS, THEIRS, MIXED = "tinytf", "nn.Transformer", "nn.Transformer, our recipe"
POOL = 4  # batches that ours sorts by length together


class Contestant(NamedTuple):
    """A model, and what trains it up to a step."""

    model: nn.Module
    until: Callable[[int], object]


class InDrawnOrder(PhrasebookBatches):
    """The same sentences in batches as they were drawn, long beside short."""

    def pairs(self, step: int) -> list:
        """Return the pairs of a step's batch."""
        number, index = divmod(step, self.pool)
        if self._drawn[0] != number:
            stream = self.book.pairs(self.split, seed=self.seed * 1_000_003 + number)
            drawn = list(itertools.islice(stream, self.size * self.pool))
            rows = range(0, len(drawn), self.size)
            self._drawn = (number, [drawn[i : i + self.size] for i in rows])
        return self._drawn[1][index]


def contestants(
    config: TrainingConfig,
    batch_size: int = 128,
    device: torch.device | str | None = None,
    mixed: bool = False,
    **sizes: Any,
) -> dict[str, Contestant]:
    """Build ours, torch's with a plain loop, and with `mixed` torch's with our trainer."""
    trainer, translator = build(config, batch_size, device, pool=POOL, **sizes)
    model = translator.model
    theirs = TorchTransformer(model).to(model.device)
    batches = InDrawnOrder(Phrasebook(), batch_size, config.seed, pool=POOL)
    found = {
        OURS: Contestant(model, lambda step: trainer.run(step, log_every=10**9)),
        THEIRS: Contestant(theirs, plain_run(theirs, batches, config)),
    }
    if mixed:
        other = TorchTransformer(model).to(model.device)
        sorted_ = PhrasebookBatches(Phrasebook(), batch_size, config.seed, pool=POOL)
        by_ours = Trainer(other, sorted_, config)
        found[MIXED] = Contestant(other, lambda step: by_ours.run(step, log_every=10**9))
    return found


def plain_run(
    model: nn.Module, batches: Callable[[int], Batch], config: TrainingConfig
) -> Callable[[int], None]:
    """Train as a good script does: AdamW, fused, the schedule by torch's LambdaLR."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.lr, betas=config.betas, eps=1e-8,
        weight_decay=config.weight_decay, fused=True,
    )  # fmt: skip
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_cosine(step + 1, 1.0, config.warmup, config.steps)
    )
    done = 0

    def until(step: int) -> None:
        nonlocal done
        model.train()
        while done < step:
            batch = batches(done).to(model.device)
            optimizer.zero_grad(set_to_none=True)
            logits = model(batch.src, batch.tgt_in)
            loss = F.cross_entropy(
                logits.flatten(0, 1), batch.tgt_out.flatten(),
                ignore_index=PAD, label_smoothing=config.label_smoothing,
            )  # fmt: skip
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimizer.step()
            schedule.step()
            done += 1

    return until


@torch.no_grad()
def share_exact(model: nn.Module, batches: Sequence[Batch]) -> float:
    """Give the share of sentences that greedy decoding would translate word for word.

    Greedy decoding writes the gold sentence exactly if every next word is the likeliest one after
    the gold words before it, so one pass over the gold sentence tells.
    """
    right: list[Tensor] = []
    with evaluation_mode(model):
        for batch in batches:
            scores = model(batch.src, batch.tgt_in).float()
            scores[..., [PAD, BOS]] = -torch.inf  # no words
            wrong = (scores.argmax(dim=-1) != batch.tgt_out) & (batch.tgt_out != PAD)
            right.append(~wrong.any(dim=1))
    return float(torch.cat(right).double().mean())
