"""Answers to chapter 24: references and mistakes."""

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 24.1 heads in another order


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


def _variant(change):
    """One thing wrong: `change(part, old, num_heads, order)` gives a tensor, or None."""

    def reorder(state, num_heads, order):
        new = my_reorder_heads(state, num_heads, order)
        for name, old in state.items():
            other = change(name.split(".")[-2], old, num_heads, order)
            new[name] = new[name] if other is None else other
        return new

    return reorder


def _left(*parts):
    """Leaves the tensors whose names hold one of these as they were."""

    def reorder(state, num_heads, order):
        new = my_reorder_heads(state, num_heads, order)
        return {k: v if any(p in k for p in parts) else new[k] for k, v in state.items()}

    return reorder


def _blocks(old, num_heads, order):
    return old.unflatten(0, (num_heads, -1))[order].flatten(0, 1)


def _across(old, num_heads, order):
    return old.unflatten(1, (num_heads, -1))[:, order].flatten(1)


def _makes(part, old, dim=None):
    return part in ("w_q", "w_k", "w_v") and dim in (None, old.dim())


def _strided(part, old, num_heads, order):
    if _makes(part, old):
        return old.unflatten(0, (-1, num_heads))[:, order].flatten(0, 1)
    if part == "w_o" and old.dim() == 2:
        return old.unflatten(1, (-1, num_heads))[:, :, order].flatten(1)
    return None


def _single(part, old, num_heads, order):
    """Takes the first rows as the heads: as many rows as there are heads move."""
    if not _makes(part, old) and not (part == "w_o" and old.dim() == 2):
        return None
    places = torch.arange(old.size(-1))
    places[: len(order)] = torch.as_tensor(order)
    return old[:, places] if part == "w_o" else old[places]


def _in_place(state, num_heads, order):
    for name, tensor in my_reorder_heads(state, num_heads, order).items():
        state[name].copy_(tensor)
    return state


HEADS = Answers(
    reference=my_reorder_heads,
    equivalent={
        "… => ….detach()…": "places and what a state holds carry no gradient",
        "… => if part in ('w_k', 'w_q', 'w_v'):": "any of the three is found",
        "… => if part in ('w_q', 'w_v', 'w_k'):": "any of the three is found",
    },
    wrong=(
        WrongAnswer(
            "biases forgotten",
            _variant(lambda part, old, *_: old if _makes(part, old, 1) else None),
            "w_q.bias",
            "A query is a product plus a bias. Part of the bias belongs to each head and has to "
            "move "
            "with it.",
        ),
        WrongAnswer(
            "w_o forgotten",
            _left("w_o"),
            "It reads the heads",
            "`w_o` still reads each head at its old position. The whole convention has to change.",
        ),
        WrongAnswer(
            "rows of w_o for its columns",
            _variant(
                lambda part, old, n, order: (
                    _blocks(old, n, order) if part == "w_o" and old.dim() == 2 else None
                )
            ),
            "It reads the heads",
            "`nn.Linear` stores (outputs, inputs): `w_o` reads the heads, so they are its columns. "
            "Its rows are features of the stream.",
        ),
        WrongAnswer(
            "the bias of w_o too",
            _variant(
                lambda part, old, n, order: (
                    _blocks(old, n, order) if part == "w_o" and old.dim() == 1 else None
                )
            ),
            "w_o.bias",
            "The bias of `w_o` is added to the stream, after the heads have been mixed.",
        ),
        WrongAnswer(
            "columns for rows",
            _variant(
                lambda part, old, n, order: _across(old, n, order) if _makes(part, old, 2) else None
            ),
            "w_q.weight",
            "`nn.Linear` stores (outputs, inputs): `w_q` writes the heads, so they are its rows. "
            "Its columns read the stream.",
        ),
        WrongAnswer(
            "the inverse order",
            lambda state, n, order: my_reorder_heads(state, n, order.argsort()),
            "Rows 0 to 3 write head 0",
            "Head order[j] becomes head j: that is `heads[order]`. `order.argsort()` undoes it.",
        ),
        WrongAnswer(
            "heads taken apart",
            _variant(_strided),
            "Rows 0 to 3 write head 0",
            "A head's numbers are neighbours: split into (num_heads, D), not (D, num_heads).",
        ),
        WrongAnswer(
            "single numbers for heads",
            _variant(_single),
            "Rows 0 to 3 write head 0",
            "`order` counts heads. Each is D rows, which move together.",
        ),
        WrongAnswer(
            "values forgotten",
            _left("w_v"),
            "in encoder.layers.0.self_attention.w_v.weight",
            "A head has queries, keys and values, and all three have to move alike.",
        ),
        WrongAnswer(
            "queries only",
            _left("w_k", "w_v", "w_o"),
            "in encoder.layers.0.self_attention.w_k.weight",
            "Each query would meet the keys of another head.",
        ),
        WrongAnswer(
            "keys forgotten",
            _left("w_k"),
            "in encoder.layers.0.self_attention.w_k.weight",
            "Each query would meet the keys of another head.",
        ),
        WrongAnswer(
            "cross-attention forgotten",
            _left("cross_attention"),
            "in decoder.layers.0.cross_attention.w_q.weight",
            "Cross-attention has heads, too.",
        ),
        WrongAnswer(
            "the encoder only",
            _left("decoder"),
            "in decoder.layers.0.self_attention.w_q.weight",
            "The decoder's attentions have heads, too.",
        ),
        WrongAnswer(
            "the first layer only",
            _left(".layers.1."),
            "layers.1.",
            "Every layer has heads.",
        ),
        WrongAnswer(
            "nothing moves",
            lambda state, n, order: dict(state),
            "Rows 0 to 3 write head 0",
            "The model computes the same, but its heads are where they were.",
        ),
        WrongAnswer(
            "float32 comes out",
            lambda state, n, order: {
                k: v.float() for k, v in my_reorder_heads(state, n, order).items()
            },
            "is torch.float32 now, and was torch.float64",
            "Only the order should change: keep the dtype of each tensor.",
        ),
        WrongAnswer(
            "the caller's tensors overwritten",
            _in_place,
            "your code changes the caller's `state",
            "`copy_` changes the model to which these tensors belong. Make a new dictionary of new "
            "tensors.",
        ),
    ),
)

