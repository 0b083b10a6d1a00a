"""27.4 repair the average (★★☆, 8 minutes)

Each of two processes has computed the gradient of *its own* mean loss, one over 3 tokens, [2], and
the other over 1 token, [6]. A single process with all four tokens gets the gradient [3], but this
function makes [4] of the two:

```python
def my_average(gradients, tokens):
    total = gradients[0]
    for gradient in gradients[1:]:
        total += gradient
    return total / len(gradients)
```

Write it so that it returns the gradient of the mean over all tokens of all processes. `gradients`
is a list of tensors of one shape, and `tokens` holds the number of tokens of each process, which is
at least one.

<details><summary>The result in detail</summary>

Return a new tensor with the dtype and the device of the gradients. This includes float16, in which
a gradient times its number of tokens may exceed the largest number.

</details>

Hint: A process's mean times its number of tokens is its sum. What do the sums have to be divided
by?

Hint: A second fault is not in the result. What is `gradients[0]` after the call?
"""

import torch

from tinytf_course.expect import agrees, expect, numbers, travels


def my_average(gradients, tokens):
    """Return the gradient of the mean loss over all tokens of all processes.

    gradients is a list of tensors of one shape, each the gradient of one process's mean loss;
    tokens holds the number of tokens of each mean. Returns a new tensor.
    """
    mean = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, tokens, strict=True):
        mean += gradient * (count / sum(tokens))
    return mean


def _token_by_token(gradients, tokens):
    """Every token brings its process's gradient, in float64."""
    rows = [g.double() for g, n in zip(gradients, tokens, strict=True) for _ in range(n)]
    return (sum(rows) / len(rows)).to(gradients[0].dtype)


def _averages(answer, gradients, tokens, **more):
    agrees(answer, _token_by_token, gradients, tokens, **more)


def test_equal_shares(answer):
    """equal shares count equally"""
    pair = [torch.tensor([2.0]), torch.tensor([6.0])]
    _averages(answer, pair, [3, 3], note="(2 + 6) / 2.")
    alone = torch.tensor([2.0, -4.0])
    _averages(answer, [alone], [5], note="There is no other process to average with.")
    alone = torch.nn.Parameter(alone, requires_grad=False)  # of which an answer gets no copy
    got = answer([alone], [5])
    message = "for one process, you return its own tensor, expected a new one: return a copy"
    expect(got is not alone and got.data_ptr() != alone.data_ptr(), message)


def test_unequal_shares(answer):
    """a process with three times the tokens counts three times"""
    pair = [torch.tensor([2.0]), torch.tensor([6.0])]
    _averages(answer, pair, [3, 1], note="Of four tokens, three have gradient 2 and one has 6.")
    _averages(answer, pair, [1, 3], note="Of four tokens, one has gradient 2 and three have 6.")
    three = [torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([10.0])]
    _averages(
        answer,
        three,
        [2, 7, 1],
        note="Of ten tokens, two have gradient 1, seven have 0, one has 10.",
    )


def test_matrices(answer):
    """gradients have any shape"""
    drawn = numbers(3, 4, 2, seed=1)
    _averages(answer, list(drawn), [5, 1, 2], where="for three gradients of (4, 2)")
    _averages(answer, list(drawn[:, 0, 0]), [4, 4, 9], where="for three gradients of one number")


def test_kinds_of_gradients(answer):
    """the result has the gradients' dtype, and is where they are"""
    drawn = numbers(2, 3, 2, seed=2, dtype=torch.float64)
    _averages(answer, list(drawn), [1, 4], where="for gradients in float64")
    half = [torch.tensor([400.0], dtype=torch.float16), torch.tensor([-80.0], dtype=torch.float16)]
    note = "In float16, 400 · 900 is infinite; the mean is not."
    _averages(answer, half, [900, 100], where="for [400] and [-80] in float16", note=note)
    travels(answer, list(drawn.float()), [1, 4], where="for two gradients of (3, 2)")


MISTAKES = r"""
the mean of the means
    count / sum(tokens) => 1 / len(tokens)
    says: three have gradient 2 and one has 6
    A process with one token then weighs as much as one with a thousand.
weighted and not divided
    (count / sum(tokens)) => count
    says: (2 + 6) / 2
    These are the sums over all tokens: divide by how many tokens there are.
divided by the number of processes
    sum(tokens) => len(tokens)
    says: (2 + 6) / 2
    A mean over tokens is divided by tokens: sum(tokens).
divided and not weighted
    count / sum(tokens) => 1 / sum(tokens)
    says: (2 + 6) / 2
    Each gradient is a mean already: times its tokens it is a sum that may be divided.
the first not weighted
    torch.zeros_like(gradients[0]) => gradients[0] / sum(tokens)
    zip(gradients, tokens, => zip(gradients[1:], tokens[1:],
    says: (2 + 6) / 2
    The first process has tokens as well: its gradient needs its weight.
summed into the caller's first gradient
    torch.zeros_like(gradients[0]) => gradients[0].mul_(tokens[0] / sum(tokens))
    zip(gradients, tokens, => zip(gradients[1:], tokens[1:],
    says: your code changes the caller's
    `total = gradients[0]` is no copy: the sum is written into the first process's own gradient.
the sum
     * (count / sum(tokens)) =>
    says: (2 + 6) / 2
    An all-reduce adds up. One process would have computed the mean.
divided by the processes as well
    return mean => return mean / len(gradients)
    says: (2 + 6) / 2
    The sums are divided by all tokens, once.
weighted the wrong way round
    mean = torch =>
        tokens = [1 / count for count in tokens]
        mean = torch
    says: three have gradient 2 and one has 6
    A process with more tokens gets more weight.
float32 on the CPU
    zeros_like(gradients[0]) => zeros(gradients[0].shape)
    says: the dtype is float32
    `torch.zeros(shape)` is float32 and on the CPU, whatever the gradients are.
multiplied before it is divided
    (count / sum(tokens)) => count
    return mean => return mean / sum(tokens)
    says: the mean is not
    A gradient times its tokens may be too large for float16. Take the share first: `gradient *
    (count / sum(tokens))`.
one process's own tensor
    mean = torch =>
        if len(gradients) == 1:
            return gradients[0]
        mean = torch
    says: you return its own tensor
    Changing the mean later would change the process's gradient.
"""

HARMLESS = r"""
… => …zip(tokens, gradients, strict=True):
    a product of two is the same either way
… => …zip(gradients, tokens):
    both lists have one entry a process
… => …zip(gradients, tokens, strict=False):
    both lists have one entry a process
… => …zeros_like(gradients[-1])
    all gradients have one shape and kind
"""
