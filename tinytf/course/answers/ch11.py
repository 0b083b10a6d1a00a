"""Answers to chapter 11: references and mistakes."""

from tinytf.course.grading import Answers, WrongAnswer

# 11.1 a step of beam search


def my_beam_step(alive, log_probs):
    """The K best ways to continue K prefixes by one token: (totals, beams, tokens), each (K,).

    alive (K,) holds the prefixes' log-probabilities, log_probs (K, V) those of the next token.
    Best first; `beams` says which prefix is continued, `tokens` by which token.
    """
    total = alive[:, None] + log_probs  # (K, V)
    totals, index = total.flatten().topk(alive.size(0))
    return totals, index // log_probs.size(1), index % log_probs.size(1)


def _each_for_itself(alive, log_probs):
    best, tokens = log_probs.max(dim=-1)
    totals, beams = (alive + best).sort(descending=True)
    return totals, beams, tokens[beams]


def _from(total, K, V):
    totals, index = total.flatten().topk(K)
    return totals, index // V, index % V


def _no_past(alive, log_probs):
    return _from(log_probs, *log_probs.shape)


def _multiplied(alive, log_probs):
    return _from(alive[:, None] * log_probs, *log_probs.shape)


def _swapped(alive, log_probs):
    totals, beams, tokens = my_beam_step(alive, log_probs)
    return totals, tokens, beams


def _by_beams(alive, log_probs):
    totals, index = (alive[:, None] + log_probs).flatten().topk(alive.size(0))
    return totals, index // alive.size(0), index % alive.size(0)


def _by_the_last_word(alive, log_probs):
    _, index = log_probs.flatten().topk(alive.size(0))
    beams, tokens = index // log_probs.size(1), index % log_probs.size(1)
    return alive[beams] + log_probs[beams, tokens], beams, tokens


def _twice_as_many(alive, log_probs):
    return _from(alive[:, None] + log_probs, 2 * alive.size(0), log_probs.size(1))


def _fractions(alive, log_probs):
    totals, index = (alive[:, None] + log_probs).flatten().topk(alive.size(0))
    return totals, index / log_probs.size(1), index % log_probs.size(1)


def _in_half(alive, log_probs):
    return _from((alive[:, None] + log_probs).half(), *log_probs.shape)


def _finite(alive, log_probs):
    return my_beam_step(alive.nan_to_num(neginf=0.0), log_probs)


_NO_GRADIENT = "a search takes no gradients, and a loop over numbers has none"
_PLACES = "places carry no gradient"

STEP = Answers(
    reference=my_beam_step,
    equivalent={
        "total = … => ….detach()…": _NO_GRADIENT,
        "totals, index = … => ….detach()…": _NO_GRADIENT,
        "return (totals, … => return (totals.detach(), …": _NO_GRADIENT,
        "return (totals, … => …index.detach() …": _PLACES,
        "… => totals, index = total.flatten().topk(…size(…))": "K is the size of all three",
        "return … => …total.size(1)…": "the sums have a column for each token",
    },
    wrong=(
        WrongAnswer(
            "each prefix for itself",
            _each_for_itself,
            "Both of the best continue prefix 0",
            "Taking the best token after each prefix keeps every prefix alive for ever: that is "
            "K greedy searches. The K best of all K x V continuations go on.",
        ),
        WrongAnswer(
            "the past forgotten",
            _no_past,
            "totals, you get [-0.1, -0.2, -0.3]",
            "A likely word after an unlikely beginning is still unlikely: add the prefix's own "
            "log-probability.",
        ),
        WrongAnswer(
            "log-probabilities multiplied",
            _multiplied,
            "log p(prefix) + log p(token)",
            "Probabilities multiply, so their logarithms add.",
        ),
        WrongAnswer(
            "prefix and token swapped",
            _swapped,
            "beams, you get [2, 0, 3], expected [0, 1, 1]",
            "In the flat (K, V) tensor the whole part of i / V is the row, the prefix; the rest is "
            "the token.",
        ),
        WrongAnswer(
            "divided by K",
            _by_beams,
            "tokens, you get",
            "A row of the (K, V) tensor is V long, so the row of entry i is i // V, not i // K.",
        ),
        WrongAnswer(
            "ranked by the last word alone",
            _by_the_last_word,
            "log p(prefix) + log p(token)",
            "The totals are right, but they are not those of the K best: add the prefix's "
            "log-probability before `topk`, not after.",
        ),
        WrongAnswer(
            "2K of them",
            _twice_as_many,
            "expected (3,)",
            "`candidates` in the chapter looks at 2K because some end; here the K best are asked.",
        ),
        WrongAnswer(
            "a fraction of a beam",
            _fractions,
            "beams, you get",
            "`/` divides exactly, and 7 / 5 is no row: `//` gives the whole part.",
        ),
        WrongAnswer(
            "totals rounded to half precision",
            _in_half,
            "the dtype is float16",
            "Near 2000 float16 knows only whole numbers, and prefixes that differ become equal.",
        ),
        WrongAnswer(
            "a dead prefix revived",
            _finite,
            "what continues it is none",
            "A log-probability of minus infinity is probability 0. As 0 it would be certain.",
        ),
    ),
)


