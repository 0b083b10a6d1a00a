"""Greedy decoding of the encoder-decoder: plain, fast, without a cache, beside Marian's `generate`.

Width 128, 4 heads, 2+2 layers. Marian is Hugging Face's, of equal sizes, with the weights of a
model of ours in its shape. One in two batches has sources of unequal lengths.
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks import limits, products
from benchmarks.report import Report, between
from benchmarks.texts import check_same
from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.search import greedy
from tinytf.text.words import BOS, EOS
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.studies.interleaved import Timings, interleave

__all__ = ["beside_marian", "build", "compare", "run"]

FLOOR = "matmuls alone"
AIMS = {1: 3.0, 16: 2.5}  # Marian's time over ours, by batch size


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


def next_logits(model: Transformer, src: Tensor, texts: Tensor) -> Callable[[int, int], Tensor]:
    """Give a function of a row and a place: the logits (V,) of what follows in the row's text."""

    def score(row: int, place: int) -> Tensor:
        begun = torch.cat([src.new_full((1,), BOS), texts[row, :place]])[None]
        return model(src[row : row + 1], begun)[0, -1]

    return score


def compare(
    model: Transformer, batch: int, length: int, options: argparse.Namespace, rounds: int
) -> Timings:
    """Time both ways to write the same texts, and the matrix products of the cached one."""
    src = torch.randint(3, model.config.src_vocab_size, (batch, 20)).to(model.device)
    twin = fast_decoder(model)
    runs = {
        "fast": lambda: greedy(twin, src, length),
        "cached": lambda: greedy(model, src, length),
        "uncached": lambda: greedy(model, src, length, use_cache=False),
    }
    timed = runs | {FLOOR: products.replay(products.recorded(runs["cached"]))}

    def after(number: int, texts: dict) -> None:
        if texts["cached"].size(1) != length:
            raise AssertionError("a text ended early")
        for name in ("fast", "uncached"):
            check_same(name, texts[name], texts["cached"], next_logits(model, src, texts["cached"]))

    return interleave(timed, rounds, warm_up=1, clock=options.clock, after=after)


@torch.no_grad()
def beside_marian(
    batch: int, ragged: bool, length: int, options: argparse.Namespace, rounds: int
) -> Timings:
    """Time ours in Marian's shape, plain and fast, and Hugging Face's `generate` with its weights.

    All write `length` tokens a sentence. Raises ImportError without transformers.
    """
    from benchmarks.huggingface_seq2seq import like_marian, marian

    ours = like_marian(build().config).eval()
    theirs = marian(ours).model.to(options.device).eval()
    ours = ours.to(options.device)
    ours.tgt_embedding.weight[EOS] = 0.0
    twin = fast_decoder(ours)
    src = torch.randint(3, ours.config.src_vocab_size, (batch, 20)).to(options.device)
    if ragged:
        for row in range(batch):
            src[row, 20 - row % 8 :] = 0
    mask = (src != 0).long()
    settings = {"max_new_tokens": length, "min_new_tokens": length, "do_sample": False}
    runs = {
        "fast": lambda: greedy(twin, src, length),
        "plain": lambda: greedy(ours, src, length),
        "Marian": lambda: theirs.generate(
            src, attention_mask=mask, num_beams=1, use_cache=True, **settings
        ),
    }

    def after(number: int, texts: dict) -> None:
        check_same("fast", texts["fast"], texts["plain"], next_logits(ours, src, texts["plain"]))
        lengths = {"fast": texts["fast"].size(1), "Marian": texts["Marian"].size(1) - 1}
        if set(lengths.values()) != {length}:
            raise AssertionError(f"a text ended early: {lengths}")

    return interleave(runs, rounds, warm_up=1, clock=options.clock, after=after)


def _report_marian(options: argparse.Namespace, report: Report) -> None:
    for batch, aim in AIMS.items():
        for ragged in (False, True) if batch > 1 else (False,):
            try:
                timings = beside_marian(batch, ragged, 60, options, options.rounds or 7)
            except ImportError:
                report.say("Marian's generate: needs transformers")
                return
            kind = f"batch {batch}{', ragged' if ragged else ''}, 60 tokens"
            report.keep(f"in Marian's shape, {kind}", timings, ["fast", "plain"])
            report.say(f"{kind}: plain {between(timings.of('plain').scaled(1000), 1)} ms")
            report.aim(
                f"Marian over fast, {kind}", timings.ratio("Marian", "fast").median, aim, least=True
            )


def run(options: argparse.Namespace, report: Report) -> None:
    """Print milliseconds and ratios by batch size and number of tokens."""
    model = build().to(options.device)
    lines = []
    for batch in (1, 16, 64):
        for length in (20, 60, 120):
            timings = compare(model, batch, length, options, options.rounds or 7)
            report.keep(f"batch {batch}, {length} tokens", timings, ["fast", "cached"])
            lines.append(
                [
                    f"{batch}",
                    f"{length}",
                    between(timings.ratio("cached", "fast"), 2),
                    between(timings.ratio("uncached", "cached"), 2),
                    *(between(timings.of(name).scaled(1000), 1) for name in timings.seconds),
                    f"{timings.ratio(FLOOR, 'cached').median:.0%}",
                ]
            )
    headers = ["batch", "tokens", "cached / fast", "uncached / cached"]
    headers += ["fast ms", "cached ms", "uncached ms"]
    headers += [f"the cached one's {FLOOR}, ms", "their share"]
    report.table("decoding: width 128, 4 heads, 2+2 layers, vocabulary 500", headers, lines)
    _report_marian(options, report)
    calls = products.recorded(lambda: greedy(model, torch.full((64, 20), 7).to(model.device), 20))
    limits.show(report, calls, options.device, clock=options.clock)
