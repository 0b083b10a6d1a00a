"""What making texts into ids costs: the phrasebook's sentences, and byte-level BPE."""

import os
import tempfile
import tracemalloc
from pathlib import Path

from benchmarks.comparing import aim, compare
from tinytf.data.manual import manual_text
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.gpt2_files import GPT2_BYTE_ORDER, to_gpt2
from tinytf.text.pretokenize import split
from tinytf_course.phrasebook import Pair, Phrasebook


def phrasebook(options, pairs=20_000):
    """sentence pairs drawn a second, beside the making of as many from ready parts."""
    book = Phrasebook()
    ready = [tuple(pair) for pair in book.sample(pairs)]
    runs = {
        "drawn": lambda: book.sample(pairs),
        "made of ready parts": lambda: [Pair(*parts) for parts in ready],
    }
    timed = compare(f"{pairs:,} pairs", runs, options, 5)
    yield timed
    yield aim("pairs a second", pairs / timed.timings.of("drawn").median, least=20_000)


def tokenizing(options, text=None, megabytes=20):
    """training, encoding and decoding of byte-level BPE beside Hugging Face's, on one thread.

    Cold is the first encoding by a tokenizer, warm a later one, which knows the words. The floor is
    what the pattern takes that cuts a text into words.
    """
    os.environ.setdefault("RAYON_NUM_THREADS", "1")  # theirs on one thread, as ours is
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    def theirs(**known):
        made = Tokenizer(models.BPE(**known))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        made.decoder = decoders.ByteLevel()
        return made

    def train_theirs():
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=256 + options.merges, initial_alphabet=alphabet,
                                      show_progress=False)  # fmt: skip
        theirs().train_from_iterator([text], trainer)

    text = text or manual_text()
    size = len(text.encode()) / 1e6
    runs = {"tinytf": lambda: train_bpe(text, options.merges), "Hugging Face": train_theirs}
    trained = compare(f"training: {options.merges} merges of {size:.2f} MB", runs, options, 5)
    yield trained
    bpe = train_bpe(text, options.merges, byte_order=GPT2_BYTE_ORDER)
    vocab, merges = to_gpt2(bpe)
    other, ids = theirs(vocab=vocab, merges=merges), bpe.encode(text)
    if other.encode(text).ids != ids or bpe.decode(ids) != text:
        raise AssertionError("their ids are not ours, or decoding does not give the text back")
    runs = {
        "cold": lambda: ByteBPE(bpe.merges, (), bpe.byte_order).encode(text),
        "warm": lambda: bpe.encode(text),
        "Hugging Face": lambda: other.encode(text),
        "words split": lambda: split(text),
        "decoding": lambda: bpe.decode(ids),
        "Hugging Face, decoding": lambda: other.decode(ids),
    }
    timed = compare("coding", runs, options, 5)
    rates = {name: size / timed.timings.of(name).median for name in runs}
    timed.columns["MB/s"] = {name: f"{rate:.2f}" for name, rate in rates.items()}
    yield timed
    yield from file_memory(text, options.merges, megabytes)
    yield aim("seconds to train", trained.timings.of("tinytf").median, most=options.merges / 200)
    yield aim("MB/s encoded", rates["cold"], least=1.0)


def file_memory(text, merges, megabytes):
    """Train on a file and encode it piece by piece; Python's allocations at their highest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.txt"
        path.write_bytes(text.encode() * max(1, round(megabytes * 1e6 / len(text.encode()))))
        tracemalloc.start()
        try:
            bpe = train_bpe(path, merges)
            yield f"training on {megabytes} MB: {tracemalloc.get_traced_memory()[1] / 1e6:.2f} MB"
            tracemalloc.reset_peak()
            for _ in bpe.encode_file(path):
                pass
            yield f"encoding {megabytes} MB: {tracemalloc.get_traced_memory()[1] / 1e6:.2f} MB"
        finally:
            tracemalloc.stop()