# 11.2 when to stop


def my_can_overtake(log_prob, length, worst, alpha, max_len):
    """Whether a living prefix may still end with a score above `worst`.

    The prefix has `length` tokens and this log-probability in nats; a sentence of n tokens is
    scored by its log-probability / ((5 + n) / 6) ** alpha, and has at most max_len tokens.
    """
    return log_prob / ((5 + max_len) / 6) ** alpha > worst


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


def _at_least(log_prob, length, worst, alpha, max_len):
    return log_prob / ((5 + max_len) / 6) ** alpha >= worst


def _up_to_one(log_prob, length, worst, alpha, max_len):
    return log_prob / ((5 + max_len) / 6) ** min(alpha, 1) > worst


def _inverted(*arguments):
    return not my_can_overtake(*arguments)


STOP = Answers(
    reference=my_can_overtake,
    equivalent={},
    wrong=(
        WrongAnswer(
            "the divisor of today's length",
            _now,
            "at 25 tokens the divisor is 5",
            "The prefix will grow, and its divisor with it: the score may still rise. Hugging "
            "Face's `early_stopping=False` stops by this rule, and calls it a heuristic.",
        ),
        WrongAnswer(
            "the divisor of the next length",
            _next,
            "at 25 tokens the divisor is 5",
            "It need not end with the next token: the bound needs the longest sentence there is.",
        ),
        WrongAnswer(
            "max_len tokens more",
            _further,
            "-12 / 5 = -2.4",
            "`max_len` is the length of the whole sentence, the prefix included.",
        ),
        WrongAnswer(
            "no penalty at all",
            _plain,
            "at 25 tokens the divisor is 5",
            "`worst` is a score, already divided by its penalty; divide both or neither.",
        ),
        WrongAnswer(
            "alpha forgotten",
            _no_alpha,
            "it is below already and can only fall",
            "The divisor is raised to the power alpha; with alpha = 0 it is 1.",
        ),
        WrongAnswer(
            "multiplied by the penalty",
            _times,
            "at 25 tokens the divisor is 5",
            "Log-probabilities are negative: multiplying makes long sentences worse still.",
        ),
        WrongAnswer(
            "the answer the wrong way round",
            _inverted,
            "it is below already and can only fall",
            "True means that the search has to go on.",
        ),
        WrongAnswer(
            "one token less than max_len",
            _one_less,
            "divisor 30 / 6, and -9.9 / 5",
            "`n` may be `max_len` itself: `max_len - 1`, or a `range` that ends at `max_len`, "
            "leaves the best sentence out, and the search stops too early.",
        ),
        WrongAnswer(
            "one token more than max_len",
            _one_more,
            "divisor 30 / 6, and -10.1 / 5",
            "No sentence has more than `max_len` tokens: the search goes on for a score that "
            "cannot come.",
        ),
        WrongAnswer(
            "a tie counted as above",
            _at_least,
            "that is not above",
            "`>=` lets the search go on for a sentence that at best is as good: asked is whether "
            "it may end *above*.",
        ),
        WrongAnswer(
            "alpha capped at 1",
            _up_to_one,
            "the divisor is 5² = 25",
            "alpha may be any number from 0 on.",
        ),
    ),
)


ANSWERS = {"11.1": STEP, "11.2": STOP}
