"""A training step of the encoder-decoder beside its peers.

Three models have the same weights: ours, a plain reference and `nn.Transformer`. Hugging Face's
Marian is post-norm and has one table of words, so ours stands beside it once more in that shape.
"""

import argparse
import functools
from typing import NamedTuple

import torch
from torch import nn

from benchmarks.recipe import Peer, our_step, plain_step
from benchmarks.reference_seq2seq import Reference
from benchmarks.report import Report
from benchmarks.steps import fastest, measure
from benchmarks.torch_seq2seq import TorchTransformer
from tinytf.training.losses import Batch, sequence_loss
from tinytf.transformer import Transformer, TransformerConfig

__all__ = ["BASE", "TOY", "Size", "peers", "run"]


class Size(NamedTuple):
    """The sizes of the model, of the batch, of its sentences and of the vocabulary."""

    d_model: int
    num_heads: int
    num_layers: int
    batch: int
    length: int
    vocab: int


TOY = Size(128, 4, 2, 64, 20, 300)
BASE = Size(512, 8, 6, 8, 64, 8000)


def draw(size: Size, device: torch.device | str) -> Batch:
    """Draw ids that mean nothing, without padding."""
    shape = (3, size.batch, size.length)
    ids = torch.randint(3, size.vocab, shape, generator=torch.Generator().manual_seed(0))
    return Batch(*ids.to(device))


def peers(
    size: Size, dropout: float = 0.0, precision: str = "float32", device: torch.device | str = "cpu"
) -> dict[str, Peer]:
    """Build a step of each model, all on the same ids."""
    s, batch = size, draw(size, device)
    config = TransformerConfig(
        s.vocab, s.vocab, s.d_model, s.num_heads, s.num_layers, 4 * s.d_model, dropout, norm="pre"
    )
    start = Transformer(config)

    def ours(precision: str = "float32", begin: Transformer = start) -> Peer:
        group = "pre" if begin is start else "post"
        model = Transformer(begin.config)
        model.load_state_dict(begin.state_dict())
        model.positions.table = begin.positions.table
        model.to(device)
        step = our_step(model, batch, sequence_loss, precision)
        return Peer(step, model, group, exact=precision == "float32")

    def plain(model: nn.Module, precision: str = "float32", **about: object) -> Peer:
        model.to(device)
        forward = functools.partial(model, batch.src, batch.tgt_in)
        step = plain_step(model, forward, batch.tgt_out, precision)
        return Peer(step, model, **about)

    spread_out = "dropout also on attention's weights and in the feed-forward" if dropout else ""
    found = {
        "tinytf": ours(),
        "reference": plain(Reference(start), group="pre"),
        "nn.Transformer": plain(TorchTransformer(start), group="pre", note=spread_out),
    }
    if precision == "bfloat16":
        about = {"group": "pre", "exact": False}
        found["tinytf bf16"] = ours("bfloat16")
        found["reference bf16"] = plain(Reference(start), "bfloat16", **about)
        found["nn.Transformer bf16"] = plain(TorchTransformer(start), "bfloat16", **about)
    try:
        from benchmarks.huggingface_seq2seq import bart, like_marian, marian
    except ImportError:
        return found
    post = like_marian(config)
    found["tinytf post-norm"] = ours(begin=post)
    found["Marian"] = plain(marian(post), group="post", note="post-norm, one table of words")
    found["BART"] = plain(
        bart(config),
        note="other weights: post-norm, norms and learned positions on embeddings, one table",
    )
    return found


def run(options: argparse.Namespace, report: Report) -> None:
    """Print the table."""
    size = BASE if options.base else TOY
    found = peers(size, options.dropout, options.precision, options.device)
    rounds = options.rounds or (9 if options.base else 15)
    title = ", ".join(f"{name} {value}" for name, value in size._asdict().items())
    timings = measure(report, options, found, rounds, f"a training step: {title}")
    best = fastest(timings, {name: peer for name, peer in found.items() if peer.exact})
    ratio = timings.ratio("tinytf", best).median
    report.aim(f"tinytf over the fastest peer ({best})", ratio, 1.0 if options.dropout else 1.02)
    over_torch = timings.ratio("tinytf", "nn.Transformer").median
    report.aim("tinytf over nn.Transformer", over_torch, 0.85 if options.base else 0.80)
