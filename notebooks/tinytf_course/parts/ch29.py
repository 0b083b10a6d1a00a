"""Chapter 29: the lens, the parts of a logit, patches and probes."""

import torch

from tinytf.attention import MultiHeadAttention
from tinytf.gpt import GPT, GPTConfig
from tinytf.norm import LayerNorm
from tinytf.support.randomness import seeded
from tinytf_course.parts import Part, arrived
from tinytf_course.parts.ch05 import dtypes, learned, wide

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


def _lens_gradients(f):
    model, states = _model().requires_grad_(True), learned(2, 3, 8, seed=1)
    return arrived(f(model, states), states, model.output.weight, model.decoder.final_norm.weight)


def _returning(f):
    """Token 1 is the last word of six layers, by turns with tokens 0 and 2."""
    likeliest = torch.tensor([[1, 0, 2, 1], [1, 1, 2, 1], [0, 1, 2, 2], [1, 1, 2, 1], [1, 1, 0, 1],
                              [1, 1, 1, 1]])  # fmt: skip
    logits = torch.nn.functional.one_hot(likeliest, 3).double()
    return f(logits + torch.tensor([0.0, 0.2, 0.1]))


def _late(f):
    """The likeliest token is another than the last layer's until it says so: id 2048, then 2049."""
    logits = torch.zeros(3, 1, 2050)
    logits[:2, 0, 2048] = 1.0
    logits[2, 0, 2049] = 1.0
    return f(logits)


def _close(f):
    """Two logits that float32 can't tell apart."""
    logits = torch.tensor([[[1.0, 1.0 + 1e-12]], [[1.0 + 1e-12, 1.0]]], dtype=torch.float64)
    return f(torch.stack([logits[0], logits[0], logits[1], logits[0]]))


def _heads_gradients(f):
    layer = _layer().requires_grad_(True)
    weights, values = learned(2, 3, 4, 5, seed=1), learned(2, 5, 6, seed=2)
    return arrived(f(layer, weights, values), weights, values, layer.w_o.weight)


def _heads_in(dtype):
    def run(f):
        layer = _layer().to(dtype)
        out = f(layer, wide(2, 3, 4, 5, seed=1).to(dtype), wide(2, 5, 6, seed=2).to(dtype))
        return dtypes(out, *layer.parameters())

    return run


def _parts_in_float32(f):
    model = _model().float()
    found = f(model, IDS)
    return dtypes(*(found[name] for name in sorted(found)))


def _logits_gradients(f):
    norm, part, direction = _norm().requires_grad_(True), learned(3, 5, seed=4), learned(5, seed=6)
    out = f(norm, part, wide(3, 5, seed=5), direction)
    return arrived(out, part, direction, norm.weight)


def _transplant_gradients(f):
    values, x = learned(2, 3, 4, seed=1), learned(2, 3, 4, seed=2)
    return arrived(f(values, AT)(x), x, values)


def _share(f):
    given = [wide(3, seed=n) for n in (1, 2, 3)]
    found = f(*given)
    return [type(found).__name__, found]


def _map_in_float32(patch_map):
    model = _model().float()
    found = patch_map(model, _ask(model), {"embedding": wide(2, 4, 8, seed=1)}, {"one": AT})
    return dtypes(found["embedding"]["one"], *model.parameters())


def _far_and_close(f):
    """Two states that float32 can't tell apart, one of each class."""
    x = torch.tensor([[1.0], [1.0 + 1e-9]], dtype=torch.float64)
    weights = torch.tensor([[1e9, 0.0], [-1e9 - 0.5, 0.0]], dtype=torch.float64)
    return f(weights, x, torch.tensor([1, 0]))


def _accuracy(f):
    found = f(wide(4, 3, seed=1), wide(9, 3, seed=2), torch.arange(9) % 3)
    return [type(found).__name__, found]


def _kept(f):
    x, values = wide(2, 3, 4, seed=1), wide(2, 3, 4, seed=2)
    f(values, AT)(x)
    return [x, values]


