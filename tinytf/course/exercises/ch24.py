"""Chapter 24: a model's features, and its words, in another order."""

import functools

import torch
from torch import nn

from tinytf.course.expect import agrees, expect, numbers, same
from tinytf.course.grading import Exercise
from tinytf.course.words import described, short
from tinytf.embedding import TokenEmbedding
from tinytf.support.randomness import seeded
from tinytf.transformer import Transformer, TransformerConfig

ORDER = torch.tensor([0, 2, 4, 1, 3, 5])


# 24.1 a model's features in another order


def my_reorder(state, order):
    """A Transformer's tensors, by name, with the features of its residual stream in another order.

    state maps names to tensors, as `model.state_dict()` does; order is a permutation of
    0..d_model-1, and feature order[j] goes to place j. Returns a dictionary with the same names.
    """
    raise NotImplementedError


def _model(norm="pre", layers=2, dtype=torch.float32, **changes):
    """A small model whose sizes are all different, and whose weights are no 0 and no 1."""
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 8, "d_ff": 10} | changes
    config = TransformerConfig(
        d_model=6, num_heads=2, num_layers=layers, max_len=5, dropout=0.0, norm=norm, **sizes
    )
    with seeded(0):
        model = Transformer(config).to(dtype).eval()
        for seed, parameter in enumerate(model.parameters()):
            drawn = numbers(*parameter.shape, seed=seed, scale=0.5, dtype=dtype)
            parameter.data = drawn
    return model


def _told(model):
    """Tensors that tell where a number stood: its row, and a tenth more by column."""
    state = {}
    for name, tensor in model.state_dict().items():
        rows = torch.arange(float(len(tensor)))
        columns = torch.arange(float(tensor.size(-1))) / 10
        state[name] = rows if tensor.dim() == 1 else rows[:, None] + columns
    return state


def _moved(tensor, order, *axes):
    """A tensor with the features along these axes one by one in their new places."""
    for axis in axes:
        tensor = torch.stack([tensor.select(axis, i) for i in order.tolist()], axis)
    return tensor


def _parts(model):
    """For each tensor what kind of thing it is, and the axes along which it has features."""
    found = {}
    for path, module in model.named_modules():
        weight, part = getattr(module, "weight", None), path.split(".")[-1]
        if isinstance(module, TokenEmbedding):
            found[f"{path}.weight"] = "table", (1,)
        elif isinstance(module, nn.Linear) and part in ("w_o", "w_2"):
            found[f"{path}.weight"] = found[f"{path}.bias"] = "writer", (0,)
        elif isinstance(module, nn.Linear):
            found[f"{path}.weight"], found[f"{path}.bias"] = ("reader", (1,)), ("inside", ())
        elif weight is not None and weight.dim() == 1:
            found[f"{path}.weight"] = found[f"{path}.bias"] = "norm", (0,)
    return found


def _answered(answer, state, order, where):
    got = answer(state, order)
    expect(isinstance(got, dict), f"{where}, you return {described(got)}, expected a dict")
    lost = [name for name in state if name not in got]
    expect(not lost, f"{where}, {len(lost)} names are missing, such as {lost[:1]}")
    extra = [name for name in got if name not in state]
    expect(not extra, f"{where}, {len(extra)} names are too many, such as {extra[:1]}")
    return got


@functools.cache
def _kinds(norm):
    """A model's tensors, and for each its kind and where it has features."""
    model = _model(norm)
    return _told(model), _parts(model)


def _check(answer, kind, note):
    """Expect every tensor of this kind to be in order, in a pre-norm and in a post-norm model."""
    for norm in ("pre", "post"):
        state, parts = _kinds(norm)
        where = f"for a {norm}-norm model with d_model=6 and order={short(ORDER)}"
        got = _answered(answer, state, ORDER, where)
        for name in state:
            its, axes = parts[name]
            if its == kind:
                expected = _moved(state[name], ORDER, *axes)
                where = f"in {name}, order={short(ORDER)}"
                same(got[name], expected, where, note=note, dtype=True)


def _embeddings(answer):
    """a word's vector has its features in the new order"""
    _check(answer, "table", "A row is a word; the columns are features.")


def _readers(answer):
    """what reads the stream finds each feature in its new place"""
    _check(answer, "reader", "It reads the stream: its columns are features.")


def _writers(answer):
    """what writes to the stream puts each feature in its new place"""
    _check(answer, "writer", "It writes to the stream: its rows and its bias are features.")


def _norms(answer):
    """gain and bias of a norm go with their features"""
    _check(answer, "norm", "A norm has a gain and a bias per feature.")


def _inside(answer):
    """what is inside the heads and the feed-forward network stays"""
    _check(answer, "inside", "These are not features of the stream.")


