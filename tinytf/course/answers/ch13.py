"""Answers to chapter 13: references and mistakes."""

import math

import torch

from tinytf.course.exercises.ch13 import INF, Z, _nats
from tinytf.course.grading import Answers, WrongAnswer


def _out(logits, hide):
    return logits.masked_fill(hide, -INF)


# 13.1 the temperature for a wished entropy


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


def _times(z, t):
    return _nats(z, 1 / t)


TEMPERATURE = Answers(
    reference=my_temperature,
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
    ),
)


# 13.2 top-k, and no more than k


def my_top_k(logits, k):
    """Keep exactly k tokens of each row of logits (B, V): the others get -inf.

    Of tokens that tie for the last place, those of the lowest ids stay.
    """
    order = logits.argsort(dim=-1, descending=True, stable=True)
    out = torch.ones_like(logits, dtype=torch.bool).scatter(-1, order[:, :k], False)
    return logits.masked_fill(out, -math.inf)


def _kth(logits, k):
    return logits.topk(k).values[..., -1:]


TOP_K = Answers(
    reference=my_top_k,
    wrong=(
        WrongAnswer(
            "ties stay",
            lambda logits, k: _out(logits, logits < _kth(logits, k)),
            "one place is left",
            "All that equal the k-th logit pass the comparison: k = 2 kept 4 tokens here. The "
            "tutorials' code and Hugging Face's do this; half precision makes ties common.",
        ),
        WrongAnswer(
            "the last one lost",
            lambda logits, k: _out(logits, logits <= _kth(logits, k)),
            "k=2, you get [[-inf, 3, -inf, -inf]",
            "The k-th token equals the threshold and is thrown out with the rest: k - 1 are left, "
            "or none.",
        ),
        WrongAnswer(
            "0 instead of -inf",
            lambda logits, k: logits.masked_fill(_out(logits, logits < _kth(logits, k)) == -INF, 0),
            "you get [[0, 3, 0, 2]",
            "A logit of 0 is a score like any other: it may even be the best. Only -inf becomes "
            "probability 0.",
        ),
        WrongAnswer(
            "-1e9 instead of -inf",
            lambda logits, k: _out(my_top_k(logits, k), my_top_k(logits, k) == -INF).nan_to_num(
                neginf=-1e9
            ),
            "-1e+09",
            "A very small number hides the token here; but the rules that follow, and whoever asks "
            "what is left, look for -inf.",
        ),
        WrongAnswer(
            "the k-th smallest as threshold",
            lambda logits, k: _out(
                logits, logits < logits.kthvalue(k, dim=-1, keepdim=True).values
            ),
            "you get [[-inf, 3, 1, 2]",
            "`kthvalue` counts from below: it gives the k-th *smallest* logit.",
        ),
        WrongAnswer(
            "one threshold for the batch",
            lambda logits, k: _out(logits, logits < logits.flatten().topk(k).values[-1]),
            "you get [[-inf, -inf, -inf, -inf]",
            "The threshold came from all rows together. Each row has its own k likeliest.",
        ),
        WrongAnswer(
            "the least likely",
            lambda logits, k: _out(logits, logits > logits.topk(k, largest=False).values[:, -1:]),
            "you get [[0.5, -inf, 1, -inf]",
            "Those are the k smallest logits: sort in falling order.",
        ),
        WrongAnswer(
            "returns values in rank order",
            lambda logits, k: logits.topk(k).values,
            "the shape is (2, 2), expected (2, 4)",
            "The places are the ids of the tokens: keep the shape, and hide what is out.",
        ),
    ),
)


# 13.3 top-p: the smallest set, and no fewer than asked for


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


def _nucleus(enough=lambda total, p: total >= p, shift=True, back="scatter", order=True):
    def answer(logits, p, least=1):
        ranked, ids = logits.sort(dim=-1, descending=True)
        if not order:
            ranked, ids = logits, torch.arange(logits.size(-1)).expand_as(logits)
        out = enough(ranked.softmax(-1).cumsum(-1), p)
        if shift:
            out = torch.cat([torch.zeros_like(out[:, :1]), out[:, :-1]], dim=1)
        if back == "row 0":
            logits[0, ids[out]] = -INF
            return logits
        if back == "scatter":
            out = torch.zeros_like(out).scatter(1, ids, out)
        return _out(logits, out)

    return answer


TOP_P = Answers(
    reference=my_top_p,
    wrong=(
        WrongAnswer(
            "all rows' tokens removed from row 0",
            _nucleus(enough=lambda total, p: total > p, back="row 0"),
            "Row 1 is surer",
            "Indexing with a mask flattens it: row 0 loses what any row rules out, the others keep "
            "everything. One tutorial writes `logits[0, ids[mask]]`. With one row it works.",
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
            _nucleus(),
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
    ),
)


# 13.4 a repetition penalty that penalises


def my_repetition_penalty(logits, ids, penalty):
    """Make the tokens each row has said less likely: logits (B, V), ids (B, T) -> (B, V).

    A positive logit is divided by the penalty, a negative one multiplied.
    """
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, lowered, logits)


def _penalty(change, seen=None):
    def answer(logits, ids, penalty):
        said = torch.zeros_like(logits, dtype=torch.bool)
        said = seen(said, ids) if seen else said.scatter(1, ids, True)
        return torch.where(said, change(logits, penalty), logits)

    return answer


