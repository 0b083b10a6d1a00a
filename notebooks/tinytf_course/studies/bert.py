"""A small BERT: pretraining on masked words and on pairs of sentences, and how pairs are made."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.bert import BertConfig
from tinytf.related.bert_heads import (
    BertForPretraining,
)
from tinytf.related.bert_losses import masked_word_loss
from tinytf.support.randomness import seeded
from tinytf.text.words import WordTokenizer
from tinytf.training.masked_lm import mask_tokens
from tinytf.training.next_sentence import (
    Documents,
    Sentence,
    Uniform,
    another_document,
    join_batch,
    same_document,
    sentence_pairs,
    swapped,
)
from tinytf_course.lessons.understanding import (
    lives,
    manual_documents,
    manual_words,
)
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies.bert_tasks import encode_known
from tinytf_course.studies.optimise import optimise_with_warmup

KINDS = ("because", "date", "time")
HIDING = {"80/10/10": (0.8, 0.1), "100/0/0": (1.0, 0.0)}
WIDTH, LAYERS = 64, 2


class Text(NamedTuple):
    """Pairs of sentences as ids, and whether each second followed its first."""

    ids: Tensor  # (N, S)
    segments: Tensor  # (N, S)
    label: Tensor  # (N,), 0 if it followed, 1 if it did not


def build(vocab_size: int, seed: int = 0, max_len: int = 64) -> BertForPretraining:
    """Make the small BERT of these studies; `vocab_size` counts <mask>, the last id."""
    with seeded(seed):
        return BertForPretraining(
            BertConfig(vocab_size, WIDTH, 4, LAYERS, max_len=max_len, dropout=0.0)
        )


def phrasebook_text(words: WordTokenizer, count: int, seed: int = 0) -> Text:
    """Put sentences of the training split side by side; no order is meant."""
    pairs = Phrasebook().pairs("train", 1000 + seed, KINDS)
    rows = [words.encode(pair.source) for pair in islice(pairs, 2 * count)]
    ids, segments = join_batch(list(zip(rows[::2], rows[1::2], strict=True)))
    return Text(ids, segments, torch.ones(count, dtype=torch.long))


def pretrain(
    model: BertForPretraining,
    text: Text,
    steps: int,
    seed: int = 0,
    hiding: tuple[float, float] = (0.8, 0.1),
    pairs: float = 0.0,
    lr: float = 2e-3,
    size: int = 32,
    until: int | None = None,
) -> list[float]:
    """Train on masked words and, weighted by `pairs`, on the pairs' labels; word losses a step.

    `until` stops earlier, on the learning rates of all the steps.
    """
    mask_id, device = model.config.vocab_size - 1, model.device
    draws = torch.Generator().manual_seed(seed)
    history = []

    def loss(_: int) -> Tensor:
        at = torch.randint(len(text.ids), (size,), generator=draws)
        ids, segments, label = (part[at] for part in text)
        longest = int((ids != 0).sum(dim=1).max())
        ids, segments = ids[:, :longest].to(device), segments[:, :longest].to(device)
        read, chosen = mask_tokens(ids, mask_id, draws, 0.15, *hiding)
        states = model.bert(read, segments)
        words = masked_word_loss(model, states, ids, chosen)
        history.append(words.item())
        if not pairs:
            return words
        return words + pairs * F.cross_entropy(model.next_sentence(states), label.to(device))

    optimise_with_warmup(model.parameters(), loss, steps, lr, steps // 10, until)
    return history


def other_person(
    documents: Documents, d: int, i: int, uniform: Uniform
) -> tuple[Sentence, Sentence]:
    """Follow a sentence by one about somebody else: then the person alone tells."""
    while True:
        first, second = another_document(documents, d, i, uniform)
        if first[1] != second[1]:  # "my mother ...": the second word is who
            return first, second


MADE_UP = {  # how a wrong pair is made up
    "another person": other_person,
    "same person": same_document,
    "swapped": swapped,
}


def life_text(words: WordTokenizer, made_up: str, count: int, seed: int) -> Text:
    """Pair the sentences of `lives`, half of them wrongly."""
    rows = [[words.encode(s) for s in document] for document in lives(count, seed)]
    made = sentence_pairs(rows, seed, MADE_UP[made_up])
    ids, segments = join_batch([(p.first, p.second) for p in made])
    return Text(ids, segments, torch.tensor([0 if p.is_next else 1 for p in made]))


def manual_vocabulary() -> WordTokenizer:
    """The manual's 2,000 most frequent words; <unk> is the first of them."""
    return WordTokenizer(["<unk>", *manual_words(2000)])


@torch.no_grad()
def pair_accuracy(model: BertForPretraining, text: Text) -> float:
    """The share of pairs whose label the model's next-sentence head finds."""
    model.eval()
    right = []
    for ids, segments, label in zip(*(part.split(256) for part in text), strict=True):
        scores = model.next_sentence(model.bert(ids.to(model.device), segments.to(model.device)))
        right.append(scores.argmax(dim=-1).cpu() == label)
    return torch.cat(right).float().mean().item()


def shared_words(first: Sequence[str], second: Sequence[str], common: set[str]) -> int:
    """How many words of the second sentence stand in the first, `common` ones not counted."""
    return len(set(first) & set(second) - common)


def overlap_accuracy(split: str, made_up: Callable, seed: int = 0, least: int = 1) -> float:
    """Tell pairs of the manual's sentences by shared words alone: `least` of them say "next".

    The 60 most frequent words of these documents do not count.
    """
    documents = [d for d in manual_documents(split) if len(d) > 2]
    counts = Counter(word for document in documents for s in document for word in s)
    common = {word for word, _ in counts.most_common(60)}
    made = sentence_pairs(documents, seed, made_up)
    guesses = [shared_words(p.first, p.second, common) >= least for p in made]
    return sum(a == p.is_next for a, p in zip(guesses, made, strict=True)) / len(made)


def unigram_entropy(words: WordTokenizer) -> float:
    """The loss of one who knows how frequent each word of the manual's text is: nats a word."""
    ids = [i for d in manual_documents() for s in d for i in encode_known(words, s)]
    share = torch.tensor(ids).bincount() / len(ids)
    return -(share * share.clamp(min=1e-12).log()).sum().item()


READ_STEPS, PAIR_STEPS, SECTION_STEPS = 1000, 1000, 500
