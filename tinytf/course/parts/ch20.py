"""Chapter 20: how a text repeats itself, and the rules of sampling."""

import math

import torch

from tinytf.course.parts import Part
from tinytf.course.parts.ch05 import wide
from tinytf.decoding.generate import pad_left
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.support.randomness import seeded

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


SAID = torch.tensor([[1, 1, 3], [0, 2, 2]])
PROMPTS = torch.tensor([[1, 5, 2], [7, 3, 3]])


def _settings():
    def run(rules, **settings):
        return rules(**settings)(wide(2, 5, seed=1) * 3, SAID)

    alone = [
        ("repetition_penalty", 1.5), ("presence_penalty", 0.7), ("temperature", 0.5), ("top_k", 2),
        ("top_p", 0.6), ("min_p", 0.3),
    ]  # fmt: skip
    all_of_them = dict(alone) | {"temperature": 0.9, "top_k": 4, "top_p": 0.97, "min_p": 0.01}
    return {
        "nothing is set": lambda rules: run(rules),
        **{f"{name} is set": lambda rules, s={name: v}: run(rules, **s) for name, v in alone},
        "all are set": lambda rules: run(rules, **all_of_them),
        "penalty, temperature and top-p are set": lambda rules: run(
            rules, repetition_penalty=3.0, temperature=0.4, top_p=0.9
        ),
        "what was set is read": lambda rules: [rules(top_k=3).top_k, rules(min_p=0.1).min_p],
    }


def _chosen(rule):
    def run(choose):
        draws = torch.Generator().manual_seed(1)
        return torch.stack([choose(wide(2, 5, seed=1), SAID, rule, draws) for _ in range(20)])

    return run


def _continued(tokens=4, keep=None, padded=False, **settings):
    """Continue prompts with a small model of 8 positions, by a rule if there are settings."""

    def run(generate):
        with seeded(0):
            model = GPT(GPTConfig(11, d_model=8, num_heads=2, num_layers=2, max_len=8))
        for table in model.parameters():
            table.data.mul_(3)
        rule = Sampling(**settings) if settings else None
        ids, mask = pad_left([[1, 5, 2], [7]]) if padded else (PROMPTS, None)
        model.train()

        def text(use_cache):
            more = {"generator": torch.Generator().manual_seed(3), "use_cache": use_cache}
            return generate(model, ids, tokens, rule, mask=mask, end_id=4, keep=keep, **more)

        return {"cached": text(True), "read anew": text(False), "in training mode": model.training}

    return run


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
    Part("tinytf.decoding.sampling.Sampling", _settings()),
    Part(
        "tinytf.decoding.generate.choose",
        {
            "there is no rule": lambda choose: choose(wide(2, 5, seed=1), SAID),
            "a rule takes the likeliest": _chosen(Sampling(top_k=1)),
            "a rule looks at what was said": _chosen(Sampling(presence_penalty=2.0)),
        },
    ),
    Part(
        "tinytf.decoding.generate.generate",
        {
            "no token is asked for": _continued(0),
            "the likeliest four are asked for": _continued(),
            "four are drawn by a rule": _continued(temperature=1.5, presence_penalty=1.0),
            "rows end": _continued(30, temperature=3.0),
            "the window is full": _continued(12, top_k=3),
            "the window is full, and half is kept": _continued(12, keep=4, top_k=3),
            "a prompt stands behind padding": _continued(padded=True),
            "a penalty must not count the padding": _continued(
                padded=True, presence_penalty=5.0, top_k=1
            ),
        },
    ),
)
