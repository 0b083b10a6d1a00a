"""Answers to chapter 16: references and mistakes."""

from tinytf_course.grading import Answers, WrongAnswer

# 16.1 a step of beam search


def my_beam_step(alive, log_probs):
    """The K best ways to continue K prefixes by one token: (totals, beams, tokens), each (K,).

    alive (K,) holds the prefixes' log-probabilities, log_probs (K, V) those of the next token.
    Best first; `beams` holds the index of the continued prefix, `tokens` the token.
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
            "so has everything that continues it",
            "A log-probability of minus infinity is probability 0. As 0 it would be certain.",
        ),
    ),
)


# 16.2 when to stop


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
            "n to the power of alpha",
            _bounded_by(lambda length, alpha, max_len: max_len**alpha),
            "-10.1 / 5 = -2.02",
            "The divisor is ((5 + n) / 6) to the power of alpha, not n itself.",
        ),
        WrongAnswer(
            "it always may",
            lambda log_prob, length, worst, alpha, max_len: True,
            "it is below already and can only fall",
            "Then the search never stops early, and the question saves nothing.",
        ),
        WrongAnswer(
            "alpha capped at 1",
            _up_to_one,
            "the divisor is 5² = 25",
            "alpha may be any number from 0 on.",
        ),
    ),
)


# 16.3 a beam search to repair


def my_search(follow, beam, alpha, max_len):
    """The best sentence that a beam finds, and its score: (tuple of words, float).

    follow(prefix) gives {word: log-probability} for the words after a tuple of words. A score is
    the log-probability / ((5 + n) / 6) ** alpha, with n words, "<eos>" included. What still lives
    after max_len steps counts as it is.
    """
    alive, finished = {(): 0.0}, {}
    for _ in range(max_len):
        grown = {}
        for prefix, total in alive.items():
            for word, log_p in follow(prefix).items():
                grown[(*prefix, word)] = total + log_p
        best = sorted(grown, key=grown.get, reverse=True)[: 2 * beam]
        finished |= {p: grown[p] for p in best if p[-1] == "<eos>"}
        going = [p for p in best if p[-1] != "<eos>"][:beam]
        alive = {p: grown[p] for p in going}
    finished |= alive
    scores = {p: total / ((5 + len(p)) / 6) ** alpha for p, total in finished.items()}
    winner = max(scores, key=scores.get)
    return winner, scores[winner]


def _searcher(past=True, look=2, ended_leave=True, cut=True, rank=None, tell=None):
    """A `my_search` with one of its rules changed; `rank` and `tell` are f(total, n, alpha)."""

    def score(total, n, alpha):
        return total / ((5 + n) / 6) ** alpha

    rank, tell = rank or score, tell or score

    def search(follow, beam, alpha, max_len):
        alive, finished = {(): 0.0}, {}
        for _ in range(max_len):
            grown = {
                (*prefix, word): (total if past else 0.0) + log_p
                for prefix, total in alive.items()
                for word, log_p in follow(prefix).items()
            }
            best = sorted(grown, key=grown.get, reverse=True)[: look * beam]
            finished |= {p: grown[p] for p in best if p[-1] == "<eos>"}
            alive = {p: grown[p] for p in best if not ended_leave or p[-1] != "<eos>"}
            alive = {p: alive[p] for p in list(alive)[:beam]}
        finished |= alive if cut else {}
        winner = max(finished, key=lambda p: rank(finished[p], len(p), alpha))
        return winner, tell(finished[winner], len(winner), alpha)

    return search


def _in_their_dictionary(follow, beam, alpha, max_len):
    totals = {(): 0.0}

    def grown(prefix):
        found = follow(prefix)
        for word in found:
            found[word] += totals[prefix]
            totals[(*prefix, word)] = found[word]
        return found

    return _searcher(past=False)(grown, beam, alpha, max_len)


def _too_few_steps(follow, beam, alpha, max_len):
    return my_search(follow, beam, alpha, max_len - 1)


def _scored(rule):
    """The search with another score, compared and returned."""
    return _searcher(rank=rule, tell=rule)


REPAIR = Answers(
    reference=my_search,
    equivalent={
        "finished |= alive => finished |= grown": "the best of the last step is looked at anyway",
        "winner = max(scores, … => winner = max(finished, …": "both have the same keys",
    },
    wrong=(
        WrongAnswer(
            "the past forgotten",
            _searcher(past=False),
            "of 'the cat sat <eos>', you get 0, expected -1.532",
            "A likely word after an unlikely beginning is still unlikely: a prefix grows by "
            "adding, `total + log_p`.",
        ),
        WrongAnswer(
            "written into what `follow` gives",
            _in_their_dictionary,
            "which is not yours",
            "A `follow` that looks things up gives the same dictionary again next time. Put the "
            "sums into one of your own.",
        ),
        WrongAnswer(
            "only K looked at",
            _searcher(look=1),
            "you get 'we <eos>', expected 'we sat down <eos>'",
            "What ends takes a place among the K best, and too few are left to live on: look at "
            "2 * beam.",
        ),
        WrongAnswer(
            "3K looked at",
            _searcher(look=3),
            "you get 'c <eos>', expected 'c d b d c'",
            "Asked are the 2 * beam best: a third candidate of one beam is not looked at.",
        ),
        WrongAnswer(
            "what has ended lives on",
            _searcher(ended_leave=False),
            "you get 'we <eos> <eos>",
            "After <eos> nothing follows: what has ended leaves the beam.",
        ),
        WrongAnswer(
            "what max_len cuts is forgotten",
            _searcher(cut=False),
            "you get '<eos>', expected 'so so so so'",
            "After the last step the living are finished as they are; otherwise a language that "
            "seldom ends has no sentence at all.",
        ),
        WrongAnswer(
            "the likeliest wins",
            _searcher(rank=lambda total, n, alpha: total),
            "you get '<eos>', expected 'so so so so so so <eos>'",
            "Compare the scores: log-probabilities divided by the length penalty.",
        ),
        WrongAnswer(
            "the penalty left out",
            _scored(lambda total, n, alpha: total),
            "you get '<eos>', expected 'so so so so so so <eos>'",
            "Both what is compared and what is returned is the score, after the penalty.",
        ),
        WrongAnswer(
            "the log-probability returned",
            _searcher(tell=lambda total, n, alpha: total),
            "the score of 'we sat down <eos>', you get -1.715",
            "The winner is right. Return its score, which is what was compared.",
        ),
        WrongAnswer(
            "divided by the length",
            _scored(lambda total, n, alpha: total / n**alpha),
            "the score of 'we sat down <eos>', you get -0.1072",
            "The penalty is ((5 + n) / 6)^alpha, which makes less of a first word than n does.",
        ),
        WrongAnswer(
            "multiplied by the penalty",
            _scored(lambda total, n, alpha: total * ((5 + n) / 6) ** alpha),
            "you get '<eos>', expected 'we sat down <eos>'",
            "Log-probabilities are negative: multiplying makes long sentences worse still.",
        ),
        WrongAnswer(
            "<eos> not counted",
            _scored(lambda total, n, alpha: total / ((4 + n) / 6) ** alpha),
            "the score of 'we sat down <eos>', you get -0.9646",
            "n counts all words of the sentence, <eos> included.",
        ),
        WrongAnswer(
            "a step too few",
            _too_few_steps,
            "you get 'so so so', expected 'so so so so'",
            "A sentence may have max_len words: as many steps.",
        ),
    ),
)


ANSWERS = {
    "16.1": STEP,
    "16.2": STOP,
    "16.3": REPAIR,
}
