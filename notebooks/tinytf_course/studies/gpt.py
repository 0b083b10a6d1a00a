"""Studies of training a small GPT on the Python manual: parts of the recipe, and repeated text."""

import math
from collections.abc import Iterable

import torch
from torch import nn
from tqdm import tqdm

from tinytf.apps.writer import Writer
from tinytf.cli.pretrain import RECIPE, build, evaluate
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import Corpus, corpus, encode_documents
from tinytf.decoding.likelihood import bits_per_byte
from tinytf.gpt import GPT
from tinytf.support.randomness import seeded
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf_course.studies.threads import one_thread

__all__ = ["PARTS", "RATES", "epochs", "prepare", "recipe", "repeat", "start_plainly"]

SEEDS = range(5)
SIZES = {"d_model": 64, "num_heads": 4, "num_layers": 4, "max_len": 64}
VOCABULARY, ROWS, STEPS = 512, 16, 300  # 16 blocks of 64 tokens a step
SMALL = 8192  # tokens of the text that is met again and again: 8 steps an epoch
RATES = (3e-3, 1e-2)
# what each run has changed; the small batches take four times the steps, so the tokens are equal
PARTS: dict[str, dict] = {
    "all of it": {},
    "no warm-up": {"warmup": 1},
    "constant rate": {"schedule": "constant"},
    "no clipping": {"clip": math.inf},
    "no decay": {"weight_decay": 0.0},
    "decay on everything": {},
    "small batches": {"steps": 4 * STEPS, "warmup": 120},
    "default start": {},
}


def prepare(
    texts: Corpus, part: str = "all of it", seed: int = 0, device: object = "cpu", **changes: object
) -> tuple[Trainer, Writer]:
    """Make an untrained writer and its trainer, with one part of the recipe changed.

    `changes` are settings of `TrainingConfig`, or `dropout`.
    """
    dropout = changes.pop("dropout", 0.0)
    settings = RECIPE | {"lr": RATES[0], "warmup": 30, "steps": STEPS, "seed": seed}
    config = TrainingConfig(**settings | PARTS[part] | changes)
    rows = ROWS // 4 if part == "small batches" else ROWS
    trainer, writer = build(config, texts, rows, VOCABULARY, device, **SIZES, dropout=dropout)
    if part == "default start":
        with seeded(seed):
            start_plainly(writer.model)
    if part == "decay on everything":
        for group in trainer.optimizer.param_groups:
            group["weight_decay"] = config.weight_decay
    return trainer, writer


def start_plainly(model: GPT) -> None:
    """Draw all weights as PyTorch's modules do by themselves: embeddings from N(0, 1)."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding) and module is not model.output:
            module.reset_parameters()


def repeat(trainer: Trainer, tokens: int) -> None:
    """Let a trainer read only the first `tokens` of its text, again and again."""
    blocks = trainer.batches
    trainer.batches = TextBlocks(blocks.ids[:tokens], blocks.length, blocks.size, blocks.seed)


@one_thread()
def recipe(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train with one part of the recipe changed at a time, at two learning rates, over seeds."""
    texts, rows = corpus(docstrings=False), []
    for lr, part, seed in tqdm([(r, p, s) for s in seeds for r in RATES for p in PARTS]):
        trainer, writer = prepare(texts, part, seed, lr=lr)
        try:
            trainer.run(log_every=1)
            bits = round(evaluate(writer, texts.validation), 4)
        except FloatingPointError:  # it diverged
            bits = None
        norms = [row["grad_norm"] for row in trainer.history]
        row = {"part": part, "lr": lr, "seed": seed, "bits": bits}
        row |= {"norm": round(max(norms), 3), "clipped": sum(n > 1 for n in norms) / len(norms)}
        losses = torch.tensor([row["loss"] for row in trainer.history])
        parts = losses.tensor_split(30)
        rows.append(row | {"loss": [round(part.mean().item(), 4) for part in parts]})
    return rows


@one_thread()
def epochs(seeds: Iterable[int] = SEEDS, steps: int = 300) -> list[dict]:
    """Train on a small text met again and again, and on the whole manual, for equal steps."""
    texts, rows = corpus(docstrings=False), []
    runs = {"small text": {}, "small text, dropout": {"dropout": 0.2}, "whole manual": {}}
    for name, seed in tqdm([(n, s) for s in seeds for n in runs]):
        settings = {"steps": steps, "schedule": "constant", "lr": RATES[0]}
        trainer, writer = prepare(texts, seed=seed, **settings, **runs[name])
        held_out = encode_documents(writer.tokenizer, texts.validation)
        asked = {"train": trainer.batches.ids[: SMALL + 1], "validation": held_out[:12_000]}
        if name != "whole manual":  # it is asked about the same part of its text
            repeat(trainer, SMALL)
        row: dict = {"run": name, "seed": seed, "step": [], "epochs": [], **{a: [] for a in asked}}
        for until in (25, 50, 100, 150, 200, 300):
            trainer.run(until=until)
            row["step"].append(until)
            row["epochs"].append(round(until / trainer.batches.per_epoch, 2))
            for split, ids in asked.items():
                size = len(writer.tokenizer.decode_bytes(ids[1:].tolist()))
                row[split].append(round(bits_per_byte(writer.model, ids, size, None, 128), 4))
        rows.append(row)
    return rows


STUDIES = {"gpt_recipe": recipe, "gpt_epochs": epochs}
