"""Studies of the decoder: what its sublayers are needed for, and mistakes that training hides."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.apps.translator import Translator
from tinytf.cli.train import build
from tinytf.interpret import invariants
from tinytf.masks import causal_mask, padding_mask
from tinytf.metrics.translation import batch_of, teacher_forced
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import PAD
from tinytf.training.losses import Batch
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer
from tinytf_course.lessons.ablation import (
    ablated,
    ablation_effect,
    mean_outputs,
    sublayer_kind,
    sublayers,
)
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies import load
from tinytf_course.studies.threads import one_thread

__all__ = [
    "BUGS", "CHECKS", "Bug", "bugs", "bugs_scored", "check", "grade", "start", "sublayer_costs",
    "sublayer_rows",
]  # fmt: skip

SEEDS = range(5)


def start(seed: int, steps: int = 700) -> tuple[Trainer, Translator]:
    """Make the small translator of these studies, one layer a side, width 64, and its trainer."""
    config = TrainingConfig(steps=steps, lr=4e-3, warmup=100, precision="float32", seed=seed)
    sizes = {"d_model": 64, "num_heads": 4, "num_layers": 1, "d_ff": 256, "max_len": 512}
    return build(config, batch_size=64, **sizes)


# Sublayers


def _score(model: Transformer, batch: Batch) -> list[float]:
    """Give the share of sentences right and the loss in nats per token."""
    right, loss = teacher_forced(model, batch)
    return [round(right.float().mean().item(), 4), round(loss, 4)]


def _losses(trainer: Trainer) -> list[float]:
    return [round(row["loss"], 3) for row in trainer.history]


@one_thread()
def sublayer_rows(seeds: Iterable[int] = SEEDS, steps: int = 700) -> list[dict]:
    """Ablate each sublayer of trained translators, and train others that never had it."""
    test, rows = Phrasebook().sample(1000, "test", seed=7), []
    for seed in seeds:
        trainer, translator = start(seed, steps)
        trainer.run(log_every=100)
        model, batch = translator.model, batch_of(translator, test)
        means = mean_outputs(model, batch_of(translator, Phrasebook().sample(1000, seed=8)))
        intact = teacher_forced(model, batch)

        row = {
            "seed": seed,
            "intact": _score(model, batch),
            "losses": _losses(trainer),
            "parts": {},
        }
        for name in sublayers(model):
            effects = {
                way: ablation_effect(model, batch, [name], to, intact)
                for way, to in (("zero", None), ("mean", means))
            }
            row["parts"][sublayer_kind(name)] = {
                way: [round(number, 4) for number in effect] for way, effect in effects.items()
            }
        for name in sublayers(model):
            trainer, translator = start(seed, steps)
            with ablated(translator.model, [name]):
                trainer.run(log_every=100)
                row["parts"][sublayer_kind(name)] |= {
                    "retrained": _score(translator.model, batch),
                    "losses": _losses(trainer),
                }
        rows.append(row)
    return rows


def sublayer_costs() -> dict[str, dict[str, list[float]]]:
    """Read from the stored study what the lack of each sublayer cost, in nats per token.

    Returns {sublayer: {"zero", "mean" or "never had it": its cost on each seed}}: silenced to
    zeros, to its average output, or never there while the model was trained.
    """
    rows, costs = load("decoder_sublayers")["rows"], {}
    for part in rows[0]["parts"]:
        cells = [(row["intact"][1], row["parts"][part]) for row in rows]
        costs[part] = {way: [cell[way][1] for _, cell in cells] for way in ("zero", "mean")}
        costs[part]["never had it"] = [cell["retrained"][1] - loss for loss, cell in cells]
    return costs


# Mistakes


class Bug(NamedTuple):
    """A mistake: how to make it in a model, and in what the decoder is given to read."""

    plant: Callable[[Transformer], None] = lambda model: None
    prepare: Callable[[Batch], Batch] = lambda batch: batch
    cached: bool = False  # whether it writes with a cache


def _mask_targets(model: Transformer, mask: Callable[[Tensor], Tensor]) -> None:
    """Give the decoder `mask(tgt)` in place of its own mask."""
    decode, run = model.decode, model.decoder.forward

    def planted(tgt: Tensor, *rest) -> Tensor:
        model.decoder.forward = lambda x, memory, _, *others: run(x, memory, mask(tgt), *others)
        return decode(tgt, *rest)

    model.decode = planted


def _invert(model: Transformer) -> None:
    """Let each target position see what comes after it, and nothing else."""
    _mask_targets(model, lambda tgt: ~causal_mask(tgt.size(1), tgt.device) & padding_mask(tgt))
    for layer in model.decoder.layers:
        layer.self_attention.attention = minus_1e9


def minus_1e9(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Attend as the tutorials do: a query that may see nothing takes the average of everything."""
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=-1) @ v


def _forget(model: Transformer) -> None:
    """Use the caller's padding mask in place of the causal one."""
    _mask_targets(model, padding_mask)


