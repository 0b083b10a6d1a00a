"""Answers to chapter 20: references and mistakes."""

import math

import torch

from tinytf_course.exercises.ch20 import INF, Z, _nats
from tinytf_course.grading import Answers, WrongAnswer


def _out(logits, hide):
    return logits.masked_fill(hide, -INF)


# 20.1 repair a top-p


def _in_the_graph_no_more(keep):
    """A rule whose result is cut off from the graph."""
    return lambda logits, *arguments: keep(logits, *arguments).detach()


_PLACES = "places and masks carry no gradient"
_TWO_AXES = "there are two axes: 1 is the last"


def my_top_p(logits, p, least=1):
    """Keep the fewest tokens that hold p, but `least` or more, in each row of logits (B, V).

    The others get -inf.
    """
    ranked, order = logits.sort(dim=-1, descending=True)
    probs = ranked.softmax(dim=-1)
    before = probs.cumsum(dim=-1) - probs  # what the likelier ones hold without this token
    enough = before >= p
    enough[:, :least] = False
    out = torch.zeros_like(enough).scatter(-1, order, enough)
    return logits.masked_fill(out, -math.inf)


def _nucleus(
    enough=lambda total, p: total >= p, shift=True, back="scatter", order=True, spare=True
):
    def answer(logits, p, least=1):
        ranked, ids = logits.sort(dim=-1, descending=True)
        if not order:
            ranked, ids = logits, torch.arange(logits.size(-1)).expand_as(logits)
        out = enough(ranked.softmax(-1).cumsum(-1), p)
        if shift:
            out = torch.cat([torch.zeros_like(out[:, :1]), out[:, :-1]], dim=1)
        if spare:
            out[:, :least] = False
        if back == "row 0":
            logits[0, ids[out]] = -INF
            return logits
        if back == "scatter":
            out = torch.zeros_like(out).scatter(1, ids, out)
        return _out(logits, out)

    return answer


def _rolled(logits, p, least=1):
    ranked, order = logits.sort(dim=-1, descending=True)
    out = (ranked.softmax(-1).cumsum(-1) >= p).roll(least, -1)
    out[:, :least] = False
    return _out(logits, torch.zeros_like(out).scatter(-1, order, out))


def _row_0_asks(logits, p, least=1):
    nucleus = my_top_p(logits, p)
    if int(nucleus[0].isfinite().sum()) >= least:
        return nucleus
    return _out(logits, logits < logits.topk(least).values[:, -1:])


def _all_rows_ask(logits, p, least=1):
    nucleus = my_top_p(logits, p)
    if bool((nucleus.isfinite().sum(-1) >= least).all()):
        return nucleus
    return _out(logits, logits < logits.topk(least).values[:, -1:])


def _summed_in_half(logits, p, least=1):
    return _out(logits, my_top_p(logits.half(), p, least).isinf())


