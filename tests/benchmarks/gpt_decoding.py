"""Greedy decoding of GPT beside Hugging Face's `generate`: one prompt of 32 tokens.

Sizes: width 192, 6 heads, 6 layers, vocabulary 4096; with --small GPT-2 small with random weights.
The floor is the time that reading the weights once takes in the faster of torch's two products with
a vector. `fast_decoder` passes it: it sums weighted rows, with a kernel that reads faster. No
decoder in float32 passes a plain sum over the weights; how near one comes is said too.
All texts must be equal, but for weights of fewer bits: of those it is said how near they are, and
what their matrices take in memory.
"""

import argparse
import functools
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.report import Report
from benchmarks.texts import check_same
from tinytf.decoding.fast import fast_decoder, weight_bytes
from tinytf.decoding.generate import generate
from tinytf.gpt import GPT, GPTConfig
from tinytf.metrics.counting import count_parameters
from tinytf.pretrained import gpt2
from tinytf_course.studies.interleaved import Timings, interleave

__all__ = ["agreement", "compare", "peers", "readings", "run"]

ROUNDED = {f"tinytf fast {name}": name for name in ("float16", "bfloat16", "int8")}
THEIRS = "Hugging Face"
PRODUCTS = ("weights read, product (in, out)", "weights read, product (out, in)")
SUM = "weights read, sum"
READS = 4  # readings in one timing


def peers(model: GPT, ids: Tensor, tokens: int) -> dict[str, Callable[[], Tensor]]:
    """Give every way to continue ids by a number of tokens."""
    twin = fast_decoder(model)
    runs = {"tinytf fast": lambda: generate(twin, ids, tokens)}
    if model.device.type == "cpu":
        for name, weights in ROUNDED.items():
            rounded = fast_decoder(model, weights)
            runs[name] = functools.partial(generate, rounded, ids, tokens)
    runs["tinytf"] = lambda: generate(model, ids, tokens)
    runs["tinytf, no cache"] = lambda: generate(model, ids, tokens, use_cache=False)
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return runs
    config = GPT2Config(**gpt2.to_config(model) | {"eos_token_id": None})
    theirs = GPT2LMHeadModel(config).to(model.device).eval()
    theirs.load_state_dict(gpt2.to_state(model), strict=False)
    theirs.tie_weights()
    mask = torch.ones_like(ids)
    runs[THEIRS] = lambda: theirs.generate(
        ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0
    )
    return runs


def readings(model: GPT) -> dict[str, Callable[[], object]]:
    """Read as many bytes as the model has weights: in products with a vector, and added up."""
    rows = max(count_parameters(model) // 4096, 1)
    tall = torch.ones(rows, 4096, device=model.device)
    wide = tall.t().contiguous()
    vector = torch.ones(1, 4096, device=model.device)

    def often(read: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(READS):
                read()

        return run

    return {
        PRODUCTS[0]: often(lambda: vector @ wide),
        PRODUCTS[1]: often(lambda: vector @ tall.t()),
        SUM: often(lambda: tall.sum()),
    }


@torch.no_grad()
def agreement(model: GPT, twin: GPT, text: Tensor) -> str:
    """Compare two models' scores along one text (1, T), the second's token by token."""
    text = text[:, : model.config.max_len]
    cache = twin.decoder.new_cache()
    a = model(text).double()
    b = torch.cat([twin(token, cache) for token in text.split(1, dim=1)], dim=1).double()
    p, q = a.log_softmax(-1), b.log_softmax(-1)
    return (
        f"same likeliest token {(a.argmax(-1) == b.argmax(-1)).double().mean():.2%}, "
        f"largest difference of a logit {(a - b).abs().max():.1e} "
        f"(they deviate by {a.std():.2f}), "
        f"mean KL {(p.exp() * (p - q)).sum(-1).mean():.1e} nats"
    )


def compare(
    model: GPT, ids: Tensor, tokens: int, rounds: int, options: argparse.Namespace
) -> tuple[Timings, Tensor]:
    """Time all, check that the texts are equal, and return one."""
    runs, reads = peers(model, ids, tokens), readings(model)
    if options.small:
        del runs["tinytf, no cache"]
    texts: dict[str, Tensor] = {}

    def next_logits(row: int, place: int) -> Tensor:
        return model(texts["tinytf"][row : row + 1, :place])[0, -1]

    def after(number: int, results: dict[str, Tensor]) -> None:
        texts.update(results)
        for name in runs:
            if name not in ROUNDED:
                check_same(name, results[name], results["tinytf"], next_logits)

    timings = interleave(runs | reads, rounds, warm_up=1, clock=options.clock, after=after)
    for name in reads:  # once a token
        timings.seconds[name] = [t * tokens / READS for t in timings.seconds[name]]
    return timings, texts["tinytf"]


def run(options: argparse.Namespace, report: Report) -> None:
    """Print the table."""
    sizes = GPTConfig.preset("gpt2") if options.small else GPTConfig(4096, 192, 6, 6, max_len=256)
    model = GPT(sizes).to(options.device).eval()
    ids = torch.randint(sizes.vocab_size, (1, 32)).to(options.device)
    timings, text = compare(model, ids, options.tokens, options.rounds or 7, options)
    count = count_parameters(model)
    floor = min(PRODUCTS, key=lambda name: timings.of(name).median)
    share = {name: f"{timings.ratio(floor, name).median:.0%}" for name in timings.seconds}
    report.timings(
        f"decoding, {options.tokens} tokens, milliseconds a token; {count:,} parameters",
        timings,
        ["tinytf fast", "tinytf"],
        dict.fromkeys(ROUNDED, "weights of fewer bits: the text may differ"),
        per=options.tokens,
        **{"of the floor": share},
    )
    rate = 4 * count * options.tokens / timings.of(SUM).median / 1e9
    report.value("memory read, sum", rate, "GB/s", 1)
    for name, weights in ROUNDED.items():
        if name in timings.seconds:
            _say_how_near(report, model, weights, text)
    if options.small:
        reached = timings.ratio(floor, "tinytf fast").median
        report.aim("of the floor, fast", reached, 0.9, least=True)
        report.value("of a plain sum, fast", timings.ratio(SUM, "tinytf fast").median, "", 2)
    if THEIRS not in timings.seconds:
        return
    aims = {"tinytf fast float16": 2.0, "tinytf fast int8": 2.5}
    for name, aim in aims.items() if options.small else (("tinytf fast", 2.6),):
        if name in timings.seconds:
            faster = timings.ratio(THEIRS, name).median
            report.aim(f"Hugging Face over {name}", faster, aim, least=True)


def _say_how_near(report: Report, model: GPT, weights: str, text: Tensor) -> None:
    twin = fast_decoder(model, weights)
    report.say(f"{weights}: {agreement(model, twin, text)}")
    report.value(f"{weights}, matrices", weight_bytes(twin) / 2**20, "MiB", 1)
