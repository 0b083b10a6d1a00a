"""Time byte-level BPE beside Hugging Face's: `python tests/benchmarks/tokenizing.py`."""

import argparse
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("RAYON_NUM_THREADS", "1")  # theirs on one thread, as ours is

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tinytf.bpe import ByteBPE, train_bpe
from tinytf.data.manual import manual_text
from tinytf.gpt2_files import GPT2_BYTE_ORDER, to_gpt2


def theirs(vocab: dict[str, int] | None = None, merges: list | None = None) -> Tokenizer:
    """Their byte-level BPE."""
    made = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.decoder = decoders.ByteLevel()
    return made


def seconds(run: Callable[[], object], rounds: int) -> float:
    """The median of some runs, of the processor's time: other programs do not count."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def main() -> None:
    """Print seconds of training, megabytes a second of encoding, and memory on a large file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--merges", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file-megabytes", type=int, default=20)
    options = parser.parse_args()
    text = manual_text()
    size = len(text.encode()) / 1e6
    n, rounds = options.merges, options.rounds

    def train_theirs() -> None:
        trainers_ = trainers.BpeTrainer(
            vocab_size=256 + n,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        theirs().train_from_iterator([text], trainers_)

    print(f"the manual, {size:.2f} MB; {n} merges")
    print(f"train    ours {seconds(lambda: train_bpe(text, n), rounds):6.2f} s")
    print(f"         theirs {seconds(train_theirs, rounds):4.2f} s")
    bpe = train_bpe(text, n, byte_order=GPT2_BYTE_ORDER)
    other = theirs(*to_gpt2(bpe))
    assert other.encode(text).ids == bpe.encode(text)
    fresh = [ByteBPE(bpe.merges, (), bpe.byte_order) for _ in range(rounds)]
    cold = seconds(lambda: fresh.pop().encode(text), rounds)
    warm = seconds(lambda: bpe.encode(text), rounds)
    them = seconds(lambda: other.encode(text), rounds)
    print(f"encode   ours {size / cold:6.2f} MB/s cold, {size / warm:.2f} MB/s warm")
    print(f"         theirs {size / them:4.2f} MB/s (with offsets, which ours does not keep)")
    ids = bpe.encode(text)
    print(f"decode   ours {size / seconds(lambda: bpe.decode(ids), rounds):6.2f} MB/s")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.txt"
        times = max(1, round(options.file_megabytes / size))
        path.write_bytes(text.encode() * times)
        tracemalloc.start()
        train_bpe(path, n)
        trained = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.reset_peak()
        for _ in bpe.encode_file(path):
            pass
        encoded = tracemalloc.get_traced_memory()[1] / 1e6
    print(
        f"memory   {trained:.0f} MB to train on {times * size:.0f} MB, {encoded:.0f} MB to encode"
    )


if __name__ == "__main__":
    main()
