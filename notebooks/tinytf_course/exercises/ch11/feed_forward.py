"""11.1 the feed-forward network, a row per token (★☆☆, 6 minutes)

Write `my_feed_forward(x, w_1, b_1, w_2, b_2)`, which returns the output of the feed-forward network
with a ReLU. Each token is a *row* of `x`, so the matrices multiply from the right: `x` has the
shape `(T, C)`, `w_1` `(C, d_ff)` and `w_2` `(d_ff, C)`.

Hint: Apply `torch.relu` to the first product plus `b_1`, then multiply again and add `b_2`.
"""

import torch
from torch.nn import functional as F

from tinytf_course.expect import agrees, gradients, numbers, precise, travels


def my_feed_forward(x, w_1, b_1, w_2, b_2):
    """Return the output of the position-wise feed-forward network with a ReLU.

    x is (T, C), w_1 (C, d_ff), b_1 (d_ff,), w_2 (d_ff, C), b_2 (C,); the result is (T, C).
    """
    hidden = torch.relu(x @ w_1 + b_1)  # (T, C) -> (T, d_ff)
    return hidden @ w_2 + b_2


X = torch.tensor([[1.0, 2.0], [-1.0, 0.5], [0.0, 0.0]])
W_1 = torch.tensor([[1.0, -1.0, 0.5, 2.0], [0.0, 1.0, -1.0, 1.0]])
B_1 = torch.tensor([0.5, 0.0, 1.0, -3.0])
W_2 = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0], [-2.0, 0.5]])
B_2 = torch.tensor([0.25, -4.0])


def _network(x, w_1, b_1, w_2, b_2):
    """torch's own maps, whose weights are stored the other way round."""
    return F.linear(F.linear(x, w_1.T, b_1).clamp_min(0), w_2.T, b_2)


def _weights(c, d_ff, seed, dtype=torch.float32):
    """Random w_1, b_1, w_2, b_2."""
    maps = numbers(c, d_ff, seed=seed, dtype=dtype), numbers(d_ff, c, seed=seed + 1, dtype=dtype)
    shifts = numbers(d_ff, seed=seed + 2, dtype=dtype), numbers(c, seed=seed + 3, dtype=dtype)
    return maps[0], shifts[0], maps[1], shifts[1]


def test_no_input(answer):
    """a token of zeros gives what the biases give"""
    where = "for x of zeros, w_1 and w_2 of ones, b_1 = [1, -2], b_2 = [10]"
    ones = torch.ones(1, 2), torch.tensor([1.0, -2.0]), torch.ones(2, 1), torch.tensor([10.0])
    agrees(answer, [[11.0]], torch.zeros(1, 1), *ones, where=where)


def test_barely_open(answer):
    """a unit that is barely above 0 passes on what it has"""
    where = "for x=[[0.001]], w_1=[[1]], b_1=[0], w_2=[[1]], b_2=[0]"
    one, zero = torch.ones(1, 1), torch.zeros(1)
    agrees(answer, [[0.001]], 0.001 * one, one, zero, one, zero, where=where)


def test_negative_output(answer):
    """the output may be negative"""
    where = "for x=[[1]], w_1=[[1]], b_1=[0], w_2=[[-3]], b_2=[0]"
    one, zero = torch.ones(1, 1), torch.zeros(1)
    note = "The ReLU is applied between the two layers, not after them."
    agrees(answer, [[-3.0]], one, one, zero, -3 * one, zero, where=where, note=note)


def test_by_hand(answer):
    """three words come out as by hand"""
    expected = [[2.75, -1.5], [4.75, -5.5], [0.75, -2.0]]
    agrees(answer, expected, X, W_1, B_1, W_2, B_2)


def test_any_sizes(answer):
    """whatever T, C and d_ff are, equal ones too"""
    agrees(answer, _network, numbers(1, 3, seed=1), *_weights(3, 5, seed=2), tolerance=1e-4)
    agrees(answer, _network, numbers(4, 4, seed=3), *_weights(4, 4, seed=4), tolerance=1e-4)
    agrees(answer, _network, numbers(5, 2, seed=5), *_weights(2, 1, seed=6), tolerance=1e-4)
    large = numbers(2, 3, seed=10, scale=1000.0)
    agrees(answer, _network, large, *_weights(3, 4, seed=11), tolerance=1e-3)


