"""Chapter 28: instruments that read and change, and the scores of heads."""

import torch
from torch import nn

from tinytf.attention import MultiHeadAttention, fused_attention
from tinytf.relative import AlibiAttention, RotaryAttention
from tinytf_course.expect import numbers
from tinytf_course.parts import Part, arrived
from tinytf_course.parts.ch05 import dtypes, learned, wide

IDS = torch.tensor([[1, 2, 3, 1, 2, 3, 1], [4, 4, 0, 4, 5, 5, 0]])


def _model(dropout=0.0):
    """Two layers of attention and a feed-forward map between, with fixed weights."""
    layers = [MultiHeadAttention(6, 2, dropout), nn.Linear(6, 6), MultiHeadAttention(6, 2)]
    model = nn.Sequential(*layers)
    for i, parameter in enumerate(model.parameters()):
        parameter.data.copy_(numbers(*parameter.shape, seed=i, scale=0.5))
    return model


def _x():
    return wide(2, 4, 6, seed=1).float()


def _first(weights):
    """A change: head 0 looks at key 0."""
    weights = weights.clone()
    weights[:, 0] = 0.0
    weights[:, 0, :, 0] = 1.0
    return weights


def _recorded(*names, dropout=0.0):
    def run(record):
        model = _model(dropout)
        torch.manual_seed(0)
        with record(model, *names) as seen:
            out = model(_x())
        after = dict(seen)
        model(_x() + 1)
        told = {name: value.requires_grad for name, value in seen.items()}
        return {"out": out, "seen": after, "after the block": dict(seen), "graph": told}

    return run


def _inside_each_other(record):
    model = _model()
    with record(model) as outer:
        with record(model, "0") as inner:
            model(_x())
        model(_x() + 1)
    model(_x() + 2)
    return {"outer": dict(outer), "inner": dict(inner)}


def _twice_the_same(record):
    model = _model()
    with record(model) as outer:
        with record(model) as inner:
            model(_x())
        model(_x() + 1)
    return {"outer": dict(outer), "inner": dict(inner)}


def _put_back(record):
    model = _model()
    try:
        with record(model):
            raise ArithmeticError
    except ArithmeticError:
        pass
    return [model[0].attention is fused_attention, model[2].attention is fused_attention]


def _changed(name, *changes):
    def run(replace):
        model, x = _model(), _x()
        with replace(model, name, changes[0]):
            out = [model(x)]
            if len(changes) > 1:
                with replace(model, name, changes[1]):
                    out.append(model(x))
                out.append(model(x))
        return [*out, model(x)]

    return run


def _restored(replace):
    model = _model()
    try:
        with replace(model, "0", _first):
            raise ArithmeticError
    except ArithmeticError:
        pass
    return model(_x())


def _weights(attention):
    q, k = wide(2, 3, 4, 6, seed=1), wide(2, 3, 4, 6, seed=2)
    mask = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]
    return lambda weights_of: weights_of(attention)(q, k, mask)


def _refused(weights_of):
    try:
        weights_of(lambda q, k, v, mask=None, dropout=0.0: v)
    except TypeError:
        return "TypeError"
    return "nothing is raised"


def _ablated(*heads):
    def run(ablate_heads):
        weights = wide(2, 4, 3, 5, seed=3)
        out = ablate_heads(*heads)(weights)
        return {"out": out, "the caller's": weights}

    return run


def _ablate_refused(*heads):
    def run(ablate_heads):
        try:
            ablate_heads(*heads)(wide(2, 4, 3, 5, seed=3))
        except ValueError:
            return "ValueError"
        return "nothing is raised"

    return run


def _ablate_gradients(ablate_heads):
    weights = learned(2, 4, 3, 5, seed=3)
    return arrived(ablate_heads(1)(weights), weights)


def _named_in_float64(attention_layers):
    model = _model().double()
    found = attention_layers(model)
    return [dtypes(*model.parameters()), [found["0"] is model[0], found["2"] is model[2]]]


def _in_float64(*more):
    """Whether a model in float64 is left so."""

    def run(f):
        model = _model().double()
        with f(model, *more):
            out = model(_x().double())
        return [out, dtypes(*model.parameters())]

    return run


def _many_count(mean_weight):
    weights = torch.ones(1, 1, 2049, 2)
    return mean_weight(weights, torch.zeros(1, 2049, dtype=torch.long))


def _many_repeat(induction_score):
    weights = torch.ones(683, 1, 4, 4)
    return induction_score(weights, torch.ones(683, 4, dtype=torch.long))


def _scored(ids, seed):
    weights = wide(len(ids), 3, ids.size(1), ids.size(1), seed=seed).softmax(dim=-1)
    return lambda score: score(weights, ids)


def _two_layers(dtype=torch.float32):
    """What a model of two layers of attention with RoPE must have, ten tokens, fixed weights."""
    model = nn.Module()
    model.embedding = nn.Embedding(10, 24)
    model.layers = nn.ModuleList([MultiHeadAttention(24, 3, bias=False) for _ in range(2)])
    for layer, base in zip(model.layers, (10000.0, 100.0), strict=True):
        layer.attention = RotaryAttention(base)
    for i, parameter in enumerate(model.parameters()):
        parameter.data.copy_(numbers(*parameter.shape, seed=i, scale=0.5))
    return model.to(dtype)


def _matched(head, through, **more):
    return lambda scores: scores(_two_layers(), head, through, **more)


def _matched_in_float64(scores):
    model = _two_layers(torch.float64)
    return [scores(model, 1, 2), scores(model, 0, None), dtypes(*model.parameters())]


WORDS = "only the error's words differ"
ONE_AXIS = "of an axis of one, the first is the last"

