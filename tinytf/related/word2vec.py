"""word2vec's CBOW: learn a word's vector by guessing the word from its neighbours.

Source: Mikolov et al. 2013, Efficient Estimation of Word Representations in Vector Space.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.support.randomness import seeded
from tinytf.text.words import PAD

__all__ = [
    "CBOW",
    "align",
    "analogy",
    "context_windows",
    "nearest",
    "train_cbow",
]


class CBOW(nn.Module):
    """Score each word of the vocabulary as the centre of a window, from the words around it.

    One hidden layer, the mean of the neighbours' vectors, and no activation in it (section 3.1).
    The softmax runs over the whole vocabulary: the paper's hierarchical one only pays where that
    has very many words. <pad> is no neighbour; where there is no other, the mean is 0.

    Raises ValueError for sizes below 1.
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        if vocab_size < 1 or d_model < 1:
            raise ValueError(f"vocab_size={vocab_size} and d_model={d_model} must be at least 1")
        self.vectors = nn.Parameter(torch.randn(vocab_size, d_model) / d_model**0.5)
        self.output = nn.Parameter(torch.zeros(vocab_size, d_model))

    def forward(self, context: Tensor) -> Tensor:
        """Score centres for neighbours' ids (B, 2 window) as logits (B, V)."""
        there = (context != PAD).unsqueeze(-1)  # (B, 2 window) -> (B, 2 window, 1)
        total = (self.vectors[context] * there).sum(dim=1)  # (B, 2 window, C) -> (B, C)
        hidden = total / there.sum(dim=1).clamp(min=1)
        return hidden @ self.output.T  # (B, C) -> (B, V)


def context_windows(rows: Sequence[Sequence[int]], window: int = 2) -> tuple[Tensor, Tensor]:
    """Make a training pair of every word: its neighbours' ids (N, 2 window) and its own (N,).

    Up to `window` words on either side; <pad> where the sentence ends. Sentences of one word have
    no neighbours and are left out. Raises ValueError if nothing is left, or for a window below 1.
    """
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    contexts, centres = [], []
    for row in rows:
        padded = [PAD] * window + list(row) + [PAD] * window
        for i, centre in enumerate(row):
            if len(row) > 1:
                before, after = padded[i : i + window], padded[i + window + 1 : i + 2 * window + 1]
                contexts.append(before + after)
                centres.append(centre)
    if not centres:
        raise ValueError(f"none of the {len(rows)} sentences has two words")
    return torch.tensor(contexts), torch.tensor(centres)


def train_cbow(
    model: CBOW,
    contexts: Tensor,
    centres: Tensor,
    steps: int = 1000,
    batch_size: int = 512,
    lr: float = 0.01,
    seed: int = 0,
    bar: Any = None,
) -> list[float]:
    """Train by Adam, the learning rate falling to 0, on pairs drawn at random; return the losses.

    `bar` is a tqdm bar to move. Raises ValueError if the numbers of contexts and centres differ.
    """
    if len(contexts) != len(centres):
        raise ValueError(f"{len(contexts)} contexts do not match {len(centres)} centres")
    device = model.vectors.device
    contexts, centres = contexts.to(device), centres.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    with seeded(seed):
        for step in range(steps):
            rows = torch.randint(len(centres), (batch_size,)).to(device)
            loss = F.cross_entropy(model(contexts[rows]), centres[rows])
            optimizer.param_groups[0]["lr"] = lr * (1 - step / steps)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if bar is not None:
                bar.update(1)
    return losses


def nearest(vectors: Tensor, query: int | Tensor, k: int = 5) -> tuple[Tensor, Tensor]:
    """Give the `k` rows of (V, C) with the largest cosine to a query, ids and cosines, best first.

    The query is a row's number, which is then left out, or a vector (C,). Raises ValueError if
    there are no `k` rows to give.
    """
    own = isinstance(query, int)
    if not 1 <= k <= len(vectors) - own:
        raise ValueError(f"k={k} must lie between 1 and {len(vectors) - own}, the rows there are")
    similar = F.normalize(vectors, dim=-1) @ F.normalize(vectors[query] if own else query, dim=-1)
    if own:
        similar[query] = -torch.inf
    best = similar.topk(k)
    return best.indices, best.values


def analogy(vectors: Tensor, a: int, b: int, c: int, exclude: bool = True) -> int:
    """Answer "a is to b as c is to ?": the row nearest to b - a + c, all of length 1.

    `exclude` leaves a, b and c out of the candidates, as word2vec's own evaluation does.
    Source: Mikolov et al. 2013, section 4.
    """
    unit = F.normalize(vectors, dim=-1)
    similar = unit @ (unit[b] - unit[a] + unit[c])
    if exclude:
        similar[[a, b, c]] = -torch.inf
    return int(similar.argmax())


def align(source: Tensor, target: Tensor) -> Tensor:
    """Find the rotation R (C, C) that brings the rows of source @ R nearest to those of target.

    The orthogonal Procrustes problem, solved by an SVD (Schönemann 1966). Raises ValueError if the
    shapes differ.
    """
    if source.shape != target.shape:
        raise ValueError(
            f"source {tuple(source.shape)} and target {tuple(target.shape)} need one shape"
        )
    u, _, v = torch.linalg.svd(source.T @ target)
    return u @ v
