"""Time greedy decoding with and without the cache: `python tests/benchmarks/decoding.py`."""

import argparse
import statistics
import time

import torch

from tinytf.decoding import greedy
from tinytf.seq2seq import Transformer, TransformerConfig
from tinytf.tokenizer import EOS


def main() -> None:
    """Print milliseconds and the ratio, by batch size and number of tokens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    config = TransformerConfig(500, 500, 128, 4, 2, 512, dropout=0.0, max_len=256, norm="pre")
    model = Transformer(config)
    with torch.no_grad():  # an <eos> that never wins, so that every run has the full length
        model.tgt_embedding.weight[EOS] = 0.0
        model.decoder.final_norm.bias.add_(model.tgt_embedding.weight[5])
    for batch in (1, 16, 64):
        for length in (20, 60, 120):
            src = torch.randint(3, 500, (batch, 20))
            times: dict[bool, list[float]] = {True: [], False: []}
            for i in range(options.rounds + 1):
                for cached in times:
                    begin = time.perf_counter()
                    out = greedy(model, src, length, use_cache=cached)
                    if i:
                        times[cached].append(time.perf_counter() - begin)
                    assert out.size(1) == length
            with_cache, without = (statistics.median(times[c]) for c in (True, False))
            print(
                f"batch {batch:3}  {length:3} tokens   cached {1000 * with_cache:7.1f} ms   "
                f"uncached {1000 * without:7.1f} ms   {without / with_cache:.1f} x"
            )


if __name__ == "__main__":
    main()
