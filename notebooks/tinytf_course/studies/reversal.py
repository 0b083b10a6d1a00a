"""A small study of the bottleneck: say a sequence backwards, with one context vector or attention.

The right source word is known for every output, so attention can be graded too.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from tinytf.decoding.search import greedy
from tinytf.related.recurrent_seq2seq import RecurrentConfig, RecurrentSeq2Seq, record_alignment
from tinytf.support.modes import evaluation_mode
from tinytf.support.randomness import seeded
from tinytf.text.words import BOS, EOS
from tinytf.training.losses import Batch
from tinytf_course.studies.optimise import optimise
from tinytf_course.studies.threads import one_thread

__all__ = ["alignment", "draw", "offsets", "right", "train"]

SYMBOLS, FIRST = 12, 3  # ids 3 to 14, after <pad>, <bos> and <eos>
LENGTHS, SEEDS = (6, 12, 24), range(5)


def draw(
    count: int, length: int, draws: torch.Generator, device: str | torch.device = "cpu"
) -> Batch:
    """Draw rows of `length` random symbols of 12, to be said backwards, with <bos> and <eos>."""
    words = torch.randint(FIRST, FIRST + SYMBOLS, (count, length), generator=draws).to(device)
    back, edge = words.flip(1), words[:, :1]
    bos, eos = torch.full_like(edge, BOS), torch.full_like(edge, EOS)
    return Batch(torch.cat([words, eos], 1), torch.cat([bos, back], 1), torch.cat([back, eos], 1))


def train(
    attention: str,
    length: int,
    seed: int = 0,
    steps: int = 300,
    device: str | torch.device = "cpu",
) -> RecurrentSeq2Seq:
    """Train a GRU encoder-decoder, `attention` "none" or "additive", to say rows backwards.

    Batches of 64, all new, are the same for both; Adam at 0.003, gradients clipped at norm 1.
    """
    draws = torch.Generator().manual_seed(seed)
    ids = FIRST + SYMBOLS
    with seeded(seed):
        config = RecurrentConfig(ids, ids, d_model=32, hidden=64, attention=attention)
        model = RecurrentSeq2Seq(config).to(device)

    def loss(_: int) -> Tensor:
        batch = draw(64, length, draws, device)
        scores = model(batch.src, batch.tgt_in).flatten(0, 1)
        return F.cross_entropy(scores, batch.tgt_out.flatten())

    optimise(torch.optim.Adam(model.parameters(), lr=3e-3), loss, steps, clip=1.0)
    return model


def right(model: RecurrentSeq2Seq, batch: Batch) -> Tensor:
    """Decode greedily; return which symbols are right, boolean (B, N), in the order written."""
    length = batch.tgt_out.size(1)
    written = greedy(model, batch.src, length)
    written = F.pad(written, (0, length - written.size(1)))
    return (written == batch.tgt_out)[:, :-1]


@torch.no_grad()
def alignment(model: RecurrentSeq2Seq, batch: Batch) -> Tensor:
    """Record where the model looks while it writes the right answer: (B, N, N + 1), <eos> last."""
    with evaluation_mode(model), record_alignment(model) as seen:
        model(batch.src, batch.tgt_in)
    return seen.weights[:, :-1]


def offsets(weights: Tensor) -> Tensor:
    """Say how far right of the symbol to be written the largest weight lies: integers (B, N)."""
    gold = torch.arange(weights.size(1) - 1, -1, -1, device=weights.device)
    return weights.argmax(dim=-1) - gold


def mass(weights: Tensor, reach: int) -> float:
    """Give the mean weight on the symbol to be written and `reach` neighbours on either side."""
    places = torch.arange(weights.size(2), device=weights.device)
    gold = torch.arange(weights.size(1) - 1, -1, -1, device=weights.device)
    near = (places - gold[:, None]).abs() <= reach  # (N, N + 1)
    return (weights * near).sum(dim=-1).mean().item()


@one_thread()
def rows(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train both at every length over seeds; grade what they say and where attention looks."""
    runs = [(n, kind, seed) for seed in seeds for n in LENGTHS for kind in ("none", "additive")]
    table = []
    for length, kind, seed in tqdm(runs, mininterval=5):
        model = train(kind, length, seed)
        batch = draw(500, length, torch.Generator().manual_seed(10_000))
        share = round(right(model, batch).float().mean().item(), 4)
        row = {"attention": kind, "length": length, "seed": seed, "right": share}
        if kind == "additive":
            weights = alignment(model, batch)
            off = offsets(weights)
            row["offsets"] = {
                str(k): round((off == k).float().mean().item(), 4) for k in (-1, 0, 1)
            }
            row["mass"] = {str(k): round(mass(weights, k), 4) for k in (0, 1)}
        table.append(row)
    return table


STUDIES = {"memory_reversal": rows}
