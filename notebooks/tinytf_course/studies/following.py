"""A study of one decision: where a translator decides which noun `it` stands for.

Two sentences, twins, differ in their last word alone: "the cat did not climb the wall because it
was too tired", and "… high". Chinese says the noun again, so the word that answers is known, and
whatever is taken from one run can be put into the other.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor
from tqdm import tqdm

from tinytf.apps.translator import Translator
from tinytf.cli.train import build
from tinytf.inspect import record, replace
from tinytf.interpret.attribution import direct_logits, stream_parts
from tinytf.interpret.logit_lens import logit_lens
from tinytf.interpret.patching import patch_map, recovered, transplant
from tinytf.interpret.probing import fit_probe, probe_accuracy
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies.heads import unseen_twins
from tinytf_course.studies.threads import one_thread
from tinytf_course.studies.twins import TwinRuns, more_twins, twin_runs

__all__ = [
    "donors", "explored", "follow", "following", "parts_by_sublayer", "reader", "start", "steps_of",
    "strangers", "sublayers_of",
]  # fmt: skip

MEMORY = "encoder.final_norm"  # what the decoder reads of the encoder


def sublayers_of(model: Transformer) -> list[str]:
    """Name the decoder's sublayers in the order in which they write into the stream."""
    kinds = ("self_attention", "cross_attention", "feed_forward")
    layers = range(len(model.decoder.layers))
    return [f"decoder.layers.{i}.{kind}" for i in layers for kind in kinds]


def reader(name: str) -> str:
    """The module whose output is what a sublayer writes: an attention's is its w_o."""
    return f"{name}.w_o" if name.endswith("attention") else name


def steps_of(model: Transformer) -> list[str]:
    """Name the modules that give the decoder's stream after each of its sublayers."""
    layers = range(len(model.decoder.layers))
    return [f"decoder.layers.{i}.residual_{j}" for i in layers for j in (1, 2, 3)]


def donors(answers: Tensor, words: Tensor, control: bool) -> Tensor:
    """Find each sentence a donor: the next sentence, going round, that fits; (B,), or -1.

    answers, words (B,): what each sentence's `it` means, and its adjective. A donor has another
    word, and another answer; with `control` another word, and the same answer.
    """
    strange = words[:, None] != words
    fits = strange & ((answers[:, None] == answers) == control)  # (B, B)
    count = len(words)
    rows = torch.arange(count, device=words.device)
    ahead = (rows[:, None] + rows) % max(count, 1)  # (B, B): each sentence, and those after it
    there = fits.gather(1, ahead)
    first = there.int().argmax(dim=1, keepdim=True) if count else ahead
    found = torch.where(there.gather(1, first), ahead.gather(1, first), -1)
    return found.view(count)


def strangers(runs: TwinRuns, values: Tensor, shift: int) -> Tensor:
    """Give each row what another row's adjective has become: values (B, S, C) -> (B, S, C).

    Only the row's own adjective's place is filled, from the row `shift` before.
    """
    at = runs.places["adjective"]
    rows = torch.arange(len(at), device=at.device)
    filled = torch.zeros_like(values)
    filled[rows, at] = values[rows, at].roll(shift, dims=0)
    return filled


def parts_by_sublayer(model: Transformer, runs: TwinRuns, source: Tensor) -> dict[str, Tensor]:
    """What each sublayer adds to the difference of the two nouns' logits, directly: (B,) by name.

    "embedding" is there too. An attention's heads and its bias are added up.
    """
    parts = stream_parts(model, source, runs.written)
    rows = torch.arange(len(source), device=source.device)
    stream = sum(parts.values())[rows, runs.at]
    table = model.output.weight
    direction = table[runs.right] - table[runs.wrong]
    added: dict[str, Tensor] = {}
    for name, part in parts.items():
        sublayer = ".".join(name.split(".")[:3])
        value = direct_logits(model.decoder.final_norm, part[rows, runs.at], stream, direction)
        added[sublayer] = added.get(sublayer, 0) + value
    return added


@torch.no_grad()
def follow(translator: Translator, twins: Sequence[tuple[Pair, Pair]], known: Sequence) -> dict:
    """Measure a translator on twins: lens, direct logits, patches, probes fitted to `known`."""
    model = translator.model.eval()
    runs, fitted = twin_runs(translator, twins), twin_runs(translator, known)
    names = [MEMORY, *map(reader, sublayers_of(model)), *steps_of(model)]
    with record(model, *names) as seen:
        clean = runs.ask(model, runs.first)
    first = dict(seen)
    with record(model, *names) as seen:
        corrupted = runs.ask(model, runs.second)
    second = dict(seen)

    def score(answers: Tensor) -> float:
        return round(recovered(answers, clean, corrupted), 4)

    def both(name: str, places: dict[str, Tensor]) -> dict[str, list[float]]:
        """Denoising, then what noising takes away."""
        there = patch_map(model, lambda: runs.ask(model, runs.second), {name: first[name]}, places)
        gone = patch_map(model, lambda: runs.ask(model, runs.first), {name: second[name]}, places)
        return {
            place: [score(there[name][place]), round(1 - score(gone[name][place]), 4)]
            for place in places
        }

    row = {"right": round(((clean > 0) & (corrupted < 0)).float().mean().item(), 4)}
    row["memory"] = both(MEMORY, runs.places)
    direct = parts_by_sublayer(model, runs, runs.first)
    row["sublayers"], row["lens"] = {}, {}
    rows = torch.arange(len(runs.at), device=runs.at.device)
    for name, step in zip(sublayers_of(model), steps_of(model), strict=True):
        short = name.removeprefix("decoder.")
        share = (direct[short].sum() / clean.sum()).item()
        patched = both(reader(name), {"at": runs.at})["at"]
        row["sublayers"][short] = [*patched, round(share, 4)]
        says = logit_lens(model, first[step][rows, runs.at]).argmax(dim=-1)
        row["lens"][short] = round((says == runs.right).float().mean().item(), 4)
    row["donors"] = []
    for source in (first, second):
        values = strangers(runs, source[MEMORY], 1)
        with replace(model, MEMORY, transplant(values, runs.places["adjective"])):
            row["donors"].append(score(runs.ask(model, runs.second)))
    row["probes"] = _probes(model, runs, fitted)
    return row


