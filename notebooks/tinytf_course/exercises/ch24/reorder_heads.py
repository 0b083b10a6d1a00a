"""24.1 heads in another order (★★☆, 12 minutes)

Put the heads of every attention module in a `Transformer` into another order without changing what
the model computes. Write `my_reorder_heads(state, num_heads, order)`, which takes the model's
tensors by name and returns them with the old head `order[j]` as the new head j.

<details><summary>Where the heads are</summary>

An `nn.Linear` stores its weight as (outputs, inputs), and a head consists of `d_model / num_heads`
neighbouring numbers of each query, key and value (chapter 6).

</details>

Hint: `part, kind = name.split('.')[-2:]` gives the layer's name and whether the tensor is its
weight or its bias. Which layers write the heads, and which one reads them? `unflatten` splits an
axis into (heads, numbers).
"""

import functools

import torch

from tinytf.support.randomness import seeded
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.expect import expect, numbers, same
from tinytf_course.words import described, short


def my_reorder_heads(state, num_heads, order):
    """Return a Transformer's tensors, by name, with the heads of every attention reordered.

    state maps names to tensors, as `model.state_dict()` does; order is a permutation of
    0..num_heads-1, and head order[j] becomes head j. A head is d_model / num_heads neighbouring
    numbers of a query, key or value; they stay together and in their order. Returns a new
    dictionary with the same names and dtypes.
    """
    new = {}
    for name, old in state.items():
        part, kind = name.split(".")[-2:]
        if part in ("w_q", "w_k", "w_v"):  # rows, and biases: (H D, ...) -> (H, D, ...)
            new[name] = old.unflatten(0, (num_heads, -1))[order].flatten(0, 1)
        elif part == "w_o" and kind == "weight":  # columns: (C, H D) -> (C, H, D)
            new[name] = old.unflatten(1, (num_heads, -1))[:, order].flatten(1)
        else:
            new[name] = old  # the stream's, or inside the feed-forward network
    return new


ORDER = torch.tensor([1, 2, 0])


def _model(norm="pre", layers=2, heads=3, dtype=torch.float32, **changes):
    """A small model whose sizes are all different, and whose weights are no 0 and no 1."""
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 8, "d_ff": 10} | changes
    config = TransformerConfig(
        d_model=12, num_heads=heads, num_layers=layers, max_len=5, dropout=0.0, norm=norm, **sizes
    )
    with seeded(0):
        model = Transformer(config).to(dtype).eval()
        for seed, parameter in enumerate(model.parameters()):
            drawn = numbers(*parameter.shape, seed=seed, scale=0.5, dtype=dtype)
            parameter.data = drawn
    return model


@functools.cache
def _places():
    """A model's tensors, whose numbers are their places: the row, and a hundredth by column."""
    state = {}
    for name, tensor in _model().state_dict().items():
        rows = torch.arange(float(len(tensor)))
        columns = torch.arange(float(tensor.size(-1))) / 100
        state[name] = rows if tensor.dim() == 1 else rows[:, None] + columns
    return state


def _kind(name):
    """What kind of tensor it is, and the axis along which it has heads."""
    part, kind = name.split(".")[-2:]
    if part in ("w_q", "w_k", "w_v"):
        return kind, 0
    return ("reader", 1) if (part, kind) == ("w_o", "weight") else ("other", None)


def _answered(answer, state, heads, order, where):
    got = answer(state, heads, order)
    expect(isinstance(got, dict), f"{where}, you return {described(got)}, expected a dict")
    lost = [name for name in state if name not in got]
    expect(not lost, f"{where}, {len(lost)} names are missing, such as {lost[:1]}")
    extra = [name for name in got if name not in state]
    expect(not extra, f"{where}, {len(extra)} names are too many, such as {extra[:1]}")
    return got


def _moves(answer, kind, note):
    """Expect every tensor of this kind to be in order."""
    state, where = _places(), f"for three heads of 4 and order={short(ORDER)}"
    got = _answered(answer, state, 3, ORDER, where)
    for name, expected in state.items():
        its, axis = _kind(name)
        if its == kind:
            if axis is not None:
                blocks = expected.chunk(3, axis)
                expected = torch.cat([blocks[i] for i in ORDER.tolist()], axis)
            same(got[name], expected, f"in {name}, {where}", note=note, dtype=True)


def test_rows(answer):
    """w_q, w_k and w_v write each head at its new position"""
    _moves(answer, "weight", "Rows 0 to 3 write head 0, and rows 4 to 7 head 1, expected first.")


def test_biases(answer):
    """each head's biases move with it"""
    note = "Numbers 0 to 3 are added to head 0, and 4 to 7 to head 1, expected first."
    _moves(answer, "bias", note)


def test_columns(answer):
    """w_o reads each head at its new position"""
    _moves(answer, "reader", "It reads the heads: columns 0 to 3 head 0, columns 4 to 7 head 1.")


def test_others(answer):
    """all other tensors stay as they are"""
    _moves(answer, "other", "It neither writes heads nor reads them.")


_SIZES = {
    "a post-norm model": {"norm": "post"},
    "a model of one layer with 4 heads": {"layers": 1, "heads": 4},
    "a model with one table for both languages": {"tgt_vocab_size": 9, "share_embeddings": True},
    "a model with heads of one number": {"heads": 12},
    "a model with one head, and d_ff=12": {"heads": 1, "d_ff": 12},
}  # fmt: skip


