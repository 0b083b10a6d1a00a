"""Compressors against their own files, and the table of baselines."""

import gzip
import lzma
import random
import zlib

import pytest
import torch

from tinytf.text.bpe import train_bpe
from tinytf_course.lessons.compression import baselines, compressed_bits
from tinytf_course.lessons.ngrams import bigram_bits, unigram_bits


def test_compressors_alone_are_their_files():
    data = b"the animal did not cross the street " * 50
    assert compressed_bits(data) == 8 * len(gzip.compress(data, 9))
    assert compressed_bits(data, "lzma") == 8 * len(lzma.compress(data, preset=9 | 1 << 31))
    assert abs(compressed_bits(data) - 8 * len(zlib.compress(data, 9))) <= 8 * 12  # other header


def test_gzip_sees_32_kib_back_and_lzma_all():
    def noise(size, seed):
        return bytes(random.Random(seed).choices(range(97, 113), k=size))  # 4 bits a byte

    known = noise(1000, 0)
    near, far = (known + noise(size, 1) for size in (20_000, 40_000))
    assert compressed_bits(known, "gzip", near) < 600
    assert compressed_bits(known, "gzip", far) > 3500
    assert compressed_bits(known, "lzma", far) < 600


def test_baselines_divide_by_the_bytes_of_the_text():
    train, text = "naïve café, naïve café. " * 20, "a naïve café"
    tokenizer = train_bpe(train, vocab_size=270)
    table = baselines(tokenizer, train, text)
    size = len(text.encode())
    assert size == len(text) + 2
    known, new = train.encode(), text.encode()
    expected = {}
    for method in ("gzip", "lzma"):
        expected[method] = compressed_bits(new, method)
        expected[f"{method} after the training text"] = compressed_bits(new, method, known)
    for unit, count, ids in (
        ("bytes", 256, (list(known), list(new))),
        ("tokens", len(tokenizer), (tokenizer.encode(train), tokenizer.encode(text))),
    ):
        before, after = map(torch.tensor, ids)
        expected[f"unigram of {unit}"] = unigram_bits(before, after, count).sum().item()
        expected[f"bigram of {unit}"] = bigram_bits(before, after, count).sum().item()
    assert table == pytest.approx({name: bits / size for name, bits in expected.items()})


def test_bad_texts():
    with pytest.raises(ValueError, match="the text is empty"):
        compressed_bits(b"")
    with pytest.raises(ValueError, match="method='zip' is not one of gzip, lzma"):
        compressed_bits(b"a", "zip")
