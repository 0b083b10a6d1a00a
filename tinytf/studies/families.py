"""The three families side by side: one corpus, one size, one budget, four things to do.

A row of the corpus is a phrasebook sentence with `because it was`, in English alone or in English
and then in Chinese. The encoder-only and the decoder-only model are one class with the same weights
at the start: they differ in a causal mask and in what they are asked for. The encoder-decoder is
`Transformer`, as wide, and half as deep on either side.
"""

import copy
from collections.abc import Iterable, Sequence
from functools import cache, cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from tinytf.blocks import Encoder, EncoderLayer, PreNorm
from tinytf.data.phrasebook import Pair, Phrasebook
from tinytf.embedding import TokenEmbedding
from tinytf.initialisation import xavier
from tinytf.inspect import record
from tinytf.masks import causal_mask, padding_mask
from tinytf.metrics.counting import count_flops, count_parameters
from tinytf.positional import PositionalEncoding
from tinytf.studies.blanks import Blanks
from tinytf.studies.encoder import Blank, blanks_of, probe, sentences
from tinytf.studies.optimise import optimise_with_warmup
from tinytf.studies.threads import one_thread
from tinytf.support.randomness import seeded
from tinytf.text.words import BOS, EOS, PAD, WordTokenizer, pad_batch
from tinytf.training.denoising import corrupt_spans
from tinytf.training.masked_lm import mask_tokens
from tinytf.transformer import Memory, Transformer, TransformerConfig

__all__ = [
    "FAMILIES",
    "GROUPS",
    "Bench",
    "Odds",
    "Text",
    "accuracy",
    "build",
    "continue_",
    "divergence",
    "family_of",
    "fill",
    "fill_by_rescoring",
    "fine_tune",
    "held_out",
    "measure",
    "objective",
    "operations",
    "pretrain",
    "translated",
]

SEEDS = range(5)
FAMILIES = ("encoder-only", "decoder-only", "encoder-decoder")
GROUPS = ("first noun", "verb", "second noun", "adjective")
WIDTH, HEADS, LAYERS, LONGEST = 64, 4, 4, 64
ROWS, SPANS = 16, 8
SHARE = 0.3  # of the words is masked: BERT's is 0.15, but the runs are short
# T5 drops 0.15 in spans of 3. In rows as short as ours the number of gaps would give away how long
# they are, so that a model is lost where there is one gap: each row draws a share of its own.
LOW, HIGH, MEAN_SPAN = 0.1, 0.35, 2.0
RATES = (1.5e-3, 3e-3, 6e-3, 1.2e-2)
BEST = {"encoder-only": 6e-3, "decoder-only": 6e-3, "encoder-decoder": 3e-3}  # by `rates`
STEPS, LABELS = 2000, 256


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
    return _said(model, [[BOS, *source] for source in sources], targets)


def _said(model: Pairwise, sources: Sequence[list[int]], targets: Sequence[list[int]]):
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


