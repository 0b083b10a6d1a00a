"""How likely a text is to a model: nats of each token, bits per byte."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import LanguageModel

__all__ = ["bits_per_byte", "continuation_losses", "token_losses"]


@torch.no_grad()
def token_losses(
    model: LanguageModel, ids: Tensor, context: int | None = None, batch_size: int = 16
) -> Tensor:
    """Give the cross-entropy, in nats, of every token of a text but the first: (N,) -> (N-1,).

    The text is read in windows of `context` tokens (default: the model's max_len) that overlap by
    half, and of each only the second half counts, so every token but those at the beginning has at
    least context // 2 tokens before it. Returned in float32 on the CPU; the model is used in
    evaluation mode and left as it was found. Raises ValueError for a text of fewer than two tokens
    and for a context outside 1..max_len.
    """
    limit = model.config.max_len
    context = limit if context is None else context
    if not 1 <= context <= limit:
        raise ValueError(f"context={context} must lie in 1..{limit}, the model's max_len")
    if ids.dim() != 1 or len(ids) < 2:
        raise ValueError(f"ids must be one row of two tokens or more, got {tuple(ids.shape)}")
    stride = max(1, context // 2)
    # a window that begins at s reads s .. s + context - 1 and scores the token after each
    last = max(0, len(ids) - 1 - context)
    begins = [*range(0, last, stride), last]
    losses = torch.empty(len(ids) - 1)
    done = 0
    with evaluation_mode(model):
        for i in range(0, len(begins), batch_size):
            some = begins[i : i + batch_size]
            rows = torch.stack([ids[s : s + context + 1] for s in some]).to(model.device)
            logits = model(rows[:, :-1]).float()
            found = F.cross_entropy(logits.transpose(1, 2), rows[:, 1:].long(), reduction="none")
            for s, row in zip(some, found.cpu(), strict=True):
                losses[done : s + len(row)] = row[done - s :]
                done = s + len(row)
    return losses


def bits_per_byte(
    model: LanguageModel,
    ids: Tensor,
    num_bytes: int,
    context: int | None = None,
    batch_size: int = 16,
) -> float:
    """Give the bits a model needs for each byte of a text: comparable whatever the tokenizer.

    ids (N,) are a token to begin from and then the text, of `num_bytes` bytes in UTF-8. Errors as
    `token_losses`, and ValueError if num_bytes is below 1.
    """
    if num_bytes < 1:
        raise ValueError(f"num_bytes must be at least 1, got {num_bytes}")
    nats = token_losses(model, ids, context, batch_size).double().sum().item()
    return nats / math.log(2) / num_bytes


@torch.no_grad()
def continuation_losses(model: LanguageModel, ids: Tensor, start: int) -> Tensor:
    """Return -log p, in nats, of the tokens from `start` on, each given those before it in its row.

    ids is (B, T), the result (B, T - start): its mean is the loss of that text, its exponential the
    perplexity. Of a text that the model itself wrote it is called self-likelihood; the distribution
    is the model's own, whatever rule chose the tokens. The model is used in evaluation mode and
    left as it was found. Raises ValueError unless 1 ≤ start < T, and as the model does for texts
    longer than its window.
    """
    if ids.dim() != 2 or not 1 <= start < ids.size(1):
        raise ValueError(f"start={start} must lie in 1..T-1 of ids (B, T), got {tuple(ids.shape)}")
    with evaluation_mode(model):
        logits = model(ids[:, :-1])[:, start - 1 :].float()  # (B, T - start, V)
    targets = ids[:, start:].flatten()
    return F.cross_entropy(logits.flatten(0, 1), targets, reduction="none").view(len(ids), -1)
