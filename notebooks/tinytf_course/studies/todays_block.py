"""Studies of today's block: from GPT's to Llama's, one change at a time, at equal parameters."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn
from tqdm import tqdm

from tinytf.apps.writer import Writer
from tinytf.cli.pretrain import RECIPE, evaluate
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import END_OF_TEXT, Corpus, corpus, encode_documents
from tinytf.decoding.likelihood import continuation_losses
from tinytf.feedforward import SwiGLU
from tinytf.gpt import GPT, GPTConfig
from tinytf.grouped_query import GroupedQueryAttention
from tinytf.initialisation import normal, scale_residual
from tinytf.inspect import attention_layers
from tinytf.metrics.counting import count_parameters
from tinytf.norm import RMSNorm
from tinytf.support.protocols import LanguageModel
from tinytf.support.randomness import seeded
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.training.losses import next_token_loss
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf_course.studies.threads import one_thread

__all__ = [
    "ALONE",
    "BASE",
    "BIN",
    "CHANGES",
    "EXTRA",
    "FARTHER",
    "LADDER",
    "LARGER",
    "RATES",
    "SIZES",
    "assemble",
    "beyond",
    "equal_width",
    "losses_by_position",
    "prepare",
    "rope_base",
    "today",
    "tokens",
]

SEEDS, EXTRA = range(5), 5  # the extra seed is run at both rates, the others at the first
RATES = (2e-3, 4e-3)
LENGTH, ROWS, STEPS = 64, 4, 700  # 4 blocks of 64 tokens a step
KV_HEADS = 1  # four query heads read it, as in Llama 3 8B
FARTHER, BIN = 4 * LENGTH, 16  # texts longer than training's, and positions averaged together
BASE = 10000.0
LARGER = BASE * 4 ** (16 / 14)  # the base that slows the slowest pair of 16 by 4
SIZES = GPTConfig(vocab_size=512, d_model=64, num_heads=4, num_layers=4, max_len=LENGTH)

CHANGES = ("RMSNorm", "RoPE", "SwiGLU", "no biases", "grouped")
# each rung has the changes of those before it; the last one is Llama's block
LADDER = {("GPT", *(f"+ {c}" for c in CHANGES))[n]: CHANGES[:n] for n in range(len(CHANGES) + 1)}
SINGLE = ("RoPE", "SwiGLU", "grouped", "no positions")  # the last is there for its size
ALONE = {f"only {change}": (change,) for change in SINGLE}


class NoPositions(nn.Module):
    """Embeddings as they are: the order is left to attention."""

    def forward(self, x: Tensor, start: int = 0, positions: Tensor | None = None) -> Tensor:
        """Return x (B, T, C)."""
        return x


def assemble(config: GPTConfig, changes: Collection[str] = ()) -> GPT:
    """Make a GPT with some of its parts exchanged, and its weights drawn as GPT's are.

    Without changes it computes what `GPT` does; with all of CHANGES, what `Llama` does.
    """
    c, model = config, GPT(config)
    for layer in model.decoder.layers:
        kv_heads = KV_HEADS if "grouped" in changes else c.num_heads
        base = BASE if "RoPE" in changes else None
        layer.self_attention = GroupedQueryAttention(c.d_model, c.num_heads, kv_heads, base)
        if "SwiGLU" in changes:
            layer.feed_forward = SwiGLU(c.d_model, c.d_ff)
        if "RMSNorm" in changes:
            layer.residual_1.norm, layer.residual_2.norm = (RMSNorm(c.d_model) for _ in range(2))
    if "RMSNorm" in changes:
        model.decoder.final_norm = RMSNorm(c.d_model)
    if {"RoPE", "no positions"} & set(changes):
        model.positions = NoPositions()
    for linear in [m for m in model.decoder.modules() if isinstance(m, nn.Linear)]:
        bias = None if "no biases" in changes else nn.Parameter(torch.zeros(linear.out_features))
        linear.bias = bias
    normal(model, std=0.02)
    scale_residual(model, 2 * c.num_layers)
    return model


def equal_width(config: GPTConfig, changes: Collection[str] = ()) -> int:
    """Find the d_ff that brings a changed model nearest to the parameters of the GPT it was."""
    with torch.device("meta"):
        target = count_parameters(GPT(config))
        one, two = (
            count_parameters(assemble(replace(config, d_ff=width), changes)) for width in (1, 2)
        )
    return round(1 + (target - one) / (two - one))


def tokens() -> tuple[ByteBPE, Corpus, Tensor]:
    """Give a tokenizer learned from the manual, the manual, and its training text in ids."""
    texts = corpus(docstrings=False)
    tokenizer = train_bpe(texts.train, vocab_size=SIZES.vocab_size, special_tokens=[END_OF_TEXT])
    return tokenizer, texts, encode_documents(tokenizer, texts.train)


def prepare(
    ids: Tensor,
    changes: Collection[str] = (),
    seed: int = 0,
    lr: float = RATES[0],
    steps: int = STEPS,
    config: GPTConfig = SIZES,
    device: str | torch.device = "cpu",
) -> Trainer:
    """Make an untrained model of as many parameters as the GPT of `config`, and its trainer."""
    recipe = RECIPE | {"lr": lr, "warmup": min(30, steps), "steps": steps, "seed": seed}
    with seeded(seed):
        model = assemble(replace(config, d_ff=equal_width(config, changes)), changes).to(device)
    blocks = TextBlocks(ids, config.max_len, ROWS, seed)
    return Trainer(model, blocks, TrainingConfig(**recipe), next_token_loss)


@one_thread()
def today(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train GPT, each change added to those before, and each alone; grade on held-out topics.

    The `seeds` have the first of RATES, the seed EXTRA both.
    """
    (tokenizer, texts, ids), runs = tokens(), LADDER | ALONE
    held_out = encode_documents(tokenizer, texts.validation)

    def row(name: str, seed: int, lr: float) -> dict:
        trainer = prepare(ids, runs[name], seed, lr)
        trainer.run(log_every=STEPS)
        entry = {"run": name, "seed": seed, "lr": lr}
        entry["parameters"] = count_parameters(trainer.model)
        entry["bits"] = round(evaluate(Writer(trainer.model, tokenizer), texts.validation), 4)
        if name == list(LADDER)[-1] and seed != EXTRA:
            entry["by_position"] = beyond(trainer.model, held_out)
        return entry

    rows = [row(name, EXTRA, lr) for name in tqdm(runs) for lr in RATES]
    return rows + [row(name, seed, RATES[0]) for seed in tqdm(seeds) for name in runs]


