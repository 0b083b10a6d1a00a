"""What the tests of translators share: five pairs, and a translator that knows them by heart."""

from dataclasses import dataclass

import torch
from support import small_model

from tinytf.apps.translator import Translator
from tinytf.support.device import choose_device
from tinytf.text.words import WordTokenizer
from tinytf.training.losses import make_batch
from tinytf.training.trainer import Trainer, TrainingConfig


@dataclass(frozen=True)
class Pair:
    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]
    kind: str


def pair(source, target, alignment, kind="plain"):
    return Pair(tuple(source.split()), tuple(target.split()), alignment, kind)


PAIRS = [
    pair("the cat sat", "猫 坐", ((1, 0), (2, 1))),
    pair("the dog sat", "狗 坐", ((1, 0), (2, 1))),
    pair("the dog saw the cat", "狗 看见 猫", ((1, 0), (2, 1), (4, 2)), "object"),
    pair("the cat saw the dog", "猫 看见 狗", ((1, 0), (2, 1), (4, 2)), "object"),
    pair("a dog sat", "一 只 狗 坐", ((0, 0), (0, 1), (1, 2), (2, 3)), "counted"),
]


def untrained(device="cpu", **sizes):
    words = [WordTokenizer(sorted({w for p in PAIRS for w in getattr(p, side)}))
             for side in ("source", "target")]  # fmt: skip
    vocabularies = dict(zip(("src_vocab_size", "tgt_vocab_size"), map(len, words), strict=True))
    model = small_model(device, torch.float32, **vocabularies | {"d_model": 24, "d_ff": 48} | sizes)
    return Translator(model, *words)


def trained_translator():
    """A translator that knows the five pairs by heart."""
    torch.manual_seed(0)
    translator = untrained(choose_device())
    batch = make_batch(
        [translator.source.encode(p.source) for p in PAIRS],
        [translator.target.encode(p.target) for p in PAIRS],
    )
    Trainer(translator.model, lambda _: batch, TrainingConfig(steps=80, warmup=5, lr=1e-2)).run()
    translator.model.eval()
    return translator
