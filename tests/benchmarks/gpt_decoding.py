"""Time greedy decoding of GPT against Hugging Face's `generate`, interleaved in one process.

Run by hand: `python tests/benchmarks/gpt_decoding.py [--threads 2] [--rounds 7] [--small]`. Prints
medians of milliseconds a token, and Hugging Face's over each (median of the ratios, round by
round); with --small (GPT-2 small, random weights) also the times that reading its weights once
takes on this machine: as a product with a vector, which no decoder in float32 can pass that
computes by such products, and as a plain sum, which none can pass at all. All texts must be equal,
but for weights rounded to float16: of those it is said how near they are. --cpu counts the
processor's time instead of the clock's, for a machine that is busy (then use one thread). The
Hugging Face row needs `pip install transformers`, which the course itself does not.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from tinytf import gpt2_weights
from tinytf.counting import count_parameters
from tinytf.generation import generate
from tinytf.gpt import GPT, GPTConfig
from tinytf.lean import lean

ROUNDED = "tinytf lean float16"


def peers(model: GPT, ids: Tensor, tokens: int) -> dict[str, Callable[[], Tensor]]:
    """Give every way to continue ids by a number of tokens."""
    twin, half = lean(model), lean(model, "float16")
    runs = {
        "tinytf lean": lambda: generate(twin, ids, tokens),
        ROUNDED: lambda: generate(half, ids, tokens),
        "tinytf": lambda: generate(model, ids, tokens),
        "tinytf, no cache": lambda: generate(model, ids, tokens, use_cache=False),
    }
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return runs
    config = GPT2Config(**gpt2_weights.to_config(model.config) | {"eos_token_id": None})
    theirs = GPT2LMHeadModel(config).eval()
    theirs.load_state_dict(gpt2_weights.to_state(model), strict=False)
    theirs.tie_weights()
    mask = torch.ones_like(ids)
    runs["Hugging Face"] = lambda: theirs.generate(
        ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0
    )
    return runs


def readings(model: GPT) -> dict[str, Callable[[], object]]:
    """Read as many bytes as the model has weights: in products with a vector, and added up."""
    rows = count_parameters(model) // 4096
    tall, wide = torch.ones(rows, 4096), torch.ones(4096, rows)
    vector = torch.ones(1, 4096)
    return {
        "product, (out, in)": lambda: vector @ tall.t(),
        "product, (in, out)": lambda: vector @ wide,
        "sum": lambda: tall.sum(),
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    clock = time.process_time if options.cpu else time.perf_counter
    sizes = GPTConfig.preset("gpt2") if options.small else GPTConfig(4096, 192, 6, 6, max_len=256)
    model = GPT(sizes).eval()
    ids = torch.randint(sizes.vocab_size, (1, 32))
    runs = peers(model, ids, options.tokens)
    if options.small:
        del runs["tinytf, no cache"]
    reads = readings(model)
    times: dict[str, list[float]] = {name: [] for name in runs}
    floors: dict[str, list[float]] = {name: [] for name in reads}
    texts = {}
    for i in range(options.rounds + 1):
        for name, run in runs.items():
            begin = clock()
            texts[name] = run()
            if i:  # the first round warms up
                times[name].append(1000 * (clock() - begin) / options.tokens)
        for name, read in reads.items():
            begin = clock()
            read()
            floors[name].append(1000 * (clock() - begin))
    for name, taken in times.items():
        same = name == ROUNDED or torch.equal(texts[name], texts["tinytf"])
        assert same, f"{name} wrote another text"
        line = f"{name:20} {statistics.median(taken):7.3f} ms a token"
        if theirs := times.get("Hugging Face"):
            ratio = statistics.median(b / a for a, b in zip(taken, theirs, strict=True))
            line += f"   {ratio:5.2f} x as fast as Hugging Face"
        print(line)
    print("float16:", agreement(model, lean(model, "float16"), texts["tinytf"]))
    if options.small:
        ours = statistics.median(times["tinytf lean"])
        for name, taken in floors.items():
            floor = statistics.median(taken[1:])
            print(f"reading the weights once, {name}: {floor:.3f} ms, {floor / ours:.0%} of lean")


if __name__ == "__main__":
    main()
