"""16.2 when to stop (★★☆, 10 minutes)

Write `my_can_overtake(log_prob, length, worst, alpha, max_len)`: can a living prefix of `length`
tokens (fewer than `max_len`) still end with a score above `worst`, the score of the worst finished
hypothesis? The score of a finished sentence of n tokens is its log-probability / ((5 + n) / 6)^α,
with n at most `max_len`; log-probabilities are at most 0, and α is at least 0. Return `True` if
some continuation could, else `False`.

Hint: At best the log-probability stays as it is. Which n then makes the quotient largest?
"""

import math

import torch

from tinytf_course.expect import expect
from tinytf_course.words import described


def my_can_overtake(log_prob, length, worst, alpha, max_len):
    """Whether a living prefix may still end with a score above `worst`.

    The prefix has `length` tokens and this log-probability in nats; a sentence of n tokens is
    scored by its log-probability / ((5 + n) / 6) ** alpha, and has at most max_len tokens.
    """
    return log_prob / ((5 + max_len) / 6) ** alpha > worst


def _says(answer, arguments, expected, note):
    named = ("log_prob", "length", "worst", "alpha", "max_len")
    where = "for " + ", ".join(f"{n}={v}" for n, v in zip(named, arguments, strict=True))
    got = answer(*arguments)
    one = isinstance(got, torch.Tensor) and got.dim() == 0 and got.dtype == torch.bool
    yes_or_no = one or type(got).__name__ in ("bool", "bool_")
    expect(yes_or_no, f"{where}, you return {described(got)}, expected True or False")
    expect(bool(got) == expected, f"{where}, you get {bool(got)}, expected {expected}: {note}")


def test_without_penalty(answer):
    """with alpha = 0 the log-probability itself is the bound"""
    _says(answer, (-4.0, 5, -3.0, 0.0, 25), False, "it is below already and can only fall")
    _says(answer, (-2.0, 5, -3.0, 0.0, 25), True, "it is still above")


def test_can_grow(answer):
    """a sentence that grows to max_len has the largest divisor"""
    note = "at 25 tokens the divisor is 5, and -6 / 5 = -1.2"
    _says(answer, (-6.0, 3, -2.0, 1.0, 25), True, note)
    note = "at 40 tokens the divisor is 7.5, and -9 / 7.5 = -1.2"
    _says(answer, (-9.0, 20, -2.0, 1.0, 40), True, note)


def test_gives_up(answer):
    """what even that divisor does not save is given up"""
    note = "at 25 tokens the divisor is 5, and -12 / 5 = -2.4"
    _says(answer, (-12.0, 3, -2.0, 1.0, 25), False, note)
    _says(answer, (-12.0, 20, -2.0, 1.0, 25), False, note)


def test_barely(answer):
    """so is one that a longer sentence would lift just enough"""
    _says(answer, (-4.2, 3, -3.0, 1.0, 25), True, "-4.2 / 5 = -0.84")


def test_above(answer):
    """and one that is above the worst as it stands"""
    _says(answer, (-3.5, 3, -3.0, 1.0, 25), True, "-3.5 / 5 = -0.7")


def test_far_above(answer):
    """with or without a divisor"""
    _says(answer, (-2.0, 3, -3.0, 1.0, 25), True, "-2 / 5 = -0.4")


def test_not_too_short(answer):
    """the longest sentence has max_len tokens, all of them"""
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -9.9 / 5 = -1.98"
    _says(answer, (-9.9, 3, -2.0, 1.0, 25), True, note)
    note = "with n = 1 the divisor is 1, and a sentence of one token is one"
    _says(answer, (-2.9, 0, -3.0, 1.0, 1), True, note)
    note = "the divisor is 25 / 6, no whole number, and -9 / (25 / 6) = -2.16"
    _says(answer, (-9.0, 3, -2.2, 1.0, 20), True, note)
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -9.9 / 5 = -1.98"
    _says(answer, (-9.9, 24, -2.0, 1.0, 25), True, note)
    _says(answer, (-5.2, 7, -2.0, 0.6, 25), True, "-5.2 / 5^0.6 = -1.98")


def test_not_too_long(answer):
    """and no more than that"""
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -10.1 / 5 = -2.02"
    _says(answer, (-10.1, 3, -2.0, 1.0, 25), False, note)
    _says(answer, (-3.05, 0, -3.0, 1.0, 1), False, "with n = 1 the divisor is 1")
    note = "the divisor is 25 / 6, no whole number, and -9.3 / (25 / 6) = -2.23"
    _says(answer, (-9.3, 3, -2.2, 1.0, 20), False, note)
    _says(answer, (-10.1, 24, -2.0, 1.0, 25), False, note)
    _says(answer, (-5.3, 7, -2.0, 0.6, 25), False, "-5.3 / 5^0.6 = -2.02")


def test_a_tie(answer):
    """as good as the worst is not above it"""
    note = "at best it comes to -2 as well, and that is not above"
    _says(answer, (-2.0, 3, -2.0, 0.0, 25), False, note)
    _says(answer, (-10.0, 3, -2.0, 1.0, 25), False, "-10 / 5 is -2, and that is not above")
    _says(answer, (0.0, 3, 0.0, 1.0, 25), False, "a certain sentence scores 0, at any length")


