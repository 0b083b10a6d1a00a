"""Answers to chapter 11: references and mistakes."""

import math
from collections import Counter

import torch

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


# 11.3 clipped counts


def my_clipped_matches(translation, references, n):
    """How many n-grams of the translation a reference holds, clipped, and how many there are.

    translation is a list of words, references a list of such lists. Each n-gram counts at most as
    often as it stands in the one reference that has it most often.
    """

    def ngrams(words):
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    have, allowed = ngrams(translation), Counter()
    for reference in references:
        allowed |= ngrams(reference)  # the larger count of each
    return (have & allowed).total(), have.total()


def _grams(words, n, step=1):
    return Counter(tuple(words[i : i + n]) for i in range(0, len(words) - n + 1, step))


def _matcher(allow, match=lambda have, allowed: (have & allowed).total(), step=1):
    """A `my_clipped_matches` with one thing wrong."""

    def matches(translation, references, n):
        have = _grams(translation, n, step)
        allowed = Counter()
        for reference in references:
            allowed = allow(allowed, _grams(reference, n, step))
        return match(have, allowed), have.total()

    return matches


def _either(one, other):
    return one | other


def _recall(translation, references, n):
    found, _ = my_clipped_matches(translation, references, n)
    return found, max(_grams(reference, n).total() for reference in references)


def _unordered(translation, references, n):
    def ngrams(words):
        return Counter(frozenset(words[i : i + n]) for i in range(len(words) - n + 1))

    allowed = Counter()
    for reference in references:
        allowed |= ngrams(reference)
    return (ngrams(translation) & allowed).total(), ngrams(translation).total()


def _glued(translation, references, n):
    def ngrams(words):
        return Counter("".join(words[i : i + n]) for i in range(len(words) - n + 1))

    allowed = Counter()
    for reference in references:
        allowed |= ngrams(reference)
    return (ngrams(translation) & allowed).total(), ngrams(translation).total()


def _negative_total(translation, references, n):
    return my_clipped_matches(translation, references, n)[0], len(translation) - n + 1


def _at_least_one(translation, references, n):
    found, total = my_clipped_matches(translation, references, n)
    return found, max(total, 1)


def _by_its_ends(translation, references, n):
    def ends(words):
        return Counter((words[i], words[i + n - 1]) for i in range(len(words) - n + 1))

    allowed = Counter()
    for reference in references:
        allowed |= ends(reference)
    return (ends(translation) & allowed).total(), max(len(translation) - n + 1, 0)


def _cut_short(translation, references, n):
    def ngrams(words):
        return Counter(tuple(words[i : i + n]) for i in range(len(words)))

    allowed = Counter()
    for reference in references:
        allowed |= ngrams(reference)
    return (ngrams(translation) & allowed).total(), ngrams(translation).total()


def _best_single(translation, references, n):
    return max(my_clipped_matches(translation, [reference], n) for reference in references)


CLIPPED = Answers(
    reference=my_clipped_matches,
    equivalent={},
    wrong=(
        WrongAnswer(
            "not clipped",
            _matcher(_either, lambda have, allowed: sum(have[g] for g in have if g in allowed)),
            "you get [7, 7], expected [2, 7]",
            "Saying one common word over and over would score a precision of 1.",
        ),
        WrongAnswer(
            "each n-gram once",
            _matcher(_either, lambda have, allowed: len(set(have) & set(allowed))),
            "you get [1, 7], expected [2, 7]",
            "A word that is right twice counts twice: compare counts, not sets.",
        ),
        WrongAnswer(
            "references added up",
            _matcher(lambda one, other: one + other),
            "you get [3, 7], expected [2, 7]",
            "Counts of different references are not added: two references with `the mat` do not "
            "allow it twice. Take the largest.",
        ),
        WrongAnswer(
            "only the first reference",
            lambda translation, references, n: my_clipped_matches(translation, references[:1], n),
            "`a` stands in the second reference",
            "Any of the references may hold the n-gram.",
        ),
        WrongAnswer(
            "the best single reference",
            _best_single,
            "`a` stands in the second reference",
            "Each n-gram may be found in another reference: put their counts together with `|`, "
            "then compare once.",
        ),
        WrongAnswer(
            "order ignored",
            _unordered,
            "The order counts",
            "A set forgets the order of its words, and `dog bites man` is not `man bites dog`: "
            "count tuples.",
        ),
        WrongAnswer(
            "words glued together",
            _glued,
            "These are other words",
            "Without a space between them, two pairs of words may spell the same string: count "
            "tuples.",
        ),
        WrongAnswer(
            "n-grams side by side",
            lambda translation, references, n: _matcher(_either, step=n)(
                translation, references, n
            ),
            "`the cat`, `cat is`, `is on`",
            "n-grams overlap: one begins at every word.",
        ),
        WrongAnswer(
            "recall",
            _recall,
            "you get [7, 7], expected [7, 8]",
            "BLEU is about precision: the total counts what the translation says, not what the "
            "reference says. (Leaving out is for the brevity penalty.)",
        ),
        WrongAnswer(
            "fewer than none",
            _negative_total,
            "No count is below 0",
            "`len - n + 1` is negative where the sentence is shorter than n - 1: over a corpus it "
            "takes away from the others' total.",
        ),
        WrongAnswer(
            "at least one n-gram",
            _at_least_one,
            "There is no pair of words",
            "A sentence too short has no n-gram; a total of 1 lowers the corpus' precision. Guard "
            "against dividing by 0 where you divide.",
        ),
        WrongAnswer(
            "only its ends compared",
            _by_its_ends,
            "The words between the first and the last count",
            "An n-gram is all of its n words.",
        ),
        WrongAnswer(
            "pieces at the end counted",
            _cut_short,
            "`the cat`, `cat is`, `is on`",
            "At the last n - 1 words a slice is shorter than n: those are no n-grams.",
        ),
    ),
)


