"""Greedy decoding of the encoder-decoder, with and without the cache."""

import argparse

import torch

from benchmarks import limits, products
from benchmarks.report import Report, between
from tinytf.decoding.search import greedy
from tinytf.studies.interleaved import Timings, interleave
from tinytf.text.words import EOS
from tinytf.transformer import Transformer, TransformerConfig

__all__ = ["build", "compare", "run"]

FLOOR = "matmuls alone"


@torch.no_grad()
def build(
    vocab: int = 500, d_model: int = 128, num_heads: int = 4, num_layers: int = 2
) -> Transformer:
    """Make a model that never says <eos>, so that every run has the full length."""
    sizes = (vocab, vocab, d_model, num_heads, num_layers, 4 * d_model)
    model = Transformer(TransformerConfig(*sizes, dropout=0.0, max_len=256, norm="pre"))
    model.tgt_embedding.weight[EOS] = 0.0
    model.decoder.final_norm.bias.add_(model.tgt_embedding.weight[5])
    return model


def compare(
    model: Transformer, batch: int, length: int, options: argparse.Namespace, rounds: int
) -> Timings:
    """Time both ways to write the same texts, and the matrix products of the cached one."""
    src = torch.randint(3, model.config.src_vocab_size, (batch, 20)).to(model.device)
    runs = {
        "cached": lambda: greedy(model, src, length),
        "uncached": lambda: greedy(model, src, length, use_cache=False),
    }
    timed = runs | {FLOOR: products.replay(products.recorded(runs["cached"]))}

    def after(number: int, texts: dict) -> None:
        if texts["cached"].size(1) != length or not texts["cached"].equal(texts["uncached"]):
            raise AssertionError("the cache changed a text, or one ended early")

    return interleave(timed, rounds, warm_up=1, clock=options.clock, after=after)


def run(options: argparse.Namespace, report: Report) -> None:
    """Print milliseconds and ratios by batch size and number of tokens."""
    model = build().to(options.device)
    lines = []
    for batch in (1, 16, 64):
        for length in (20, 60, 120):
            timings = compare(model, batch, length, options, options.rounds or 7)
            report.keep(f"batch {batch}, {length} tokens", timings, ["cached"])
            lines.append(
                [
                    f"{batch}",
                    f"{length}",
                    between(timings.ratio("uncached", "cached"), 2),
                    *(between(timings.of(name).scaled(1000), 1) for name in timings.seconds),
                    f"{timings.ratio(FLOOR, 'cached').median:.0%}",
                ]
            )
    headers = ["batch", "tokens", "uncached / cached", "cached ms", "uncached ms"]
    headers += [f"the cached one's {FLOOR}, ms", "their share"]
    report.table("decoding: width 128, 4 heads, 2+2 layers, vocabulary 500", headers, lines)
    calls = products.recorded(lambda: greedy(model, torch.full((64, 20), 7).to(model.device), 20))
    limits.show(report, calls, options.device, clock=options.clock)
