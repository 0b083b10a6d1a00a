"""Where a translator looks while it writes, row by row, graded against the gold alignment.

Finer than `tinytf.metrics.translation.grade_alignment`, and for recurrent models too.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.apps.translator import Translator
from tinytf.inspect import record
from tinytf.metrics.translation import batch_of
from tinytf.related.recurrent_seq2seq import RecurrentSeq2Seq, record_alignment
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import PAD
from tinytf_course.phrasebook import Pair

__all__ = ["Rows", "alignment_rows", "grade_bahdanau", "grade_rows"]


class Rows(NamedTuple):
    """Attention, one row per aligned target word, written after the gold prefix."""

    weights: Tensor  # (N, heads, S); heads are Transformer layers x heads, or Bahdanau's one
    gold: Tensor  # (N, S) boolean, True at the source words the target word comes from
    real: Tensor  # (N, S) boolean, False at padding
    right: Tensor  # (N,) boolean: the model's likeliest word is the gold one
    words: tuple[str, ...] = ()  # the N target words


@torch.no_grad()
def alignment_rows(translator: Translator, pairs: Sequence[Pair], batch_size: int = 128) -> Rows:
    """Record where a model looks while it writes each aligned word of the pairs.

    Raises ValueError if there are no pairs, or the model has no attention.
    """
    if not pairs:
        raise ValueError("there are no pairs to grade")
    model = translator.model
    width = max(len(p.source) for p in pairs) + 1
    parts, words = [], []
    for start in range(0, len(pairs), batch_size):
        part = pairs[start : start + batch_size]
        batch = batch_of(translator, part)
        with evaluation_mode(model):
            if isinstance(model, RecurrentSeq2Seq):
                with record_alignment(model) as seen:
                    logits = model(batch.src, batch.tgt_in)
                weights = seen.weights[:, None]  # (B, T, S) -> (B, 1, T, S)
            else:
                with record(model) as layers:
                    logits = model(batch.src, batch.tgt_in)
                cross = [w for name, w in layers.items() if "cross_attention" in name]
                weights = torch.cat(cross, dim=1)  # layers x (B, H, T, S) -> (B, L * H, T, S)
        missing = width - batch.src.size(1)
        weights = F.pad(weights.float(), (0, missing)).cpu()
        real = F.pad(batch.src != PAD, (0, missing)).cpu()
        gold = torch.zeros(len(part), batch.tgt_out.size(1), width, dtype=torch.bool)
        for b, pair in enumerate(part):
            for s, t in pair.alignment:
                gold[b, t, s] = True
        aligned = gold.any(-1)
        right = (logits.argmax(-1) == batch.tgt_out).cpu()
        real = real[:, None].expand_as(gold)
        words += [part[b].target[t] for b, t in aligned.nonzero().tolist()]
        parts.append(
            (weights.transpose(1, 2)[aligned], gold[aligned], real[aligned], right[aligned])
        )
    return Rows(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)), tuple(words))


def grade_rows(rows: Rows) -> dict[str, Tensor]:
    """Grade each head against gold; every entry is (heads,), a share of the N rows or of weight.

    `accuracy`: the largest weight is on a gold word; `aer`: alignment error rate of those links;
    `mass`: mean weight on gold words; `mass_within_one`: the same with the gold words' neighbours;
    `one_right`, `one_left`: the largest weight is not on a gold word but on its right (left)
    neighbour (right where it is both); `word_right_link_wrong`: of the rows whose largest weight is
    not on gold, the share where the model still writes the right word. `uniform_mass` and
    `uniform_within_one` are what equal weights on all words would get.
    """
    gold = rows.gold
    from_left = F.pad(gold[:, :-1], (1, 0))  # True one to the right of gold
    from_right = F.pad(gold[:, 1:], (0, 1))
    near = gold | from_left | from_right
    best = rows.weights.argmax(dim=-1)  # (N, heads)
    on, right_of, left_of = (where.gather(1, best) for where in (gold, from_left, from_right))
    hits = on.double().mean(0)
    words = rows.right[:, None] & ~on
    uniform = rows.real.double() / rows.real.sum(-1, keepdim=True)
    count = len(best)
    return {
        "accuracy": hits,
        "aer": 1 - 2 * on.double().sum(0) / (count + int(gold.sum())),
        "mass": (rows.weights * gold[:, None]).sum(-1).double().mean(0),
        "mass_within_one": (rows.weights * near[:, None]).sum(-1).double().mean(0),
        "one_right": (right_of & ~on).double().mean(0),
        "one_left": (left_of & ~right_of & ~on).double().mean(0),
        "word_right": rows.right.double().mean().expand_as(hits),
        "word_right_link_wrong": words.double().sum(0) / (~on).sum(0).clamp(min=1),
        "uniform_mass": (uniform * gold).sum(-1).mean().expand_as(hits),
        "uniform_within_one": (uniform * near).sum(-1).mean().expand_as(hits),
    }


def grade_bahdanau(
    translator: Translator, pairs: Sequence[Pair], head: int | None = None
) -> dict[str, float]:
    """Grade a translator's alignment on held-out pairs: `grade_rows` of one head, as floats.

    Bahdanau's attention has one head. For a Transformer, `head` counts through the layers; by
    default it is the one most accurate on these pairs. `head` in the result says which it was.
    """
    grades = grade_rows(alignment_rows(translator, pairs))
    if head is None:
        head = int(grades["accuracy"].argmax())
    return {"head": head} | {name: float(values[head]) for name, values in grades.items()}
