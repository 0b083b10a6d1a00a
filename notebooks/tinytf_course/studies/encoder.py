"""A small encoder that fills blanks: training, the grammar's floors, probes, and a causal bug."""

import copy
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention
from tinytf.blocks import Encoder, EncoderLayer, PreNorm
from tinytf.embedding import TokenEmbedding
from tinytf.initialisation import xavier
from tinytf.interpret.invariants import free_running
from tinytf.interpret.residual_stream import record_residual_stream
from tinytf.masks import causal_mask, padding_mask
from tinytf.norm import LayerNorm
from tinytf.positional import PositionalEncoding
from tinytf.support.randomness import seeded
from tinytf.text.words import EOS, WordTokenizer, pad_batch
from tinytf.training.masked_lm import mask_tokens
from tinytf.training.schedules import warmup_cosine
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.phrasebook.lexicon import MASSES, NOUNS
from tinytf_course.studies.blanks import Blanks
from tinytf_course.studies.optimise import optimise, optimise_with_warmup
from tinytf_course.studies.reversal import draw

__all__ = [
    "GROUPS",
    "Blank",
    "CausalByAccident",
    "Cloze",
    "blank_batch",
    "blanks_of",
    "build",
    "constant_losses",
    "exact",
    "first_nouns",
    "floors",
    "layer_losses",
    "losses",
    "make_layers",
    "probe",
    "reverser",
    "sentences",
    "train",
]


GROUPS = ("first noun", "verb", "second noun", "adjective", "the others")
WIDTH, LAYERS, STEPS = 64, 3, 1500


class Cloze(nn.Module):
    """An encoder that predicts the missing words.

    `left_only` puts a decoder's causal mask into it: each position sees only what is left of it.
    """

    def __init__(
        self, vocab_size: int, layers: list[EncoderLayer], d_model: int, left_only: bool = False
    ) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size + 1, d_model)  # the last one is <mask>
        self.positions = PositionalEncoding(d_model, max_len=64, dropout=0.0)
        self.encoder = Encoder(layers, LayerNorm(d_model))
        self.left_only = left_only

    def read(self, ids: Tensor) -> Tensor:
        """What each word has become after the last layer: ids (B, S) -> (B, S, C)."""
        mask = padding_mask(ids)
        if self.left_only:
            mask = mask & causal_mask(ids.size(1), ids.device)
        return self.encoder(self.positions(self.embedding(ids)), mask)

    def forward(self, ids: Tensor, chosen: Tensor) -> Tensor:
        """The logits at the chosen positions: ids and booleans (B, S) -> (chosen, V)."""
        return self.read(ids)[chosen] @ self.embedding.weight[:-1].T


def make_layers(start: str = "own") -> list[EncoderLayer]:
    """Make three Pre-LN layers: with their "own" starts, "equal" at the start, or one "shared"."""

    def layer() -> EncoderLayer:
        made = EncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, residual=PreNorm)
        xavier(made)
        return made

    if start == "own":
        return [layer() for _ in range(LAYERS)]
    one = layer()
    return [one if start == "shared" or i == 0 else copy.deepcopy(one) for i in range(LAYERS)]


def build(
    words: WordTokenizer, seed: int = 0, left_only: bool = False, start: str = "own"
) -> Cloze:
    """Make the encoder of these studies; the same seed gives the same weights to both sides."""
    with seeded(seed):
        return Cloze(len(words), make_layers(start), WIDTH, left_only)


def sentences(book: Phrasebook, count: int, split: str = "train", seed: int = 0) -> list[Pair]:
    """Draw `because it was` sentences, different ones unless they are for training."""
    drawn = book.pairs(split, seed, ["because"])
    if split == "train":
        return list(islice(drawn, count))
    distinct: dict[str, Pair] = {}
    for pair in drawn:
        distinct.setdefault(pair.english, pair)
        if len(distinct) == count:
            return list(distinct.values())
    raise AssertionError("pairs has no end")


