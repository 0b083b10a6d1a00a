"""Answers to chapter 24: references and mistakes."""

from tinytf.course.grading import Answers, WrongAnswer

# 24.1 a model's features in another order


def my_reorder(state, order):
    """A Transformer's tensors, by name, with the features of its residual stream in another order.

    state maps names to tensors, as `model.state_dict()` does; order is a permutation of
    0..d_model-1, and feature order[j] goes to place j. Returns a dictionary with the same names.
    """
    new = {}
    for name, old in state.items():
        part = name.split(".")[-2]
        if part in ("w_o", "w_2") or "norm" in part:
            new[name] = old[order]  # what they write is the stream: rows, and biases
        elif old.dim() == 2:  # embeddings are vectors of the stream; the other maps read it
            new[name] = old[:, order]
        else:
            new[name] = old  # biases inside heads and feed-forward
    return new


def _variant(change):
    """A `my_reorder` with one thing wrong: `change(part, old, order)` gives a tensor, or None."""

    def reorder(state, order):
        new = my_reorder(state, order)
        for name, old in state.items():
            other = change(name.split(".")[-2], old, order)
            new[name] = new[name] if other is None else other
        return new

    return reorder


def _both_axes(part, old, order):
    if part in ("w_q", "w_k", "w_v"):
        return old[order][:, order] if old.dim() == 2 else old[order]
    return old[order][:, order] if part == "w_o" and old.dim() == 2 else None


def _rows(part, old, order):
    return old[order] if part in ("w_q", "w_k", "w_v") and old.dim() == 2 else None


def _weights_only(part, old, order):
    return old if part in ("w_o", "w_2") and old.dim() == 1 else None


def _back(part, old, order):
    return old[order.argsort()] if part in ("w_o", "w_2") or "norm" in part else None


def _only(where):
    """Reorders the tensors whose names hold this, and leaves the others."""

    def reorder(state, order):
        new = my_reorder(state, order)
        return {name: new[name] if where in name else old for name, old in state.items()}

    return reorder


def _left(which):
    """Reorders all tensors but those whose names `which` holds for."""

    def reorder(state, order):
        new = my_reorder(state, order)
        return {name: old if which(name) else new[name] for name, old in state.items()}

    return reorder


def _all_but(where):
    """Reorders all tensors but those whose names hold one of these."""
    return _left(lambda name: any(part in name for part in where))


_ONE_NORM = "decoder.layers.0.residual_3"


def _most_of_the_decoder(name):
    own = name.startswith("decoder") and ("self_attention" in name or "feed_forward" in name)
    cross = "cross_attention" in name and "w_k" not in name
    norm = ".norm." in name and not name.startswith(_ONE_NORM)
    return own or cross or norm or name.startswith("decoder.final_norm")


def _by_size(state, order):
    """Takes each axis as long as the stream is wide for the stream, but knows heads."""
    new, right = {}, my_reorder(state, order)
    for name, old in state.items():
        for axis in range(old.dim()):
            if old.size(axis) == len(order):
                old = old.index_select(axis, order)
        new[name] = right[name] if "attention" in name else old
    return new


def _in_place(state, order):
    for name, tensor in my_reorder(state, order).items():
        state[name].copy_(tensor)
    return state