TOP_P = Answers(
    reference=my_top_p,
    equivalent={
        "probs = … => ….detach()…": _PLACES,
        "before = … => ….detach()…": _PLACES,
        "enough… => …detach()…": _PLACES,
        "out = … => ….detach()…": _PLACES,
        "return … => …out.detach()…": _PLACES,
        "ranked, order = … => ranked, order = logits.detach().sort(…": _PLACES,
        "ranked, order = … => ranked, order = logits.sort(descending=True)": "-1 is the default",
        "… => …dim=1…": _TWO_AXES,
        "out = … => ….scatter(1, …": _TWO_AXES,
        "… => ….double()": "only compared, and no less exactly",
        "before = … => before = probs.cumsum(dim=-1) - probs.float()": "wrong by 1e-8 at most",
        "out = … => out = enough.scatter(…": "every place is written over",
        "out = … => out = torch.ones_like(…": "every place is written over",
    },
    wrong=(
        WrongAnswer(
            "all rows' tokens removed from row 0",
            _nucleus(enough=lambda total, p: total > p, back="row 0"),
            "Row 1 is surer",
            "Indexing with a mask flattens it: row 0 loses what any row rules out, the others keep "
            "everything. With one row it works.",
        ),
        WrongAnswer(
            "one token too many at a tie",
            _nucleus(enough=lambda total, p: total > p),
            "you keep 3 tokens, expected 2",
            "With `>` a set that holds exactly p is not yet complete, and one more comes in.",
        ),
        WrongAnswer(
            "the token that reaches p is lost",
            _nucleus(shift=False),
            "0.5 + 0.25 reaches 0.7",
            "The running sum counts the token itself. It is out only if the sum *before* it has "
            "reached p; else the set holds less than p, and may be empty.",
        ),
        WrongAnswer(
            "not sorted",
            _nucleus(order=False),
            "0.5 + 0.25 reaches 0.7",
            "A running sum in the order of the ids keeps the first tokens of the vocabulary, not "
            "the likeliest.",
        ),
        WrongAnswer(
            "the mask left in sorted order",
            _nucleus(back="none"),
            "0.5 + 0.25 reaches 0.7",
            "Column j of the sorted mask is the j-th likeliest token, not token j. Scatter it.",
        ),
        WrongAnswer(
            "a threshold on each probability",
            lambda logits, p, least=1: _out(logits, logits.softmax(-1) < 1 - p),
            "p=0.1, you keep the tokens",
            "p is a share of the sum, not a bound for each token.",
        ),
        WrongAnswer(
            "least forgotten",
            _nucleus(spare=False),
            "Two are asked for",
            "Where one token alone holds p, the others went, whatever `least` says.",
        ),
        WrongAnswer(
            "the lowest ids spared",
            lambda logits, p, least=1: my_top_p(logits, p).where(
                torch.arange(logits.size(-1)) >= least, logits
            ),
            "0.5 + 0.25 reaches 0.7",
            "`[:, :least]` was applied after the mask had gone back to the tokens' own places: do "
            "it in sorted order.",
        ),
        WrongAnswer(
            "returns probabilities",
            lambda logits, p, least=1: (
                my_top_p(logits, p).softmax(-1).where(my_top_p(logits, p) > -INF, -INF)
            ),
            "for the logits",
            "Return logits, so that the next rule, or the draw, can go on from them.",
        ),
        WrongAnswer(
            "moved by `least`",
            _rolled,
            "`least` asks for no more than `p` does",
            "The mask was moved by `least` places instead of one: a nucleus that has enough gets "
            "`least - 1` tokens more. Move by one, then spare the first `least`.",
        ),
        WrongAnswer(
            "row 0 decides about `least`",
            _row_0_asks,
            "row 1 needs one, and two are asked for",
            "Some rows have enough tokens and others have not: decide in every row.",
        ),
        WrongAnswer(
            "all rows get `least` if one needs it",
            _all_rows_ask,
            "Row 1 needs three",
            "A row whose nucleus is larger than `least` keeps its nucleus.",
        ),
        WrongAnswer(
            "cut off from the graph",
            _in_the_graph_no_more(my_top_p),
            "no gradient reaches `logits`",
            "What stays is the logit itself: `masked_fill` and `where` let gradients through.",
        ),
    ),
)


# 20.2 a penalty of the right strength


def my_alpha(logits, ids, share):
    """Find the presence penalty after which what a row has said holds `share` of its probability.

    logits is (B, V), ids (B, T), share a number between 0 and 1; returns one strength a row, (B,).
    """
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
    said = logits.masked_fill(~seen, -math.inf).logsumexp(dim=-1)
    new = logits.masked_fill(seen, -math.inf).logsumexp(dim=-1)
    return (said - new) - math.log(share / (1 - share))  # the odds now, over those wished


def _marked(logits, ids):
    return torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)


def _odds(held, share):
    return (held / (1 - held)).log() - math.log(share / (1 - share))


def _held(logits, ids):
    return (logits.softmax(-1) * _marked(logits, ids)).sum(-1)


def _for_all_rows(logits, ids, share):
    said = _marked(logits, ids).any(0, keepdim=True).expand_as(logits)
    return _odds((logits.softmax(-1) * said).sum(-1), share)


def _filled(logits, ids, share):
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
    said, new = (logits.masked_fill(~which, -1e4).logsumexp(1) for which in (seen, ~seen))
    return said - new - math.log(share / (1 - share))


