"""Byte-level BPE on the Python manual, beside Hugging Face's tokenizers on one thread.

Cold is the first encoding by a tokenizer, warm a later one, which knows the words. The floor is
what the pattern takes that cuts a text into words, which every byte-level BPE must do.
"""

import argparse
import os
import tempfile
import tracemalloc
from collections import Counter
from pathlib import Path

os.environ.setdefault("RAYON_NUM_THREADS", "1")  # theirs on one thread, as ours is

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from benchmarks.report import Report
from tinytf.data.manual import manual_text
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.gpt2_files import GPT2_BYTE_ORDER, to_gpt2
from tinytf.text.pretokenize import split
from tinytf_course.studies.interleaved import Timings, interleave

__all__ = ["coding", "run", "theirs", "training"]


def theirs(vocab: dict[str, int] | None = None, merges: list | None = None) -> Tokenizer:
    """Make their byte-level BPE."""
    made = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.decoder = decoders.ByteLevel()
    return made


def training(text: str, merges: int, rounds: int, options: argparse.Namespace) -> Timings:
    """Time the learning of merges."""

    def train_theirs() -> None:
        trainer = trainers.BpeTrainer(
            vocab_size=256 + merges,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        theirs().train_from_iterator([text], trainer)

    runs = {
        "tinytf": lambda: train_bpe(text, merges),
        "Hugging Face": train_theirs,
        "words counted": lambda: Counter(split(text)),
    }
    return interleave(runs, rounds, warm_up=1, clock=options.clock)


def coding(text: str, bpe: ByteBPE, rounds: int, options: argparse.Namespace) -> Timings:
    """Time encoding and decoding; both must give the same ids."""
    other = theirs(*to_gpt2(bpe))
    ids = bpe.encode(text)
    if other.encode(text).ids != ids or bpe.decode(ids) != text:
        raise AssertionError("their ids are not ours, or decoding does not give the text back")
    fresh = [ByteBPE(bpe.merges, (), bpe.byte_order) for _ in range(rounds + 1)]
    runs = {
        "tinytf cold": lambda: fresh.pop().encode(text),
        "tinytf warm": lambda: bpe.encode(text),
        "Hugging Face": lambda: other.encode(text),
        "words split": lambda: split(text),
        "tinytf decode": lambda: bpe.decode(ids),
        "Hugging Face decode": lambda: other.decode(ids),
    }
    return interleave(runs, rounds, warm_up=1, clock=options.clock)


def run(options: argparse.Namespace, report: Report) -> None:
    """Print seconds of training, megabytes a second of encoding, and memory on a large file."""
    text, n, rounds = manual_text(), options.merges, options.rounds or 5
    size = len(text.encode()) / 1e6
    trained = training(text, n, rounds, options)
    report.timings(f"training: {n} merges of {size:.2f} MB", trained, ["tinytf"])
    timings = coding(text, train_bpe(text, n, byte_order=GPT2_BYTE_ORDER), rounds, options)
    rates = {name: f"{size / timings.of(name).median:.2f}" for name in timings.seconds}
    notes = {"Hugging Face": "with offsets, which ours does not keep"}
    report.timings("coding", timings, ["tinytf cold", "tinytf warm"], notes, **{"MB/s": rates})
    _memory(report, text, n)
    report.aim("seconds to train", trained.of("tinytf").median, 10 * n / 2000)
    rate = size / timings.of("tinytf cold").median
    report.aim("MB/s encoded", rate, 1.0, least=True)


def _memory(report: Report, text: str, merges: int, megabytes: int = 20) -> None:
    """Train on a file and encode it piece by piece; Python's allocations at their highest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.txt"
        path.write_bytes(text.encode() * max(1, round(megabytes * 1e6 / len(text.encode()))))
        tracemalloc.start()
        try:
            bpe = train_bpe(path, merges)
            trained = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            for _ in bpe.encode_file(path):
                pass
            encoded = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    report.value(f"peak memory, training on {megabytes} MB", trained / 1e6, "MB")
    report.value(f"peak memory, encoding {megabytes} MB", encoded / 1e6, "MB")
