"""Answers to chapter 06: references and mistakes."""

import math

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 06.1 split into heads


def my_split_heads(x, num_heads):
    """Give each head its own slice of every vector: (B, T, C) -> (B, H, T, D), D = C / H.

    Head h gets the features h * D to (h + 1) * D - 1. Raises ValueError if H does not divide C.
    """
    if x.size(-1) % num_heads != 0:
        raise ValueError(f"d_model={x.size(-1)} is not divisible by num_heads={num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _checked(split):
    """A wrong `my_split_heads` that does refuse heads that do not divide."""

    def checked(x, num_heads):
        if x.size(-1) % num_heads != 0:
            raise ValueError("not divisible")
        return split(x, num_heads)

    return checked


def _drops_the_rest(x, num_heads):
    width = x.size(-1) // num_heads
    return x[..., : num_heads * width].unflatten(-1, (num_heads, width)).transpose(1, 2)


SPLIT = Answers(
    reference=my_split_heads,
    wrong=(
        WrongAnswer(
            "view without transpose",
            _checked(lambda x, n: x.view(x.size(0), n, x.size(1), -1)),
            "you get [[[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]]",
            "`view` only recounts the numbers in memory: with (B, H, T, D), head 0 gets the first "
            "words whole, and later words go to other heads. Split the last axis, then transpose.",
        ),
        WrongAnswer(
            "heads after the words",
            _checked(lambda x, n: x.unflatten(-1, (n, -1))),
            "the shape is (1, 3, 2, 2), expected (1, 2, 3, 2)",
            "With (B, T, H, D), `q @ k.mT` compares the heads of one word with each other, and no "
            "word sees another. Transpose the words and the heads.",
        ),
        WrongAnswer(
            "interleaved",
            _checked(lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2)),
            "you get [[[[0, 2], [4, 6], [8, 10]]",
            "Head h took every H-th number. A model trained so would work, but weights from "
            "anywhere else would not fit: heads are slices.",
        ),
        WrongAnswer(
            "words and widths swapped",
            _checked(lambda x, n: x.unflatten(-1, (n, -1)).permute(0, 2, 3, 1)),
            "the shape is (1, 2, 2, 3), expected (1, 2, 3, 2)",
            "The last axis has to be the width D, the one that the dot product sums over.",
        ),
        WrongAnswer(
            "sentences and heads mixed",
            _checked(lambda x, n: torch.stack(x.chunk(n, -1)).view(len(x), n, x.size(1), -1)),
            "Sentence 0 is [0, 1]",
            "`torch.stack` puts the heads in front of the sentences, and `view` only recounts: "
            "sentence 0 gets head 0 of every sentence. Stack along axis 1.",
        ),
        WrongAnswer(
            "heads in the batch axis",
            _checked(lambda x, n: x.unflatten(-1, (n, -1)).transpose(1, 2).flatten(0, 1)),
            "the shape is (2, 3, 2), expected (1, 2, 3, 2)",
            "Folding heads into the batch, (B * H, T, D), computes the same attention, but a mask "
            "of (B, 1, T, S) no longer fits. Keep an axis of their own.",
        ),
        WrongAnswer(
            "cut off from the graph",
            _checked(lambda x, n: x.detach().unflatten(-1, (n, -1)).transpose(1, 2)),
            "no gradient reaches `x`",
            "The numbers are right, but nothing below would learn: leave `detach`, `.data`, "
            "`no_grad` and NumPy out of it.",
        ),
        WrongAnswer(
            "drops what does not divide",
            _drops_the_rest,
            "expected a ValueError",
            "`C // num_heads` rounds down: with C=10 and 3 heads, one number of every word is "
            "silently lost. Refuse it.",
        ),
    ),
    equivalent={},
)


# 06.2 repair a causal attention