PENALTY = Answers(
    reference=my_alpha,
    equivalent={
        "seen = … => ….detach()…": _PLACES,
        "said = … => …(~seen.detach(),…": _PLACES,
        "new = … => …seen.detach(),…": _PLACES,
        "seen = … => …zeros_like(logits.float(),…": "only the shape is taken",
        "said = … => ….logsumexp(dim=1)": _TWO_AXES,
        "new = … => ….logsumexp(dim=1)": _TWO_AXES,
    },
    wrong=(
        WrongAnswer(
            "probabilities, not odds",
            lambda logits, ids, share: (_held(logits, ids) / share).log(),
            "Their odds are 1 now",
            "A penalty multiplies odds, not probabilities: what the said tokens lose, the others "
            "gain, and both sides of the ratio move.",
        ),
        WrongAnswer(
            "turned round",
            lambda logits, ids, share: -my_alpha(logits, ids, share),
            "Their odds are 1 now",
            "The sign: α is subtracted, so a larger one makes the odds smaller.",
        ),
        WrongAnswer(
            "the factor itself",
            lambda logits, ids, share: my_alpha(logits, ids, share).exp(),
            "Their odds are 1 now",
            "That is what the odds are divided by; α is its logarithm.",
        ),
        WrongAnswer(
            "never negative",
            lambda logits, ids, share: my_alpha(logits, ids, share).clamp(min=0),
            "a penalty that rewards",
            "Where the said tokens hold less than is wished, α must lift them.",
        ),
        WrongAnswer(
            "once for every time",
            lambda logits, ids, share: _odds(logits.softmax(-1).gather(1, ids).sum(-1), share),
            "not how often",
            "`gather` takes a token's probability each time it was said. Mark tokens, then sum.",
        ),
        WrongAnswer(
            "one history for all rows",
            _for_all_rows,
            "Row 0 has said the tokens 0 and 1",
            "Rows of a batch don't know each other: what one has said is no business of the next.",
        ),
        WrongAnswer(
            "one strength for all rows",
            lambda logits, ids, share: _odds(_held(logits, ids).mean(), share).expand(len(logits)),
            "Row 0 has said the tokens 0 and 1",
            "Each row holds another share now, and needs a strength of its own.",
        ),
        WrongAnswer(
            "1 minus what rounds to 1",
            lambda logits, ids, share: _odds(_held(logits, ids), share),
            "rounds to 1 is 0",
            "The formula is right, the arithmetic is not: `logsumexp` of the said logits minus "
            "that of the others is the same logarithm, and nothing rounds away.",
        ),
        WrongAnswer(
            "left out by -10,000",
            _filled,
            "below any number but -inf",
            "-10,000 is a logit like any other, and larger than some. Only e^-inf is 0.",
        ),
        WrongAnswer(
            "cut off from the graph",
            lambda logits, ids, share: my_alpha(logits, ids, share).detach(),
            "no gradient reaches `logits`",
            "A new tensor made of numbers has no past.",
        ),
    ),
)


# 20.3 rows that end, each on its own


def my_finish(ids, end_id):
    """End each row of a batch on its own: ids (B, T), drawn without stopping -> (B, N), N <= T.

    What comes after a row's first end_id becomes end_id. N is where the last row has ended, or T
    if some row never does.
    """
    ended = (ids == end_id).cumsum(dim=1) > 0  # from the first end on
    steps = int((~ended).sum(dim=1).max()) + 1  # the longest row, and its end
    return ids.masked_fill(ended, end_id)[:, :steps]


def _ended(ids, end_id):
    return (ids == end_id).cumsum(1) > 0


def _cut(ids, end_id, at):
    return ids.masked_fill(_ended(ids, end_id), end_id)[:, :at]


def _first_end(ids, end_id):
    ends = (ids == end_id).any(0).nonzero()
    return int(ends[0]) + 1 if len(ends) else ids.size(1)


def _one_column_more(ids, end_id):
    finished = _cut(ids, end_id, None)
    at = int((~_ended(ids, end_id)).sum(1).max()) + 1
    return torch.cat([finished, torch.full_like(finished[:, :1], end_id)], 1)[:, :at]