# 11.4 the brevity penalty


def my_brevity_penalty(lengths, reference_lengths):
    """BLEU's brevity penalty of a corpus: e^(1 - r/c) if c < r, else 1.

    lengths holds the number of words of each translation, reference_lengths those of the
    references; c and r are their sums.
    """
    c, r = sum(lengths), sum(reference_lengths)
    return math.exp(min(0, 1 - r / c))


def _mean_of_sentences(lengths, reference_lengths):
    each = [math.exp(min(0, 1 - r / c)) for c, r in zip(lengths, reference_lengths, strict=True)]
    return sum(each) / len(each)


def _penalty(rule):
    return lambda lengths, reference_lengths: rule(sum(lengths), sum(reference_lengths))


BREVITY = Answers(
    reference=my_brevity_penalty,
    equivalent={},
    wrong=(
        WrongAnswer(
            "the mean of the sentences' penalties",
            _mean_of_sentences,
            "16 words for 16",
            "A sentence may be short if another makes up for it: BLEU sums lengths over the "
            "corpus, and divides once.",
        ),
        WrongAnswer(
            "a reward for length",
            _penalty(lambda c, r: math.exp(1 - r / c)),
            "Precision has punished them already",
            "Above c = r the exponent is positive, and the longest translation would win. Cap the "
            "factor at 1.",
        ),
        WrongAnswer(
            "c and r swapped",
            _penalty(lambda c, r: math.exp(min(0, 1 - c / r))),
            "10 words for 16",
            "This punishes words too many and forgives words too few.",
        ),
        WrongAnswer(
            "the plain ratio",
            _penalty(lambda c, r: min(1, c / r)),
            "10 words for 16",
            "BLEU takes e^(1 - r/c), which falls faster than c / r where c is small.",
        ),
        WrongAnswer(
            "rounded",
            lambda lengths, reference_lengths: round(
                my_brevity_penalty(lengths, reference_lengths), 3
            ),
            "you get 0.549",
            "Scores are rounded where they are printed. BLEU multiplies this factor further.",
        ),
    ),
)


# 11.5 a cache that grows


def my_append(cache, k, v):
    """Add new keys and values after the cached ones; return all of them, as (k, v).

    cache is None, or the pair that the last call returned. k and v are (B, H, new, D).
    """
    if cache is None:
        return k, v
    return torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)


def _along(axis):
    def append(cache, k, v):
        if cache is None:
            return k, v
        return torch.cat([cache[0], k], dim=axis), torch.cat([cache[1], v], dim=axis)

    return append


def _new_first(cache, k, v):
    if cache is None:
        return k, v
    return torch.cat([k, cache[0]], dim=2), torch.cat([v, cache[1]], dim=2)


def _keys_only(cache, k, v):
    return (k, v) if cache is None else (torch.cat([cache[0], k], dim=2), v)


def _values_of_keys(cache, k, v):
    if cache is None:
        return k, v
    keys = torch.cat([cache[0], k], dim=2)
    return keys, torch.cat([cache[1], k], dim=2)


def _window(cache, k, v):
    k, v = my_append(cache, k, v)
    return k[:, :, -4:], v[:, :, -4:]


CACHE = Answers(
    reference=my_append,
    equivalent={},
    wrong=(
        WrongAnswer(
            "joined along the width",
            _along(-1),
            "k",
            "The last axis is D, the numbers of one position. New positions go along axis 2.",
        ),
        WrongAnswer(
            "joined along the batch",
            _along(0),
            "k",
            "Axis 0 counts sentences: the new position would become other sentences' past.",
        ),
        WrongAnswer(
            "joined along the heads",
            _along(1),
            "k",
            "Axis 1 counts heads. New positions go along axis 2.",
        ),
        WrongAnswer(
            "the new ones first",
            _new_first,
            "expected [[0, 1], [2, 3], [4, 5], [-100, -100]]",
            "Attention over all of them would not notice, since no mask is applied at one new "
            "position. The next chunk of several, with its mask, would.",
        ),
        WrongAnswer(
            "values not kept",
            _keys_only,
            "v, the shape is (2, 2, 1, 2), expected (2, 2, 4, 2)",
            "Values are looked up by the same weights: there must be one for every key.",
        ),
        WrongAnswer(
            "keys kept as values",
            _values_of_keys,
            "v, position [0, 0, 3, 0] is -100, expected -200",
            "A slip of copy and paste that no shape can show.",
        ),
        WrongAnswer(
            "an empty cache not expected",
            lambda cache, k, v: (torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)),
            "raises TypeError",
            "Before the first step there is nothing: `cache` is None, and the new ones are all.",
        ),
        WrongAnswer(
            "a window of the last few",
            _window,
            "9 positions, one by one, k",
            "Every word so far may be attended to; a cache that forgets changes the answer. "
            "(Models with sliding windows do so on purpose.)",
        ),
        WrongAnswer(
            "only the new ones",
            lambda cache, k, v: (k, v),
            "k[0, 0], the shape is (1, 2), expected (4, 2)",
            "The past has to be returned too: the new query attends to all of it.",
        ),
        WrongAnswer(
            "float32 whatever comes",
            lambda cache, k, v: tuple(x.float() for x in my_append(cache, k, v)),
            "the dtype is float32, expected float64",
            "A cache in another dtype than the model's does not meet its queries.",
        ),
    ),
)

ANSWERS = {
    "11.1": STEP,
    "11.2": STOP,
    "11.3": CLIPPED,
    "11.4": BREVITY,
    "11.5": CACHE,
}
