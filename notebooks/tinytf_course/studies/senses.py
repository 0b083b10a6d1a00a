"""A study of words with several meanings: can a linear probe read the right one off each layer?

What a word means is taken from its gold Chinese: `play` is 踢, 弹 or 玩. The word is the same in
all sentences, so before the first layer its states differ by their position alone.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from tinytf.apps.translator import Translator
from tinytf.interpret.residual_stream import record_residual_stream
from tinytf.support.randomness import seeded
from tinytf.text.words import BOS, EOS, WordTokenizer, pad_batch
from tinytf.transformer import Transformer
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.phrasebook.lexicon import MASSES, NOUNS
from tinytf_course.studies.encoder import probe
from tinytf_course.studies.threads import one_thread

__all__ = ["SENSES", "Use", "accuracy", "neighbours", "untrained", "uses", "word_states"]

SENSES: dict[str, tuple[str, ...]] = {  # a word's meanings, by what its Chinese holds
    "it": ("first noun", "second noun"),
    "can": ("会", "能"),
    "visit": ("参观", "看望"),
    "play": ("踢", "弹", "玩"),
    "her": ("的", "她"),
    "old": ("老", "旧"),
    "clean": ("打扫", "干净"),
    "that": ("的", "那"),
    "who": ("的", "谁"),
}


class Use(NamedTuple):
    """A word in a sentence, and which of its meanings it has there."""

    words: tuple[str, ...]
    at: int
    sense: int


def uses(
    book: Phrasebook, split: str, seed: int, draws: int, cap: int, of: Iterable[str] = SENSES
) -> dict[str, list[Use]]:
    """Collect at most `cap` uses of each word from so many sentences of a split."""
    collected: dict[str, list[Use]] = {word: [] for word in of}
    for pair in islice(book.pairs(split, seed), draws):
        for at, word in enumerate(pair.source):
            if word in collected and len(collected[word]) < cap:
                sense = _sense(pair, at)
                if sense is not None:
                    collected[word].append(Use(pair.source, at, sense))
    return collected


def _sense(pair: Pair, at: int) -> int | None:
    word = pair.source[at]
    if word == "it":
        if pair.antecedent is None:
            return None
        nouns = [i for i, w in enumerate(pair.source) if w in NOUNS or w in MASSES]
        return int(pair.antecedent[1] != nouns[0])
    chinese = " ".join(pair.target[t] for s, t in pair.alignment if s == at)
    return next((k for k, mark in enumerate(SENSES[word]) if mark in chinese), None)


@torch.no_grad()
def word_states(model: Transformer, words: WordTokenizer, examples: Sequence[Use]) -> Tensor:
    """What the word has become after each layer of the encoder: (1 + L, N, C)."""
    ids = pad_batch([[*words.encode(use.words), EOS] for use in examples], model.device)
    with record_residual_stream(model) as seen:
        model.encode(ids)
    rows = torch.arange(len(examples), device=model.device)
    return seen.by_layer()[:, rows, [use.at for use in examples]]


def neighbours(words: WordTokenizer, examples: Sequence[Use]) -> Tensor:
    """The word before and the word after, one-hot: what one look to each side can tell, (N, 2V)."""
    table = torch.zeros(len(examples), 2, len(words))
    for row, use in enumerate(examples):
        ids = [BOS, *words.encode(use.words), EOS]
        table[row, 0, ids[use.at]] = table[row, 1, ids[use.at + 2]] = 1.0
    return table.flatten(1)


def accuracy(x: Tensor, known: Sequence[Use], test_x: Tensor, asked: Sequence[Use]) -> float:
    """The share of the asked uses whose meaning a linear probe, fitted to the known ones, gets."""
    y, gold = (
        torch.tensor([use.sense for use in part], device=x.device) for part in (known, asked)
    )
    return (probe(x, y, test_x).argmax(dim=-1) == gold).float().mean().item()


def untrained(translator: Translator, seed: int) -> Transformer:
    """The translator's model as it was before training, with weights of this seed."""
    with seeded(seed):
        return Transformer(translator.model.config).to(translator.model.device).eval()


@one_thread()
def senses(seeds: Iterable[int] = range(5)) -> list[dict]:
    """Probe the shipped translator's encoder and untrained ones, over seeds and word by word.

    A seed draws other sentences, other untrained weights and other wrong labels.
    """
    book, translator = Phrasebook(), Translator.load(device="cpu")
    model, words, rows = translator.model.eval(), translator.source, []
    for seed in tqdm(seeds):
        known = uses(book, "train", 20 + seed, 20_000, 400)
        asked = uses(book, "test", 20 + seed, 10_000, 200)
        fresh = untrained(translator, seed)
        for word in SENSES:
            here, there = known[word], asked[word]
            gold = torch.tensor([use.sense for use in there])
            with seeded(seed):
                order = torch.randperm(len(here)).tolist()
            shuffled = [u._replace(sense=here[i].sense) for u, i in zip(here, order, strict=True)]
            row = {"word": word, "seed": seed, "known": len(here), "asked": len(there)}
            row["commonest"] = round((gold.bincount().max() / len(gold)).item(), 4)
            tables = {
                "trained": (model, here), "untrained": (fresh, here), "shuffled": (model, shuffled),
            }  # fmt: skip
            for name, (read, labels) in tables.items():
                x, test_x = word_states(read, words, here), word_states(read, words, there)
                row[name] = [
                    round(accuracy(a, labels, b, there), 4) for a, b in zip(x, test_x, strict=True)
                ]
            x, test_x = neighbours(words, here), neighbours(words, there)
            row["neighbours"] = round(accuracy(x, here, test_x, there), 4)
            rows.append(row)
    return rows


STUDIES = {"encoder_senses": senses}