def train(
    model: Cloze,
    rows: Sequence[Sequence[int]],
    seed: int = 0,
    steps: int = STEPS,
    share: float = 0.3,
    lr: float = 8e-3,
) -> Tensor:
    """Train on batches of 64 rows of ids, hiding a share of the words; the losses, one a step."""
    device, mask_id = model.embedding.weight.device, model.embedding.vocab_size - 1
    draws = torch.Generator().manual_seed(seed)

    def loss(_: int) -> Tensor:
        at = torch.randint(len(rows), (64,), generator=draws).tolist()
        ids = pad_batch([rows[i] for i in at], device)
        read, chosen = mask_tokens(ids, mask_id, draws, share)
        return F.cross_entropy(model(read, chosen), ids[chosen])

    return optimise_with_warmup(model.parameters(), loss, steps, lr, 50)


class Blank(NamedTuple):
    """A sentence with one word taken out."""

    words: tuple[str, ...]
    at: int
    group: str

    @property
    def word(self) -> str:
        """The word that stood there."""
        return self.words[self.at]


def blanks_of(pair: Pair) -> list[Blank]:
    """Every word of a `because` sentence as a blank, with what it is in the sentence."""
    words = pair.source
    first, second = (i for i, w in enumerate(words) if w in NOUNS or w in MASSES)
    verb = words.index("not") + 1 if "not" in words else first + 1
    group = {first: "first noun", verb: "verb", second: "second noun", len(words) - 1: "adjective"}
    return [Blank(words, i, group.get(i, "the others")) for i in range(len(words))]


def first_nouns(pairs: Iterable[Pair]) -> list[Blank]:
    """The first noun of each sentence as a blank."""
    return [b for pair in pairs for b in blanks_of(pair) if b.group == GROUPS[0]]


def floors(odds: Blanks, blanks: Sequence[Blank], both: bool = True) -> Tensor:
    """The loss at each blank of one who knows the grammar: nats (N,)."""
    shares = [odds.odds(b.words, b.at, both)[odds.column[b.word]] for b in blanks]
    return -torch.tensor(shares, dtype=torch.float32).log()


class BlankBatch(NamedTuple):
    """Blanks as ids."""

    ids: Tensor  # (N, S), <mask> at the blank
    chosen: Tensor  # (N, S), True at the blank
    word: Tensor  # (N,), the id of the word that stood there


def blank_batch(words: WordTokenizer, blanks: Sequence[Blank], device=None) -> BlankBatch:
    """Turn blanks into what the encoder reads and what it should say."""
    ids = pad_batch([[*words.encode(b.words), EOS] for b in blanks], device)
    at = torch.tensor([b.at for b in blanks], device=ids.device)
    chosen = torch.arange(ids.size(1), device=ids.device) == at[:, None]
    return BlankBatch(ids.masked_fill(chosen, len(words)), chosen, ids[chosen])


@torch.no_grad()
def losses(model: Cloze, batch: BlankBatch) -> Tensor:
    """The model's loss at each blank: nats (N,) on the CPU."""
    parts = zip(*(part.split(512) for part in batch), strict=True)
    return torch.cat([F.cross_entropy(model(i, c), w, reduction="none").cpu() for i, c, w in parts])


