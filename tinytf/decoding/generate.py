"""Writing on: a decoder-only model continues a batch of prompts, token by token."""

import torch
from torch import Tensor

from tinytf.decoding.sampling import Sampling, likeliest, sample
from tinytf.embedding import check_ids
from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import LanguageModel

__all__ = ["generate"]


@torch.no_grad()
def generate(
    model: LanguageModel,
    ids: Tensor,
    max_new_tokens: int,
    sampling: Sampling | None = None,
    *,
    generator: torch.Generator | None = None,
    end_id: int | None = None,
    keep: int | None = None,
    use_cache: bool = True,
) -> Tensor:
    """Continue prompts ids (B, T) by up to `max_new_tokens`: returns (B, T + N), prompts included.

    Without `sampling`, each step takes the likeliest token; with it, a token is drawn from the
    logits it returns, by `generator` if one is given. A row that has said `end_id` is finished and
    filled up with `end_id`; all rows being finished ends the run early, so N ≤ max_new_tokens.

    The model sees at most its last `max_len` tokens. Where prompt and continuation pass that, it
    goes on from the last `keep` of them, which stand at positions 0, 1, … then. By default `keep`
    is max_len: every token is chosen with as much context as there can be, but all of it must be
    read anew for every token. With a smaller `keep` that happens once in max_len - keep + 1 tokens.
    Penalties count what has left the window too.

    `use_cache=False` reads every context from its beginning: same result, more work. The model is
    used in evaluation mode and left as it was found. Raises ValueError for prompts that are empty,
    max_new_tokens below 0, keep outside 1..max_len, ids or end_id outside the vocabulary, and as
    `sampling` does.
    """
    keep = _check(model, ids, max_new_tokens, end_id, keep)
    running = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
    begin, cache = 0, None  # where the context starts; the keys and values of what was read of it
    with evaluation_mode(model):
        for _ in range(max_new_tokens):
            if ids.size(1) - begin > model.config.max_len:
                begin, cache = ids.size(1) - keep, None
            if cache is None:
                new, cache = ids[:, begin:], model.decoder.new_cache() if use_cache else None
            hidden = model.decode(new, cache)
            logits = model.output(hidden[:, -1]).float()  # (B, T, C) -> (B, V)
            if sampling is None:
                token = likeliest(logits)
            else:
                token = sample(sampling(logits, ids), generator)
            if end_id is not None:
                token = torch.where(running, token, end_id)
                running = token != end_id  # a finished row has just said it again
            new = token[:, None].to(ids.dtype)
            ids = torch.cat([ids, new], dim=1)
            if end_id is not None and not running.any():
                break
    return ids


def _check(
    model: LanguageModel, ids: Tensor, max_new_tokens: int, end_id: int | None, keep: int | None
) -> int:
    """Refuse what can't be generated from, and return how much context is kept."""
    c = model.config
    check_ids(ids, c.vocab_size)
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens must be at least 0, got {max_new_tokens}")
    if end_id is not None and not 0 <= end_id < c.vocab_size:
        raise ValueError(f"end_id={end_id} is outside the vocabulary 0..{c.vocab_size - 1}")
    if keep is None:
        return c.max_len
    if not 1 <= keep <= c.max_len:
        raise ValueError(f"keep={keep} must lie in 1..{c.max_len}, the model's max_len")
    return keep
