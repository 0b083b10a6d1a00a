"""The three families side by side: one corpus, one size, one budget, four things to do.

A row of the corpus is a phrasebook sentence with `because it was`, in English alone or in English
and then in Chinese. The encoder-only and the decoder-only model are one class with the same weights
at the start: they differ in a causal mask and in what they are asked for. The encoder-decoder is
`Transformer`, as wide, and half as deep on either side.
"""

from collections.abc import Sequence
from functools import cache, cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.blocks import Encoder, EncoderLayer, PreNorm
from tinytf.embedding import TokenEmbedding
from tinytf.initialisation import xavier
from tinytf.inspect import record
from tinytf.masks import causal_mask, padding_mask
from tinytf.metrics.counting import count_flops
from tinytf.positional import PositionalEncoding
from tinytf.support.randomness import seeded
from tinytf.text.words import BOS, EOS, PAD, WordTokenizer, pad_batch
from tinytf.training.denoising import corrupt_spans
from tinytf.training.masked_lm import mask_tokens
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies.encoder import sentences
from tinytf_course.studies.optimise import optimise_with_warmup

__all__ = [
    "FAMILIES",
    "Text",
    "build",
    "family_of",
    "held_out",
    "objective",
    "operations",
    "optimise_family",
    "pretrain",
    "score_targets",
]


FAMILIES = ("encoder-only", "decoder-only", "encoder-decoder")
WIDTH, HEADS, LAYERS, LONGEST = 64, 4, 4, 64
ROWS, SPANS = 16, 8
SHARE = 0.3  # of the words is masked: BERT's is 0.15, but the runs are short
# T5 drops 0.15 in spans of 3. In rows as short as ours the number of gaps would give away how long
# they are, so that a model is lost where there is one gap: each row draws a share of its own.
LOW, HIGH, MEAN_SPAN = 0.1, 0.35, 2.0
BEST = {"encoder-only": 6e-3, "decoder-only": 6e-3, "encoder-decoder": 3e-3}  # by `families_rates`
STEPS = 2000


@cache
def _words() -> tuple[list[str], list[str]]:
    """The words of `because` sentences, English and Chinese."""
    pairs = sentences(Phrasebook(), 6000, seed=99)
    return (
        sorted({word for pair in pairs for word in pair.source}),
        sorted({word for pair in pairs for word in pair.target}),
    )


class Text:
    """The corpus as ids; one vocabulary for all three families, marks and sentinels included."""

    def __init__(self, count: int = 20_000, split: str = "train", seed: int = 0) -> None:
        english, chinese = _words()
        marks = ["<zh>", "<mask>", *(f"<{i}>" for i in range(SPANS))]
        self.words = WordTokenizer([*english, *chinese, *marks])
        self.english = self.words.encode(english)
        self.zh, self.mask, *self.sentinels = self.words.encode(marks)
        self.pairs = sentences(Phrasebook(), count, split, seed)

    def line(self, pair: Pair, both: bool = False) -> list[int]:
        """A sentence in English, or in English and in Chinese, between <bos> and <eos>."""
        words = [*pair.source, "<zh>", *pair.target] if both else pair.source
        return [BOS, *self.words.encode(words), EOS]

    @cached_property
    def lines(self) -> tuple[list[list[int]], list[list[int]]]:
        """Every pair as a row of English, and as a row of both languages."""
        return tuple([self.line(pair, both) for pair in self.pairs] for both in (False, True))

    def rows(self, draws: torch.Generator, count: int = ROWS) -> list[list[int]]:
        """Draw rows, English alone or both languages at even odds."""
        at = torch.randint(len(self.pairs), (count,), generator=draws).tolist()
        both = torch.randint(2, (count,), generator=draws).tolist()
        return [self.lines[b][i] for i, b in zip(at, both, strict=True)]


class Stack(nn.Module):
    """One stack of layers: an encoder or, with the future hidden, a decoder-only model."""

    def __init__(self, vocab_size: int, causal: bool) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, WIDTH)
        self.positions = PositionalEncoding(WIDTH, LONGEST, dropout=0.0)
        sizes = (WIDTH, HEADS, 4 * WIDTH, 0.0, PreNorm, F.gelu)
        layers = [EncoderLayer(*sizes) for _ in range(LAYERS)]
        self.encoder = Encoder(layers, PreNorm.final_norm(WIDTH))
        xavier(self)
        self.causal = causal

    def read(self, ids: Tensor) -> Tensor:
        """The state of each token after the last layer: ids (B, S) -> (B, S, C)."""
        mask = padding_mask(ids)
        if self.causal:
            mask = mask & causal_mask(ids.size(1), ids.device)
        return self.encoder(self.positions(self.embedding(ids)), mask)

    def output(self, states: Tensor) -> Tensor:
        """Score the words: (..., C) -> (..., V)."""
        return states @ self.embedding.weight.T

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.weight.device