def test_strong_penalty(answer):
    """an alpha above 1 or below it, and a prefix that is certain"""
    _says(answer, (-49.0, 3, -2.0, 2.0, 25), True, "the divisor is 5² = 25, and -49 / 25 > -2")
    _says(answer, (-51.0, 3, -2.0, 2.0, 25), False, "the divisor is 5² = 25, and -51 / 25 < -2")
    _says(answer, (-4.4, 3, -2.0, 0.5, 25), True, "the divisor is √5, and -4.4 / √5 = -1.97")
    _says(answer, (-4.5, 3, -2.0, 0.5, 25), False, "the divisor is √5, and -4.5 / √5 = -2.01")
    _says(answer, (0.0, 3, -1e-6, 1.0, 25), True, "0 is above every negative score")
    _says(answer, (-math.inf, 3, -9.0, 1.0, 25), False, "what is impossible stays impossible")


def _bounded_by(divisor):
    return lambda log_prob, length, worst, alpha, max_len: (
        log_prob / divisor(length, alpha, max_len) > worst
    )


_now = _bounded_by(lambda length, alpha, max_len: ((5 + length) / 6) ** alpha)
_next = _bounded_by(lambda length, alpha, max_len: ((6 + length) / 6) ** alpha)
_further = _bounded_by(lambda length, alpha, max_len: ((5 + length + max_len) / 6) ** alpha)
_plain = _bounded_by(lambda length, alpha, max_len: 1)
_no_alpha = _bounded_by(lambda length, alpha, max_len: (5 + max_len) / 6)
_times = _bounded_by(lambda length, alpha, max_len: ((5 + max_len) / 6) ** -alpha)
_one_less = _bounded_by(lambda length, alpha, max_len: ((4 + max_len) / 6) ** alpha)
_one_more = _bounded_by(lambda length, alpha, max_len: ((6 + max_len) / 6) ** alpha)


def _inverted(*arguments):
    return not my_can_overtake(*arguments)


MISTAKES = r"""
the divisor of today's length
    … =>
        return _now(log_prob, length, worst, alpha, max_len)
    says: at 25 tokens the divisor is 5
    The prefix will grow, and its divisor with it: the score may still rise. Hugging Face's
    `early_stopping=False` stops by this rule, and calls it a heuristic.
the divisor of the next length
    … =>
        return _next(log_prob, length, worst, alpha, max_len)
    says: at 25 tokens the divisor is 5
    It need not end with the next token: the bound needs the longest sentence there is.
max_len tokens more
    … =>
        return _further(log_prob, length, worst, alpha, max_len)
    says: -12 / 5 = -2.4
    `max_len` is the length of the whole sentence, the prefix included.
no penalty at all
    … =>
        return _plain(log_prob, length, worst, alpha, max_len)
    says: at 25 tokens the divisor is 5
    `worst` is a score, already divided by its penalty; divide both or neither.
alpha forgotten
    … =>
        return _no_alpha(log_prob, length, worst, alpha, max_len)
    says: it is below already and can only fall
    The divisor is raised to the power alpha; with alpha = 0 it is 1.
multiplied by the penalty
    … =>
        return _times(log_prob, length, worst, alpha, max_len)
    says: at 25 tokens the divisor is 5
    Log-probabilities are negative: multiplying makes long sentences worse still.
the answer the wrong way round
    … =>
        return _inverted(log_prob, length, worst, alpha, max_len)
    says: it is below already and can only fall
    True means that the search has to go on.
one token less than max_len
    … =>
        return _one_less(log_prob, length, worst, alpha, max_len)
    says: divisor 30 / 6, and -9.9 / 5
    `n` may be `max_len` itself: `max_len - 1`, or a `range` that ends at `max_len`, leaves the
    best sentence out, and the search stops too early.
one token more than max_len
    … =>
        return _one_more(log_prob, length, worst, alpha, max_len)
    says: divisor 30 / 6, and -10.1 / 5
    No sentence has more than `max_len` tokens: the search goes on for a score that cannot come.
a tie counted as above
    … =>
        return log_prob / ((5 + max_len) / 6) ** alpha >= worst
    says: that is not above
    `>=` lets the search go on for a sentence that at best is as good: asked is whether it may
    end *above*.
n to the power of alpha
    … =>
        return _bounded_by(lambda length, alpha, max_len: max_len**alpha)(log_prob, length, worst, alpha, max_len)
    says: -10.1 / 5 = -2.02
    The divisor is ((5 + n) / 6) to the power of alpha, not n itself.
it always may
    … =>
        return True
    says: it is below already and can only fall
    Then the search never stops early, and the question saves nothing.
alpha capped at 1
    … =>
        return log_prob / ((5 + max_len) / 6) ** min(alpha, 1) > worst
    says: the divisor is 5² = 25
    alpha may be any number from 0 on.
"""