ONE_DEVICE = "all is on one device here"

PARTS = (
    Part(
        "tinytf.interpret.logit_lens.logit_lens",
        {
            "one state is read": lambda f: f(_model(), wide(1, 8, seed=1)),
            "states of three layers are read": lambda f: f(_model(), wide(3, 2, 4, 8, seed=2)),
            "the model is in float32": lambda f: dtypes(f(_model().float(), torch.ones(1, 8))),
            "gradients go back": _lens_gradients,
        },
    ),
    Part(
        "tinytf.interpret.logit_lens.decided_after",
        {
            "there is one place": lambda f: f(wide(5, 1, 1, 3, seed=1)),
            "there are many": lambda f: f(wide(4, 5, 6, 2, seed=2)),
            "there is one layer": lambda f: f(wide(1, 2, 3, 4, seed=3)),
            "tokens come and go": _returning,
            "ids are large": _late,
            "two logits are close": _close,
        },
        equivalent={
            "… => differs = likeliest != likeliest[-1]": "truth values are summed as 0 and 1",
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
            "the layer is in float32": _heads_in(torch.float32),
            "the layer is in float64": _heads_in(torch.float64),
            "gradients go back": _heads_gradients,
        },
    ),
    Part(
        "tinytf.interpret.attribution.stream_parts",
        {"a GPT runs": _parts, "the model is in float32": _parts_in_float32},
        equivalent={
            "… => wanted = […": "names are recorded in any order",
            "… => with record(…, 'positions') as seen:": "names are recorded in any order",
        },
    ),
    Part(
        "tinytf.interpret.attribution.direct_logits",
        {
            "there is one state": lambda f: f(
                _norm(), wide(5, seed=4), wide(5, seed=5), wide(5, seed=6)
            ),
            "there are many": lambda f: f(
                _norm(), wide(3, 2, 5, seed=4), wide(3, 2, 5, seed=5), wide(3, 2, 5, seed=6)
            ),
            "all is in float32": lambda f: dtypes(f(_norm().float(), *torch.ones(3, 5))),
            "gradients go back": _logits_gradients,
        },
        tolerance=1e-9,
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
            "all is in float32": lambda f: dtypes(f(torch.ones(2, 3, 4), AT)(torch.zeros(2, 3, 4))),
            "gradients go back": _transplant_gradients,
        },
        equivalent={
            "… => rows = torch.arange(len(x))": ONE_DEVICE,
        },
        tolerance=1e-9,
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
            "answers are in float64": _share,
            "answers lie close to each other": lambda f: f(
                *(3 + torch.tensor([a, b]).double() / 1e5 for a, b in ((2, 1), (3, 1), (0, 1)))
            ),
        },
    ),
    Part(
        "tinytf.interpret.patching.patch_map",
        {
            "three modules have two places each": _map,
            "the model is in float32": _map_in_float32,
        },
        tolerance=1e-9,
    ),
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
            "the ridge is no number of float32": lambda f: f(
                wide(5, 2, seed=3), torch.tensor([1, 0, 1, 1, 0]), 10 / 3
            ),
            "states are in float32": lambda f: f(
                wide(7, 3, seed=1).float(), torch.tensor([0, 1, 2, 0, 1, 2, 2])
            ),
        },
        tolerance=1e-9,
        equivalent={
            "… => … = torch.eye(…, dtype=x.dtype)…": ONE_DEVICE,
            "… => … = ridge * torch.eye(…, dtype=x.dtype)": ONE_DEVICE,
            "… => …device=y.device)…": ONE_DEVICE,
            "… => …torch.eye(y.max() + 1, …": "a tensor of one number is read as it",
        },
    ),
    Part(
        "tinytf.interpret.probing.probe_accuracy",
        {
            "some are right": _accuracy,
            "states are close": _far_and_close,
        },
        equivalent={
            "… => …argmax(dim=1)…": "of two axes the last is 1",
        },
    ),
)
