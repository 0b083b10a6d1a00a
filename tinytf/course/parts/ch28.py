"""Chapter 28: instruments that read and change, and the scores of heads."""

import torch
from torch import nn

from tinytf.attention import MultiHeadAttention, fused_attention
from tinytf.course.expect import numbers
from tinytf.course.parts import Part
from tinytf.course.parts.ch05 import wide
from tinytf.relative import AlibiAttention, RotaryAttention

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


def _ablate_refused(ablate_heads):
    try:
        ablate_heads(1, 4)(wide(2, 4, 3, 5, seed=3))
    except ValueError:
        return "ValueError"
    return "nothing is raised"


def _scored(ids, seed):
    weights = wide(len(ids), 3, ids.size(1), ids.size(1), seed=seed).softmax(dim=-1)
    return lambda score: score(weights, ids)


def _two_layers():
    """What a model of two layers of attention with RoPE must have, ten tokens, fixed weights."""
    model = nn.Module()
    model.embedding = nn.Embedding(10, 16)
    model.layers = nn.ModuleList([MultiHeadAttention(16, 4, bias=False) for _ in range(2)])
    for layer in model.layers:
        layer.attention = RotaryAttention()
    for i, parameter in enumerate(model.parameters()):
        parameter.data.copy_(numbers(*parameter.shape, seed=i, scale=0.5))
    return model


def _matched(head, through, **more):
    return lambda scores: scores(_two_layers(), head, through, **more)


PARTS = (
    Part(
        "tinytf.inspect.attention_layers",
        {
            "a model has two": lambda f: {n: type(m).__name__ for n, m in f(_model()).items()},
            "a model has none": lambda f: f(nn.Linear(2, 2)),
            "the model is one": lambda f: list(f(MultiHeadAttention(6, 2))),
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
    ),
    Part(
        "tinytf.inspect.replace",
        {
            "a layer's output is doubled": _changed("1", lambda out: 2 * out),
            "a head looks at key 0": _changed("0", _first),
            "two changes hold together": _changed("1", lambda out: 2 * out, lambda out: out + 1),
            "two changes of weights hold together": _changed("2", _first, lambda w: w / 2),
            "the block is left by an error": _restored,
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
        },
    ),
    Part(
        "tinytf.inspect.ablate_heads",
        {
            "one head is silenced": _ablated(1),
            "two heads are silenced": _ablated(0, 3),
            "none is": _ablated(),
            "a head is not there": _ablate_refused,
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
        },
    ),
    Part(
        "tinytf.interpret.induction.induction_keys",
        {
            "tokens come again": lambda f: f(IDS),
            "none does": lambda f: f(torch.tensor([[3, 1, 2]])),
        },
    ),
    Part(
        "tinytf.interpret.induction.induction_score",
        {
            "three tokens repeat": _scored(IDS[:1], 1),
            "rows repeat differently": _scored(IDS, 2),
        },
    ),
    Part(
        "tinytf.interpret.induction.matching_scores",
        {
            "the key is what a head wrote": _matched(1, 2),
            "the key is the token": _matched(3, None),
            "query and key are 5 apart": _matched(0, 1, apart=5),
        },
        tolerance=1e-4,
    ),
)
