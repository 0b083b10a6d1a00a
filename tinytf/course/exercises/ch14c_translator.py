"""Chapter 14c: a model's features in another order."""

import torch

from tinytf.course.expect import expect, same, short, tensor
from tinytf.course.grading import Exercise, reference
from tinytf.support.randomness import seeded
from tinytf.transformer import Transformer, TransformerConfig

ORDER = torch.tensor([0, 2, 4, 1, 3, 5])
_FIRST = "encoder.layers.0."


# 14c.1 a model's features in another order


def my_reorder(state, order):
    """A Transformer's tensors, by name, with the features of its residual stream in another order.

    state maps names to tensors, as `model.state_dict()` does; order is a permutation of
    0..d_model-1, and feature order[j] goes to place j. Returns a dictionary with the same names.
    """
    raise NotImplementedError


def _state():
    """A small model's tensors, none of them 0 or 1."""
    with seeded(0):
        model = Transformer(TransformerConfig(9, 8, 6, 2, 1, 10, max_len=5, norm="pre"))
        return {name: torch.randn(t.shape) for name, t in model.state_dict().items()}


def _answered(answer):
    got = answer(_state(), ORDER.clone())
    where = f"for a model with d_model=6 and order={short(ORDER)}"
    if not isinstance(got, dict):
        tensor(got, where)
    expect(isinstance(got, dict), f"{where}, you return a {type(got).__name__}, expected a dict")
    lost = sorted(_state().keys() - got.keys())
    expect(not lost, f"{where}, {len(lost)} names are missing, such as {lost[:1]}")
    return got


def _check(answer, names, note):
    got, right = _answered(answer), reference("14c.1")(_state(), ORDER)
    for name in names:
        same(got[name], right[name], f"in {name}, order={short(ORDER)}", note=note)


def _embeddings(answer):
    """a word's vector has its features in the new order"""
    names = [f"{side}_embedding.weight" for side in ("src", "tgt")]
    _check(answer, names, "A row is a word; the columns are features.")


def _readers(answer):
    """what reads the stream finds each feature in its new place"""
    names = [f"{_FIRST}self_attention.w_{x}.weight" for x in "qkv"]
    names += ["decoder.layers.0.cross_attention.w_k.weight", f"{_FIRST}feed_forward.w_1.weight"]
    _check(answer, [*names, "output.weight"], "It reads the stream: its columns are features.")


def _writers(answer):
    """what writes to the stream puts each feature in its new place"""
    names = (f"{_FIRST}self_attention.w_o", f"{_FIRST}feed_forward.w_2")
    names = [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]
    _check(answer, names, "It writes to the stream: its rows and its bias are features.")


def _norms(answer):
    """gain and bias of a norm go with their features"""
    norms = ("decoder.layers.0.residual_3.norm", "encoder.final_norm")
    names = [f"{norm}.{kind}" for norm in norms for kind in ("weight", "bias")]
    _check(answer, names, "A norm has a gain and a bias per feature.")


def _inside(answer):
    """what is inside the heads and the feed-forward network stays"""
    names = [f"{_FIRST}self_attention.w_q.bias", f"{_FIRST}feed_forward.w_1.bias"]
    _check(answer, names, "These are not features of the stream.")


REORDER = Exercise(
    id="14c.1",
    title="a model's features in another order",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_reorder(state, order)`: the tensors of a `Transformer`, by name, with the "
        "features of the residual stream in another order, so that the model computes the same "
        "(its positions, which are computed, not stored, are put in that order too). "
        "The parts are called `src_embedding`, `tgt_embedding` and `output`; `w_q`, `w_k`, `w_v`, "
        "`w_o`; `w_1`, `w_2`; and `norm` or, in a pre-norm model, `final_norm` too. A linear map's "
        "weight is (outputs, inputs)."
    ),
    hint=(
        "`name.split('.')[-2]` is the part. Ask of each axis of each tensor: are these features of "
        "the stream?"
    ),
    function=my_reorder,
    tests=(_embeddings, _readers, _writers, _norms, _inside),
)


EXERCISES = (REORDER,)