REORDER = Answers(
    reference=my_reorder,
    equivalent={
        "… => ….detach()…": "places and what a state holds carry no gradient",
        "… => if part in ('w_2', 'w_o') or 'norm' in part:": "either of the two is found",
        "… => …or 'norm' in name:": "only the parts called norm have it in their names",
    },
    wrong=(
        WrongAnswer(
            "norms forgotten",
            _variant(lambda part, old, order: old if "norm" in part else None),
            "A norm has a gain and a bias per feature",
            "A norm's statistics do not care for the order, but its gain and bias do.",
        ),
        WrongAnswer(
            "the last norm forgotten",
            _variant(lambda part, old, order: old if part == "final_norm" else None),
            "in encoder.final_norm.weight",
            "A pre-norm model has a norm after its last layer, which works on the stream as well.",
        ),
        WrongAnswer(
            "the inverse order",
            lambda state, order: my_reorder(state, order.argsort()),
            "A row is a word",
            "Feature order[j] goes to place j: that is `old[order]`. `order.argsort()` undoes it.",
        ),
        WrongAnswer(
            "biases of the writers forgotten",
            _variant(_weights_only),
            "w_o.bias",
            "What `w_o` adds to the stream includes its bias.",
        ),
        WrongAnswer(
            "heads reordered too",
            _variant(_both_axes),
            "w_q.weight",
            "The outputs of `w_q` are cut into heads: another order there moves numbers from one "
            "head to another.",
        ),
        WrongAnswer(
            "rows for columns",
            _variant(_rows),
            "w_q.weight",
            "`nn.Linear` keeps (outputs, inputs): what it reads are the columns.",
        ),
        WrongAnswer(
            "writers the other way round",
            _variant(_back),
            "w_o.weight",
            "Readers and writers must mean the same order; `order.argsort()` undoes it.",
        ),
        WrongAnswer(
            "words reordered",
            _variant(lambda part, old, order: old[order] if "embedding" in part else None),
            "A row is a word",
            "A table has a row per word; the features are its columns.",
        ),
        WrongAnswer(
            "embeddings only",
            _only("embedding"),
            "It reads the stream",
            "Everything that reads or writes the stream has to agree on its order.",
        ),
        WrongAnswer(
            "the encoder only",
            _all_but(["decoder"]),
            "in decoder.layers.0.self_attention.w_q.weight",
            "The decoder has a stream of its own, and reads the encoder's: both in the new order.",
        ),
        WrongAnswer(
            "cross-attention forgotten",
            _all_but(["cross_attention"]),
            "in decoder.layers.0.cross_attention.w_q.weight",
            "Cross-attention reads the decoder's stream by its queries and the encoder's by its "
            "keys and values, and writes to the decoder's.",
        ),
        WrongAnswer(
            "the output forgotten",
            _all_but(["output"]),
            "in output.weight",
            "The map to the words reads the stream like any other.",
        ),
        WrongAnswer(
            "axes chosen by their length",
            _by_size,
            "for a model with 6 words, d_model=6 and d_ff=6",
            "Six features, six words or six hidden units: a length does not say what an axis "
            "means. The part's name does.",
        ),
        WrongAnswer(
            "the decoder's own sublayers forgotten",
            _all_but(
                [
                    "decoder.layers.0.self",
                    "decoder.layers.1.self",
                    "decoder.layers.0.feed",
                    "decoder.layers.1.feed",
                ]
            ),
            "in decoder.layers.0.self_attention.w_q.weight",
            "Each sublayer of the decoder reads and writes its stream: self-attention, "
            "cross-attention and the feed-forward network.",
        ),
        WrongAnswer(
            "of cross-attention only the keys",
            _all_but([f"cross_attention.w_{part}" for part in "qvo"]),
            "in decoder.layers.0.cross_attention.w_q.weight",
            "Its queries read the decoder's stream, its values the encoder's, and `w_o` writes.",
        ),
        WrongAnswer(
            "the decoder's last norm forgotten",
            _all_but(["decoder.final_norm"]),
            "in decoder.final_norm.weight",
            "Encoder and decoder have a last norm each.",
        ),
        WrongAnswer(
            "one norm of many",
            _left(lambda name: ".norm." in name and not name.startswith(_ONE_NORM)),
            "in encoder.layers.0.residual_1.norm.weight",
            "Every sublayer has a norm, and every norm a gain and a bias per feature.",
        ),
        WrongAnswer(
            "most of the decoder forgotten",
            _left(_most_of_the_decoder),
            "in decoder.layers.0.self_attention.w_q.weight",
            "A tensor here and there is right. The model is one thing: all that reads or writes "
            "its stream has to agree.",
        ),
        WrongAnswer(
            "the first layer only",
            _all_but([".layers.1."]),
            "layers.1.",
            "Every layer reads and writes the same stream.",
        ),
        WrongAnswer(
            "the norms between sublayers forgotten",
            _all_but([".norm."]),
            "A norm has a gain and a bias per feature",
            "`final_norm` is one of many: each sublayer has a norm called `norm`.",
        ),
        WrongAnswer(
            "float32 comes out",
            lambda state, order: {k: v.float() for k, v in my_reorder(state, order).items()},
            "is torch.float32 now, and was torch.float64",
            "Another order is all that is asked for: keep each tensor's dtype.",
        ),
        WrongAnswer(
            "the caller's tensors overwritten",
            _in_place,
            "your code changes the caller's `state",
            "`copy_` writes into the model whose tensors these are. Make a new dictionary of new "
            "tensors.",
        ),
        WrongAnswer(
            "biases inside reordered",
            _variant(
                lambda part, old, order: old[order] if part == "w_q" and old.dim() == 1 else None
            ),
            "w_q.bias",
            "A query is no vector of the stream: its numbers belong to heads.",
        ),
    ),
)

# 24.2 their words in our order


def my_order(size, pad, eos):
    """List Marian's ids in the order of our table: size + 1 whole numbers.

    `size` is how many words Marian has, `pad` and `eos` its ids of <pad> and <eos>.
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
            "Their <pad> stands in our table twice: as <pad> and as the start.",
        ),
        WrongAnswer(
            "the start left out",
            lambda size, pad, eos: my_order(size, pad, eos)[1:],
            "the shape is (4,), expected (5,)",
            "Our row 1 is the start, a copy of their <pad>: size + 1 rows in all.",
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
            "`pad` and `eos` are arguments: they can stand anywhere.",
        ),
        WrongAnswer(
            "<pad> and <eos> twice",
            lambda size, pad, eos: [pad, pad, eos, *range(size)],
            "the shape is (7,), expected (5,)",
            "After the first three come the words that are not yet among them.",
        ),
    ),
)

ANSWERS = {
    "24.1": REORDER,
    "24.2": WORDS,
}
