"""02.4 which output depends on which word (★★☆, 8 minutes)

The function `read` maps words `(T, C)` to outputs `(T, D)`. Design a check: `my_hears(read, x)`
returns a boolean `(T, T)` whose entry `[t, s]` is True where output t depends on word s at this
`x`, that is, where any number of the output has a derivative other than 0 with respect to any
number of the word.

<details><summary>The rule in detail</summary>

However small the derivative is, it counts, even where rounding would hide the change. The check has
to work for every differentiable `read` and for every `x`.

</details>

Hint: `torch.autograd.functional.jacobian(read, x)` has the shape (T, D, T, C): the derivative of
each component of the output with respect to each component of the input.
"""

import torch

from tinytf_course.expect import agrees, numbers


def my_hears(read, x):
    """Say which words each output depends on: boolean (T, T), row t for output t, column s for x_s.

    read maps words (T, C) to outputs (T, D) and can be differentiated. Entry [t, s] is True where
    any number of output t has, at x, a slope in any number of word s, however small.
    """
    slopes = torch.autograd.functional.jacobian(read, x)  # (T, D, T, C)
    return (slopes != 0).any(dim=3).any(dim=1)


def _hears(answer, words, read, rows, note, shape=(3, 2), scale=1.0):
    """Expect these rows of the answer, such as `100 010 001`, for a reader."""
    expected = torch.tensor([[digit == "1" for digit in row] for row in rows.split()])
    x = numbers(*shape, seed=3, scale=scale, dtype=torch.float64)
    agrees(answer, expected, read, x, note=note, where=f"for {words}, {shape[0]} words")


def _before(x):
    """Each word's neighbour to the left; the first hears nobody."""
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def test_hears_itself(answer):
    """a reader of single words: each output hears its own"""
    _hears(answer, "tanh of each word", torch.tanh, "1", "It hears itself.", (1, 2))
    _hears(answer, "tanh of each word", torch.tanh, "100 010 001", "The diagonal.")


def test_hears_before(answer):
    """row t is output t, column s is word s"""
    note = "Output 1 hears word 0: row 1, column 0."
    _hears(answer, "a reader that gives the word before", _before, "000 100 010", note)
    _hears(answer, "a reader that always gives word 0", lambda x: x[:1].expand(len(x), -1),
           "100 100 100", "Column 0.")  # fmt: skip


def test_hears_sums(answer):
    """a reader whose outputs always sum to the same hears nevertheless"""
    note = "The gradients of x and -x cancel if they are added up: look at each number."
    _hears(answer, "a reader that gives [x, -x]", lambda x: torch.cat([x, -x], dim=1),
           "10 01", note, (2, 1))  # fmt: skip
    _hears(answer, "a softmax over the sums so far", lambda x: x.cumsum(dim=0).softmax(dim=1),
           "100 110 111", note)  # fmt: skip


def test_hears_numbers(answer):
    """every number of a word counts, and of an output"""
    note = "Only the last number of a word is heard, and only in the last number of an output."
    _hears(answer, "a reader of last numbers",
           lambda x: torch.cat([x[:, -1:] * 0 + 1, _before(x)[:, -1:]], dim=1),
           "000 100 010", note, (3, 4))  # fmt: skip
    note = "One number is added and the other taken away: the word is heard."
    _hears(answer, "a difference of the word before",
           lambda x: _before(x)[:, :1] - _before(x)[:, 1:], "000 100 010", note)  # fmt: skip


def test_hears_weakly(answer):
    """a word is heard however weakly"""
    for weight, words, note in (
        (1e-4, "plus 0.0001 of", "Not 0 is True."),
        (1e-20, "plus 1e-20 of", "Beside x a change of 1e-20 is rounded away; a slope is not."),
        (1e-200, "plus 1e-200 of", "The square of 1e-200 is 0, and 1e-200 is not."),
        (-3, "minus 3 times", "Below 0, too."),
    ):
        read = lambda x, weight=weight: x + weight * _before(x)  # noqa: E731
        _hears(answer, f"x {words} the word before", read, "100 110 011", note)
    _hears(answer, "1e-200 of the word before", lambda x: 1e-200 * _before(x),
           "000 100 010", "Not 0 is True.")  # fmt: skip


def test_hears_zeros(answer):
    """words and outputs that are all 0 are heard, too"""
    note = "At x = 0 the output is 0 as well, and still depends on x."
    _hears(answer, "x itself, all 0", lambda x: x, "100 010 001", note, scale=0.0)
    _hears(answer, "tanh of words that are all 0", torch.tanh, "10 01", note, (2, 3), scale=0.0)
    here = numbers(3, 2, seed=3, dtype=torch.float64)
    _hears(answer, "x minus numbers that equal x", lambda x: x - here, "100 010 001",
           "The output is 0, and depends on x.")  # fmt: skip


def test_hears_here(answer):
    """what counts is the slope at this x"""
    far = "a reader that hears only numbers past 50", lambda x: (_before(x).abs() - 50).relu()
    _hears(answer, *far, "000 100 010", "At this x all numbers are past 50.", scale=1e4)
    _hears(answer, *far, "000 000 000", "At this x no number is past 50.")
    near = "a reader that hears only numbers below 1", lambda x: (1 - _before(x).abs()).relu()
    _hears(answer, *near, "000 000 000", "At this x no number is below 1.", scale=1e4)


