"""Induction: heads that attend to what followed the current token before, and how they match."""

import torch
from torch import Tensor, nn

from tinytf.relative import apply_rotary

__all__ = ["induction_keys", "induction_score", "key_matches", "matching_scores"]


def induction_keys(ids: Tensor) -> Tensor:
    """Mark the keys that follow an earlier occurrence of the query's token.

    ids is (B, T); returns booleans (B, T, T): [b, t, s] is True where s ≤ t and the token before s
    is the token at t. The first token follows none.
    """
    same = ids[:, :, None] == ids[:, None, :]  # (B, T, T): the query's token is the key's
    follows = torch.zeros_like(same)
    follows[:, :, 1:] = same[:, :, :-1]
    return follows.tril()


def induction_score(weights: Tensor, ids: Tensor) -> Tensor:
    """Return each head's mean weight on what followed the query's token before.

    weights is (B, H, T, T), ids (B, T). Only queries whose token was met before count. Returns
    (H,), NaN if there are none. Source: Olsson et al. 2022, "prefix matching".
    """
    wanted = induction_keys(ids)
    there = wanted.any(dim=-1)  # (B, T): some key to be found
    found = (weights * wanted[:, None]).sum(dim=-1)  # (B, H, T, T) -> (B, H, T)
    return found.sum(dim=(0, 2)) / there.sum()


@torch.no_grad()
def matching_scores(model: nn.Module, head: int, through: int | None, apart: int = 16) -> Tensor:
    """Multiply out how layer 1's `head` scores a key, for all pairs of tokens: (V, V).

    Row a, column b: the query is token a, `apart` places after a key that holds what layer 0's head
    `through` wrote of token b; with None, token b itself. The model is `AttentionOnly` with RoPE.
    Source: Elhage et al. 2021, the query-key circuit with K-composition.
    """
    x, below, layer = model.embedding.weight, model.layers[0], model.layers[1]
    width = layer.d_model // layer.num_heads
    mine = slice(head * width, (head + 1) * width)
    q, k = layer.w_q.weight[mine], layer.w_k.weight[mine]  # (D, C) each
    written = x
    if through is not None:
        part = slice(through * width, (through + 1) * width)
        written = x @ below.w_v.weight[part].T @ below.w_o.weight[:, part].T  # (V, C)
    places = torch.full((len(x),), apart, device=x.device)
    turned = apply_rotary((x @ q.T)[None, None], 0, layer.attention.base, places)[0, 0]
    return turned @ (written @ k.T).T / width**0.5


def key_matches(model: nn.Module, head: int, through: int | None, apart: int = 16) -> Tensor:
    """Return by how many standard deviations equal tokens score above different ones.

    From the table of `matching_scores`: the diagonal's mean less that of the rest, over the
    standard deviation of the rest.
    """
    scores = matching_scores(model, head, through, apart)
    rest = scores[~torch.eye(len(scores), dtype=torch.bool, device=scores.device)]
    return (scores.diagonal().mean() - rest.mean()) / rest.std()