FINISH = Answers(
    reference=my_finish,
    equivalent={
        "… => ….detach()…": "ids carry no gradient",
        "steps = … => steps = (~ended).sum(dim=1).max() + 1": "a slice takes a tensor of one",
        "ended = … => ended = (ids.float() == …": "a vocabulary is below 2^24",
    },
    wrong=(
        WrongAnswer(
            "the first row that ends, ends all",
            lambda ids, end_id: _cut(ids, end_id, _first_end(ids, end_id)),
            "the others' ends are none of its business",
            "`(token == end_id).any()` stops the whole batch. It takes `all` rows to have ended.",
        ),
        WrongAnswer(
            "row 0 decides",
            lambda ids, end_id: _cut(ids, end_id, _first_end(ids[:1], end_id)),
            "the others' ends are none of its business",
            "`token[0] == end_id` looks at one row: what `.item()` on a batch crashes over.",
        ),
        WrongAnswer(
            "rows talk on",
            lambda ids, end_id: ids[:, : int((~_ended(ids, end_id)).sum(1).max()) + 1],
            "expected end tokens only",
            "The batch stops in time, but a row that ended early goes on into another text.",
        ),
        WrongAnswer(
            "never cut off",
            lambda ids, end_id: ids.masked_fill(_ended(ids, end_id), end_id),
            "the shape is (6,), expected (4,)",
            "Right, and slow: once all rows have ended, every further step is wasted.",
        ),
        WrongAnswer(
            "the end itself is lost",
            lambda ids, end_id: ids.masked_fill(_ended(ids, end_id), 0)[
                :, : my_finish(ids, end_id).size(1)
            ],
            "expected end tokens only",
            "Filling with 0 turns the end into whatever token 0 is, and nobody can tell where a "
            "row stopped.",
        ),
        WrongAnswer(
            "cut before the last end",
            lambda ids, end_id: my_finish(ids, end_id)[
                :, : int((~_ended(ids, end_id)).sum(1).max())
            ],
            "the shape is (3,), expected (4,)",
            "The longest row lost its end token: it looks as if it had been cut off.",
        ),
        WrongAnswer(
            "an end for those that never end",
            _one_column_more,
            "the shape is (2, 4), expected (2, 3)",
            "A row that has not ended keeps what it has: nothing is added.",
        ),
    ),
)


# 20.4 the temperature for a wished entropy


def my_temperature(logits, wished):
    """Find the temperature at which softmax(logits / T) has an entropy of `wished` nats.

    logits is (V,); the temperature sought lies between 0.01 and 100. Returns a number.
    """
    low, high = 0.01, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        log_p = (logits.double() / middle).log_softmax(-1)
        if -(log_p.exp() * log_p).sum() < wished:
            low = middle  # too sure of itself: warmer
        else:
            high = middle
    return middle


def _search(measure=_nats, rounds=60, up=lambda found, wished: found < wished):
    def answer(logits, wished):
        low, high = 0.01, 100.0
        for _ in range(rounds):
            middle = (low + high) / 2
            low, high = (middle, high) if up(measure(logits, middle), wished) else (low, middle)
        return middle

    return answer


def _searched_from(lowest, highest):
    def answer(logits, wished):
        return min(max(my_temperature(logits, wished), lowest), highest)

    return answer


def _with_exp(z, t):
    p = (z / t).exp() / (z / t).exp().sum()
    return float(-(p * p.log()).sum())


def _with_log(z, t):
    p = (z / t).softmax(-1)
    return float(-(p * p.log()).sum())


def _times(z, t):
    return _nats(z, 1 / t)


_ENOUGH = "the interval is below 0.001 in T long before"
_MEASURED = "the entropy is only compared with `wished`: no gradient is asked of it"
_WIDER = "a wider interval takes a round more, and there are plenty"

