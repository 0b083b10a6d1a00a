"""Studies of decoding: what greedy, beams and exact search make of translators trained a while.

The models are small (one layer a side, width 64) and most of them deliberately under-trained.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tinytf.apps.translator import Translator
from tinytf.cli.train import build
from tinytf.decoding.sampling import sample
from tinytf.decoding.search import beam_search, greedy, next_scores
from tinytf.metrics.bleu import corpus_bleu
from tinytf.metrics.translation import batch_of
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import BOS, EOS, PAD
from tinytf.training.losses import sequence_loss
from tinytf.training.trainer import TrainingConfig
from tinytf_course.lessons.exact import best_of_all
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies.threads import one_thread

__all__ = [
    "BEAMS",
    "LENGTHS",
    "Decoded",
    "decode_all",
    "glosses",
    "grade",
    "kinds",
    "log_probs",
    "modes",
    "sampled",
    "search_rows",
    "train",
]

SEEDS = range(5)
LENGTHS = (200, 400, 800, 1600)  # steps of training, each with a schedule of its own
BEAMS = {2: (0.0,), 4: (0.0, 0.6, 1.0), 8: (0.0,), 16: (0.0, 0.6, 1.0), 64: (0.0,)}  # their alphas
LONGEST = 30  # tokens; the longest reference has 25


class Decoded(NamedTuple):
    """Outputs for a list of sentences, without padding, and their log-probabilities in nats."""

    ids: list[list[int]]
    log_probs: list[float]


def train(seed: int, steps: int, smoothing: float = 0.1) -> Translator:
    """Train a translator of one layer a side and width 64 on `steps` batches of 64 pairs."""
    config = TrainingConfig(
        steps=steps,
        lr=4e-3,
        warmup=min(100, steps),
        label_smoothing=smoothing,
        precision="float32",
        seed=seed,
    )
    sizes = {"d_model": 64, "num_heads": 4, "num_layers": 1, "d_ff": 256}
    trainer, translator = build(config, batch_size=64, **sizes)
    with one_thread():
        trainer.run()
    return translator


def glosses(pairs: Iterable[Pair]) -> dict[str, str]:
    """Give each target word the source word that it is linked to most often."""
    links, best = Counter(), {}
    for pair in pairs:
        links.update((pair.target[t], pair.source[s]) for s, t in pair.alignment)
    for (word, source), _ in links.most_common():
        best.setdefault(word, source)
    return best


def decode_all(
    translator: Translator, pairs: Sequence[Pair], beam: int = 1, alpha: float = 0.0
) -> Decoded:
    """Translate by a beam, or greedily where it is 1."""
    model, src = translator.model, batch_of(translator, pairs).src
    if beam > 1:
        best = [decoded[0] for decoded in beam_search(model, src, beam, alpha, LONGEST)]
        return Decoded([h.ids for h in best], [h.log_prob for h in best])
    ids = greedy(model, src, LONGEST)
    return Decoded([_until_end(row) for row in ids.tolist()], log_probs(model, src, ids).tolist())


@torch.no_grad()
def log_probs(model: torch.nn.Module, src: Tensor, ids: Tensor) -> Tensor:
    """Give the log-probability of each padded output (B, T), in one teacher-forced pass: (B,)."""
    with evaluation_mode(model):
        begun = torch.cat([ids.new_full((len(ids), 1), BOS), ids[:, :-1]], dim=1)
        scores = model.output(model.decode(begun, model.encode(src))).float()
        scores[..., [PAD, BOS]] = -torch.inf
        each = scores.log_softmax(dim=-1).gather(-1, ids[..., None]).squeeze(-1)
        return each.masked_fill(ids == PAD, 0.0).sum(dim=1)


def modes(translator: Translator, pairs: Sequence[Pair], known: Decoded) -> Decoded:
    """Find each sentence's likeliest output of all; `known` holds likely ones. Raises if unproven.

    Where no other output is likelier by 1e-4 nats, it is the known one.
    """
    src, likeliest = batch_of(translator, pairs).src, Decoded([], [])
    for row, ids, log_prob in zip(src, *known, strict=True):
        one = row[row != PAD][None]
        best = best_of_all(translator.model, one, LONGEST, at_least=log_prob + 1e-4)
        if not best.proven:
            raise RuntimeError(f"gave up after {best.prefixes} prefixes")
        likeliest.ids.append(best.hypothesis.ids if best.hypothesis else ids)
        likeliest.log_probs.append(best.hypothesis.log_prob if best.hypothesis else log_prob)
    return likeliest


@torch.no_grad()
def sampled(translator: Translator, pairs: Sequence[Pair], seed: int) -> list[list[int]]:
    """Draw one output per sentence, each token from the model's own distribution."""
    model, draws = translator.model, torch.Generator().manual_seed(seed)
    with evaluation_mode(model):
        memory = model.encode(batch_of(translator, pairs).src)
        ids = torch.full((len(pairs), 1), BOS, device=model.device)
        for _ in range(model.config.max_len - 1):
            token = sample(next_scores(model, ids, memory), draws)
            ids = torch.cat([ids, token[:, None]], dim=1)
            if (ids == EOS).any(dim=1).all():
                break
    return [_until_end(row) for row in ids[:, 1:].tolist()]


