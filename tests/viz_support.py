"""What tests of figures share: one aligned sentence with made attention, and what is drawn."""

import numpy as np
import torch

SOURCE = ["the", "cat", "sat", "on", "the", "mat", "<eos>"]
TARGET = ["猫", "坐", "在", "垫子", "上", "<eos>"]
PINYIN = ["māo", "zuò", "zài", "diànzi", "shàng", "<eos>"]
GOLD = [(1, 0), (2, 1), (3, 2), (5, 3), (3, 4), (6, 5)]


def weights(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def example(layers=2, heads=4, **changes):
    t, s = len(TARGET), len(SOURCE)
    cross = weights(layers, heads, t, s)
    links = torch.zeros(t, s)
    for source, target in GOLD:
        links[target, source] = 1
    cross[1, 2] = 0.05 / s + 0.95 * links  # one head is the aligner
    scores = torch.randn(layers, heads, t, t, generator=torch.Generator().manual_seed(1))
    future = torch.ones(t, t).triu(1).bool()
    decoder = scores.masked_fill(future, -torch.inf).softmax(-1)
    attention = {"cross": cross, "encoder": weights(layers, heads, s, s), "decoder": decoder}
    whole = {"source": SOURCE, "target": TARGET, "pinyin": PINYIN, "gold": GOLD}
    return whole | {"attention": attention} | changes


def drawn(ax):
    """The axes' matrix, after a real rendering (which is where a missing glyph would warn)."""
    ax.figure.canvas.draw()
    return np.asarray(ax.collections[0].get_array())


def ticks(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]
