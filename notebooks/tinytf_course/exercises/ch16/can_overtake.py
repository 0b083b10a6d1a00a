"""16.2 when to stop (★★☆, 10 minutes)

A search may stop when no living prefix can still end with a score above `worst`, the score of the
worst finished hypothesis. Write `my_can_overtake(log_prob, length, worst, alpha, max_len)`, which
returns `True` if some continuation of this prefix could, else `False`.

<details><summary>The rule in detail</summary>

The prefix has `length` tokens, fewer than `max_len`. The score of a finished sentence of n tokens
is its log-probability / ((5 + n) / 6)^α, with n at most `max_len`. Log-probabilities are at most 0,
and α is at least 0.

</details>

Hint: At best the log-probability stays as it is. Which n then makes the quotient largest?
"""

import math

from tinytf_course.expect import YES_OR_NO, expect, number


def my_can_overtake(log_prob, length, worst, alpha, max_len):
    """Whether a living prefix may still end with a score above `worst`.

    The prefix has `length` tokens and this log-probability in nats; a sentence of n tokens is
    scored by its log-probability / ((5 + n) / 6) ** alpha, and has at most max_len tokens.
    """
    return log_prob / ((5 + max_len) / 6) ** alpha > worst


_NAMES = ("log_prob", "length", "worst", "alpha", "max_len")


def _each(answer, *cases):
    """Cases (arguments, expected, why): all are answered before the first is judged."""
    for (arguments, expected, why), got in [(case, answer(*case[0])) for case in cases]:
        where = "for " + ", ".join(f"{n}={v}" for n, v in zip(_NAMES, arguments, strict=True))
        found = number(got, where, YES_OR_NO)
        expect(found == expected, f"{where}, you get {found}, expected {expected}: {why}")


def test_without_penalty(answer):
    """with alpha = 0 the log-probability itself is the bound"""
    _each(
        answer,
        ((-4.0, 5, -3.0, 0.0, 25), False, "it is below already and can only fall"),
        ((-2.0, 5, -3.0, 0.0, 25), True, "it is still above"),
    )


def test_can_grow(answer):
    """a sentence that grows to max_len has the largest divisor"""
    _each(
        answer,
        ((-6.0, 3, -2.0, 1.0, 25), True, "at 25 tokens the divisor is 5, and -6 / 5 = -1.2"),
        ((-9.0, 20, -2.0, 1.0, 40), True, "at 40 tokens the divisor is 7.5, and -9 / 7.5 = -1.2"),
        ((-4.2, 3, -3.0, 1.0, 25), True, "-4.2 / 5 = -0.84"),
        ((-3.5, 3, -3.0, 1.0, 25), True, "-3.5 / 5 = -0.7"),
        ((-2.0, 3, -3.0, 1.0, 25), True, "-2 / 5 = -0.4"),
        ((-0.5, 3, -3.0, 1.0, 25), True, "-0.5 / 5 = -0.1"),
    )


def test_gives_up(answer):
    """what even that divisor does not save is given up"""
    note = "at 25 tokens the divisor is 5, and -12 / 5 = -2.4"
    _each(
        answer,
        ((-12.0, 3, -2.0, 1.0, 25), False, note),
        ((-12.0, 20, -2.0, 1.0, 25), False, note),
        ((-60.0, 3, -2.0, 1.0, 25), False, "-60 / 5 = -12"),
    )


def test_not_too_short(answer):
    """the longest sentence has max_len tokens, all of them"""
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -9.9 / 5 = -1.98"
    whole = "the divisor is 25 / 6, no whole number, and -9 / (25 / 6) = -2.16"
    _each(
        answer,
        ((-9.9, 3, -2.0, 1.0, 25), True, note),
        ((-2.9, 0, -3.0, 1.0, 1), True, "a sentence of one token is one, and its divisor is 1"),
        ((-9.0, 3, -2.2, 1.0, 20), True, whole),
        ((-9.9, 24, -2.0, 1.0, 25), True, note),
        ((-5.2, 7, -2.0, 0.6, 25), True, "-5.2 / 5^0.6 = -1.98"),
        ((-5.0, 3, -2.0, 1.0, 25), True, "-5 / 5 = -1"),
    )


def test_not_too_long(answer):
    """and no more than that"""
    note = "the best that can come has n = 25 tokens, divisor 30 / 6, and -10.1 / 5 = -2.02"
    whole = "the divisor is 25 / 6, no whole number, and -9.3 / (25 / 6) = -2.23"
    _each(
        answer,
        ((-10.1, 3, -2.0, 1.0, 25), False, note),
        ((-3.05, 0, -3.0, 1.0, 1), False, "with n = 1 the divisor is 1"),
        ((-9.3, 3, -2.2, 1.0, 20), False, whole),
        ((-10.1, 24, -2.0, 1.0, 25), False, note),
        ((-5.3, 7, -2.0, 0.6, 25), False, "-5.3 / 5^0.6 = -2.02"),
        ((-10.9, 3, -2.0, 1.0, 25), False, "-10.9 / 5 = -2.18"),
    )