PARTS = (
    Part(
        "tinytf.inspect.attention_layers",
        {
            "a model has two": lambda f: {n: type(m).__name__ for n, m in f(_model()).items()},
            "a model has none": lambda f: f(nn.Linear(2, 2)),
            "the model is one": lambda f: list(f(MultiHeadAttention(6, 2))),
            "the model is in float64": _named_in_float64,
        },
    ),
    Part(
        "tinytf.inspect.weights_of",
        {
            "it is the fused kernel": _weights(fused_attention),
            "queries and keys are turned (RoPE)": _weights(RotaryAttention()),
            "distances are taken off (ALiBi)": _weights(AlibiAttention()),
            "a function says nothing of its weights": _refused,
        },
        equivalent={"… => name = …": WORDS},
    ),
    Part(
        "tinytf.inspect.replace",
        {
            "a layer's output is doubled": _changed("1", lambda out: 2 * out),
            "a head looks at key 0": _changed("0", _first),
            "two changes hold together": _changed("1", lambda out: 2 * out, lambda out: out + 1),
            "two changes of weights hold together": _changed("2", _first, lambda w: w / 2),
            "the block is left by an error": _restored,
            "the model is in float64": _in_float64("0", _first),
        },
    ),
    Part(
        "tinytf.inspect.record",
        {
            "nothing is named": _recorded(),
            "one attention layer is named": _recorded("2"),
            "a linear map and an attention layer are named": _recorded("1", "0"),
            "dropout is at work": _recorded(dropout=0.5),
            "one block stands in another": _inside_each_other,
            "both blocks record the same layers": _twice_the_same,
            "the block is left by an error": _put_back,
            "the model is in float64": _in_float64(),
        },
        equivalent={
            "… => names = names or attention_layers(model)": "a dict gives its names in order",
        },
    ),
    Part(
        "tinytf.inspect.ablate_heads",
        {
            "one head is silenced": _ablated(1),
            "two heads are silenced": _ablated(0, 3),
            "none is": _ablated(),
            "weights are in float32": lambda f: dtypes(f(0)(wide(2, 4, 3, 5, seed=3).float())),
            "gradients go back": _ablate_gradients,
            "a head is not there": _ablate_refused(1, 4),
            "a head is counted from the end": _ablate_refused(-1),
        },
        equivalent={
            "… => weights[:, heads] = 0.0": "a tuple of heads is read as a list",
        },
    ),
    Part(
        "tinytf.interpret.head_roles.mean_weight",
        {
            "all queries count": lambda f: f(
                wide(2, 3, 4, 5, seed=1), torch.tensor([[0, 1, 2, 3], [4, 0, 0, 1]])
            ),
            "there are more queries than keys": lambda f: f(
                wide(2, 3, 5, 2, seed=1), torch.tensor([[0, 1, 1, 0, -1], [-1, 1, -1, -1, 0]])
            ),
            "some do not": lambda f: f(
                wide(2, 3, 4, 5, seed=1), torch.tensor([[-1, 0, 4, -1], [-1, -1, -1, 2]])
            ),
            "weights are in float32": lambda f: f(
                wide(2, 3, 4, 5, seed=1).float(), torch.tensor([[-1, 0, 4, -1], [-1, -1, 3, 2]])
            ),
            "2049 queries count": _many_count,
        },
        equivalent={
            "… => index = target[:, None, :, None]": "what does not count is times 0",
            "… => index = target.clamp(min=-1)…": "what does not count is times 0",
            "… => …dim=-1)[..., -1]": ONE_AXIS,
            "… => ….sum((2, 0)) / counts.sum()": "a sum has no order",
            "… => …picked.__imul__(…": "in place on what is the function's own",
        },
    ),
    Part(
        "tinytf.interpret.induction.induction_keys",
        {
            "tokens come again": lambda f: f(IDS),
            "none does": lambda f: f(torch.tensor([[3, 1, 2]])),
        },
        equivalent={
            "… => return follows.tril_()": "in place on what is the function's own",
        },
    ),
    Part(
        "tinytf.interpret.induction.induction_score",
        {
            "three tokens repeat": _scored(IDS[:1], 1),
            "rows repeat differently": _scored(IDS, 2),
            "weights are in float32": lambda f: _scored(IDS, 2)(lambda w, ids: f(w.float(), ids)),
            "2049 tokens repeat": _many_repeat,
        },
        equivalent={
            "… => there = wanted.any(dim=1)": "as many keys follow as tokens repeat",
            "… => there = wanted.any(dim=-2)": "as many keys follow as tokens repeat",
            "… => found = ….sum(dim=-2)": "in the end both axes are summed",
            "… => …sum(dim=(2, 0))…": "a sum has no order",
        },
    ),
    Part(
        "tinytf.interpret.induction.matching_scores",
        {
            "the key is what a head wrote": _matched(1, 2),
            "the key is the token": _matched(3, None),
            "query and key are 5 apart": _matched(0, 1, apart=5),
            "query and key are 2049 apart": _matched(2, 0, apart=2049),
            "the model is in float64": _matched_in_float64,
        },
        equivalent={
            "… => …detach()…": "all runs without gradients (no_grad)",
            "… => …len(x.float())…": "as many tokens in any dtype",
            "… => places = torch.full((len(x),), apart)": "all is on one device here",
            "… => …below.d_model…": "both layers have one width",
            "… => …below.num_heads": "both layers have as many heads",
            "… => …[None, None], 1, …": "places that are given count",
            "… => …[None, None], -1, …": "places that are given count",
            "… => …[-1, 0]": ONE_AXIS,
            "… => …[0, -1]": ONE_AXIS,
        },
        tolerance=1e-4,
    ),
)
