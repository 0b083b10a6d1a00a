"""Chapter 13: how a text repeats itself, and the rules of sampling."""

import math

import torch

from tinytf.course.parts import Part
from tinytf.course.parts.ch03 import wide

TEXT = torch.tensor([[1, 2, 3, 1, 2, 3, 1, 2], [4, 4, 4, 4, 4, 5, 6, 7]])
FEW = torch.tensor([[2.0, 1.0, 0.5, -1.0]])
TIES = torch.tensor([[1.0, 3.0, 1.0, 1.0, 0.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
RULED_OUT = torch.tensor([[1.0, -math.inf, 0.5, -math.inf]])


def _rule(*settings, dtype=True):
    scripts = {}
    for setting in settings:
        scripts |= {
            f"four tokens are left to choose from, with {setting}": lambda f, s=setting: f(FEW, s),
            f"tokens tie, with {setting}": lambda f, s=setting: f(TIES, s),
            f"some are ruled out already, with {setting}": lambda f, s=setting: f(RULED_OUT, s),
            f"there are 3 rows of 20, with {setting}": lambda f, s=setting: f(
                wide(3, 20, seed=1) * 3, s
            ),
        }
    return scripts


def _drawn(f):
    generator = torch.Generator().manual_seed(0)
    return torch.stack([f(wide(4, 6, seed=1), generator) for _ in range(50)])


def _penalised(*settings):
    said = torch.tensor([[1, 1, 3], [0, 2, 2]])
    return {
        f"tokens were said before, with {setting}": lambda f, s=setting: f(
            wide(2, 5, seed=1), said, s
        )
        for setting in settings
    }


PARTS = (
    Part(
        "tinytf.metrics.repetition.distinct_ngrams",
        {f"n is {n}": lambda f, n=n: f(TEXT, n) for n in (1, 2, 4, 8)},
    ),
    Part(
        "tinytf.metrics.repetition.repeated_ngrams",
        {f"n is {n}": lambda f, n=n: f(TEXT, n) for n in (1, 4)}
        | {"nothing is said of n": lambda f: f(TEXT)},
    ),
    Part(
        "tinytf.metrics.repetition.entropy",
        {
            "all are as likely": lambda f: f(torch.zeros(1, 4)),
            "some are ruled out": lambda f: f(RULED_OUT),
            "there are 3 rows": lambda f: f(wide(3, 20, seed=1) * 3),
        },
        tolerance=1e-5,
    ),
    Part(
        "tinytf.decoding.sampling.sample",
        {
            "50 times a generator draws": _drawn,
            "only one token is possible": lambda f: f(torch.tensor([[-math.inf, 0.0, -math.inf]])),
        },
    ),
    Part("tinytf.decoding.sampling.temperature", _rule(0.5, 1.0, 2.0)),
    Part("tinytf.decoding.sampling.top_k", _rule(1, 2, 3)),
    Part("tinytf.decoding.sampling.top_p", _rule(0.5, 0.9, 1)),
    Part("tinytf.decoding.sampling.min_p", _rule(0.1, 0.5)),
    Part("tinytf.decoding.sampling.presence_penalty", _penalised(0.5, 2.0)),
    Part("tinytf.decoding.sampling.repetition_penalty", _penalised(1.0, 1.5)),
)
