"""Chapter 29: the lens, the parts of a logit, patches and probes."""

import torch

from tinytf.attention import MultiHeadAttention
from tinytf.course.parts import Part
from tinytf.course.parts.ch05 import wide
from tinytf.gpt import GPT, GPTConfig
from tinytf.norm import LayerNorm
from tinytf.support.randomness import seeded

IDS = torch.tensor([[3, 1, 4, 1], [2, 7, 0, 5]])
AT = torch.tensor([2, 0])


def _model():
    with seeded(0):
        model = GPT(GPTConfig(vocab_size=9, d_model=8, num_heads=2, num_layers=2, max_len=8))
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return model.double().eval().requires_grad_(False)


def _layer():
    with seeded(1):
        return MultiHeadAttention(6, 3).double().requires_grad_(False)


def _norm():
    norm = LayerNorm(5).double().requires_grad_(False)
    norm.weight.copy_(wide(5, seed=2))
    norm.bias.copy_(wide(5, seed=3))
    return norm


def _ask(model):
    return lambda: model(IDS)[:, -1].select(1, 3)


def _map(patch_map):
    model, names = _model(), ("embedding", "decoder.layers.0", "decoder.layers.1.feed_forward")
    stored = {name: wide(2, 4, 8, seed=i) for i, name in enumerate(names)}
    found = patch_map(model, _ask(model), stored, {"one": AT, "last": torch.tensor([3, 3])})
    return [found[name][place] for name in names for place in ("one", "last")]


def _parts(f):
    found = f(_model(), IDS)
    return [sorted(found), *(found[name] for name in sorted(found))]


def _kept(f):
    x, values = wide(2, 3, 4, seed=1), wide(2, 3, 4, seed=2)
    f(values, AT)(x)
    return [x, values]


PARTS = (
    Part(
        "tinytf.interpret.logit_lens.logit_lens",
        {
            "one state is read": lambda f: f(_model(), wide(1, 8, seed=1)),
            "states of three layers are read": lambda f: f(_model(), wide(3, 2, 4, 8, seed=2)),
        },
    ),
    Part(
        "tinytf.interpret.logit_lens.decided_after",
        {
            "there is one place": lambda f: f(wide(5, 1, 1, 3, seed=1)),
            "there are many": lambda f: f(wide(4, 5, 6, 2, seed=2)),
            "there is one layer": lambda f: f(wide(1, 2, 3, 4, seed=3)),
        },
    ),
    Part(
        "tinytf.interpret.attribution.head_parts",
        {
            "three heads attend": lambda f: f(
                _layer(), wide(2, 3, 4, 5, seed=1).softmax(dim=-1), wide(2, 5, 6, seed=2)
            ),
            "there is one place": lambda f: f(
                _layer(), wide(1, 3, 1, 1, seed=3).softmax(dim=-1), wide(1, 1, 6, seed=4)
            ),
        },
    ),
    Part("tinytf.interpret.attribution.stream_parts", {"a GPT runs": _parts}),
    Part(
        "tinytf.interpret.attribution.direct_logits",
        {
            "there is one state": lambda f: f(
                _norm(), wide(5, seed=4), wide(5, seed=5), wide(5, seed=6)
            ),
            "there are many": lambda f: f(
                _norm(), wide(3, 2, 5, seed=4), wide(3, 2, 5, seed=5), wide(3, 2, 5, seed=6)
            ),
        },
    ),
    Part(
        "tinytf.interpret.patching.transplant",
        {
            "two rows have a place each": lambda f: f(wide(2, 3, 4, seed=1), AT)(
                wide(2, 3, 4, seed=2)
            ),
            "the values are of another dtype": lambda f: f(wide(2, 3, 4, seed=1).float(), AT)(
                wide(2, 3, 4, seed=2)
            ),
            "x and the values are looked at afterwards": _kept,
        },
    ),
    Part(
        "tinytf.interpret.patching.recovered",
        {
            "half is recovered": lambda f: f(
                torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]), torch.tensor([0.0, 0.0])
            ),
            "one sentence hardly differs": lambda f: f(
                wide(3, seed=1), torch.tensor([2.0, 1.01, 3.0]), torch.tensor([-2.0, 1.0, -1.0])
            ),
        },
    ),
    Part("tinytf.interpret.patching.patch_map", {"three modules have two places each": _map}),
    Part(
        "tinytf.interpret.probing.fit_probe",
        {
            "nothing is said of the ridge": lambda f: f(
                wide(7, 3, seed=1), torch.tensor([0, 1, 2, 0, 1, 2, 2])
            ),
            "the ridge is large": lambda f: f(
                wide(7, 3, seed=1), torch.tensor([0, 1, 1, 0, 1, 0, 1]), 50.0
            ),
            "there are fewer states than features": lambda f: f(
                wide(3, 6, seed=2), torch.tensor([1, 0, 1]), 0.5
            ),
        },
    ),
    Part(
        "tinytf.interpret.probing.probe_accuracy",
        {
            "some are right": lambda f: f(
                wide(4, 3, seed=1), wide(9, 3, seed=2), torch.arange(9) % 3
            ),
        },
    ),
)