def _states(model: Transformer, runs: TwinRuns) -> Tensor:
    """The encoder's output for all first twins, then all second ones: (2 B, S, C)."""
    return torch.cat([model.encode(runs.first).states, model.encode(runs.second).states])


def _probes(model: Transformer, runs: TwinRuns, fitted: TwinRuns) -> dict[str, list[float]]:
    """Accuracy at each place, of a probe and of one fitted to labels that were shuffled."""
    known, asked = _states(model, fitted), _states(model, runs)
    y, gold = (torch.arange(2).repeat_interleave(len(r.first)) for r in (fitted, runs))
    shuffled = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]
    found = {}
    for place in runs.places:
        x, test = (
            states[torch.arange(len(states)), r.places[place].repeat(2)]
            for states, r in ((known, fitted), (asked, runs))
        )
        found[place] = [
            round(probe_accuracy(fit_probe(x, labels, 10.0), test, gold), 4)
            for labels in (y, shuffled)
        ]
    return found


@torch.no_grad()
def explored(translator: Translator, twins: tuple[Pair, Pair]) -> dict:
    """Follow the decision in two twins, every module at every place: an example of the explorer.

    Maps are "encoder" and "decoder" (patched; each cell has the score and the word then said) and
    "lens" (each cell has the word read and its probability); see `viz.patch_explorer`.
    """
    model, runs = translator.model.eval(), twin_runs(translator, [twins])
    first, second = sorted(twins, key=lambda pair: pair.antecedent[1])
    at = int(runs.at[0])
    levels = ["src_embedding"]
    for i in range(len(model.encoder.layers)):
        part = f"encoder.layers.{i}"
        levels += [f"{part}.self_attention.w_o", f"{part}.feed_forward", part]
    sublayers = sublayers_of(model)
    modules, steps = [reader(name) for name in sublayers], steps_of(model)
    with record(model, *levels, *modules, *steps) as seen:
        clean = runs.ask(model, runs.first)
    corrupted = runs.ask(model, runs.second)

    def say(logits: Tensor) -> str:
        return translator.target.tokens[int(logits.argmax())]

    def patched(names: Sequence[str], count: int) -> list[list[list]]:
        cells = []
        for name in names:
            cells.append([])
            for place in range(count):
                with replace(model, name, transplant(seen[name], torch.tensor([place]))):
                    logits = model(runs.second, runs.written)[0, at]
                answer = (logits[runs.right] - logits[runs.wrong]).detach()
                cells[-1].append([round(recovered(answer, clean, corrupted), 2), say(logits)])
        return cells

    lens = []
    for step in steps:
        chances = logit_lens(model, seen[step])[0, : at + 1].softmax(dim=-1)
        lens.append([[round(row.max().item(), 2), say(row)] for row in chances])
    source = [*first.source[:-1], f"{first.source[-1]} / {second.source[-1]}", "<eos>"]
    target = ["<bos>", *first.target[:at]]
    plain = [name.removesuffix(".w_o").replace("_", " ") for name in ("embedding", *levels[1:])]
    short = [name.removeprefix("decoder.").replace("_", " ") for name in sublayers]
    return {
        "clean": first.english,
        "corrupted": second.english,
        "answers": [first.target[at], second.target[at]],
        "maps": {
            "encoder": {
                "rows": [name.replace("encoder.layers.", "layer ").replace(".", " ")
                         for name in plain],
                "columns": source,
                "cells": patched(levels, len(source)),
            },
            "decoder": {
                "rows": [name.replace("layers.", "layer ").replace(".", " ") for name in short],
                "columns": target,
                "cells": patched(modules, at + 1),
            },
            "lens": {
                "rows": [name.replace("layers.", "layer ").replace(".", " ") for name in short],
                "columns": target,
                "cells": lens,
            },
        },
    }  # fmt: skip


def start(seed: int, steps: int = 1400) -> tuple[Trainer, Translator]:
    """Make the translator of this study, two layers a side, width 64, and its trainer."""
    config = TrainingConfig(steps=steps, lr=4e-3, warmup=100, precision="float32", seed=seed)
    return build(config, batch_size=64, d_model=64, num_heads=4, num_layers=2, d_ff=256)


@one_thread()
def following(
    seeds: Iterable[int] = range(5), make: Callable[[int], Translator] | None = None
) -> list[dict]:
    """Train five translators of width 64, two layers a side, and follow the decision in each.

    `make` gives a seed's translator where it is trained already.
    """
    book = Phrasebook()
    twins = unseen_twins(book)
    known, rows = more_twins(book, twins, 400), []
    for seed in tqdm(seeds):
        if make is None:
            trainer, translator = start(seed)
            trainer.run()
        else:
            translator = make(seed)
        rows.append({"seed": seed} | follow(translator, twins, known))
    return rows


STUDIES = {"following": following}
