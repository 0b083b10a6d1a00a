"""Which units of a feed-forward network write a word, and what it takes to swap two words."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tinytf.apps.translator import Translator
from tinytf.interpret.ffn_units import (
    feed_forwards,
    mirrored,
    record_units,
    values_of,
    word_directions,
)
from tinytf.metrics.translation import batch_of
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import BOS, PAD
from tinytf_course.phrasebook import Pair, Phrasebook, lexicon
from tinytf_course.studies.feedforward import SEEDS, score, untrained
from tinytf_course.studies.threads import one_thread


class Positions(NamedTuple):
    """All real target positions of some sentences, as the last feed-forward network sees them."""

    units: Tensor  # (N, d_ff), how active each of its hidden units is
    stream: Tensor  # (N, C), what the decoder's last norm reads
    gold: Tensor  # (N,), the word that is due
    written: Tensor  # (N,), the word that the intact model finds likeliest
    row: Tensor  # (N,), the sentence


@torch.no_grad()
def positions(translator: Translator, pairs: Sequence[Pair], size: int = 500) -> Positions:
    """Read gold pairs and keep what the last feed-forward network does at every target word."""
    model, parts = translator.model, []
    name = list(feed_forwards(model))[-1]
    before = {}
    hook = model.decoder.final_norm.register_forward_pre_hook(
        lambda _, inputs: before.update(stream=inputs[0])
    )
    try:
        with evaluation_mode(model), record_units(model) as seen:
            for start in range(0, len(pairs), size):
                batch = batch_of(translator, pairs[start : start + size])
                model(batch.src, batch.tgt_in)
                real = batch.tgt_out != PAD
                rows = torch.arange(start, start + len(real), device=real.device)
                stream = before["stream"][real]
                written = likeliest(translator, stream)
                row = rows[:, None].expand_as(real)[real]
                parts.append((seen[name][real], stream, batch.tgt_out[real], written, row))
    finally:
        hook.remove()
    return Positions(*(torch.cat(part) for part in zip(*parts, strict=True)))


@torch.no_grad()
def likeliest(translator: Translator, stream: Tensor) -> Tensor:
    """The word that decoding would write for each last stream (N, C) -> (N,)."""
    model = translator.model
    logits = model.output(model.decoder.final_norm(stream))
    logits[:, [PAD, BOS]] = -torch.inf
    return logits.argmax(dim=-1)


def content_words(translator: Translator) -> dict[str, str]:
    """The nouns, verbs and adjectives that are one Chinese word each: {word: its kind}."""
    kinds = {
        "noun": [noun.chinese for noun in lexicon.NOUNS.values()],
        "verb": [verb.chinese for verb in lexicon.VERBS],
        "adjective": [word.removesuffix(" 的") for word in lexicon.ADJECTIVES.values()],
    }
    kind_of: dict[str, str] = {}
    for kind, words in kinds.items():
        for word in words:
            if word in translator.target.words:
                kind_of.setdefault(word, kind)
    return kind_of


def swaps(translator: Translator, test: Positions, least: int = 30, seed: int = 0) -> list[tuple]:
    """Every content word due `least` times in `test`, with another of its kind to write instead.

    Returns (word, other, kind), the other one drawn at random.
    """
    tokens, kinds = translator.target.tokens, content_words(translator)
    count = Counter(tokens[i] for i in test.gold.tolist())
    often = [word for word in sorted(kinds) if count[word] >= least]
    draw = random.Random(seed)
    chosen = []
    for word in often:
        rest = [other for other in often if kinds[other] == kinds[word] and other != word]
        chosen.append((word, draw.choice(rest), kinds[word]))
    return chosen


class Swap:
    """The edits that make the last feed-forward network write `other` where `word` is due.

    All of them move value vectors along one line, from the word's direction to the other's, so
    an edit is one number per unit, (d_ff,): how far its value moves.
    """

    def __init__(
        self, translator: Translator, word: str, other: str, train: Positions, test: Positions
    ) -> None:
        self.translator, self.train, self.test = translator, train, test
        self.word, self.other = (translator.target.encode(w)[0] for w in (word, other))
        directions = word_directions(translator.model)
        across = directions[self.word] - directions[self.other]
        self.across = across / across.norm()
        layer = list(feed_forwards(translator.model).values())[-1]
        self.values = values_of(layer)
        self.says = self.values @ self.across  # for the word against the other, (d_ff,)
        self.activity = train.units[train.gold == self.word].mean(dim=0)
        self.mirror = (mirrored(self.values, self.across, -self.across) - self.values) @ self.across
        self.due = (test.gold == self.word) & (test.written == self.word)
        mention = (test.gold == self.word) | (test.gold == self.other)
        sentences = torch.ones(int(test.row.max()) + 1, dtype=torch.bool, device=mention.device)
        sentences[test.row[mention | (test.written != test.gold)]] = False
        chosen = sentences.nonzero()[:1000, 0]  # right before the edit, and without the two words
        self.elsewhere = torch.isin(test.row, chosen)
        self.sentences = len(chosen)

    def ranked(self, by: str = "contribution", seed: int = 0) -> Tensor:
        """Units, the likeliest writer first: by contribution, by value, by key, or at random.

        contribution: the value's say times how active the unit is where the word is due; value: the
        say alone; key: the activity alone; random: the more active half of the units, shuffled.
        """
        if by == "random":
            awake = self.activity >= self.activity.median()
            draws = torch.Generator().manual_seed(seed)
            order = torch.randperm(len(awake), generator=draws).to(awake.device)
            return order[awake[order]]
        says, activity = by != "key", by != "value"
        score = (self.says if says else 1) * (self.activity if activity else 1)
        return score.argsort(descending=True)

    def edit(self, units: Tensor) -> Tensor:
        """Mirror the values of these units: how far each of all units moves, (d_ff,)."""
        moves = torch.zeros_like(self.mirror)
        moves[units] = self.mirror[units]
        return moves

    def overwrite(self, unit: Tensor | int, times: float) -> Tensor:
        """Push one value from the word to the other by so many times its own length."""
        moves = torch.zeros_like(self.mirror)
        moves[unit] = -times * self.values[unit].norm()
        return moves

    def there(self, moves: Tensor, along: Tensor | None = None) -> tuple[float, float]:
        """Where the word is due: the shares that write the other word, and that write the word."""
        at = self.due
        new = self._written(at, moves, along)
        return (new == self.other).float().mean().item(), (new == self.word).float().mean().item()

    def lost(self, moves: Tensor, along: Tensor | None = None) -> float:
        """The share of sentences without either word, all right before, that are wrong now."""
        at = self.elsewhere
        wrong = self._written(at, moves, along) != self.test.gold[at]
        return self.test.row[at][wrong].unique().numel() / max(1, self.sentences)

    def _written(self, at: Tensor, moves: Tensor, along: Tensor | None) -> Tensor:
        along = self.across if along is None else along
        moved = (self.test.units[at] @ moves)[:, None] * along
        return likeliest(self.translator, self.test.stream[at] + moved)

    def anywhere(self, seed: int = 0) -> Tensor:
        """A random direction of length 1 that a norm does not take away, (C,)."""
        draws = torch.Generator().manual_seed(seed)
        along = torch.randn(len(self.across), generator=draws).to(self.across)
        along = along - along.mean()
        return along / along.norm()


COUNTS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
TIMES = (1, 2, 4, 6, 8, 12, 16)


def units_needed(shares: Sequence[float], counts: Sequence[int] = COUNTS) -> int | None:
    """The first count at which half of the places write the other word, None if there is none."""
    return next((n for n, share in zip(counts, shares, strict=False) if share >= 0.5), None)


def describe(swap: Swap, full: bool = True) -> dict:
    """Measure one swap: how many units it takes, what it costs elsewhere, and the controls."""
    best, counts = swap.ranked(), [n for n in COUNTS if n <= len(swap.says)]
    shares = [swap.there(swap.edit(best[:n]))[0] for n in counts]
    by_value = [swap.there(swap.edit(swap.ranked("value")[:n]))[0] for n in counts]
    pro = (swap.says * swap.activity)[best].clamp_min(0)
    needed = units_needed(shares, counts)
    row = {
        "needed": needed,
        "needed_by_value": units_needed(by_value, counts),
        "top_unit": round((pro[0] / pro.sum()).item(), 4),
        "there": [round(share, 3) for share in shares],
        "one": [round(share, 4) for share in (*swap.there(swap.edit(best[:1])),
                                              swap.lost(swap.edit(best[:1])))],
    }  # fmt: skip
    if not full:
        return row
    moves = swap.edit(best[: needed or len(best)])
    chance = swap.edit(swap.ranked("random")[: needed or len(best)])
    row["lost"] = round(swap.lost(moves), 4)
    row["random_units"] = [round(swap.there(chance)[0], 3), round(swap.lost(chance), 4)]
    along = swap.anywhere()
    row["random_direction"] = [
        *(round(share, 3) for share in swap.there(moves, along)), round(swap.lost(moves, along), 4)
    ]  # fmt: skip
    doses = [swap.overwrite(best[:1], times) for times in TIMES]
    row["dose_there"] = [round(swap.there(moves)[0], 3) for moves in doses]
    row["dose_lost"] = [round(swap.lost(moves), 4) for moves in doses]
    return row


def swap_all(
    translator: Translator, read: Sequence[Pair], held_out: Sequence[Pair], full: bool = True
) -> dict[str, list]:
    """Swap every frequent content word: a column for each number of `describe`, a row per word.

    Units are chosen by the sentences `read` and graded on those `held_out`.
    """
    train, test = positions(translator, read), positions(translator, held_out)
    columns: dict[str, list] = {}
    for word, other, kind in swaps(translator, test):
        swap = Swap(translator, word, other, train, test)
        row = {"word": word, "other": other, "kind": kind, "due": int(swap.due.sum())}
        for name, value in (row | describe(swap, full)).items():
            columns.setdefault(name, []).append(value)
    return columns


def writers(seeds: Iterable[int] = SEEDS, steps: int = 1000) -> list[dict]:
    """Swap every frequent content word in the shipped translator, and in five small ones."""
    book = Phrasebook()
    read, test = book.sample(4000, "train", seed=5), book.sample(3000, "test", seed=7)
    with one_thread():
        rows = [{"model": "shipped"} | swap_all(Translator.load(), read, test)]
        for seed in seeds:
            trainer, translator = untrained("ReLU", seed, steps)
            trainer.run(log_every=50)
            columns = swap_all(translator, read, test, full=False)
            kept = {name: columns[name] for name in ("needed", "top_unit")}
            rows.append(
                {"model": seed, "exact": round(score(translator, test[:2000])[0], 4)} | kept
            )
    return rows


STUDIES = {"feedforward_writers": writers}
