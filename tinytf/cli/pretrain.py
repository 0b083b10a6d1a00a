"""Pretrain a GPT from the shell, on the manual or your text: `python -m tinytf pretrain --help`."""

import argparse
import sys
from pathlib import Path

import torch

from tinytf.apps.writer import Writer
from tinytf.cli.reading import own_text, read
from tinytf.cli.shell import add_option, parser_of, run_command, train_to_the_end
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import END_OF_TEXT, Corpus, encode_documents
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.support.device import choose_device
from tinytf.support.randomness import seeded
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.training.distributed import Team
from tinytf.training.losses import next_token_loss
from tinytf.training.trainer import Trainer, TrainingConfig

__all__ = ["RECIPE", "build", "build_on", "evaluate", "main", "own_text"]

# the shipped writer's
RECIPE = {"lr": 2e-3, "warmup": 100, "label_smoothing": 0.0, "weight_decay": 0.1,
          "betas": (0.9, 0.95), "eps": 1e-8}  # fmt: skip
SHAPE = {"d_model": 192, "num_heads": 6, "num_layers": 6, "max_len": 256, "dropout": 0.1}
WORDS = {  # for the options
    "d_model": "width of the model",
    "num_heads": "heads a layer",
    "num_layers": "layers",
    "max_len": "tokens of context",
    "dropout": "share of values dropped",
}


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
    model_config = GPTConfig(**{"vocab_size": len(tokenizer), **SHAPE, **sizes})
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
    recipe = TrainingConfig(**RECIPE, precision="auto")
    words = "Pretrain a GPT on the Python manual, or on a text of yours."
    parser = parser_of("pretrain", words, recipe, Path("runs/writer.safetensors"))
    parser.add_argument(
        "--text", type=Path,
        help="a UTF-8 file of your own, of any size (default: the manual and docstrings); one of "
        "64 MB or more is encoded once, to a file beside --out",
    )  # fmt: skip
    parser.add_argument("--batch-size", type=int, default=8, help="blocks of text a batch")
    parser.add_argument("--vocab-size", type=int, default=2048, help="bytes, merges, end of text")
    for name, said in WORDS.items():
        add_option(parser, name, SHAPE[name], said)
    parser.add_argument(
        "--evaluate-every", type=int, default=500, help="steps between two evaluations"
    )
    return run_command(parser.parse_args(arguments), recipe, _pretrain)


def _pretrain(
    options: argparse.Namespace, config: TrainingConfig, crew: Team, device: torch.device
) -> int:
    if options.evaluate_every < 1:
        raise ValueError(f"--evaluate-every must be at least 1, got {options.evaluate_every}")
    tokens = options.out.with_name(f"{options.out.stem}.tokens")
    tokenizer, ids, held_out, name = read(options.text, options.vocab_size, tokens, crew)
    sizes = {name: getattr(options, name) for name in SHAPE}
    trainer, writer = build_on(config, tokenizer, ids, options.batch_size, device, crew, **sizes)
    header = writer.header() | {"batch_size": options.batch_size, "text": name}
    where = options.text or "the manual (each version of Python has its own)"

    def grade() -> str:
        times = trainer.step * config.accumulate / trainer.batches.per_epoch
        found = evaluate(writer, held_out)
        return (
            f"{found:.3f} bits per byte on held-out text, after {times:.1f} times through the rest"
        )

    same, every = {"text": f"on another text than {where}"}, options.evaluate_every
    status = train_to_the_end(trainer, writer, options, header, same, grade, every)
    if status == 0 and crew.is_main:
        print(writer.write(held_out[0][:40], 80, Sampling(temperature=0.7, top_p=0.9)))
    return status


if __name__ == "__main__":
    sys.exit(main())