TEMPERATURE = Answers(
    reference=my_temperature,
    equivalent={
        "for _ in range(60): => for _ in range(…):": _ENOUGH,
        "return middle => return low": _ENOUGH,
        "return middle => return high": _ENOUGH,
        "low, high = (0.01, 100.0) => low, high = (0.0, 100.0)": _WIDER,
        "low, high = (0.01, 100.0) => low, high = (-0.01, 100.0)": _WIDER,
        "low, high = (0.01, 100.0) => low, high = (0.01, 200.0)": _WIDER,
        "low, high = (0.01, 100.0) => low, high = (0.01, 101.0)": _WIDER,
        "… => if -(log_p.exp() * log_p).sum() <= wished:": "one round of sixty goes the other way",
        "… => ….detach()…": _MEASURED,
        "… => …log_softmax(-0)": "logits have one axis",
        "… => …log_softmax(-1).float()": "right to 0.001 nats in float32, too",
        "… => …log_softmax(-1).double()": "it is double already",
        "… => log_p = (logits / middle).log_softmax(-1)": "right to 0.001 nats in float32, too",
        "… => log_p = (logits.float().double() …": "right to 0.001 nats in float32, too",
        "… => …log_p.float()…": "right to 0.001 nats in float32, too",
    },
    wrong=(
        WrongAnswer(
            "entropy in bits",
            _search(measure=lambda z, t: _nats(z, t) / math.log(2)),
            "at which the entropy is 0.3",
            "`log2` counts bits; a nat is 1.44 of them. Use the natural logarithm.",
        ),
        WrongAnswer(
            "multiplies by T",
            _search(measure=_times, up=lambda found, wished: found > wished),
            "at which the entropy is 1.1167",
            "The logits were multiplied by T: this finds 1 / T. Divide them.",
        ),
        WrongAnswer(
            "the wrong half",
            _search(up=lambda found, wished: found > wished),
            "you get T=100, at which",
            "Too little entropy asks for a higher temperature: keep the upper half then.",
        ),
        WrongAnswer(
            "too few rounds",
            _search(rounds=10),
            "you get T=0.4982",
            "Ten halvings of 100 leave 0.1 of uncertainty in T. Go on.",
        ),
        WrongAnswer(
            "returns the entropy",
            lambda logits, wished: _nats(logits, my_temperature(logits, wished)),
            "you get T=0.5, at which",
            "You return the entropy that was reached; asked is the temperature that reaches it.",
        ),
        WrongAnswer(
            "in proportion",
            lambda logits, wished: wished / _nats(logits, 1.0),
            "at which the entropy is 0.",
            "Entropy does not grow in proportion to T: its slope, Var(z) / T³, changes. Search.",
        ),
        WrongAnswer(
            "never above 1",
            lambda logits, wished: min(1.0, my_temperature(logits, wished)),
            "Above 1 the entropy changes slowly",
            "The search ended at 1. The temperature may lie anywhere up to 100.",
        ),
        WrongAnswer(
            "one temperature for all logits",
            lambda logits, wished: my_temperature(Z, wished),
            "for logits=[6, 4.5, 4, -1, -2]",
            "The answer did not look at the logits it was given.",
        ),
        WrongAnswer(
            "never below 0.1",
            _searched_from(0.1, 100.0),
            "you get T=0.1",
            "The temperature may lie anywhere from 0.01 on.",
        ),
        WrongAnswer(
            "never above 10",
            _searched_from(0.01, 10.0),
            "you get T=10",
            "The temperature may lie anywhere up to 100.",
        ),
        WrongAnswer(
            "a few rounds too few",
            _search(rounds=16),
            "It is T=0.0",
            "Where logits lie close together, T is small and has to be known more exactly. Every "
            "round halves the interval: take more.",
        ),
        WrongAnswer(
            "the exponentials overflow",
            _search(measure=_with_exp),
            "subtract the largest first",
            "exp(89) is too large for float32. `softmax` and `log_softmax` subtract the largest "
            "logit first.",
        ),
        WrongAnswer(
            "0 times log 0",
            _search(measure=_with_log),
            "and 0 · log 0 is NaN",
            "A token whose probability rounds to 0 adds nothing to the entropy, but `p * p.log()` "
            "makes it 0 · -inf. Take `log_softmax`, or leave such tokens out.",
        ),
    ),
)


# 20.5 spot the broken story


def my_first_fault(sentences):
    """Return the number, from 0, of the first sentence that makes no sense; None if all do.

    sentences: strings such as "Mia had a kite.", "Mia gave Ben the kite.", "Ben lost the kite.",
    "Ben found the kite." and "Ben carried the kite."
    """
    holder = {}  # thing -> who has it
    for number, sentence in enumerate(sentences):
        who, verb, *others, thing = sentence.rstrip(".").split()
        if verb in ("had", "found"):
            holder[thing] = who
        elif holder.get(thing) != who:
            return number
        elif verb == "gave":
            holder[thing] = others[0]
        elif verb == "lost":
            holder[thing] = None
    return None


def _spotted(give=True, lose=True, find=True, key=lambda thing: thing, needs="gave lost carried"):
    """A checker that forgets something."""

    def answer(sentences):
        holder = {}
        for number, sentence in enumerate(sentences):
            who, verb, *others, thing = sentence.rstrip(".").split()
            thing = key(thing)
            if verb == "had" or (verb == "found" and find):
                holder[thing] = who
            elif verb in needs.split() and holder.get(thing) != who:
                return number
            elif verb == "gave" and give:
                holder[thing] = others[0]
            elif verb == "lost" and lose:
                holder[thing] = None
        return None

    return answer


def _never(sentences):
    return next((None for sentence in sentences if sentence.split()), None)