_SIZES = {
    "a post-norm model": {"norm": "post"},
    "a pre-norm model of one layer": {"layers": 1},
    "a model with one table for both languages": {"tgt_vocab_size": 9, "share_embeddings": True},
    "a model whose output has a matrix of its own": {"tie_output": False},
    "a model with 6 words, d_model=6 and d_ff=6": {
        "src_vocab_size": 6, "tgt_vocab_size": 6, "d_ff": 6
    },
}  # fmt: skip
_OTHER = torch.tensor([5, 0, 3, 1, 2, 4])


def _scores(model):
    """What a model says about two sentences, one of them padded."""
    src, tgt = torch.tensor([[5, 3, 1, 4], [2, 1, 0, 0]]), torch.tensor([[1, 4, 3], [1, 2, 5]])
    with torch.no_grad():
        return model(src, tgt)


@functools.cache
def _running(name):
    """A model in float64, its positions, its tensors, and what it says."""
    model = _model(dtype=torch.float64, **_SIZES[name])
    state = {part: tensor.clone() for part, tensor in model.state_dict().items()}
    return model, model.positions.table, state, _scores(model)


def _computes(answer):
    """the model computes the same"""
    for name, order in zip(_SIZES, (ORDER, _OTHER) * 3):
        model, table, state, expected = _running(name)
        where = f"for {name}, order={short(order)}"
        got = _answered(answer, state, order, where)
        for part, tensor in got.items():
            wanted = tuple(state[part].shape)
            says = f"{where}, {part} is {described(tensor)}, expected the shape {wanted}"
            expect(isinstance(tensor, torch.Tensor) and tensor.shape == wanted, says)
            words = f"{where}, {part} is {tensor.dtype} now, and was torch.float64"
            expect(tensor.dtype == torch.float64, words)
        model.load_state_dict(got)
        model.positions.table = table[:, order]
        note = "Positions are in the new order, too."
        same(_scores(model), expected, f"{where}, its scores", note=note)


REORDER = Exercise(
    id="24.1",
    title="a model's features in another order",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_reorder(state, order)`: the tensors of a `Transformer`, by name, with the "
        "features of the residual stream in another order, so that the model computes the same "
        "(its positions, which are computed, not stored, are put in that order too). "
        "The parts are called `src_embedding`, `tgt_embedding` and `output`; `w_q`, `w_k`, `w_v`, "
        "`w_o`; `w_1`, `w_2`; and `norm` or, in a pre-norm model, `final_norm` too. A linear map's "
        "weight is (outputs, inputs). What is inside the heads and the feed-forward network stays "
        "where it is."
    ),
    hint=(
        "`name.split('.')[-2]` is the part. Ask of each axis of each tensor: are these features of "
        "the stream?"
    ),
    function=my_reorder,
    tests=(_embeddings, _readers, _writers, _norms, _inside, _computes),
)

# 24.2 their ids in our order


def my_order(size, pad, eos):
    """List Marian's ids in the order of our table: size + 1 whole numbers.

    `size` is how many words Marian has, `pad` and `eos` its ids of <pad> and <eos>.
    """
    raise NotImplementedError


def _ordered(size, pad, eos):
    return [pad, pad, eos] + [i for i in range(size) if i not in (pad, eos)]


def _at_the_end(answer):
    """<eos> is their first word and <pad> their last, as in the public models"""
    agrees(answer, _ordered, 4, 3, 0)
    agrees(answer, _ordered, 9, 8, 0)


def _at_the_front(answer):
    """<pad> and <eos> are their first words"""
    agrees(answer, _ordered, 5, 0, 1)
    agrees(answer, _ordered, 5, 1, 0)


def _anywhere(answer):
    """<pad> and <eos> stand anywhere"""
    for size in (2, 3, 5):
        for pad in range(size):
            for eos in range(size):
                if pad != eos:
                    agrees(answer, _ordered, size, pad, eos)


WORDS = Exercise(
    id="24.2",
    title="their words in our order",
    difficulty=1,
    minutes=8,
    statement=(
        "Marian's table has `size` rows, one for each of its words; `pad` and `eos` are its ids "
        "of <pad> and <eos>, which can stand anywhere. Write `my_order(size, pad, eos)`: the list "
        "of Marian's ids in the order of our table, `size + 1` whole numbers. Our row 0 is their "
        "<pad>, our row 1, the start, is their <pad> again, our row 2 is their <eos>, and all "
        "other words follow in the order in which they stand in Marian's table."
    ),
    hint="Write down the first three, then every id of theirs that is not yet among them.",
    function=my_order,
    tests=(_at_the_end, _at_the_front, _anywhere),
)


EXERCISES = (REORDER, WORDS)