# 24.2 their words in our order


def my_order(size, pad, eos):
    """Return the list of Marian's ids in the order of our table: size + 1 integers.

    size is the number of Marian's words; pad and eos are its ids of <pad> and <eos>, which can be
    anything from 0 to size - 1.
    """
    first = [pad, pad, eos]
    return first + [i for i in range(size) if i not in first]


WORDS = Answers(
    equivalent={},
    reference=my_order,
    wrong=(
        WrongAnswer(
            "no <pad> at all",
            lambda size, pad, eos: [i for i in my_order(size, pad, eos) if i != pad],
            "the shape is (3,), expected (5,)",
            "Marian's <pad> is in our table twice: as <pad> and as the start.",
        ),
        WrongAnswer(
            "the start left out",
            lambda size, pad, eos: my_order(size, pad, eos)[1:],
            "the shape is (4,), expected (5,)",
            "Our row 1 is the start, a copy of Marian's <pad>, so there are size + 1 rows.",
        ),
        WrongAnswer(
            "<eos> before the start",
            lambda size, pad, eos: [pad, eos, pad, *my_order(size, pad, eos)[3:]],
            "you get [3, 0, 3, 1, 2]",
            "Our row 1 is the start, and <eos> is row 2.",
        ),
        WrongAnswer(
            "<eos> taken to be 0 and <pad> the last",
            lambda size, pad, eos: my_order(size, size - 1, 0),
            "you get [4, 4, 0, 1, 2, 3]",
            "`pad` and `eos` are arguments, and can be any two ids.",
        ),
        WrongAnswer(
            "<pad> and <eos> twice",
            lambda size, pad, eos: [pad, pad, eos, *range(size)],
            "the shape is (7,), expected (5,)",
            "After the first three, only the words that are not among them follow.",
        ),
        WrongAnswer(
            "words after <eos> only",
            lambda size, pad, eos: [pad, pad, eos, *(i for i in range(eos + 1, size) if i != pad)],
            "for size=3, pad=0, eos=2, the shape is (3,)",
            "<eos> can be anywhere, even after other words.",
        ),
        WrongAnswer(
            "the other direction",
            lambda size, pad, eos: [my_order(size, pad, eos).index(i) for i in range(size)],
            "the shape is (4,), expected (5,)",
            "These are our ids of Marian's words. The task asks for Marian's ids of ours.",
        ),
    ),
)

ANSWERS = {
    "24.1": HEADS,
    "24.2": WORDS,
}
