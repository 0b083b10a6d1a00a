"""Studies of sampling: what the shipped writer writes, setting by setting, beside human text."""

from collections.abc import Iterable

import torch
from torch import Tensor
from tqdm import tqdm

from tinytf.apps.writer import Writer
from tinytf.data.corpus import corpus, encode_documents
from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.generate import generate
from tinytf.decoding.likelihood import continuation_losses
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT
from tinytf.metrics.repetition import (
    distinct_ngrams,
    ends_in_loop,
    entropy,
    longest_repeat,
    repeated_ngrams,
)

__all__ = [
    "FAMILIES",
    "PROMPT",
    "WRITTEN",
    "human_texts",
    "measure",
    "on_human",
    "sampling_of",
    "settings",
]

SEEDS = range(5)
PROMPT, WRITTEN = 64, 128  # tokens of a prompt, and of its continuation
FAMILIES = {
    "temperature": ("temperature", (0.3, 0.5, 0.7, 0.85, 1.0, 1.2)),
    "top-k": ("top_k", (1, 5, 10, 40, 160, 640)),
    "top-p": ("top_p", (0.3, 0.5, 0.7, 0.9, 0.95)),
    "min-p": ("min_p", (0.3, 0.1, 0.05, 0.01)),
    "greedy, CTRL penalty": ("repetition_penalty", (1.1, 1.2, 1.5, 2.0)),
    "greedy, presence penalty": ("presence_penalty", (1.0, 2.0, 3.0, 5.0)),
}


def human_texts(writer: Writer, seed: int, rows: int = 16) -> Tensor:
    """Cut texts the writer never read: ids (rows, PROMPT + WRITTEN), other ones for each seed.

    The documents held out are joined and cut into pieces of that length, which are dealt out in a
    random order, the same for every seed: no two share a token until they run out. Raises
    ValueError if rows × (seed + 1) pieces are more than there are.
    """
    length = PROMPT + WRITTEN
    ids = encode_documents(writer.tokenizer, corpus(docstrings=False).validation)
    pieces = ids[: len(ids) // length * length].view(-1, length)
    if (seed + 1) * rows > len(pieces):
        raise ValueError(f"seed {seed} of {rows} rows needs more than the {len(pieces)} pieces")
    order = torch.randperm(len(pieces), generator=torch.Generator().manual_seed(0))
    return pieces[order[seed * rows : (seed + 1) * rows]]


def sampling_of(family: str, value: float) -> Sampling:
    """Make the rule: a penalty goes with the likeliest token, a filter with a draw."""
    field, _ = FAMILIES[family]
    greedy = {"top_k": 1} if field.endswith("penalty") else {}
    return Sampling(**{field: value}, **greedy)


def measure(model: GPT, ids: Tensor, start: int = PROMPT) -> dict[str, float]:
    """Measure continuations: ids (B, T), written from `start` on; means over the rows."""
    new = ids[:, start:]
    return {
        "nats": continuation_losses(model, ids, start).mean().item(),
        "repeated": repeated_ngrams(new).mean().item(),
        "distinct": distinct_ngrams(new, 2).mean().item(),
        "loops": ends_in_loop(new).float().mean().item(),
        "longest": longest_repeat(new).float().mean().item(),
    }


@torch.no_grad()
def on_human(model: GPT, sampling: Sampling, ids: Tensor, start: int = PROMPT) -> dict[str, float]:
    """Ask what a rule would have done to human text, read token by token.

    `entropy` of the distribution it draws from, in nats; `kept` and `kept_mean`, the geometric and
    the arithmetic mean of how many tokens it leaves; `ruled_out`, the share of the tokens that came
    which it forbids; `human_nats`, -log p of those it allows under the rule's own distribution.
    """
    logits = model(ids[:, :-1]).float()
    steps = range(start, ids.size(1))
    ruled = torch.stack([sampling(logits[:, t - 1], ids[:, :t]) for t in steps], dim=1)
    log_p = ruled.log_softmax(-1).gather(2, ids[:, start:, None])[..., 0]
    allowed, left = log_p.isfinite(), ruled.isfinite().sum(-1).float()
    return {
        "entropy": entropy(ruled).mean().item(),
        "kept": left.log().mean().exp().item(),
        "kept_mean": left.mean().item(),
        "ruled_out": 1 - allowed.float().mean().item(),
        "human_nats": -log_p[allowed].mean().item(),
    }


def settings(
    seeds: Iterable[int] = SEEDS, families: Iterable[str] = FAMILIES, rows: int = 16
) -> list[dict]:
    """Let the shipped writer continue human beginnings by every setting; measure what it writes.

    A row per setting and seed, and one of the humans' own continuations per seed. Each seed has its
    own prompts and draws; the texts are `WRITTEN` tokens long whatever they say.
    """
    writer = Writer.load()
    model, fast = writer.model, fast_decoder(writer.model)
    table = []
    runs = [(seed, f, value) for seed in seeds for f in families for value in FAMILIES[f][1]]
    for seed in seeds:
        ids = human_texts(writer, seed, rows).to(model.device)
        table.append({"family": "human", "setting": 0, "seed": seed} | measure(model, ids))
    for seed, family, value in tqdm(runs, mininterval=5.0):
        ids = human_texts(writer, seed, rows).to(model.device)
        sampling = sampling_of(family, value)
        draws = torch.Generator().manual_seed(seed)
        text = generate(fast, ids[:, :PROMPT], WRITTEN, sampling, generator=draws)
        row = {"family": family, "setting": value, "seed": seed} | measure(model, text)
        if family.startswith("greedy"):  # the penalty alone: what it does to what may come
            sampling = Sampling(**{FAMILIES[family][0]: value})
        table.append(row | on_human(model, sampling, ids))
    return [_rounded(row) for row in table]


def _rounded(row: dict) -> dict:
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}


STUDIES = {"sampling_settings": settings}
