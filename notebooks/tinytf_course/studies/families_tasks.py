"""What the families of `families` are asked to do: fill a blank, continue, classify, translate."""

import copy
from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.text.words import BOS, EOS, PAD, pad_batch
from tinytf.transformer import Memory
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies.blanks import Blanks
from tinytf_course.studies.encoder import Blank, blanks_of, probe
from tinytf_course.studies.families import (
    WIDTH,
    Pairwise,
    Stack,
    Text,
    family_of,
    optimise_family,
    score_targets,
)

__all__ = [
    "GROUPS",
    "Odds",
    "accuracy",
    "continue_",
    "divergence",
    "fill",
    "fill_by_rescoring",
    "fine_tune",
    "translated",
]


GROUPS = ("first noun", "verb", "second noun", "adjective")


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
            scores = _at(model, rows, [n - 1 for n in at])
        else:
            hole = text.mask if family == "encoder-only" else text.sentinels[0]
            rows = [[*row[:n], hole, *row[n + 1 :]] for row, n in zip(rows, at, strict=True)]
            known = family == "encoder-only"
            scores = _at(model, rows, at) if known else _one_word(model, text, rows)
        out.append(scores[:, text.english])
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
            scores = _at(model, rows, [n - 1 for n in at])
        elif family == "encoder-only":
            left = [[text.mask] * (len(b.words) - b.at) + [EOS] for b in some]
            masks = left if fill_up else [[text.mask]] * len(some)
            scores = _at(model, [r + m for r, m in zip(rows, masks, strict=True)], at)
        else:
            memory = model.encode(pad_batch([[*r, text.sentinels[0]] for r in rows], model.device))
            start = torch.tensor([[BOS, text.sentinels[0]]] * len(rows), device=model.device)
            scores = model.output(model.decode(start, memory)[:, -1])
        out.append(scores[:, text.english])
    return torch.cat(out).log_softmax(-1).cpu()


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

    optimise_family(made, loss, steps, lr)
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


def translation_loss(model, text: Text, pairs: Sequence[Pair], draws: torch.Generator):
    """Logits and tokens of the Chinese of some pairs, as the family can be asked for it."""
    family = family_of(model)
    if family == "encoder-decoder":
        english = [[*text.line(p)[:-1], text.zh] for p in pairs]
        return score_targets(model, english, [[*text.words.encode(p.target), EOS] for p in pairs])
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

    return optimise_family(model, loss, steps, lr)


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