def test_a_tie(answer):
    """as good as the worst is not above it"""
    _each(
        answer,
        ((-2.0, 3, -2.0, 0.0, 25), False, "at best it comes to -2, and that is not above"),
        ((-10.0, 3, -2.0, 1.0, 25), False, "-10 / 5 is -2, and that is not above"),
        ((0.0, 3, 0.0, 1.0, 25), False, "a certain sentence scores 0, at any length"),
        ((-9.5, 3, -2.0, 1.0, 25), True, "-9.5 / 5 is -1.9, and that is above"),
    )


def test_strong_penalty(answer):
    """an alpha above 1 or below it, and a prefix that is certain or impossible"""
    _each(
        answer,
        ((-49.0, 3, -2.0, 2.0, 25), True, "the divisor is 5² = 25, and -49 / 25 > -2"),
        ((-51.0, 3, -2.0, 2.0, 25), False, "the divisor is 5² = 25, and -51 / 25 < -2"),
        ((-8.0, 3, -2.0, 2.0, 25), True, "the divisor is 5² = 25, and -8 / 25 > -2"),
        ((-4.4, 3, -2.0, 0.5, 25), True, "the divisor is √5, and -4.4 / √5 = -1.97"),
        ((-4.5, 3, -2.0, 0.5, 25), False, "the divisor is √5, and -4.5 / √5 = -2.01"),
        ((0.0, 3, -1e-6, 1.0, 25), True, "0 is above every negative score"),
        ((-math.inf, 3, -9.0, 1.0, 25), False, "what is impossible stays impossible"),
    )


MISTAKES = r"""
the divisor of today's length
    5 + max_len => 5 + length
    says: at 25 tokens the divisor is 5
    The prefix will grow, and its divisor with it: the score may still rise. Hugging Face's
    `early_stopping=False` stops by this rule, and calls it a heuristic.
the divisor of the next length
    5 + max_len => 6 + length
    says: at 25 tokens the divisor is 5
    It need not end with the next token: the bound needs the longest sentence there is.
max_len tokens more
    5 + max_len => 5 + length + max_len
    says: -12 / 5 = -2.4
    `max_len` is the length of the whole sentence, the prefix included.
no penalty at all
    log_prob / ((5 + max_len) / 6) ** alpha => log_prob
    says: at 25 tokens the divisor is 5
    `worst` is a score, so it has been divided by a penalty of its own: divide the prefix's
    log-probability, and that alone. (Divided on both sides, the penalty cancels.)
alpha forgotten
    ** alpha > worst => > worst
    says: it is below already and can only fall
    The divisor is raised to the power alpha; with alpha = 0 it is 1.
the power of 6 alone
    ((5 + max_len) / 6) ** alpha => ((5 + max_len) / 6**alpha)
    says: it is below already and can only fall
    `**` binds more strongly than `/`: the parentheses belong around the whole quotient.
multiplied by the penalty
    log_prob / ( => log_prob * (
    says: at 25 tokens the divisor is 5
    Log-probabilities are negative: multiplying makes long sentences worse still.
the answer the wrong way round
    > worst => <= worst
    says: it is below already and can only fall
    True means that the search has to go on.
one token less than max_len
    5 + max_len => 4 + max_len
    says: divisor 30 / 6, and -9.9 / 5
    `n` may be `max_len` itself: `max_len - 1`, or a `range` that ends at `max_len`, leaves the
    best sentence out, and the search stops too early.
one token more than max_len
    5 + max_len => 6 + max_len
    says: divisor 30 / 6, and -10.1 / 5
    No sentence has more than `max_len` tokens: the search goes on for a score that cannot come.
divided in whole numbers
    (5 + max_len) / 6 => (5 + max_len) // 6
    says: the divisor is 25 / 6
    `//` rounds the penalty down to a whole number; the quotient may be any.
a tie counted as above
    > worst => >= worst
    says: that is not above
    `>=` lets the search go on for a sentence that at best is as good, and not *above*.
n to the power of alpha
    ((5 + max_len) / 6) ** alpha => max_len**alpha
    says: -10.1 / 5 = -2.02
    The divisor is ((5 + n) / 6) to the power of alpha, not n itself.
alpha capped at 1
    ** alpha > worst => ** min(alpha, 1) > worst
    says: the divisor is 5² = 25
    alpha may be any number from 0 on.
"""