def _each_time(logits, ids, penalty):
    for row, said in zip(logits, ids.tolist(), strict=True):
        for token in said:
            row[token] = row[token] / penalty if row[token] > 0 else row[token] * penalty
    return logits


def _lower(z, a):
    return torch.where(z > 0, z / a, z * a)


PENALTY = Answers(
    reference=my_repetition_penalty,
    wrong=(
        WrongAnswer(
            "divides whatever the sign",
            _penalty(lambda z, a: z / a),
            "A penalty must not make the token likelier",
            "-1 / 2 is -0.5: half a negative logit is a larger one, and the token comes sooner. So "
            "it stands in the paper's formula; its released code had to handle the sign.",
        ),
        WrongAnswer(
            "multiplies whatever the sign",
            _penalty(lambda z, a: z * a),
            "the logit 2 of token 0 in row 0, you get 4",
            "Twice a positive logit is a larger one: this rewards repetition.",
        ),
        WrongAnswer(
            "subtracts",
            _penalty(lambda z, a: z - a),
            "the logit 2 of token 0 in row 0, you get 0",
            "That is the presence penalty: a fair rule, better behaved, but another one.",
        ),
        WrongAnswer(
            "once for every time",
            _each_time,
            "its penalty does not grow with that",
            "A token said three times was penalised three times over. (Penalties that count are "
            "called frequency penalties.)",
        ),
        WrongAnswer(
            "everything is penalised",
            _penalty(_lower, seen=lambda said, ids: ~said),
            "which it has not said",
            "All logits moved. Only those of the tokens in `ids` may.",
        ),
        WrongAnswer(
            "one history for all rows",
            _penalty(
                _lower, seen=lambda said, ids: said.index_fill(1, ids.flatten().unique(), True)
            ),
            "which it has not said",
            "Every row was penalised for what any row has said. Rows of a batch don't know each "
            "other.",
        ),
        WrongAnswer(
            "row 0 only",
            _penalty(_lower, seen=lambda said, ids: said.scatter(1, ids[:1], True)),
            "its penalty does not grow with that",
            "Only the first row's history was looked at. With one row nobody sees it.",
        ),
    ),
)


# 13.5 min-p


def my_min_p(logits, p):
    """Keep the tokens at least p times as likely as the likeliest of their row of logits (B, V).

    The others get -inf.
    """
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < p * probs.max(dim=-1, keepdim=True).values, -math.inf)


MIN_P = Answers(
    reference=my_min_p,
    wrong=(
        WrongAnswer(
            "an absolute bound",
            lambda logits, p: _out(logits, logits.softmax(-1) < p),
            "for rows of probability [[0.4, 0.4, 0.2]], p=1",
            "p is a share of the best probability. A fixed bound leaves a flat row nothing at all.",
        ),
        WrongAnswer(
            "compares logits",
            lambda logits, p: _out(logits, logits < p * logits.amax(-1, keepdim=True)),
            "Row 0 needs 0.07",
            "Logits have no natural 0, and a share of one means nothing. (A difference does: keep "
            "z ≥ max z + ln p.)",
        ),
        WrongAnswer(
            "the best of the whole batch",
            lambda logits, p: _out(logits, logits.softmax(-1) < p * logits.softmax(-1).max()),
            "Row 0 needs 0.07, row 1 needs 0.03",
            "The bound came from another row: `max` needs `dim=-1, keepdim=True`.",
        ),
        WrongAnswer(
            "a share of the mean",
            lambda logits, p: _out(
                logits, logits.softmax(-1) < p * logits.softmax(-1).mean(-1, keepdim=True)
            ),
            "Row 0 needs 0.15",
            "The mean probability is 1 / V in every row: this bound does not look at the row.",
        ),
        WrongAnswer(
            "a share of token 0's",
            lambda logits, p: _out(logits, logits.softmax(-1) < p * logits.softmax(-1)[:, :1]),
            "Row 0 needs 0.15",
            "The likeliest token need not be the first: the logits are not sorted.",
        ),
        WrongAnswer(
            "a share of the second best",
            lambda logits, p: _out(
                logits, logits.softmax(-1) < p * logits.softmax(-1).topk(2).values[:, 1:]
            ),
            "Row 0 needs 0.15",
            "`topk(2)` gives the best first; the bound came from the one after it.",
        ),
        WrongAnswer(
            "exactly p is not enough",
            lambda logits, p: _out(
                logits, logits.softmax(-1) <= p * logits.softmax(-1).amax(-1, keepdim=True)
            ),
            "Both likeliest are as likely as the likeliest",
            "A token that is exactly p times as likely stays; at p = 1 even the best would go.",
        ),
        WrongAnswer(
            "the mass above p",
            lambda logits, p: my_top_p(logits, 1 - p),
            "Row 0 needs 0.07, row 1 needs 0.03",
            "That is top-p, which sums. Min-p looks at each token by itself.",
        ),
    ),
)


# 13.6 rows that end, each on its own


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


FINISH = Answers(
    reference=my_finish,
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
    ),
)

ANSWERS = {
    "13.1": TEMPERATURE,
    "13.2": TOP_K,
    "13.3": TOP_P,
    "13.4": PENALTY,
    "13.5": MIN_P,
    "13.6": FINISH,
}