def _optimise(model: nn.Module, loss, steps: int, lr: float) -> Tensor:
    return optimise_with_warmup(model.parameters(), loss, steps, lr, min(50, steps // 5))


def pretrain(model, text: Text, seed: int = 0, steps: int = STEPS, lr: float | None = None):
    """Train a model on its family's objective: rows and noise by the seed; the losses."""
    draws, noise = (torch.Generator().manual_seed(seed) for _ in range(2))

    def loss(_: int) -> Tensor:
        return F.cross_entropy(*objective(model, text, text.rows(draws), noise))

    return _optimise(model, loss, steps, BEST[family_of(model)] if lr is None else lr)


@torch.no_grad()
def held_out(model, text: Text, count: int = 25) -> float:
    """The family's own loss, in nats, on rows of held-out sentences, the same for every model."""
    draws, noise = (torch.Generator().manual_seed(seed) for seed in (1, 2))
    found = [objective(model, text, text.rows(draws), noise) for _ in range(count)]
    logits, tokens = (torch.cat(parts) for parts in zip(*found, strict=True))
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


# Filling a blank and continuing: against the odds of the grammar.


class Odds:
    """Blanks of held-out sentences and the grammar's odds of each English word there: (N, W)."""

    def __init__(self, text: Text, pairs: Sequence[Pair]) -> None:
        grammar = Blanks(Phrasebook(), ["because"])
        columns = [grammar.column[text.words.tokens[i]] for i in text.english]

        def odds(blanks: Sequence[Blank], both: bool) -> Tensor:
            rows = [torch.tensor(grammar.odds(b.words, b.at, both))[columns] for b in blanks]
            return torch.stack(rows).float()

        self.text = text
        every = [b for pair in pairs for b in blanks_of(pair)]
        self.blanks = [b for b in every if b.group in GROUPS]
        self.beginnings = every
        self.both, self.left = odds(self.blanks, True), odds(self.blanks, False)
        self.next = odds(self.beginnings, False)


def divergence(odds: Tensor, log_probs: Tensor) -> Tensor:
    """KL(odds ‖ model) of each row in nats: what is lost by believing the model, 0 if it is right.

    odds (N, W) are the grammar's; log_probs (N, W) the model's.
    """
    return torch.special.xlogy(odds, odds).sum(1) - (odds * log_probs.clamp(min=-30)).sum(1)


def _at(model: Stack, rows: Sequence[list[int]], at: Sequence[int]) -> Tensor:
    """What the states at one place of each row say: logits (N, V)."""
    states = model.read(pad_batch(rows, model.device))
    every = torch.arange(len(rows), device=model.device)
    return model.output(states[every, torch.tensor(at, device=model.device)])


def _chunks(things: Sequence, size: int = 128) -> Iterable:
    for i in range(0, len(things), size):
        yield things[i : i + size]


@torch.no_grad()
def fill(model, odds: Odds) -> Tensor:
    """The model's log-odds of the English words at each blank, as pre-trained: (N, W).

    The encoder reads a mask in the blank's place. The decoder-only model sees what is left of it.
    The encoder-decoder reads a sentinel there, and scores each word with the next sentinel after it
    since the blank is known to hold one word. Normalised over the English words.
    """
    text, family, out = odds.text, family_of(model), []
    for some in _chunks(odds.blanks):
        rows, at = [_row(text, b) for b in some], [1 + b.at for b in some]
        if family == "decoder-only":
            rows = [row[:n] for row, n in zip(rows, at, strict=True)]
            found = _at(model, rows, [n - 1 for n in at])
        else:
            hole = text.mask if family == "encoder-only" else text.sentinels[0]
            rows = [[*row[:n], hole, *row[n + 1 :]] for row, n in zip(rows, at, strict=True)]
            known = family == "encoder-only"
            found = _at(model, rows, at) if known else _one_word(model, text, rows)
        out.append(found[:, text.english])
    return torch.cat(out).log_softmax(-1).cpu()


def _row(text: Text, blank: Blank) -> list[int]:
    return [BOS, *text.words.encode(blank.words), EOS]


def _one_word(model: Pairwise, text: Text, rows: list[list[int]]) -> Tensor:
    """Score each English word, and the next sentinel after it, at a source's sentinel: (N, V)."""
    memory = model.encode(pad_batch(rows, model.device))
    start = [BOS, text.sentinels[0]]
    first = torch.tensor([start] * len(rows), device=model.device)
    scores = model.output(model.decode(first, memory)[:, -1]).log_softmax(-1)
    each = torch.tensor([[*start, w] for w in text.english], device=model.device)
    for i in range(len(rows)):
        mine = Memory(*(part[i : i + 1].expand(len(each), *part.shape[1:]) for part in memory))
        after = model.output(model.decode(each, mine)[:, -1]).log_softmax(-1)
        scores[i, text.english] += after[:, text.sentinels[1]]
    return scores


@torch.no_grad()
def fill_by_rescoring(model: Stack, odds: Odds) -> Tensor:
    """A decoder-only model's log-odds from both sides: put each word in, score the row: (N, W).

    Bayes' rule, normalised over the English words. It reads the sentence once for every word.
    """
    text, out = odds.text, []
    words = torch.tensor(text.english, device=model.device)
    for b in odds.blanks:
        rows = torch.tensor(_row(text, b), device=model.device).repeat(len(words), 1)
        rows[:, 1 + b.at] = words
        scores = model.output(model.read(rows[:, :-1])[:, b.at :]).log_softmax(-1)
        out.append(scores.gather(2, rows[:, 1 + b.at :, None])[..., 0].sum(1))
    return torch.stack(out).log_softmax(-1).cpu()


@torch.no_grad()
def continue_(model, odds: Odds, fill_up: bool = False) -> Tensor:
    """The model's log-odds of the English words after each beginning, as pre-trained: (N, W).

    The encoder reads a mask after the beginning, or with `fill_up` as many as the sentence has
    words left and then its end. The encoder-decoder reads a sentinel there.
    """
    text, family, out = odds.text, family_of(model), []
    for some in _chunks(odds.beginnings):
        rows, at = [_row(text, b)[: 1 + b.at] for b in some], [1 + b.at for b in some]
        if family == "decoder-only":
            found = _at(model, rows, [n - 1 for n in at])
        elif family == "encoder-only":
            left = [[text.mask] * (len(b.words) - b.at) + [EOS] for b in some]
            masks = left if fill_up else [[text.mask]] * len(some)
            found = _at(model, [r + m for r, m in zip(rows, masks, strict=True)], at)
        else:
            memory = model.encode(pad_batch([[*r, text.sentinels[0]] for r in rows], model.device))
            start = torch.tensor([[BOS, text.sentinels[0]]] * len(rows), device=model.device)
            found = model.output(model.decode(start, memory)[:, -1])
        out.append(found[:, text.english])
    return torch.cat(out).log_softmax(-1).cpu()


# Classifying: is `it` the first noun or the second?


def labelled(text: Text, pairs: Sequence[Pair]) -> tuple[list[list[int]], Tensor]:
    """Sentences in English as rows of ids, and whether `it` is the second noun: (N,)."""
    label = [int(p.antecedent[1] != _nouns(p)[0]) for p in pairs]
    return [text.line(p) for p in pairs], torch.tensor(label)


def _nouns(pair: Pair) -> list[int]:
    return [b.at for b in blanks_of(pair) if b.group in ("first noun", "second noun")]


class Classifier(nn.Module):
    """A linear head on a model's states: their mean, and that of the end of the line."""

    def __init__(self, model: nn.Module, num_classes: int = 2) -> None:
        super().__init__()
        self.model, self.head = model, nn.Linear(2 * WIDTH, num_classes).to(model.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def pooled(self, ids: Tensor) -> Tensor:
        """ids (B, S) -> (B, 2 C)."""
        states, real = self.model.read(ids), (ids != PAD)[..., None]
        end = states[torch.arange(len(ids), device=ids.device), real.sum((1, 2)) - 1]
        return torch.cat([(states * real).sum(1) / real.sum(1), end], dim=1)

    def forward(self, ids: Tensor) -> Tensor:
        """Score the classes: ids (B, S) -> (B, 2)."""
        return self.head(self.pooled(ids))


def fine_tune(
    model, rows: Sequence[list[int]], labels: Tensor, seed: int = 0, steps: int = 100, lr=1e-3
) -> Classifier:
    """Train a copy of a model and a head on a few labelled rows, sixteen a step."""
    made, draws = Classifier(copy.deepcopy(model)), torch.Generator().manual_seed(seed)

    def loss(_: int) -> Tensor:
        at = torch.randint(len(rows), (16,), generator=draws).tolist()
        logits = made(pad_batch([rows[i] for i in at], model.device))
        return F.cross_entropy(logits, labels[at].to(model.device))

    _optimise(made, loss, steps, lr)
    return made


@torch.no_grad()
def accuracy(made: Classifier, rows: Sequence[list[int]], labels: Tensor) -> float:
    """The share of rows whose class is right."""
    guess = made(pad_batch(rows, made.model.device)).argmax(-1).cpu()
    return (guess == labels).float().mean().item()


def bag_of_words(text: Text, rows, labels: Tensor, test_rows, test_labels: Tensor) -> float:
    """The accuracy of a linear map from which words a sentence has, in whatever order."""
    x, test_x = (
        F.one_hot(pad_batch(r), len(text.words)).amax(1)[:, 3:].float() for r in (rows, test_rows)
    )
    log_p = probe(x, labels, test_x)
    return (log_p.argmax(-1) == test_labels).float().mean().item()


# Translating.


def translation_loss(model, text: Text, pairs: Sequence[Pair], draws: torch.Generator):
    """Logits and tokens of the Chinese of some pairs, as the family can be asked for it."""
    family = family_of(model)
    if family == "encoder-decoder":
        english = [[*text.line(p)[:-1], text.zh] for p in pairs]
        return _said(model, english, [[*text.words.encode(p.target), EOS] for p in pairs])
    rows = [text.line(p, both=True) for p in pairs]
    ids = pad_batch(rows, model.device)
    chinese = (ids == text.zh).cumsum(1) - (ids == text.zh).long() > 0
    chinese &= ids != PAD
    if family == "decoder-only":
        real = chinese[:, 1:]
        return model.output(model.read(ids[:, :-1])[real]), ids[:, 1:][real]
    chinese &= ids != EOS
    share = torch.rand(len(rows), 1, generator=draws).to(ids.device)
    hide = (torch.rand(ids.shape, generator=draws).to(ids.device) < share) & chinese
    hide |= chinese & (chinese.cumsum(1) == 1) & ~hide.any(1, keepdim=True)
    return model.output(model.read(ids.masked_fill(hide, text.mask))[hide]), ids[hide]


def learn_to_translate(model, text: Text, seed: int = 0, steps: int = 300, lr: float = 1e-3):
    """Train on pairs of the corpus, sixteen a step."""
    draws = torch.Generator().manual_seed(seed)

    def loss(_: int) -> Tensor:
        at = torch.randint(len(text.pairs), (16,), generator=draws).tolist()
        return F.cross_entropy(*translation_loss(model, text, [text.pairs[i] for i in at], draws))

    return _optimise(model, loss, steps, lr)


@torch.no_grad()
def translated(model, text: Text, pairs: Sequence[Pair]) -> float:
    """The share of sentences whose Chinese comes out word for word, taking the likeliest.

    Writing from left to right gets a sentence right just if after each right beginning the right
    word is the likeliest, so one pass tells. The encoder is told how many words there are and, from
    masks alone, sets the word it is surest of, one a pass.
    """
    family, right = family_of(model), 0
    for pair in pairs:
        if family == "encoder-only":
            right += _written(model, text, pair) == text.words.encode(pair.target)
        else:
            logits, tokens = translation_loss(model, text, [pair], torch.Generator())
            right += bool((logits.argmax(-1) == tokens).all())
    return right / len(pairs)


def _written(model: Stack, text: Text, pair: Pair) -> list[int]:
    row = [BOS, *text.words.encode(pair.source), text.zh, *[text.mask] * len(pair.target), EOS]
    ids = torch.tensor([row], device=model.device)
    for _ in pair.target:
        open_ = (ids == text.mask)[0]
        probs = model.output(model.read(ids)[0, open_]).softmax(-1)
        probs[:, text.mask] = 0
        best, word = probs.max(-1)
        place = open_.nonzero()[:, 0][best.argmax()]
        ids[0, place] = word[best.argmax()]
    return ids[0, len(pair.source) + 2 : -1].tolist()


class Bench:
    """What all models of the study are measured with: held-out sentences, odds, labels."""

    def __init__(self, text: Text, sentences_: Sequence[Pair], blanks: int = 50) -> None:
        self.text, self.test = text, list(sentences_)
        self.odds = Odds(text, self.test[:blanks])
        self.rows, self.labels = labelled(text, self.test)

    def labels_for(self, seed: int, count: int = LABELS) -> tuple[list[list[int]], Tensor]:
        """The labelled sentences of the corpus that a seed learns from, others for each seed."""
        start = 300 * seed
        return labelled(self.text, self.text.pairs[start : start + count])


def measure(model, bench: Bench, seed: int) -> dict:
    """Everything that the study asks of one trained model."""
    text, family, odds = bench.text, family_of(model), bench.odds
    flops, asked = operations(model, text, fixed := text.rows(torch.Generator().manual_seed(5), 64))
    read = sum(map(len, fixed))
    row: dict = {"operations": {"per token": round(flops / read), "per loss": round(flops / asked)}}
    row["fill"] = by_group(divergence(odds.both, fill(model, odds)), odds)
    if family == "decoder-only":
        row["rescored"] = by_group(divergence(odds.both, fill_by_rescoring(model, odds)), odds)
        row["translate, as pre-trained"] = round(translated(model, text, bench.test[:150]), 4)
    row["continue"] = _mean(divergence(odds.next, continue_(model, odds)))
    if family == "encoder-only":
        row["continue, filled up"] = _mean(divergence(odds.next, continue_(model, odds, True)))
    rows, labels = bench.labels_for(seed)
    for name, made in (("classify", model), ("classify, untrained", build(family, text, seed))):
        tuned = fine_tune(made, rows, labels, seed)
        row[name] = round(accuracy(tuned, bench.rows, bench.labels), 4)
    learner = copy.deepcopy(model)
    learn_to_translate(learner, text, seed)
    row["translate"] = round(translated(learner, text, bench.test[:150]), 4)
    return row


def by_group(values: Tensor, odds: Odds) -> dict[str, float]:
    """The mean over the blanks of each group, and over all."""
    table = {g: _mean(values[[b.group == g for b in odds.blanks]]) for g in GROUPS}
    return table | {"all": _mean(values)}


def _mean(values: Tensor) -> float:
    return round(values.mean().item(), 4)


def references(bench: Bench, which: Iterable[int]) -> list[dict]:
    """What the grammar knows from the left alone, and what guessing and counting words gives."""
    left = divergence(bench.odds.both, bench.odds.left.log())
    most = max(bench.labels.float().mean().item(), 1 - bench.labels.float().mean().item())
    table = [{"reference": "left only", "fill": by_group(left, bench.odds)}]
    table.append({"reference": "the commoner class", "classify": round(most, 4)})
    for seed in which:
        found = bag_of_words(bench.text, *bench.labels_for(seed), bench.rows, bench.labels)
        table.append({"reference": "bag of words", "seed": seed, "classify": round(found, 4)})
    return table


@one_thread()
def side_by_side(
    which: Iterable[int] = SEEDS, steps: int = STEPS, families: Sequence[str] = FAMILIES
) -> list[dict]:
    """Train the families on the corpus and measure them."""
    text, other, which = Text(), Text(150, "validation"), list(which)
    bench = Bench(text, sentences(Phrasebook(), 300, "test", 1))
    table = references(bench, which)
    for seed, family in tqdm([(s, f) for s in which for f in families]):
        model = build(family, text, seed)
        row = {"family": family, "seed": seed, "parameters": count_parameters(model)}
        history = pretrain(model, text, seed, steps)
        row["curve"] = [round(x, 4) for x in history.view(-1, steps // 20).mean(1).tolist()]
        row["held out"] = round(held_out(model, other), 4)
        table.append(row | measure(model, bench, seed))
    return table


@one_thread()
def rates(steps: int = 800, seed: int = 10) -> list[dict]:
    """Train each family with four learning rates; its own loss on held-out rows.

    With one seed, and for fewer steps than `side_by_side` takes: a coarse choice.
    """
    text, other = Text(8000), Text(150, "validation")
    table = []
    for family, lr in tqdm([(f, r) for f in FAMILIES for r in RATES]):
        model = build(family, text, seed)
        pretrain(model, text, seed, steps, lr)
        table.append({"family": family, "lr": lr, "steps": steps})
        table[-1]["loss"] = round(held_out(model, other), 4)
    return table


def longer() -> list[dict]:
    """Give the two families that are asked for fewer words four times the steps, from one seed."""
    return side_by_side([0], 4 * STEPS, ("encoder-only", "encoder-decoder"))


STUDIES = {"families": side_by_side, "families_rates": rates, "families_longer": longer}