def _ever_had(sentences):
    had = set()
    for number, sentence in enumerate(sentences):
        who, verb, *others, thing = sentence.rstrip(".").split()
        if verb in ("had", "found"):
            had.add((who, thing))
        elif (who, thing) not in had:
            return number
        elif verb == "gave":
            had.add((others[0], thing))
    return None


def _cause(sentences):
    fault = my_first_fault(sentences)
    if fault is None:
        return None
    thing = sentences[fault].split()[-1]
    before = [i for i in range(fault) if sentences[i].split()[-1] == thing]
    return before[-1] if before else fault


def _last_fault(sentences):
    holder, found = {}, None
    for number, sentence in enumerate(sentences):
        who, verb, *others, thing = sentence.rstrip(".").split()
        if verb in ("had", "found"):
            holder[thing] = who
        elif holder.get(thing) != who:
            found = number
        else:
            holder[thing] = {"gave": others[0], "lost": None}.get(verb, who)
    return found


def _moved(by):
    def answer(sentences):
        fault = my_first_fault(sentences)
        return None if fault is None else fault + by

    return answer


SPOT = Answers(
    reference=my_first_fault,
    equivalent={
        "return None => (nothing)": "a function that ends returns None",
        "… => if verb in ('found', 'had'):": "the order of the two does not matter",
        "… => …sentence.split()": "every thing keeps its full stop, and is still the same thing",
        "… => …sentence.rstrip().split()": "every thing keeps its full stop",
    },
    wrong=(
        WrongAnswer(
            "counted from 1",
            _moved(1),
            "The first sentence is number 0",
            "The numbers start at 0, as `enumerate` counts. (The sentence after the fault would "
            "be wrong in the same way: the fault itself is asked for.)",
        ),
        WrongAnswer(
            "the cause instead of the fault",
            _cause,
            "The first sentence is number 0",
            "You point at the last sentence before it that speaks of the thing. That one still "
            "makes sense; the fault is the first that does not.",
        ),
        WrongAnswer(
            "always none",
            _never,
            "you get None, expected 2",
            "A checker that finds nothing agrees with every sound story and with no broken one.",
        ),
        WrongAnswer(
            "always the last sentence",
            lambda sentences: len(sentences) - 1 if sentences else None,
            "you get 1, expected None",
            "The answer does not look at what the sentences say.",
        ),
        WrongAnswer(
            "0 taken for none",
            lambda sentences: my_first_fault(sentences) or None,
            "0 is a number like any other",
            "`if fault` and `fault or None` take the number 0 for no fault. Ask `is None`.",
        ),
        WrongAnswer(
            "-1 for none",
            lambda sentences: _plain_number(my_first_fault(sentences)),
            "you get -1, expected None",
            "-1 is a sentence, the last, to anybody who uses it as an index. None is no sentence.",
        ),
        WrongAnswer(
            "everybody keeps what they ever had",
            _ever_had,
            "It was given away",
            "A set of who has had what only grows. A thing has one holder, who changes.",
        ),
        WrongAnswer(
            "a gift stays with the giver",
            _spotted(give=False),
            "It was given to Ben",
            "After `gave` the thing belongs to the other person: change the dictionary.",
        ),
        WrongAnswer(
            "what is lost is still there",
            _spotted(lose=False),
            "It is lost",
            "After `lost` nobody has the thing.",
        ),
        WrongAnswer(
            "found, and still nobody's",
            _spotted(find=False, needs="gave lost carried found"),
            "expected None. No sentence breaks the rule. It was found",
            "Finding needs nothing, and gives the thing to who found it.",
        ),
        WrongAnswer(
            "one holder for all things",
            _spotted(key=lambda thing: "it"),
            "The drum is another thing",
            "You remember who had something last, not what: one entry for each thing.",
        ),
        WrongAnswer(
            "the last fault",
            _last_fault,
            "it is not asked for",
            "Return at once: after the first fault the world is not known any more.",
        ),
        WrongAnswer(
            "only what is carried is checked",
            _spotted(needs="carried"),
            "Ben has no kite, it is with Mia",
            "Giving and losing need the thing, too, not only carrying it.",
        ),
    ),
)


def _plain_number(fault):
    return -1 if fault is None else fault


ANSWERS = {
    "20.1": TOP_P,
    "20.2": PENALTY,
    "20.3": FINISH,
    "20.4": TEMPERATURE,
    "20.5": SPOT,
}