def test_ffn_dtype(answer):
    """it works in the dtype of its arguments, and where they are"""
    x = numbers(3, 2, seed=10, dtype=torch.float64)
    agrees(answer, _network, x, *_weights(2, 4, seed=11, dtype=torch.float64))
    precise(answer, _network, X, W_1, B_1, W_2, B_2, dtype=torch.bfloat16)
    travels(answer, X, W_1, B_1, W_2, B_2)


def test_ffn_gradient(answer):
    """gradients reach x, both matrices and both biases"""
    gradients(answer, _network, torch.ones(1, 1), *_weights(1, 2, seed=9))
    gradients(answer, _network, numbers(3, 2, seed=7), *_weights(2, 5, seed=8))


MISTAKES = r"""
no activation
    … =>
        return (x @ w_1 + b_1) @ w_2 + b_2
    says: expected [[2.75, -1.5]
    Without the ReLU the two matrices are one, `w_1 @ w_2`: the width gains nothing.
ReLU at the end
    … =>
        return torch.relu((x @ w_1 + b_1) @ w_2 + b_2)
    says: not after them
    Then the network could only ever add to the stream, and would still be one matrix.
first bias after the ReLU
    … =>
        return (torch.relu(x @ w_1) + b_1) @ w_2 + b_2
    says: b_2 = [10], you get [[9]]
    b_1 decides how large a sum must be before its unit is active. After the ReLU it is a
    constant, which b_2 can provide already.
second bias forgotten
    … =>
        return torch.relu(x @ w_1 + b_1) @ w_2
    says: expected [[11]]
    Both linear layers have a bias in the paper's equation 2.
residual added
    … =>
        return x + torch.relu(x @ w_1 + b_1) @ w_2 + b_2
    says: you get [[-2]], expected [[-3]]
    The residual connection is around the network, not in it: the layer adds x.
a word as a column, on one side only
    … =>
        return torch.relu(w_1.T @ x.T + b_1[:, None]) @ w_2 + b_2
    says: raises RuntimeError
    With tokens as columns, the second matrix must be on the left, too. In `max(0, W_1 v + b_1)
    W_2` the shapes don't fit.
GELU
    … =>
        return F.gelu(x @ w_1 + b_1) @ w_2 + b_2
    says: you get [[10.8
    GELU came later, with BERT and GPT. Here it is ReLU: below 0 nothing passes.
maps transposed
    … =>
        return torch.relu(x @ w_1.T + b_1) @ w_2.T + b_2
    says: raises RuntimeError
    `nn.Linear` stores its weight as (out, in) and transposes it. Here it is (in, out): `x @
    w_1`. Where C and d_ff are equal the shapes fit and the result is wrong.
nothing learns
    … =>
        with torch.no_grad():
            return my_feed_forward(x, w_1, b_1, w_2, b_2)
    says: no gradient reaches `x`
    `no_grad` is for evaluation. In a layer it keeps the numbers and loses the training.
float32 comes out
    … =>
        return (
                                          my_feed_forward(
                *(part.float() for part in (x, w_1, b_1, w_2, b_2))
            )
        )
    says: the dtype is float32, expected float64
    `.float()` or `torch.zeros(...)` makes float32 of whatever came in. Compute in the dtype of
    the arguments.
word by word into a table on the CPU
    … =>
        out = torch.zeros(x.shape, dtype=x.dtype)
        for t in range(len(x)):
            out[t] = torch.relu(x[t] @ w_1 + b_1) @ w_2 + b_2
        return out
    says: on another device than the CPU
    `torch.zeros(...)` is on the CPU, wherever `x` is. No table is needed: `x @ w_1` is all
    words at once.
a threshold above 0
    … =>
        return F.threshold(x @ w_1 + b_1, 0.05, 0.0) @ w_2 + b_2
    says: x=[[0.001]]
    ReLU keeps everything above 0, however little it is.
"""