def losses_by_position(model: LanguageModel, ids: Tensor, length: int = FARTHER) -> Tensor:
    """Give the mean nats of tokens that have p tokens before them, p = 1 … length: (length,).

    ids (N,) are a text, read in overlapping windows, so that nearly every token is met at nearly
    every position.
    """
    begins = range(0, len(ids) - length, 2 * LENGTH)
    rows = torch.stack([ids[s : s + length + 1] for s in begins]).to(model.device)
    losses = [continuation_losses(model, some, 1).cpu() for some in rows.split(16)]
    return torch.cat(losses).mean(dim=0)


@contextmanager
def rope_base(model: nn.Module, base: float) -> Iterator[None]:
    """Turn by frequencies of another base while the block runs."""
    layers = attention_layers(model).values()
    before = [layer.base for layer in layers]
    try:
        for layer in layers:
            layer.base = base
        yield
    finally:
        for layer, old in zip(layers, before, strict=True):
            layer.base = old


def beyond(model: LanguageModel, ids: Tensor) -> dict[str, list[float]]:
    """Give nats by position past the length of training, with the trained base and a larger one."""
    table = {}
    for name, base in (("as trained", BASE), ("larger base", LARGER)):
        with rope_base(model, base):
            nats = losses_by_position(model, ids).view(-1, BIN).mean(dim=1)
        table[name] = [round(x, 4) for x in nats.tolist()]
    return table


STUDIES = {"todays_block": today}