def _until_end(row: list[int]) -> list[int]:
    return row[: row.index(EOS) + 1] if EOS in row else [i for i in row if i != PAD]


def grade(outputs: Sequence[list[int]], gold: Sequence[list[int]]) -> dict[str, float]:
    """Grade outputs: shares exactly right and empty, BLEU, and their length over the gold's."""
    words = [[i for i in ids if i != EOS] for ids in outputs]
    wanted = [ids[:-1] for ids in gold]
    return {
        "exact": round(sum(a == b for a, b in zip(outputs, gold, strict=True)) / len(gold), 4),
        "bleu": round(corpus_bleu(words, [[ids] for ids in wanted]).score, 2),
        "length": round(sum(map(len, words)) / sum(map(len, wanted)), 4),
        "empty": round(sum(not ids for ids in words) / len(gold), 4),
    }


def kinds(outputs: list[list[int]], best: list[list[int]], gold: list[list[int]]) -> list[int]:
    """Count mode and right, mode and wrong, other and right, other and wrong."""
    counts = [0, 0, 0, 0]
    for ids, mode, wanted in zip(outputs, best, gold, strict=True):
        counts[2 * (ids != mode) + (ids != wanted)] += 1
    return counts


def search_row(seed: int, steps: int, smoothing: float, pairs: Sequence[Pair]) -> dict:
    """Train one model and decode `pairs` in every way."""
    translator = train(seed, steps, smoothing)
    batch = batch_of(translator, pairs)
    gold = [[i for i in ids if i != PAD] for ids in batch.tgt_out.tolist()]
    with torch.no_grad(), evaluation_mode(translator.model):
        loss, tokens = sequence_loss(translator.model, batch)
    decoded = {(1, 0.0): decode_all(translator, pairs)}
    for beam, alphas in BEAMS.items():
        decoded |= {(beam, alpha): decode_all(translator, pairs, beam, alpha) for alpha in alphas}
    plain = [way for way in decoded if way[1] == 0]
    likeliest = [max(range(len(plain)), key=lambda w: decoded[plain[w]].log_probs[i])
                 for i in range(len(pairs))]  # fmt: skip
    known = Decoded(
        [decoded[plain[w]].ids[i] for i, w in enumerate(likeliest)],
        [decoded[plain[w]].log_probs[i] for i, w in enumerate(likeliest)],
    )
    best = modes(translator, pairs, known)
    empty = log_probs(translator.model, batch.src, batch.src.new_full((len(pairs), 1), EOS))
    draws = [sampled(translator, pairs, draw) for draw in range(3)]
    return {
        "seed": seed,
        "steps": steps,
        "smoothing": smoothing,
        "loss": round(loss.item() / tokens, 4),
        "empty": round(empty.mean().item(), 3),
        "mode": grade(best.ids, gold),
        "sampled": grade([ids for out in draws for ids in out], gold * len(draws)),
        "ways": [
            {"beam": beam, "alpha": alpha, **grade(out.ids, gold)}
            | ({"kinds": kinds(out.ids, best.ids, gold)} if alpha == 0 else {})
            for (beam, alpha), out in decoded.items()
        ],
    }


@one_thread()
def search_rows(seeds: Iterable[int] = SEEDS, sentences: int = 150) -> list[dict]:
    """Decode held-out sentences with models of several training lengths, over seeds."""
    pairs = Phrasebook().sample(sentences, "test", seed=7)
    runs = [(steps, 0.1) for steps in LENGTHS] + [(200, 0.0), (400, 0.0)]
    return [search_row(seed, *run, pairs) for seed in seeds for run in runs]


STUDIES = {"decoding_search": search_rows}
