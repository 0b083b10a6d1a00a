"""A pipeline: a small corpus split, a translator with tied weights trained, saved, loaded, graded."""

import copy
import math
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, SEP, EOS = 0, 1, 2
ONES = "ze@@ ro|one|two|three|four|five|six|se@@ ven|eight|ni@@ ne".split("|")
TENS = "ten|twen@@ ty|thir@@ ty|for@@ ty|fif@@ ty".split("|")
PIECES = sorted({piece for word in ONES + TENS for piece in word.split()})
VOCAB, LENGTH = 3 + 10 + len(PIECES), 20
MICRO, PARTS, WARMUP, PEAK = 12, 4, 40, 4e-3
MEASURE, BETTER = "BLEU of whole words, 0 to 1, on sentences never trained on", "higher"


def corpus(generator, size=700):
    """Draw pairs of a line of digits and its words in pieces: a few lines occur twice."""
    pairs = []
    for _ in range(size):
        digits = torch.randint(10, (int(torch.randint(2, 5, (), generator=generator)),),
                               generator=generator).tolist()  # fmt: skip
        words = [TENS[d // 2] if i % 2 and d % 2 else ONES[d] for i, d in enumerate(digits)]
        pairs.append((tuple(digits), tuple(" ".join(words).split())))
    return pairs


def split(pairs):
    """Give a training set and a test set: a line that occurs twice is on one side only."""
    unique = sorted(set(pairs))
    torch.Generator().manual_seed(0)
    held = set(unique[::5])
    return [p for p in pairs if p not in held], sorted(held)


def encode(pairs):
    """Lay pairs out as ids, padded: source SEP target EOS."""
    rows = torch.full((len(pairs), LENGTH), PAD)
    for row, (digits, pieces) in zip(rows, pairs):
        ids = [3 + d for d in digits] + [SEP] + [13 + PIECES.index(x) for x in pieces] + [EOS]
        row[: len(ids)] = torch.tensor(ids)
    return rows
