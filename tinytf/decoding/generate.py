"""Writing on: a decoder-only model continues a batch of prompts, token by token."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.decoding.sampling import Sampling, check_scores, sample
from tinytf.embedding import check_ids
from tinytf.support.compiled import compiled_method
from tinytf.support.modes import evaluation_mode, without_gradients
from tinytf.support.protocols import LanguageModel

__all__ = ["choose", "generate", "pad_left"]


def generate(
    model: LanguageModel,
    ids: Tensor,
    max_new_tokens: int,
    sampling: Sampling | None = None,
    *,
    mask: Tensor | None = None,
    generator: torch.Generator | None = None,
    end_id: int | None = None,
    keep: int | None = None,
    use_cache: bool = True,
) -> Tensor:
    """Continue prompts ids (B, T) by up to `max_new_tokens`: returns (B, T + N), prompts included.

    What is returned has the dtype of `ids`. Without `sampling`, each step takes the likeliest
    token; with it, a token is drawn from the logits it returns, by `generator` if one is given. A
    row that has said `end_id` is finished and filled up with `end_id`; all rows being finished ends
    the run early, so N ≤ max_new_tokens.

    Prompts of different lengths stand in one batch if the shorter ones begin with padding, and
    `mask` says so: (B, 1, 1, T) as `padding_mask` makes it. `pad_left` makes both. Each row is then
    continued as it would be alone.

    The model sees at most its last `max_len` tokens. Where prompt and continuation pass that, it
    goes on from the last `keep` of them, which stand at positions 0, 1, … then. By default `keep`
    is max_len: every token is chosen with as much context as there can be, but all of it must be
    read anew for every token. With a smaller `keep` that happens once in max_len - keep + 1 tokens,
    for all rows when the longest needs it. Penalties count what has left the window too.

    `use_cache=False` reads every context from its beginning: same result, more work. The model is
    used in evaluation mode and left as it was found; what `torch.compile` gave runs compiled.
    Raises ValueError for prompts that are empty or end in padding, max_new_tokens below 0, keep
    outside 1..max_len, ids or end_id outside the vocabulary, logits that are NaN, and as `sampling`
    does.
    """
    _check(model, ids, max_new_tokens, end_id, keep)
    keep, prompts = keep or model.config.max_len, ids
    if mask is not None:
        _check_padding(mask, ids)
        ids = torch.where(mask[:, 0, 0], ids, ids[:, -1:])  # no penalty for what was not said
    decode = compiled_method(model, "decode")
    running = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
    begin, cache = 0, None  # where the context starts; the keys and values of what was read of it
    with evaluation_mode(model), without_gradients(model):
        for _ in range(max_new_tokens):
            if ids.size(1) - begin > model.config.max_len:
                begin, cache = ids.size(1) - keep, None
            if cache is None:
                cache = model.decoder.new_cache() if use_cache else None
                new, padding = ids[:, begin:], None if mask is None else mask[..., begin:]
            hidden = decode(new, cache) if padding is None else decode(new, cache, padding)
            logits = model.output(hidden[:, -1]).float()  # (B, T, C) -> (B, V)
            check_scores(logits, ids.size(1) - prompts.size(1) + 1)
            token = choose(logits, ids, sampling, generator)
            if end_id is not None:
                token = torch.where(running, token, end_id)
                running = token != end_id  # a finished row has just said it again
            new, padding = token[:, None].to(ids.dtype), None  # what was padding, the cache knows
            ids = torch.cat([ids, new], dim=1)
            if mask is not None:
                mask = F.pad(mask, (0, 1), value=True)
            if end_id is not None and not running.any():
                break
    return torch.cat([prompts, ids[:, prompts.size(1) :]], dim=1)


def choose(
    logits: Tensor,
    ids: Tensor,
    sampling: Sampling | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Choose the next token of each row: logits (B, V), ids (B, T) said so far -> ids (B,).

    Without `sampling` the likeliest, the lowest id where some tie; with it, one that `sample` draws
    from the logits it returns, by `generator` if one is given. Raises ValueError as these two do.
    """
    if sampling is None:
        return logits.argmax(dim=-1)
    return sample(sampling(logits, ids), generator)


def pad_left(
    prompts: Sequence[Sequence[int]], pad_id: int = 0, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """Put prompts of different lengths into one batch, the shorter ones behind padding.

    Returns ids (B, T) and the mask (B, 1, 1, T) that says which of them are no padding, for
    `generate`. `pad_id` may be any id, also one that the prompts use. Raises ValueError without
    prompts, and for an empty one.
    """
    lengths = [len(prompt) for prompt in prompts]
    if not lengths or min(lengths) == 0:
        raise ValueError(f"prompts must have a token or more each, got lengths {lengths}")
    longest = max(lengths)
    rows = [[pad_id] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    first = torch.tensor([longest - length for length in lengths], device=device)
    mask = torch.arange(longest, device=device) >= first[:, None]
    return torch.tensor(rows, device=device), mask[:, None, None, :]


def _check_padding(mask: Tensor, ids: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean (True = no padding), got {mask.dtype}")
    if mask.shape != (len(ids), 1, 1, ids.size(1)):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not fit ids {tuple(ids.shape)}: it must be "
            f"{(len(ids), 1, 1, ids.size(1))}, as padding_mask makes it"
        )
    if not bool(mask[..., -1].all()):
        row = int((~mask[:, 0, 0, -1]).nonzero()[0])
        raise ValueError(f"row {row} ends in padding: put it before the prompt, as pad_left does")


def _check(
    model: LanguageModel, ids: Tensor, max_new_tokens: int, end_id: int | None, keep: int | None
) -> None:
    """Refuse what can't be generated from."""
    c = model.config
    check_ids(ids, c.vocab_size)
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens must be at least 0, got {max_new_tokens}")
    if end_id is not None and not 0 <= end_id < c.vocab_size:
        raise ValueError(f"end_id={end_id} is outside the vocabulary 0..{c.vocab_size - 1}")
    if keep is not None and not 1 <= keep <= c.max_len:
        raise ValueError(f"keep={keep} must lie in 1..{c.max_len}, the model's max_len")