def probe(x: Tensor, y: Tensor, test_x: Tensor, steps: int = 300, seed: int = 0) -> Tensor:
    """Fit a linear map from states x (N, C) to classes y (N,); log-probabilities (M, classes).

    The states are centred and scaled with the training states' mean and standard deviation.
    """
    mean, std = x.mean(dim=0), x.std(dim=0).clamp(min=1e-6)
    x, test_x = (x - mean) / std, (test_x - mean) / std
    draws = torch.Generator().manual_seed(seed)
    weight = torch.zeros(x.size(1) + 1, int(y.max()) + 1, device=x.device, requires_grad=True)
    optimizer = torch.optim.AdamW([weight], lr=0.03, weight_decay=0.01, fused=True)

    def loss(_: int) -> Tensor:
        at = torch.randint(len(x), (min(512, len(x)),), generator=draws).to(x.device)
        return F.cross_entropy(F.pad(x[at], (0, 1), value=1.0) @ weight, y[at])

    optimise(optimizer, loss, steps, lambda step: warmup_cosine(step, 0.03, 10, steps))
    return (F.pad(test_x, (0, 1), value=1.0) @ weight.detach()).log_softmax(dim=-1)


@torch.no_grad()
def blank_states(model: Cloze, batch: BlankBatch) -> Tensor:
    """What stands at the blank, by layer: (1 + L, N, C)."""
    parts = []
    for ids, chosen in zip(batch.ids.split(512), batch.chosen.split(512), strict=True):
        with record_residual_stream(model) as seen:
            model.read(ids)
        parts.append(seen.by_layer()[:, chosen])
    return torch.cat(parts, dim=1)


def layer_losses(model: Cloze, known: BlankBatch, asked: BlankBatch, steps: int = 1000) -> Tensor:
    """Read the word off each layer's state at the blank, by a probe a layer: nats (1 + L, N).

    The probes choose among the words that are blanked anywhere in the two batches.
    """
    here, there = blank_states(model, known), blank_states(model, asked)
    _, at = torch.cat([known.word, asked.word]).unique(return_inverse=True)
    word, gold = at.split([len(known.word), len(asked.word)])
    read = [probe(x, word, test, steps) for x, test in zip(here, there, strict=True)]
    return torch.stack([-p.gather(1, gold[:, None])[:, 0] for p in read]).cpu()


def constant_losses(known: BlankBatch, asked: BlankBatch) -> Tensor:
    """The loss of one who reads nothing and says each word as often as it was known: nats (N,)."""
    _, at = torch.cat([known.word, asked.word]).unique(return_inverse=True)
    word, gold = at.split([len(known.word), len(asked.word)])
    counts = word.bincount(minlength=int(at.max()) + 1) + 0.5  # so that no word is impossible
    return -(counts / counts.sum()).log()[gold].cpu()


class CausalByAccident(MultiHeadAttention):
    """Attention with a bug seen in a tutorial: with no memory, it takes itself for a decoder's."""

    def forward(self, x, memory=None, mask=None, cache=None):
        """As `MultiHeadAttention`, except that self-attention can't see the future."""
        if memory is None:
            mask = mask & causal_mask(x.size(1), x.device)
        return super().forward(x, memory, mask, cache)


def reverser(seed: int = 0, bug: bool = False, steps: int = 400, device="cpu") -> Transformer:
    """Train a small Transformer to say 8 symbols backwards; `bug`: its encoder is causal."""
    with seeded(seed):
        sizes = {"d_model": 32, "num_heads": 4, "num_layers": 2, "d_ff": 64, "dropout": 0.0}
        model = Transformer(TransformerConfig(15, 15, **sizes, norm="pre")).to(device)
    if bug:
        for layer in model.encoder.layers:
            layer.self_attention.__class__ = CausalByAccident
    draws = torch.Generator().manual_seed(seed)

    def loss(_: int) -> Tensor:
        batch = draw(64, 8, draws, device)
        scores = model(batch.src, batch.tgt_in).flatten(0, 1)
        return F.cross_entropy(scores, batch.tgt_out.flatten())

    optimise_with_warmup(model.parameters(), loss, steps, 4e-3, 50)
    return model.eval()


def exact(model: Transformer, count: int = 500, device="cpu") -> float:
    """The share of new rows that come out backwards, every symbol right, written freely."""
    batch = draw(count, 8, torch.Generator().manual_seed(10_000), device)
    return free_running(model, batch, use_cache=True).float().mean().item()
