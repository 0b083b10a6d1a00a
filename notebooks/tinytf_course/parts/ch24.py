"""Chapter 24: Marian's positions, a stream in another order, and the model."""

import torch

from tinytf.related.marian import MarianConfig
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.parts import Part, arrived, shapes, twin
from tinytf_course.parts.ch05 import dtypes

SIZES = {"d_model": 6, "num_heads": 2, "num_layers": 1, "d_ff": 10, "dropout": 0.0, "max_len": 7}
SRC = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
TGT = torch.tensor([[1, 3, 4], [1, 7, 0]])
ORDER = torch.tensor([4, 0, 5, 1, 3, 2])


def _reordered(reorder, norm):
    model = twin(Transformer, TransformerConfig(9, 8, norm=norm, **SIZES))
    reorder(model, ORDER)
    state = dict(model.named_parameters())
    return {
        "scores, as before": model(SRC, TGT),
        "positions.table": model.positions.table,
        **{name: state[name] for name in sorted(state)},
    }


def _reordered_single(reorder):
    model = Transformer(TransformerConfig(9, 8, **SIZES))
    reorder(model, ORDER)
    return dtypes(model.positions.table, model(SRC, TGT))


def _config(**choices):
    return MarianConfig(9, 9, **SIZES, **choices)


def _scores(model, **choices):
    return twin(model, _config(**choices))(SRC, TGT)


def _started(model):
    torch.manual_seed(0)
    made = model(_config())
    return {
        "output.bias": made.output.bias,
        "positions.table": made.positions.table,
        "one table": made.output.weight is made.table,
    }


def _gradients(model):
    module = twin(model, _config())
    return arrived(module(SRC, TGT), module=module)


PARTS = (
    Part(
        "tinytf.related.marian.halves",
        {
            "the width is 6": lambda f: f(6),
            "it is odd": lambda f: f(7),
            "they are to be a tensor": lambda f: {"a tensor": isinstance(f(6), torch.Tensor)},
        },
        equivalent={
            "… => …places[::2]…": "a slice begins at 0 anyway",
        },
    ),
    Part(
        "tinytf.related.marian.half_and_half",
        {"there are 5 positions": lambda f: f(5, 6), "they are 8 wide": lambda f: f(3, 8)},
    ),
    Part(
        "tinytf.related.marian.reorder_stream",
        {
            "the model is Post-LN": lambda f: _reordered(f, "post"),
            "it is Pre-LN": lambda f: _reordered(f, "pre"),
            "numbers are in float32": _reordered_single,
        },
        changes=("model",),
        tolerance=1e-9,
        equivalent={
            "… => …detach()…": "it is done without gradients",
            "width = model.config.d_model => (nothing)": "a check alone reads it",
            "order = order.to(model.device) => …": "all is on one device here",
            "… => …'norm' in name:": "only a norm is called so",
        },
    ),
    Part(
        "tinytf.related.marian.Marian",
        {
            "its weights are counted": lambda f: shapes(f(_config())),
            "it is new: bias 0, sines first, one table": _started,
            "it reads a padded batch": _scores,
            "the activation is another": lambda f: _scores(f, activation="relu"),
            "numbers are in float32": lambda f: dtypes(f(_config())(SRC, TGT)),
            "gradients go back to every weight": _gradients,
        },
    ),
)
