"""Pretrain a GPT from the shell, on the manual or your text: `python -m tinytf pretrain --help`."""

import argparse
import sys
from pathlib import Path

import torch
from tqdm import tqdm

from tinytf.apps.writer import Writer
from tinytf.cli.reading import own_text, read
from tinytf.cli.shell import (
    add_run_options,
    attempt,
    check_options,
    resume,
    run_files,
    say_stopped,
)
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import END_OF_TEXT, Corpus, encode_documents
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.support.device import choose_device
from tinytf.support.help_texts import ShowDefaults
from tinytf.support.randomness import seeded
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.training.distributed import Team, team
from tinytf.training.losses import next_token_loss
from tinytf.training.trainer import Trainer, TrainingConfig

__all__ = ["RECIPE", "build", "build_on", "evaluate", "main", "own_text"]

# the shipped writer's
RECIPE = {"lr": 2e-3, "warmup": 100, "label_smoothing": 0.0, "weight_decay": 0.1,
          "betas": (0.9, 0.95), "eps": 1e-8}  # fmt: skip


def build(
    config: TrainingConfig,
    texts: Corpus,
    batch_size: int = 8,
    vocab_size: int = 2048,
    device: str | torch.device | None = None,
    team: Team | None = None,
    **sizes: object,
) -> tuple[Trainer, Writer]:
    """Learn a tokenizer from the training documents; make an untrained writer and its trainer.

    `config.seed` decides initial weights, data order and dropout; `sizes` override the model's.
    Raises ValueError for a corpus too short for one block of max_len tokens.
    """
    tokenizer = train_bpe(texts.train, vocab_size=vocab_size, special_tokens=[END_OF_TEXT])
    ids = encode_documents(tokenizer, texts.train)
    return build_on(config, tokenizer, ids, batch_size, device, team, **sizes)


def build_on(
    config: TrainingConfig,
    tokenizer: ByteBPE,
    ids: torch.Tensor,
    batch_size: int = 8,
    device: str | torch.device | None = None,
    team: Team | None = None,
    **sizes: object,
) -> tuple[Trainer, Writer]:
    """Do as `build` does, with a text (N,) that a tokenizer has encoded already."""
    shape = {"d_model": 192, "num_heads": 6, "num_layers": 6, "max_len": 256, "dropout": 0.1}
    model_config = GPTConfig(**{"vocab_size": len(tokenizer), **shape, **sizes})
    blocks = TextBlocks(ids, model_config.max_len, batch_size, config.seed)
    with seeded(config.seed):
        model = GPT(model_config).to(choose_device(device))
    plain = team.spare(model, config.parallel) if team else model
    return Trainer(model, blocks, config, next_token_loss, team), Writer(plain, tokenizer)


def evaluate(writer: Writer, documents: list[str]) -> float:
    """Give the bits per byte of documents, each begun anew after an end-of-text token."""
    total = sum(writer.bits_per_byte(text) * len(text.encode()) for text in documents)
    return total / sum(len(text.encode()) for text in documents)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytf pretrain",
        description="Pretrain a GPT on the Python manual, or on a text of yours.",
        formatter_class=ShowDefaults,
    )
    parser.add_argument(
        "--text", type=Path,
        help="a UTF-8 file of your own, of any size (default: the manual and docstrings); one of "
        "64 MB or more is encoded once, to a file beside --out",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, default=3000, help="of training")
    parser.add_argument("--batch-size", type=int, default=8, help="blocks of text a batch")
    parser.add_argument("--accumulate", type=int, default=1, help="batches a step")
    parser.add_argument("--lr", type=float, default=RECIPE["lr"], help="the highest learning rate")
    parser.add_argument("--vocab-size", type=int, default=2048, help="bytes, merges, end of text")
    parser.add_argument("--d-model", type=int, default=192, help="width of the model")
    parser.add_argument("--num-heads", type=int, default=6, help="heads a layer")
    parser.add_argument("--num-layers", type=int, default=6, help="layers")
    parser.add_argument("--max-len", type=int, default=256, help="tokens of context")
    parser.add_argument("--dropout", type=float, default=0.1, help="share of values dropped")
    parser.add_argument(
        "--evaluate-every", type=int, default=500, help="steps between two evaluations"
    )
    add_run_options(parser, Path("runs/writer.safetensors"), RECIPE["warmup"])
    options = parser.parse_args(arguments)
    if options.warmup is None:
        options.warmup = min(RECIPE["warmup"], max(1, options.steps // 2))
    return attempt(lambda: _command(options))


def _command(options: argparse.Namespace) -> int:
    check_options(options)
    if options.evaluate_every < 1:
        raise ValueError(f"--evaluate-every must be at least 1, got {options.evaluate_every}")
    with (
        team(choose_device(options.device)) as (crew, device),
        run_files(options, crew, device),
    ):
        return _pretrain(options, crew, device)


def _pretrain(options: argparse.Namespace, crew: Team, device: torch.device) -> int:
    tokens = options.out.with_name(f"{options.out.stem}.tokens")
    tokenizer, ids, held_out, name = read(options.text, options.vocab_size, tokens, crew)
    config = TrainingConfig(
        **RECIPE
        | {
            "steps": options.steps,
            "lr": options.lr,
            "warmup": options.warmup,
            "min_lr": options.min_lr,
            "accumulate": options.accumulate,
            "precision": options.precision,
            "attention": options.attention,
            "parallel": options.parallel,
            "recompute": options.recompute,
            "seed": options.seed,
        }
    )
    names = ("d_model", "num_heads", "num_layers", "max_len", "dropout")
    chosen = {name: getattr(options, name) for name in names}
    trainer, writer = build_on(
        config, tokenizer, ids, options.batch_size, device=device, team=crew, **chosen
    )
    header = writer.header() | {"batch_size": options.batch_size, "text": name}
    where = options.text or "the manual (each version of Python has its own)"
    resume(trainer, options, header, {"text": f"on another text than {where}"})
    finished = _train(trainer, writer, held_out, header, options)
    if finished:
        trainer.weights_into(writer.model)
    if not crew.is_main:
        return 0 if finished else 130
    if not finished:
        return say_stopped(trainer, options.out)
    epochs = config.steps * config.accumulate / trainer.batches.per_epoch
    print(
        f"{config.steps} steps in {trainer.seconds:.0f} s, {epochs:.1f} times through the text; "
        f"{evaluate(writer, held_out):.3f} bits per byte on held-out text"
    )
    print(writer.write(held_out[0][:40], 80, Sampling(temperature=0.7, top_p=0.9)))
    if options.export:
        writer.save(options.export)
    return 0


def _train(
    trainer: Trainer, writer: Writer, held_out: list[str], header: dict, options: argparse.Namespace
) -> bool:
    """Train to the end, evaluating on the way; False if interrupted."""
    steps, every = trainer.config.steps, options.evaluate_every
    with tqdm(
        total=steps,
        initial=trainer.step,
        desc="pretraining",
        unit="step",
        mininterval=0.5,
        disable=not trainer.team.is_main,
    ) as bar:
        while trainer.step < steps:
            until = min(steps, (trainer.step // every + 1) * every)
            try:
                trainer.run(
                    until=until,
                    bar=bar,
                    save_to=options.out,
                    save_every=options.save_every,
                    header=header,
                )
                if until < steps:
                    trainer.weights_into(writer.model)
                if until < steps and trainer.team.is_main:
                    found = evaluate(writer, held_out)
                    bar.write(f"step {until}: {found:.3f} bits per byte on held-out text")
            except KeyboardInterrupt:
                return False
    return True


if __name__ == "__main__":
    sys.exit(main())