def test_hears_nothing(answer):
    """a reader that looks at no word is one, too"""
    note = "Its output does not depend on x, and has no way back to it."
    _hears(answer, "a reader that always gives ones",
           lambda x: torch.ones(len(x), 3, dtype=x.dtype), "00 00", note, (2, 3))  # fmt: skip


def test_hears_wide(answer):
    """an output may have more numbers than a word"""
    note = "The last two numbers of 4 hear the word before."
    _hears(answer, "a reader from 2 numbers to 4",
           lambda x: torch.cat([x.flip(1), _before(x)], dim=1), "100 110 011", note)  # fmt: skip


def test_hears_readers(answer):
    """an RNN hears what came before, a convolution its neighbours, an average all"""
    torch.manual_seed(0)
    rnn = torch.nn.RNN(3, 5, batch_first=True).double()
    _hears(answer, "an RNN", lambda x: rnn(x[None])[0][0], "1000 1100 1110 1111",
           "All words so far.", (4, 3))  # fmt: skip
    conv = torch.nn.Conv1d(2, 6, 3, padding=1).double()
    _hears(answer, "a convolution of three", lambda x: conv(x.T[None])[0].T,
           "11000 11100 01110 00111 00011", "A word and its neighbours.", (5, 2))  # fmt: skip
    _hears(answer, "an average of all words", lambda x: x.mean(0, keepdim=True).expand_as(x),
           "11 11", "All words.", (2, 3))  # fmt: skip


MISTAKES = r"""
outputs added up
    slopes != 0 => slopes.sum(dim=1, keepdim=True) != 0
    says: cancel if they are added up
    `outputs[t].sum()` has gradient 0 wherever the numbers of an output always sum to the same,
    as behind a softmax or a norm. Look at each number's gradient.
gradient of a word added up
    slopes != 0 => slopes.sum(dim=3, keepdim=True) != 0
    says: One number is added and the other taken away
    Parts of the gradient may cancel: ask whether *any* of them is not 0.
only what is strong
    slopes != 0 => slopes.abs() > 1e-3
    says: Not 0 is True
    A threshold hides weak ties, and a leak is a leak.
only what is positive
    slopes != 0 => slopes > 0
    says: Below 0, too
    An output that falls when a word rises depends on it as well.
rows and columns swapped
    any(dim=1) => any(dim=1).T
    says: row 1, column 0
    A row is an output, a column is a word, as everywhere in this course.
the first number alone
    (slopes != 0).any(dim=3).any(dim=1) => slopes[:, 0, :, 0] != 0
    says: Only the last number of a word is heard
    Every number of a word and of an output may be the one that matters.
at an x of its own
    jacobian(read, x) => jacobian(read, torch.ones_like(x))
    says: At this x
    A slope may be 0 at one x and not at another: a ReLU sleeps or wakes. Take that of the `x`
    you are given.
a way back taken for granted
    slopes = torch.autograd.functional.jacobian(read, x) =>
        x = x.detach().requires_grad_()
        grad = lambda number: torch.autograd.grad(number, x, retain_graph=True)[0]
        slopes = torch.stack([torch.stack(list(map(grad, out))) for out in read(x)])
    says: does not require grad
    An output that does not depend on x has no gradient to ask for: look at `requires_grad`,
    give `allow_unused=True`, or let `jacobian` do it.
as many numbers out as in
    slopes != 0 => slopes[:, : x.size(1)] != 0
    says: The last two numbers of 4
    Loop over the numbers of the output, D, which are not those of a word, C.
the length of the gradient
    (slopes != 0).any(dim=3).any(dim=1) => slopes.square().sum(dim=(1, 3)) > 0
    says: The square of 1e-200 is 0
    Squares of small numbers are 0 sooner than the numbers. Ask of each whether it is 0.
the gradients themselves
    (slopes != 0).any(dim=3).any(dim=1) => slopes.abs().sum(dim=(1, 3))
    says: the dtype is float64, expected bool
    How much is another question. Here: whether at all, True or False.
changes a word and compares
    … =>
        row = torch.arange(len(x))[:, None]
        others = [torch.where(row == s, torch.randn_like(x), x) for s in range(len(x))]
        return torch.stack([(read(other) != read(x)).any(dim=1) for other in others], dim=1)
    says: no number is below 1
    Beside a large number a small change is rounded away, and the two outputs are equal. A slope
    is taken by itself, and keeps its digits.
doubles a word and compares
    … =>
        row = torch.arange(len(x))[:, None]
        others = [torch.where(row == s, 2 * x, x) for s in range(len(x))]
        return torch.stack([(read(other) != read(x)).any(dim=1) for other in others], dim=1)
    says: At x = 0
    Twice 0 is 0: nothing was changed. Nor does a small change show beside a large number. Take
    slopes.
the slope of the squares
    jacobian(read, x) => jacobian(lambda x: read(x) ** 2, x)
    says: At x = 0
    The slope of y² is 2 y times that of y: 0 wherever the output is 0. Look at each number of
    the output itself.
"""