def _scores(model):
    """A model's logits for two sentences, one of them padded."""
    src, tgt = torch.tensor([[5, 3, 1, 4], [2, 1, 0, 0]]), torch.tensor([[1, 4, 3], [1, 2, 5]])
    with torch.no_grad():
        return model(src, tgt)


@functools.cache
def _running(name):
    """A model in float64, its tensors, and its logits."""
    model = _model(dtype=torch.float64, **_SIZES[name])
    state = {part: tensor.clone() for part, tensor in model.state_dict().items()}
    return model, state, _scores(model)


def test_computes(answer):
    """the model computes the same"""
    for name in _SIZES:
        model, state, expected = _running(name)
        heads = model.config.num_heads
        order = torch.arange(heads).roll(1)
        where = f"for {name}, order={short(order)}"
        got = _answered(answer, state, heads, order, where)
        for part, tensor in got.items():
            shape = tuple(state[part].shape)
            words = f"{where}, {part} is {described(tensor)}, expected the shape {shape}"
            expect(isinstance(tensor, torch.Tensor) and tensor.shape == shape, words)
            words = f"{where}, {part} is {tensor.dtype} now, and was torch.float64"
            expect(tensor.dtype == torch.float64, words)
            if heads > 1 and part.endswith("self_attention.w_q.weight"):
                words = f"{where}, {part} is as it was, expected its heads to move"
                expect(not torch.equal(tensor, state[part]), words)
        model.load_state_dict(got)
        same(_scores(model), expected, f"{where}, the logits")


MISTAKES = r"""
biases forgotten
    "w_v"): => "w_v") and kind == "weight":
    says: w_q.bias
    A query is a product plus a bias. Part of the bias belongs to each head and has to move with
    it.
w_o forgotten
    [:, order] =>
    says: It reads the heads
    `w_o` still reads each head at its old position. The whole convention has to change.
rows of w_o for its columns
    unflatten(1, (num_heads, -1))[:, order].flatten(1) =>
        unflatten(0, (num_heads, -1))[order].flatten(0, 1)
    says: It reads the heads
    `nn.Linear` stores (outputs, inputs): `w_o` reads the heads, so they are its columns. Its
    rows are features of the stream.
the bias of w_o too
    "w_v"): => "w_v") or name.endswith("w_o.bias"):
    says: w_o.bias
    The bias of `w_o` is added to the stream, after the heads have been mixed.
columns for rows
    unflatten(0, (num_heads, -1))[order].flatten(0, 1) =>
        unflatten(-1, (num_heads, -1))[..., order, :].flatten(-2)
    says: w_q.weight
    `nn.Linear` stores (outputs, inputs): `w_q` writes the heads, so they are its rows. Its
    columns read the stream.
the inverse order
    new = {} => new, order = {}, order.argsort()
    says: Rows 0 to 3 write head 0
    Head order[j] becomes head j: that is `heads[order]`. `order.argsort()` undoes it.
heads taken apart
    unflatten(0, (num_heads, -1))[order] => unflatten(0, (-1, num_heads))[:, order]
    unflatten(1, (num_heads, -1))[:, order] => unflatten(1, (-1, num_heads))[:, :, order]
    says: Rows 0 to 3 write head 0
    A head's numbers are neighbours: split into (num_heads, D), not (D, num_heads).
single numbers for heads
    old.unflatten(0, (num_heads, -1))[order].flatten(0, 1) =>
        torch.cat([old[order], old[num_heads:]])
    old.unflatten(1, (num_heads, -1))[:, order].flatten(1) =>
        torch.cat([old[:, order], old[:, num_heads:]], 1)
    says: Rows 0 to 3 write head 0
    `order` counts heads. Each is D rows, which move together.
values forgotten
    , "w_v") => )
    says: in encoder.layers.0.self_attention.w_v.weight
    A head has queries, keys and values, and all three have to move alike.
queries only
    "w_k", "w_v") => )
    [:, order] =>
    says: in encoder.layers.0.self_attention.w_k.weight
    Each query would meet the keys of another head.
keys forgotten
    "w_k", =>
    says: in encoder.layers.0.self_attention.w_k.weight
    Each key would meet the queries of another head.
cross-attention forgotten
    "w_v"): => "w_v") and "cross" not in name:
    kind == "weight": => kind == "weight" and "cross" not in name:
    says: in decoder.layers.0.cross_attention.w_q.weight
    Cross-attention has heads, too.
the encoder only
    "w_v"): => "w_v") and "encoder" in name:
    kind == "weight": => kind == "weight" and "encoder" in name:
    says: in decoder.layers.0.self_attention.w_q.weight
    The decoder's attentions have heads, too.
the first layer only
    "w_v"): => "w_v") and "layers.0" in name:
    kind == "weight": => kind == "weight" and "layers.0" in name:
    says: layers.1.
    Every layer has heads.
nothing moves
    [order] =>
    [:, order] =>
    says: Rows 0 to 3 write head 0
    The model computes the same, but its heads are where they were.
float32 comes out
    return new => return {name: tensor.float() for name, tensor in new.items()}
    says: is torch.float32 now, and was torch.float64
    Only the order should change: keep the dtype of each tensor.
the caller's tensors overwritten
    return new =>
        for name, tensor in new.items():
            state[name].copy_(tensor)
        return state
    says: your code changes the caller's `state
    `copy_` changes the model to which these tensors belong. Make a new dictionary of new
    tensors.
"""

HARMLESS = r"""
… => if part in ('w_k', 'w_q', 'w_v'):
    any of the three is found
… => if part in ('w_q', 'w_v', 'w_k'):
    any of the three is found
"""
