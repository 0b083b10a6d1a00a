"""What a text costs without a network: n-gram models and compressors, in bits.

A model that gives a token probability p could store it in -log2 p bits (Shannon 1948, section 9),
so models and compressors can be compared: bits for the text, divided by its bytes. Everything is
fitted to training text and measured on another.
"""

import gzip
import lzma

import torch

from tinytf.text.bpe import ByteBPE
from tinytf_course.lessons.ngrams import bigram_bits, unigram_bits

__all__ = [
    "baselines",
    "compressed_bits",
]


def compressed_bits(text: bytes, method: str = "gzip", train: bytes = b"") -> int:
    """Bits that `text` adds to the compressed `train`: those of train + text minus those of train.

    `method` is "gzip", which finds repetitions at most 32 KiB back, or "lzma", which finds them
    anywhere in texts of megabytes. Both at their highest setting. Raises ValueError for an empty
    text or another method.
    """
    if not text:
        raise ValueError("the text is empty")
    if method not in _METHODS:
        raise ValueError(f"method={method!r} is not one of {', '.join(_METHODS)}")
    size = _METHODS[method]
    return 8 * (size(train + text) - size(train) if train else size(text))


def baselines(tokenizer: ByteBPE, train: str, text: str) -> dict[str, float]:
    """Bits per byte of `text` for every model here, by name; nothing is fitted to `text`.

    "gzip" and "lzma" compress the text alone; "… after the training text" count only what it adds
    to that. Raises ValueError for an empty text.
    """
    known, new = train.encode(), text.encode()
    table = {}
    for unit, size, ids in (
        ("bytes", 256, (list(known), list(new))),
        ("tokens", len(tokenizer), (tokenizer.encode(train), tokenizer.encode(text))),
    ):
        pair = [torch.tensor(i, dtype=torch.int64) for i in ids]
        table[f"unigram of {unit}"] = unigram_bits(*pair, size).sum().item()
        table[f"bigram of {unit}"] = bigram_bits(*pair, size).sum().item()
    for method in _METHODS:
        table[method] = compressed_bits(new, method)
        table[f"{method} after the training text"] = compressed_bits(new, method, known)
    return {name: bits / len(new) for name, bits in table.items()}


_METHODS = {
    "gzip": lambda data: len(gzip.compress(data, 9, mtime=0)),
    "lzma": lambda data: len(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)),
}
