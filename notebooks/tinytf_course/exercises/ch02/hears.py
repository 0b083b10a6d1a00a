"""02.4 which output depends on which word (★★☆, 8 minutes)

Design a check. The function `read` maps words `(T, C)` to outputs `(T, D)`. Write `my_hears(read,
x)`, which returns a boolean `(T, T)` whose entry `[t, s]` says whether output t depends on word s
at this `x`, that is, whether any component of the output has a derivative other than 0 with respect
to any component of the word. However small the derivative is, it counts, even where rounding would
hide the change. The check has to work for every differentiable `read` and for every `x`.

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


def _hears(answer, read, words, rows, note, shape=(3, 2), scale=1.0):
    expected = torch.tensor([[digit == "1" for digit in row] for row in rows])
    where = f"for {words}, {shape[0]} words"
    x = numbers(*shape, seed=3, scale=scale, dtype=torch.float64)
    agrees(answer, expected, read, x, note=note, where=where)


def _before(x):
    """Each word's neighbour to the left; the first hears nobody."""
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def test_hears_itself(answer):
    """a reader of single words: each output hears its own"""
    _hears(answer, torch.tanh, "tanh of each word", ["1"], "It hears itself.", (1, 2))
    _hears(answer, torch.tanh, "tanh of each word", ["100", "010", "001"], "The diagonal.")


def test_hears_before(answer):
    """row t is output t, column s is word s"""
    note = "Output 1 hears word 0: row 1, column 0."
    _hears(answer, _before, "a reader that gives the word before", ["000", "100", "010"], note)
    first = lambda x: x[:1].expand(len(x), -1)  # noqa: E731
    _hears(answer, first, "a reader that always gives word 0", ["100", "100", "100"], "Column 0.")


def test_hears_sums(answer):
    """a reader whose outputs sum to the same hears all the same"""
    both = lambda x: torch.cat([x, -x], dim=1)  # noqa: E731
    note = "The gradients of x and -x cancel if they are added up: look at each number."
    _hears(answer, both, "a reader that gives [x, -x]", ["10", "01"], note, (2, 1))
    shares = lambda x: x.cumsum(dim=0).softmax(dim=1)  # noqa: E731
    _hears(answer, shares, "a softmax over the sums so far", ["100", "110", "111"], note)


def test_hears_numbers(answer):
    """every number of a word counts, and of an output"""
    last = lambda x: torch.cat([x[:, -1:] * 0 + 1, _before(x)[:, -1:]], dim=1)  # noqa: E731
    note = "Only the last number of a word is heard, and only in the last number of an output."
    _hears(answer, last, "a reader of last numbers", ["000", "100", "010"], note, (3, 4))
    gap = lambda x: _before(x)[:, :1] - _before(x)[:, 1:]  # noqa: E731
    note = "One number is added and the other taken away: the word is heard."
    _hears(answer, gap, "a difference of the word before", ["000", "100", "010"], note)


def test_hears_weakly(answer):
    """a word is heard however weakly"""
    weak = lambda x: x + 1e-4 * _before(x)  # noqa: E731
    _hears(
        answer, weak, "x plus 0.0001 of the word before", ["100", "110", "011"], "Not 0 is True."
    )
    faint = lambda x: 1e-50 * _before(x)  # noqa: E731
    _hears(answer, faint, "1e-50 of the word before", ["000", "100", "010"], "Not 0 is True.")
    faintest = lambda x: 1e-200 * _before(x)  # noqa: E731
    note = "The square of 1e-200 is 0, and 1e-200 is not."
    _hears(answer, faintest, "1e-200 of the word before", ["000", "100", "010"], note)
    drowned = lambda x: x + 1e-20 * _before(x)  # noqa: E731
    note = "Beside x a change of 1e-20 is rounded away; a slope of 1e-20 is not."
    _hears(answer, drowned, "x plus 1e-20 of the word before", ["100", "110", "011"], note)
    less = lambda x: x - 3 * _before(x)  # noqa: E731
    _hears(answer, less, "x minus 3 times the word before", ["100", "110", "011"], "Below 0, too.")


def test_hears_zeros(answer):
    """words that are all 0 are heard, too"""
    note = "At x = 0 the output is 0 as well, and still depends on x."
    _hears(answer, lambda x: x, "x itself, all 0", ["100", "010", "001"], note, scale=0.0)
    _hears(
        answer, torch.tanh, "tanh of words that are all 0", ["10", "01"], note, (2, 3), scale=0.0
    )


def test_hears_here(answer):
    """what counts is the slope at this x"""
    far = lambda x: torch.relu(_before(x).abs() - 50)  # noqa: E731
    note = "At this x all numbers are past 50."
    words = "a reader that hears only numbers past 50"
    _hears(answer, far, words, ["000", "100", "010"], note, scale=1e4)
    note = "At this x no number is past 50."
    _hears(answer, far, words, ["000", "000", "000"], note)


def test_hears_nothing(answer):
    """a reader that looks at no word is one, too"""
    deaf = lambda x: torch.ones(len(x), 3, dtype=x.dtype)  # noqa: E731
    note = "Its output does not depend on x, and has no way back to it."
    _hears(answer, deaf, "a reader that always gives ones", ["00", "00"], note, (2, 3))


