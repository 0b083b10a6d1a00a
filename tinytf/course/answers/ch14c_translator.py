"""Answers to chapter 14c (translator): references and mistakes."""

from tinytf.course.grading import Answers, WrongAnswer

# 14c.1 a model's features in another order


def my_reorder(state, order):
    """A Transformer's tensors, by name, with the features of its residual stream in another order.

    state maps names to tensors, as `model.state_dict()` does; order is a permutation of
    0..d_model-1, and feature order[j] goes to place j. Returns a dictionary with the same names.
    """
    new = {}
    for name, old in state.items():
        part = name.split(".")[-2]
        if (
            part in ("w_o", "w_2") or "norm" in part
        ):  # what they write is the stream: rows, and biases
            new[name] = old[order]
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


REORDER = Answers(
    reference=my_reorder,
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
            lambda state, order: {
                name: t[:, order] if "embedding" in name else t for name, t in state.items()
            },
            "It reads the stream",
            "Everything that reads or writes the stream has to agree on its order.",
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

ANSWERS = {
    "14c.1": REORDER,
}
