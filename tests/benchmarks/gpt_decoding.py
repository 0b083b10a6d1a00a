"""Time greedy decoding of GPT against Hugging Face's `generate`, interleaved in one process.

Run by hand: `python tests/benchmarks/gpt_decoding.py [--threads 2] [--rounds 7] [--small]`. Prints
medians of milliseconds a token, and Hugging Face's over each (median of the ratios, round by
round); with --small (GPT-2 small, random weights) also the time that reading its weights once takes
on this machine, which no decoder in float32 can pass. All texts must be equal. --cpu counts the
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


def peers(model: GPT, ids: Tensor, tokens: int) -> dict[str, Callable[[], Tensor]]:
    """Give every way to continue ids by a number of tokens."""
    twin = lean(model)
    runs = {
        "tinytf lean": lambda: generate(twin, ids, tokens),
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


def reading(model: GPT) -> Callable[[], Tensor]:
    """Read as many bytes as the model's weights have, once, as a product with a vector does."""
    rows = count_parameters(model) // 4096
    matrix, vector = torch.ones(rows, 4096), torch.ones(4096)
    return lambda: matrix @ vector


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
    read = reading(model)
    times: dict[str, list[float]] = {name: [] for name in runs}
    floor, texts = [], {}
    for i in range(options.rounds + 1):
        for name, run in runs.items():
            begin = clock()
            texts[name] = run()
            if i:  # the first round warms up
                times[name].append(1000 * (clock() - begin) / options.tokens)
        begin = clock()
        read()
        floor.append(1000 * (clock() - begin))
    for name, taken in times.items():
        assert torch.equal(texts[name], texts["tinytf"]), f"{name} wrote another text"
        line = f"{name:18} {statistics.median(taken):7.3f} ms a token"
        if theirs := times.get("Hugging Face"):
            ratio = statistics.median(b / a for a, b in zip(taken, theirs, strict=True))
            line += f"   {ratio:5.2f} x as fast as Hugging Face"
        print(line)
    if options.small:
        share = statistics.median(floor[1:]) / statistics.median(times["tinytf lean"])
        print(
            f"reading the weights once: {statistics.median(floor[1:]):.3f} ms; "
            f"lean decoding runs at {share:.0%} of that bound"
        )


if __name__ == "__main__":
    main()
