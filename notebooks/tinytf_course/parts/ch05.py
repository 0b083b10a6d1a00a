"""Chapter 05: scaled dot-product attention, and its masks."""

import functools

import torch

from tinytf_course.expect import numbers
from tinytf_course.parts import Part, arrived

wide = functools.partial(numbers, dtype=torch.float64)
HALF_HIDDEN = torch.tensor([[True, False, True, True], [False, False, False, False],
                            [True, True, False, True]])  # fmt: skip
NOTHING_DROPPED = "a dropout of 0 drops nothing, in training or not"


def learned(*shape, seed):
    """Numbers that ask for a gradient."""
    return wide(*shape, seed=seed).requires_grad_()


def dtypes(*tensors):
    """The names of their dtypes, for an answer that is to keep that of its input."""
    return {"dtype": ", ".join(str(x.dtype).removeprefix("torch.") for x in tensors)}


def _weights_gradients(f):
    q, k = learned(2, 3, 5, 4, seed=1), learned(2, 3, 6, 4, seed=2)
    return arrived(f(q, k), q, k)


def _hidden_gradients(f):
    q, k = learned(1, 2, 3, 5, seed=1), learned(1, 2, 4, 5, seed=2)
    return arrived(f(q, k, HALF_HIDDEN[None, None]), q, k)


def _mix_gradients(f):
    q, k, v = (learned(2, 3, n, 4, seed=n) for n in (5, 6, 6))
    return arrived(f(q, k, v), q, k, v)


def _dropped(f):
    """What dropout does, whatever way it is drawn: some weights go, the others grow."""
    q, k = wide(64, 4, seed=1), wide(32, 4, seed=2)
    plain, *twice = (f(q, k, torch.eye(32).double(), None, p) for p in (0.0, 0.25, 0.25))
    kept = [mixed != 0 for mixed in twice]
    ones = f(q, k, torch.ones(32, 1).double(), None, 0.25)
    return {
        "about a quarter of the weights are 0": all(
            0.7 < part.double().mean() < 0.8 for part in kept
        ),
        "a weight that is kept is divided by": (plain / twice[0])[kept[0]].mean(),
        "each time others are dropped": not torch.equal(*kept),
        "what is mixed is not dropped itself": bool((ones != 0).all()),
    }


def _half(f, far=1):
    q, k = wide(1, 2, 3, 8, seed=1).half(), wide(1, 2, 4, 8, seed=2).half()
    q, k = (q, k) if far == 1 else (far * q.abs(), -far * k.abs())
    found = f(q, k, HALF_HIDDEN[None, None])
    return {"dtype": str(found.dtype), "values": found.float()}


attention_weights = Part(
    "tinytf.attention.attention_weights",
    {
        "one query meets two keys": lambda f: f(
            torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 2.0]])
        ),
        "there are sentences and heads, and more keys than queries": lambda f: f(
            wide(2, 3, 5, 4, seed=1), wide(2, 3, 6, 4, seed=2)
        ),
        "the width is not 4 but 9": lambda f: f(wide(2, 9, seed=3), wide(3, 9, seed=4)),
        "some keys are hidden, and from one query all of them": lambda f: f(
            wide(1, 2, 3, 5, seed=1), wide(1, 2, 4, 5, seed=2), HALF_HIDDEN[None, None]
        ),
        "one mask serves every sentence and head": lambda f: f(
            wide(2, 3, 4, 4, seed=5), wide(2, 3, 4, 4, seed=6), torch.ones(1, 1, 4, 4).tril().bool()
        ),
        "scores are in the hundreds": lambda f: f(
            wide(2, 4, seed=1) * 100, wide(3, 4, seed=2) * 100
        ),
        "numbers are in half precision": _half,
        "numbers are in half precision, and every score is far below 0": lambda f: _half(f, far=8),
        "gradients go back to queries and keys": _weights_gradients,
        "there are no sentences and heads, and a mask of two axes": lambda f: f(
            wide(3, 5, seed=1), wide(4, 5, seed=2), HALF_HIDDEN
        ),
        "gradients go back past hidden keys, and none is NaN": _hidden_gradients,
        "a hidden score is far above those that are seen": lambda f: f(
            torch.ones(1, 1),
            torch.tensor([[0.0], [-2e4], [-2e4]]),
            torch.tensor([[False, True, True]]),
        ),
    },
    equivalent={
        "… => scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))": "q and k have one width",
        "… => …torch.finfo(k.dtype).min)": "q and k have one dtype, that of the scores",
    },
)

explicit_attention = Part(
    "tinytf.attention.explicit_attention",
    {
        "one query mixes two values": lambda f: f(
            torch.tensor([[1.0, 0.0]]),
            torch.tensor([[2.0, 0.0], [0.0, 2.0]]),
            torch.tensor([[10.0], [20.0]]),
        ),
        "there are sentences and heads, and values of another width": lambda f: f(
            wide(2, 3, 5, 4, seed=1), wide(2, 3, 6, 4, seed=2), wide(2, 3, 6, 7, seed=3)
        ),
        "keys are hidden": lambda f: f(
            wide(1, 2, 3, 5, seed=1),
            wide(1, 2, 4, 5, seed=2),
            wide(1, 2, 4, 5, seed=3),
            HALF_HIDDEN[None, None],
        ),
        "weights are dropped, a quarter of them": _dropped,
        "gradients go back to queries, keys and values": _mix_gradients,
    },
    equivalent={
        "… => return F.dropout(attention_weights(q, k, mask), dropout) @ v": NOTHING_DROPPED,
        "… => …training=dropout >= 0) @ v": NOTHING_DROPPED,
        "… => …training=dropout > -1) @ v": NOTHING_DROPPED,
    },
)

padding_mask = Part(
    "tinytf.masks.padding_mask",
    {
        "one sentence has one pad": lambda f: f(torch.tensor([[5, 7, 0]])),
        "two sentences differ in length": lambda f: f(torch.tensor([[5, 0, 0, 0], [3, 4, 9, 0]])),
        "the pad's id is 2": lambda f: f(torch.tensor([[5, 0, 2], [2, 2, 2]]), 2),
    },
)

causal_mask = Part(
    "tinytf.masks.causal_mask",
    {
        "there is one word": lambda f: f(1),
        "there are two": lambda f: f(2),
        "there are five": lambda f: f(5),
        "another device is asked for": lambda f: {"device": str(f(5, torch.device("meta")).device)},
    },
)

PARTS = (attention_weights, explicit_attention, padding_mask, causal_mask)