def my_causal_heads(x, w_q, w_k, w_v, w_o, num_heads):
    """Causal self-attention with `num_heads` heads: x (B, T, C) -> (B, T, C).

    Each w is (C, C) and multiplies from the right: q = x @ w_q. Token t sees the tokens 0 to t.
    """
    q, k, v = ((x @ w).unflatten(-1, (num_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, H, T, T)
    later = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o  # (B, H, T, D) -> (B, T, C)


def _hidden(scores, later):
    return scores.masked_fill(later, -math.inf).softmax(dim=-1)


def _zeroed(scores, later):
    return scores.softmax(dim=-1).masked_fill(later, 0.0)


def _renormalised(scores, later):
    weights = _zeroed(scores, later)
    return weights / weights.sum(dim=-1, keepdim=True)


def _causal_variant(
    cut=lambda y, n: y.unflatten(-1, (n, -1)).transpose(1, 2),
    width=lambda x, q: q.size(-1),
    hide=_hidden,
    join=lambda heads, x: heads.transpose(1, 2).flatten(2),
    triangle=lambda scores: torch.ones_like(scores, dtype=torch.bool).triu(1),
    out=True,
):
    """A `my_causal_heads` with something wrong."""

    def causal_heads(x, w_q, w_k, w_v, w_o, num_heads):
        q, k, v = (cut(x @ w, num_heads) for w in (w_q, w_k, w_v))
        scores = q @ k.mT / math.sqrt(width(x, q))
        joined = join(hide(scores, triangle(scores)) @ v, x)
        return joined @ w_o if out else joined

    return causal_heads


def _by_reshape(y, n):
    return y.reshape(len(y), n, y.size(1), -1)


def _side_by_side(heads, x):
    return heads.reshape(x.shape)


_LATER = "later = torch.ones_like(scores, dtype=torch.bool).triu(1)"
_SCORES = "scores = q @ k.mT / math.sqrt(q.size(-1))"

REPAIR = Answers(
    reference=my_causal_heads,
    wrong=(
        WrongAnswer(
            "as it stood",
            _causal_variant(
                cut=_by_reshape, width=lambda x, q: x.size(-1), hide=_zeroed, join=_side_by_side
            ),
            "Row 0 is x[0] @ w_v @ w_o",
            "Nothing is repaired yet. Begin with the mask, which one head alone can test.",
        ),
        WrongAnswer(
            "split by reshape",
            _causal_variant(cut=_by_reshape),
            "words before it move by",
            "`reshape` to (B, H, T, D) only recounts: head 0 gets the first words in pieces. Name "
            "the axes (B, T, H, D), then transpose.",
        ),
        WrongAnswer(
            "scaled by the whole width",
            _causal_variant(width=lambda x, q: x.size(-1)),
            "position [0, 1,",
            "A score is a dot product of D numbers, those of one head: divide by √D, not √C.",
        ),
        WrongAnswer(
            "masked after the softmax",
            _causal_variant(hide=_zeroed),
            "Row 0 is x[0] @ w_v @ w_o",
            "The later words' weights are gone, but they had their share of the 1: a row sums to "
            "less, and by how much tells what comes later. Hide scores, with -∞, before it.",
        ),
        WrongAnswer(
            "joined by reshape",
            _causal_variant(join=_side_by_side),
            "words before it move by",
            "`reshape` from (B, H, T, D) puts different words of one head in a row. Transpose back "
            "to (B, T, H, D) first.",
        ),
        WrongAnswer(
            "no mask",
            _causal_variant(hide=lambda scores, later: scores.softmax(dim=-1)),
            "Row 0 is x[0] @ w_v @ w_o",
            "Every word sees the later ones.",
        ),
        WrongAnswer(
            "the triangle the wrong way round",
            _causal_variant(
                triangle=lambda scores: torch.ones_like(scores, dtype=torch.bool).tril(-1)
            ),
            "Row 0 is x[0] @ w_v @ w_o",
            "You hide what came before. Above the diagonal the key is later than the query.",
        ),
        WrongAnswer(
            "a word does not see itself",
            _causal_variant(
                triangle=lambda scores: torch.ones_like(scores, dtype=torch.bool).triu()
            ),
            "every row is x @ w_v @ w_o",
            "`triu()` has the diagonal too, so word 0 sees nothing at all: `triu(1)`.",
        ),
        WrongAnswer(
            "one word too far",
            _causal_variant(
                triangle=lambda scores: torch.ones_like(scores, dtype=torch.bool).triu(2)
            ),
            "Row 0 is x[0] @ w_v @ w_o",
            "`triu(2)` leaves the next word to be seen, the very one to be predicted: `triu(1)`.",
        ),
        WrongAnswer(
            "hidden with -10,000",
            _causal_variant(
                hide=lambda scores, later: scores.masked_fill(later, -1e4).softmax(dim=-1)
            ),
            "can have a weight of 0 before",
            "A score of its own can be lower still. Hide with -∞, or the least number there is.",
        ),
        WrongAnswer(
            "hidden scores set to 0",
            _causal_variant(
                hide=lambda scores, later: scores.masked_fill(later, 0.0).softmax(dim=-1)
            ),
            "Row 0 is x[0] @ w_v @ w_o",
            "A score of 0 is a score like any other, and e^0 is 1. Hide with -∞.",
        ),
        WrongAnswer(
            "zeroed, and divided by what is left",
            _causal_variant(hide=_renormalised),
            "can have a weight of 0 before",
            "That is right until a later word takes all the weight: then 0 is divided by 0. Hide "
            "the scores before the softmax.",
        ),
        WrongAnswer(
            "no output map",
            _causal_variant(out=False),
            "every row is x @ w_v @ w_o",
            "Joined heads lie side by side and have not met: `w_o` lets them mix.",
        ),
        WrongAnswer(
            "a mask on the CPU",
            _causal_variant(
                triangle=lambda scores: torch.ones(scores.shape, dtype=torch.bool).triu(1)
            ),
            "device",
            "`torch.ones(...)` is on the CPU, wherever `x` is: say `device=x.device`.",
        ),
        WrongAnswer(
            "weights cut off from the graph",
            _causal_variant(hide=lambda scores, later: _hidden(scores.detach(), later)),
            "for the gradient to",
            "The numbers are right, but `w_q` and `w_k` would never learn: leave `detach`, "
            "`.data` and `no_grad` out of it.",
        ),
    ),
    equivalent={
        f"{_LATER} => {_LATER}.detach()": "booleans have no gradient to lose",
        f"{_LATER} => later = torch.ones_like(scores.detach(), dtype=torch.bool).triu(1)": (
            "only the shape and the device of the scores are taken"
        ),
        f"{_LATER} => later = torch.ones_like(scores.float(), dtype=torch.bool).triu(1)": (
            "only the shape and the device of the scores are taken"
        ),
        "… => ….masked_fill(later.detach(), -math.inf).…": "booleans have no gradient to lose",
        f"{_SCORES} => {_SCORES.replace('q.size', 'k.size')}": "queries and keys are D wide",
        f"{_SCORES} => {_SCORES.replace('q.size', 'v.size')}": "values are D wide, too",
    },
)


ANSWERS = {
    "06.1": SPLIT,
    "06.2": REPAIR,
}