class Pairwise(Transformer):
    """`Transformer`, with the encoder's states under the name that the stack has for its own."""

    def read(self, ids: Tensor) -> Tensor:
        """The state of each source token: ids (B, S) -> (B, S, C)."""
        return self.encode(ids).states


def build(family: str, text: Text, seed: int = 0, device="cpu") -> Stack | Pairwise:
    """Make an untrained model of a family; the families have the same number of parameters."""
    size = len(text.words)
    with seeded(seed):
        if family != "encoder-decoder":
            return Stack(size, family == "decoder-only").to(device)
        config = TransformerConfig(
            size, size, d_model=WIDTH, num_heads=HEADS, num_layers=LAYERS // 2, d_ff=3 * WIDTH,
            dropout=0.0, max_len=LONGEST, norm="pre", activation="gelu", share_embeddings=True,
        )  # fmt: skip
        return Pairwise(config).to(device)


def _encoder_only(model: Stack, text: Text, rows: list[list[int]], draws) -> tuple[Tensor, Tensor]:
    ids = pad_batch(rows, model.device)
    read, chosen = mask_tokens(ids, text.mask, draws, SHARE)
    return model.output(model.read(read)[chosen]), ids[chosen]


def _decoder_only(model: Stack, text: Text, rows: list[list[int]], draws) -> tuple[Tensor, Tensor]:
    ids = pad_batch(rows, model.device)
    real = ids[:, 1:] != PAD
    return model.output(model.read(ids[:, :-1])[real]), ids[:, 1:][real]


def _encoder_decoder(model: Pairwise, text: Text, rows: list[list[int]], draws):
    made = []
    for row in rows:
        share = LOW + (HIGH - LOW) * torch.rand((), generator=draws).item()
        ids = torch.tensor(row[1:])  # rolled: any token may be dropped
        made.append(corrupt_spans(ids, text.sentinels, draws, share, MEAN_SPAN, roll=True))
    sources, targets = zip(*((c.tolist(), t.tolist()) for c, t in made), strict=True)
    return score_targets(model, [[BOS, *source] for source in sources], targets)


def score_targets(model: Pairwise, sources: Sequence[list[int]], targets: Sequence[list[int]]):
    """Score all tokens of each target after its source: logits (N, V) and the tokens (N,)."""
    src = pad_batch(sources, model.device)
    tgt = pad_batch([[BOS, *target] for target in targets], model.device)
    real = tgt[:, 1:] != PAD
    return model.output(model.decode(tgt[:, :-1], model.encode(src))[real]), tgt[:, 1:][real]


ASKS = dict(zip(FAMILIES, (_encoder_only, _decoder_only, _encoder_decoder), strict=True))


def family_of(model: nn.Module) -> str:
    """Which family a model of this study is of."""
    return FAMILIES[2] if isinstance(model, Transformer) else FAMILIES[int(model.causal)]


def objective(model, text: Text, rows: list[list[int]], draws: torch.Generator):
    """What its family asks of a model for these rows: logits (N, V) and the tokens asked for (N,).

    The words that are masked, the next word, or the spans dropped.
    """
    return ASKS[family_of(model)](model, text, rows, draws)


def optimise_family(model: nn.Module, loss, steps: int, lr: float) -> Tensor:
    """Train by the recipe that all families share; the losses."""
    return optimise_with_warmup(model.parameters(), loss, steps, lr, min(50, steps // 5))


def pretrain(model, text: Text, seed: int = 0, steps: int = STEPS, lr: float | None = None):
    """Train a model on its family's objective: rows and noise by the seed; the losses."""
    draws, noise = (torch.Generator().manual_seed(seed) for _ in range(2))

    def loss(_: int) -> Tensor:
        return F.cross_entropy(*objective(model, text, text.rows(draws), noise))

    return optimise_family(model, loss, steps, BEST[family_of(model)] if lr is None else lr)


@torch.no_grad()
def held_out(model, text: Text, count: int = 25) -> float:
    """The family's own loss, in nats, on rows of held-out sentences, the same for every model."""
    draws, noise = (torch.Generator().manual_seed(seed) for seed in (1, 2))
    asked = [objective(model, text, text.rows(draws), noise) for _ in range(count)]
    logits, tokens = (torch.cat(parts) for parts in zip(*asked, strict=True))
    return F.cross_entropy(logits, tokens).item()


def operations(model, text: Text, rows: list[list[int]]) -> tuple[int, int]:
    """Operations of one training step's matrix products, and how many tokens have a loss in it."""
    asked: list[int] = []

    def step() -> None:
        logits, tokens = objective(model, text, rows, torch.Generator().manual_seed(0))
        asked.append(len(tokens))
        F.cross_entropy(logits, tokens).backward()

    with record(model):  # explicit attention: the fused kernel is not counted
        flops = count_flops(step)
    return flops, asked[0]
