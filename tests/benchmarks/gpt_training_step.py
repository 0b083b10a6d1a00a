"""A training step of GPT beside its peers, all from the same weights, on the same ids.

Sizes: width 192, 6 heads, 6 layers, vocabulary 4096, 16 texts of 256; with --small GPT-2 small and
one text of 256.
"""

import argparse
import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.recipe import Peer, our_step, plain_step
from benchmarks.reference_gpt import Reference, TorchEncoder
from benchmarks.report import Report
from benchmarks.steps import fastest, measure
from tinytf.gpt import GPT, GPTConfig
from tinytf.pretrained import gpt2
from tinytf.training.losses import TextBatch, next_token_loss

__all__ = ["SMALL", "TOY", "peers", "run"]

TOY = ({"vocab_size": 4096, "d_model": 192, "num_heads": 6, "num_layers": 6, "max_len": 256}, 16)
SMALL = ({}, 1)
LENGTH = 256


def peers(
    config: GPTConfig,
    batch_size: int,
    length: int = LENGTH,
    precision: str = "float32",
    device: torch.device | str = "cpu",
) -> dict[str, Peer]:
    """Build a step of each model."""
    start = GPT(config)
    ids = torch.randint(config.vocab_size, (batch_size, length + 1)).to(device)
    batch = TextBatch(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())

    def ours(precision: str = "float32") -> Peer:
        model = GPT(config)
        model.load_state_dict(start.state_dict())
        step = our_step(model.to(device), batch, next_token_loss, precision)
        return Peer(step, model, "gpt", exact=precision == "float32")

    def plain(
        model: nn.Module,
        precision: str = "float32",
        note: str = "",
        call: Callable[..., Tensor] | None = None,
    ) -> Peer:
        model.to(device)
        forward = functools.partial(call or model, batch.ids_in)
        step = plain_step(model, forward, batch.ids_out, precision)
        return Peer(step, model, "gpt", note, precision == "float32")

    more = "dropout also on attention's weights and in the feed-forward" if config.dropout else ""
    found = {
        "tinytf": ours(),
        "reference": plain(Reference(start), note="the shape of nanoGPT"),
        "nn.TransformerEncoder": plain(TorchEncoder(start), note=more),
    }
    if precision == "bfloat16":
        found["tinytf bf16"] = ours("bfloat16")
        found["reference bf16"] = plain(Reference(start), "bfloat16")
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return found
    drop = {"attn_pdrop": 0.0, "embd_pdrop": config.dropout, "resid_pdrop": config.dropout}
    said = gpt2.to_config(start) | drop | {"use_cache": False}
    theirs = GPT2LMHeadModel(GPT2Config(**said))
    theirs.load_state_dict(gpt2.to_state(start), strict=False)
    theirs.tie_weights()
    found["GPT-2"] = plain(theirs, note="Hugging Face's", call=lambda ids: theirs(ids).logits)
    return found


def run(options: argparse.Namespace, report: Report) -> None:
    """Print the table."""
    sizes, batch_size = SMALL if options.small else TOY
    config = GPTConfig(**sizes, dropout=options.dropout)
    found = peers(config, batch_size, LENGTH, options.precision, options.device)
    title = (
        f"a training step: width {config.d_model}, {config.num_heads} heads, "
        f"{config.num_layers} layers, vocabulary {config.vocab_size}, {batch_size} x {LENGTH} ids"
    )
    timings = measure(report, options, found, options.rounds or 9, title)
    full = {name: peer for name, peer in found.items() if peer.exact}
    best = fastest(timings, full)
    ratio = timings.ratio("tinytf", best).median
    report.aim(f"tinytf over the fastest peer ({best})", ratio, 1.0 if options.dropout else 1.02)
    if "tinytf bf16" in found:
        faster = timings.ratio(best, "tinytf bf16").median
        report.aim(f"{best} in float32 over tinytf in bfloat16", faster, 2.2, least=True)