def test_hears_wide(answer):
    """an output may have more numbers than a word"""
    wide = lambda x: torch.cat([x * 0 + 1, x * 0, _before(x)], dim=1)  # noqa: E731
    note = "The last numbers of 6 hear the word before."
    _hears(answer, wide, "a reader from 2 numbers to 6", ["000", "100", "010"], note)


def test_hears_readers(answer):
    """an RNN hears what came before, a convolution its neighbours, an average all"""
    torch.manual_seed(0)
    rnn = torch.nn.RNN(3, 5, batch_first=True).double()
    lower = ["1000", "1100", "1110", "1111"]
    _hears(answer, lambda x: rnn(x[None])[0][0], "an RNN", lower, "All words so far.", (4, 3))
    conv = torch.nn.Conv1d(2, 6, 3, padding=1).double()
    band = ["11000", "11100", "01110", "00111", "00011"]
    _hears(answer, lambda x: conv(x.T[None])[0].T, "a convolution of three", band,
           "A word and its neighbours.", (5, 2))  # fmt: skip
    mean = lambda x: x.mean(dim=0, keepdim=True).expand(len(x), -1)  # noqa: E731
    _hears(answer, mean, "an average of all words", ["11", "11"], "All words.", (2, 3))


def _jacobian(read, x):
    return torch.autograd.functional.jacobian(read, x)


def _compared(change):
    """A `my_hears` that changes a word and looks which outputs are others."""

    def hears(read, x):
        columns = []
        for s in range(len(x)):
            changed = x.clone()
            changed[s] = change(x[s])
            columns.append((read(changed) != read(x)).any(dim=1))
        return torch.stack(columns, dim=1)

    return hears


MISTAKES = r"""
outputs added up
    … =>
        return (_jacobian(read, x).sum(dim=1) != 0).any(dim=2)
    says: cancel if they are added up
    `outputs[t].sum()` has gradient 0 wherever the numbers of an output always sum to the same,
    as behind a softmax or a norm. Look at each number's gradient.
gradient of a word added up
    … =>
        return (_jacobian(read, x).sum(dim=3) != 0).any(dim=1)
    says: One number is added and the other taken away
    Parts of the gradient may cancel: ask whether *any* of them is not 0.
only what is strong
    … =>
        return (_jacobian(read, x).abs() > 1e-3).any(dim=3).any(dim=1)
    says: Not 0 is True
    A threshold hides weak ties, and a leak is a leak.
only what is positive
    … =>
        return (_jacobian(read, x) > 0).any(dim=3).any(dim=1)
    says: Below 0, too
    An output that falls when a word rises depends on it as well.
rows and columns swapped
    … =>
        return my_hears(read, x).T
    says: row 1, column 0
    A row is an output, a column is a word, as everywhere in this course.
the first number alone
    … =>
        return _jacobian(read, x)[:, 0, :, 0] != 0
    says: Only the last number of a word is heard
    Every number of a word and of an output may be the one that matters.
at an x of its own
    … =>
        return my_hears(read, torch.randn_like(x))
    says: At this x
    A slope may be 0 at one x and not at another: a ReLU sleeps or wakes. Take that of the `x`
    you are given.
a way back taken for granted
    … =>
        x = x.detach().requires_grad_()
        out = read(x)
        rows = [
            [torch.autograd.grad(number, x, retain_graph=True)[0] for number in word] for word in out
        ]
        return torch.stack([(torch.stack(row) != 0).any(dim=2).any(dim=0) for row in rows])
    says: does not require grad
    An output that does not depend on x has no gradient to ask for: look at `requires_grad`,
    give `allow_unused=True`, or let `jacobian` do it.
as many numbers out as in
    … =>
        return (_jacobian(read, x)[:, : x.size(1)] != 0).any(dim=3).any(dim=1)
    says: The last numbers of 6
    Loop over the numbers of the output, D, which are not those of a word, C.
the length of the gradient
    … =>
        return _jacobian(read, x).square().sum(dim=(1, 3)) > 0
    says: The square of 1e-200 is 0
    Squares of small numbers are 0 sooner than the numbers. Ask of each whether it is 0.
the gradients themselves
    … =>
        return _jacobian(read, x).abs().sum(dim=(1, 3))
    says: the dtype is float64, expected bool
    How much is another question. Here: whether at all, True or False.
changes a word and compares
    … =>
        return _compared(lambda word: torch.randn_like(word))(read, x)
    says: a slope of 1e-20 is not
    Beside a large number a small change is rounded away, and the two outputs are equal. A slope
    is taken by itself, and keeps its digits.
doubles a word and compares
    … =>
        return _compared(lambda word: 2 * word)(read, x)
    says: At x = 0
    Twice 0 is 0: nothing was changed. Nor does a small change show beside a large number. Take
    slopes.
the slope of the squares
    … =>
        return (_jacobian(lambda x: read(x) ** 2, x) != 0).any(dim=3).any(dim=1)
    says: At x = 0
    The slope of y² is 2 y times that of y: 0 wherever the output is 0. Look at each number of
    the output itself.
"""

HARMLESS = r"""
… => ….detach()…
    True and False carry no gradient
… => …x.detach())
    the slopes are taken afresh
slopes = … => ….double()
    what is not 0 is not 0 with more digits
"""