def _bare_memory(model: Transformer) -> None:
    """Drop the mask on the way from encoder to decoder."""
    encode = model.encode

    def bare(src: Tensor):
        memory = encode(src)
        return memory._replace(mask=torch.ones_like(memory.mask))

    model.encode = bare


def _count_rows(model: Transformer) -> None:
    """Add positions along the batch axis."""
    table = model.positions.table

    def positions(x: Tensor, start: int = 0) -> Tensor:
        return x + table[: x.size(0), None]

    model.positions.forward = positions


def _restart(model: Transformer) -> None:
    """Give every cached token position 0."""
    positions = model.positions.forward
    model.positions.forward = lambda x, start=0: positions(x)


def _unshifted(batch: Batch) -> Batch:
    return batch._replace(tgt_in=batch.tgt_out)


BUGS = {
    "right": Bug(),
    "mask inverted": Bug(_invert),
    "caller's mask instead": Bug(_forget),
    "target not shifted": Bug(prepare=_unshifted),
    "memory mask forgotten": Bug(_bare_memory),
    "positions along the batch": Bug(_count_rows),
    "cache starts at 0": Bug(_restart, cached=True),
}


@torch.no_grad()
def grade(translator: Translator, pairs: list[Pair], bug: Bug) -> dict[str, float]:
    """Give loss, words and sentences right on gold prefixes, and sentences right when writing."""
    model, gold = translator.model, batch_of(translator, pairs)
    batch = bug.prepare(gold)
    real = batch.tgt_out != PAD
    with evaluation_mode(model):
        right = model(batch.src, batch.tgt_in).argmax(-1) == batch.tgt_out
    wider = gold._replace(src=F.pad(gold.src, (0, 10), value=PAD))
    scores = {
        "loss": teacher_forced(model, batch)[1],
        "words, forced": right[real].float().mean(),
        "sentences, forced": (right | ~real).all(dim=1).float().mean(),
    }
    for name, given in (("sentences, free", gold), ("sentences, free, 10 pads", wider)):
        scores[name] = invariants.free_running(model, given, bug.cached).float().mean()
    return {name: round(float(score), 4) for name, score in scores.items()}


@one_thread()
def bugs(seeds: Iterable[int] = SEEDS, steps: int = 600) -> list[dict]:
    """Train translators with one mistake each, and grade them as their makers would, and freely."""
    test, rows = Phrasebook().sample(300, "test", seed=7), []
    for seed in seeds:
        made = {}
        for name, bug in BUGS.items():
            if bug.cached:  # a mistake of writing: the weights are those of the right model
                trainer, translator = made["right"]
                bug.plant(translator.model)
            else:
                made[name] = trainer, translator = start(seed, steps)
                bug.plant(translator.model)
                batches = trainer.batches
                trainer.batches = lambda step, bug=bug, batches=batches: bug.prepare(batches(step))
                trainer.run(log_every=100)
            losses = [round(h["loss"], 3) for h in trainer.history]
            rows.append(
                {"bug": name, "seed": seed, "losses": losses} | grade(translator, test, bug)
            )
    return rows


def bugs_scored(score: str) -> dict[str, list[float]]:
    """Read from the stored study what each mistake scored on each seed: {mistake: [shares]}.

    `score` is one of those that `grade` gives.
    """
    rows = load("decoder_bugs")["rows"]
    return {bug: [row[score] for row in rows if row["bug"] == bug] for bug in BUGS}


# Invariants


def _future(model: Transformer, batch: Batch) -> float:
    table = invariants.target_influence(model, batch.src, batch.tgt_in)
    return table.triu(1).max().item()


def _steps(model: Transformer, batch: Batch) -> float:
    with torch.no_grad():
        memory = model.encode(batch.src)
    return invariants.prefix_change(lambda tgt: model.decode(tgt, memory), batch.tgt_in)


def _cached(model: Transformer, batch: Batch) -> float:
    return invariants.cache_change(model, batch.src, batch.tgt_in)


def _pads(model: Transformer, batch: Batch) -> float:
    real = batch.tgt_in != PAD

    def read(src: Tensor) -> Tensor:
        return model.decode(batch.tgt_in, model.encode(src))

    return invariants.pad_change(read, batch.src, 10, real=real)


def _rows(model: Transformer, batch: Batch) -> float:
    def read(src: Tensor, tgt: Tensor) -> Tensor:
        return model.decode(tgt, model.encode(src))

    return invariants.batch_change(read, batch.src, batch.tgt_in)


CHECKS: dict[str, Callable[[Transformer, Batch], float]] = {
    "Gradient from the future": _future,
    "One pass, or prefix by prefix": _steps,
    "One pass, or cached steps": _cached,
    "Ten more source pads": _pads,
    "Another row of the batch": _rows,
    "Target shifted by one": lambda _, batch: invariants.shift_errors(batch),
}


def check(model: Transformer, batch: Batch) -> dict[str, float]:
    """Run every one of `CHECKS` on a model in evaluation mode: 0, or nearly, where all is well."""
    with evaluation_mode(model):
        return {name: run(model, batch) for name, run in CHECKS.items()}


STUDIES = {"decoder_sublayers": sublayer_rows, "decoder_bugs": bugs}
