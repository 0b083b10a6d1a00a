"""Exercises of chapter 13, Sampling."""

import math

import torch

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, short, tensor

INF = math.inf


def _out(logits, hide):
    return logits.masked_fill(hide, -INF)


# 13.1 the temperature for an entropy


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


def _nats(z, t):
    log_p = (z.double() / t).log_softmax(-1)
    return float(-(log_p.exp() * log_p).sum())


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


Z = torch.tensor([2.0, 1.0, 0.0, -3.0])
FIVE = torch.tensor([6.0, 4.5, 4.0, -1.0, -2.0])


def _finds(answer, logits, wished, note=""):
    where = f"for logits={short(logits)}, wished={wished:g}"
    got = tensor(answer(logits, wished), where)
    expect(got.numel() == 1, f"{where}, the shape is {tuple(got.shape)}, expected one number")
    t = float(got)
    expect(math.isfinite(t) and t > 0, f"{where}, you get T={short(got)}, which is no temperature")
    found = _nats(logits, t)
    message = f"{where}, you get T={t:.4g}, at which the entropy is {found:.4f} nats"
    expect(abs(found - wished) < 2e-3, f"{message}, expected {wished:g}.{note}")


def _cooler(answer):
    """it finds a temperature below 1"""
    _finds(answer, Z, 0.5)


def _warmer(answer):
    """it finds one above 1"""
    _finds(answer, Z, 1.3, " Above 1 the entropy changes slowly, and the search has far to go.")


def _other_logits(answer):
    """for other logits it finds another"""
    _finds(answer, FIVE, 1.0)


TEMPERATURE = Exercise(
    id="13.1",
    title="the temperature for a wished entropy",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `my_temperature(logits, wished)`: the temperature, between 0.01 and 100, at which "
        "`softmax(logits / T)` has an entropy of `wished` nats, right to 0.001 nats. `logits` is "
        "(V,); return a number."
    ),
    hint=(
        "Entropy only grows with T: try the middle of the interval, measure the entropy there, and "
        "keep the half in which the answer must lie. Fifty rounds are plenty."
    ),
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
    tests=(_cooler, _warmer, _other_logits),
    probes=(calls(Z, 0.5), calls(Z, 1.3), calls(FIVE, 1.0)),
)


# 13.2 top-k


def my_top_k(logits, k):
    """Keep exactly k tokens of each row of logits (B, V): the others get -inf.

    Of tokens that tie for the last place, those of the lowest ids stay.
    """
    order = logits.argsort(dim=-1, descending=True, stable=True)
    out = torch.ones_like(logits, dtype=torch.bool).scatter(-1, order[:, :k], False)
    return logits.masked_fill(out, -math.inf)


ROWS = torch.tensor([[0.5, 3.0, 1.0, 2.0], [9.0, 8.0, 6.0, 7.0]])
TIES = torch.tensor([[1.0, 2.0, 1.0, 0.0, 1.0]])


def _kth(logits, k):
    return logits.topk(k).values[..., -1:]


def _k_keeps(answer):
    """each row keeps its own k likeliest"""
    expected = [[-INF, 3.0, -INF, 2.0], [9.0, 8.0, -INF, -INF]]
    same(answer(ROWS, 2), expected, f"for logits={short(ROWS)}, k=2")


def _k_ties(answer):
    """of tokens that tie, it keeps no more than fit"""
    note = (
        "Tokens 0, 2 and 4 tie, and one place is left: the lowest id's. (`topk` promises no order "
        "among equals.)"
    )
    same(
        answer(TIES, 2), [[1.0, 2.0, -INF, -INF, -INF]], f"for logits={short(TIES)}, k=2", note=note
    )


def _k_all(answer):
    """k = V keeps all"""
    same(answer(ROWS, 4), ROWS, f"for logits={short(ROWS)}, k=4")


TOP_K = Exercise(
    id="13.2",
    title="top-k, and no more than k",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_top_k(logits, k)`: of each row of `logits` (B, V) exactly the k likeliest "
        "tokens keep their logit, all others get `-inf`. Where several tie for the last place, "
        "those with the lowest ids stay."
    ),
    hint=(
        "Rank, don't compare: `logits.argsort(dim=-1, descending=True, stable=True)[:, :k]` are "
        "the ids that stay. `scatter` writes into a mask at such ids."
    ),
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
    tests=(_k_keeps, _k_ties, _k_all),
    probes=(calls(ROWS, 2), calls(TIES, 2), calls(ROWS, 4)),
)


# 13.3 top-p


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


P = torch.tensor([[0.125, 0.5, 0.25, 0.125], [0.0625, 0.1875, 0.125, 0.625]])
LOGITS = P.log()
_P = f"for rows of probability {short(P)}"


def _kept(answer, p, expected, note, rows=slice(None)):
    where = f"{_P if rows == slice(None) else 'for a row of probability ' + short(P[rows])}, p={p}"
    got = tensor(answer(LOGITS[rows], p), where)
    expect(got.dim() == 2 and got.size(1) == 4, f"{where}, the shape is {tuple(got.shape)}")
    kept = [row.isfinite().nonzero()[:, 0].tolist() for row in got]
    expect(kept == expected, f"{where}, you keep the tokens {kept}, expected {expected}. {note}")


def _p_one_row(answer):
    """in one row, it keeps what it takes to reach p"""
    _kept(answer, 0.7, [[1, 2]], "0.5 + 0.25 reaches 0.7, and fewer do not.", slice(0, 1))


def _p_rows(answer):
    """each row has a nucleus of its own"""
    note = "Row 1 is surer, and needs its best token only."
    _kept(answer, 0.6, [[1, 2], [3]], note)


def _p_exact(answer):
    """exactly p is enough"""
    where = "for a row of four equal logits, p=0.5"
    got = tensor(answer(torch.zeros(1, 4), 0.5), where)
    kept = int(got.isfinite().sum())
    message = f"{where}, you keep {kept} tokens, expected 2: two of them hold exactly 0.5"
    expect(got.shape == (1, 4) and kept == 2, message)


def _p_never_empty(answer):
    """a small p leaves the likeliest token"""
    _kept(answer, 0.1, [[1], [3]], "There must be something to draw from.")


def _p_least(answer):
    """at least as many as asked stay, the likeliest"""
    where = f"{_P}, p=0.1, least=2"
    got = tensor(answer(LOGITS, 0.1, 2), where)
    kept = [row.isfinite().nonzero()[:, 0].tolist() for row in got]
    message = f"{where}, you keep the tokens {kept}, expected [[1, 2], [1, 3]]"
    expect(
        kept == [[1, 2], [1, 3]], f"{message}. Two are asked for, and in each row its likeliest."
    )


def _p_values(answer):
    """what stays keeps its logit"""
    expected = torch.where(torch.tensor([[False, True, True, False]]), LOGITS[:1], -INF)
    same(answer(LOGITS[:1], 0.7), expected, f"for the logits {short(LOGITS[:1])}, p=0.7")


TOP_P = Exercise(
    id="13.3",
    title="top-p: the smallest set, and no fewer than asked for",
    difficulty=3,
    minutes=18,
    statement=(
        "Write `my_top_p(logits, p, least=1)`: of each row of `logits` (B, V) keep the fewest "
        "tokens whose probabilities sum to p or more; all others get `-inf`. A set that holds "
        "exactly p is complete. But keep the `least` likeliest in any case."
    ),
    hint=(
        "`ranked, order = logits.sort(dim=-1, descending=True)`, then sum. A token is out if the "
        "likelier ones alone hold p already, and it is not one of the first `least`. The sorted "
        "mask has to go back to the tokens' own places, in every row: "
        "`torch.zeros_like(mask).scatter(-1, order, mask)`."
    ),
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
    tests=(_p_one_row, _p_rows, _p_exact, _p_never_empty, _p_least, _p_values),
    probes=(
        calls(LOGITS, 0.1, 2),
        calls(LOGITS[:1], 0.7),
        calls(LOGITS, 0.6),
        lambda answer: answer(torch.zeros(1, 4), 0.5).isfinite().sum(),
        calls(LOGITS, 0.1),
    ),
)


# 13.4 repetition penalty


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


SCORES = torch.tensor([[2.0, -1.0, 0.5, -4.0], [1.0, 3.0, -2.0, 0.0]])
SAID = torch.tensor([[0, 1, 1], [2, 2, 2]])
_SAID = f"for logits={short(SCORES)}, ids={short(SAID)}, penalty=2"


def _positive(answer):
    """a positive logit that was said is divided"""
    got = tensor(answer(SCORES, SAID, 2.0), _SAID)
    expect(got.shape == (2, 4), f"{_SAID}, the shape is {tuple(got.shape)}, expected (2, 4)")
    same(got[0, 0], 1.0, f"{_SAID}, the logit 2 of token 0 in row 0")


def _negative(answer):
    """a negative logit that was said falls too"""
    got = tensor(answer(SCORES, SAID, 2.0), _SAID)
    note = "A penalty must not make the token likelier."
    same(got[0, 1], -2.0, f"{_SAID}, the logit -1 of token 1 in row 0", note=note)


def _row_by_row(answer):
    """each row is penalised for what it said itself, and once"""
    got = tensor(answer(SCORES, SAID, 2.0), _SAID)
    note = "Row 1 has said token 2, three times; its penalty does not grow with that."
    same(got[1], [1.0, 3.0, -4.0, 0.0], f"{_SAID}, in row 1", note=note)


def _others(answer):
    """what was not said stays as it is"""
    got = tensor(answer(SCORES, SAID, 2.0), _SAID)
    same(got[0, 2:], [0.5, -4.0], f"{_SAID}, tokens 2 and 3 of row 0, which it has not said")


PENALTY = Exercise(
    id="13.4",
    title="a repetition penalty that penalises",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_repetition_penalty(logits, ids, penalty)`, CTRL's penalty as it is used: the "
        "logits (B, V) of the tokens that a row has said (`ids`, (B, T)) become smaller, a "
        "positive one divided by the penalty, a negative one multiplied. How often a token was "
        "said does not matter."
    ),
    hint=(
        "`torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)` marks what each row "
        "has said; `torch.where` chooses, twice."
    ),
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
    tests=(_positive, _negative, _row_by_row, _others),
    probes=(calls(SCORES, SAID, 2.0), calls(SCORES, torch.tensor([[2], [1]]), 3.0)),
)


# 13.5 min-p


def my_min_p(logits, p):
    """Keep the tokens at least p times as likely as the likeliest of their row of logits (B, V).

    The others get -inf.
    """
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < p * probs.max(dim=-1, keepdim=True).values, -math.inf)


SURE = torch.tensor([[0.7, 0.15, 0.073, 0.072, 0.005], [0.3, 0.24, 0.22, 0.2, 0.04]])
TWO_BEST = torch.tensor([[0.4, 0.4, 0.2]])
APART = torch.tensor([[0.05, 0.60, 0.03, 0.32], [0.10, 0.04, 0.36, 0.50]])


def _min_p_keeps(answer, probs, p, expected, note):
    where = f"for rows of probability {short(probs)}, p={p}"
    got = tensor(answer(probs.log(), p), where)
    expect(got.shape == probs.shape, f"{where}, the shape is {tuple(got.shape)}")
    same(got, torch.where(torch.tensor(expected), probs.log(), -INF), where, note=note)


def _m_relative(answer):
    """the bound is a share of the row's best"""
    note = "Row 0 needs 0.07, row 1 needs 0.03."
    _min_p_keeps(answer, SURE, 0.1, [[True] * 4 + [False], [True] * 5], note)


def _m_best(answer):
    """the bound comes from the best, wherever it stands"""
    note = "Row 0 needs 0.15 · 0.6 = 0.09, row 1 needs 0.15 · 0.5 = 0.075."
    _min_p_keeps(answer, APART, 0.15, [[False, True, False, True], [True, False, True, True]], note)


def _m_exact(answer):
    """exactly that share is enough"""
    note = "Both likeliest are as likely as the likeliest."
    _min_p_keeps(answer, TWO_BEST, 1.0, [[True, True, False]], note)


MIN_P = Exercise(
    id="13.5",
    title="min-p",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_min_p(logits, p)`: of each row of `logits` (B, V) keep the tokens that are at "
        "least p times as likely as the row's likeliest; all others get `-inf`."
    ),
    hint="The bound is one number a row: `p * probs.max(dim=-1, keepdim=True).values`.",
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
    tests=(_m_relative, _m_best, _m_exact),
    probes=(
        calls(APART.log(), 0.15),
        calls(SURE.log(), 0.1),
        calls(TWO_BEST.log(), 1.0),
        calls(SURE.log(), 0.7),
    ),
)


# 13.6 rows that end


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


DRAWN = torch.tensor([[5, 9, 3, 9, 4, 4], [5, 6, 7, 9, 8, 8], [9, 1, 2, 3, 3, 3]])
LONG = torch.tensor([[5, 6, 7], [9, 1, 2]])
_DRAWN = f"for ids={short(DRAWN)}, end_id=9"


def _f_filled(answer):
    """after its end a row says nothing but the end"""
    got = tensor(answer(DRAWN, 9), _DRAWN)
    expect(got.dim() == 2 and len(got) == 3, f"{_DRAWN}, the shape is {tuple(got.shape)}")
    for row, begin in enumerate([1, 3, 0]):
        rest = got[row, begin:].tolist()
        expect(
            rest == [9] * len(rest) and rest,
            f"{_DRAWN}, row {row} goes on with {rest} from its end on, expected end tokens only",
        )


def _f_kept(answer):
    """a row that runs on keeps its tokens"""
    got = tensor(answer(DRAWN, 9), _DRAWN)
    note = "Row 1 ends with its fourth token; the others' ends are none of its business."
    same(got[1], [5, 6, 7, 9], f"{_DRAWN}, row 1", note=note)


def _f_never(answer):
    """a row that never ends keeps all it has"""
    where = f"for ids={short(LONG)}, end_id=9"
    same(answer(LONG, 9), [[5, 6, 7], [9, 9, 9]], where, note="Row 0 has not ended.")


FINISH = Exercise(
    id="13.6",
    title="rows that end, each on its own",
    difficulty=2,
    minutes=12,
    statement=(
        "A batch was drawn without stopping. Write `my_finish(ids, end_id)`: in each row of `ids` "
        "(B, T), what comes after the first `end_id` becomes `end_id` too, and the batch is cut "
        "off where its last row has ended. If some row never ends, nothing is cut off."
    ),
    hint="`(ids == end_id).cumsum(dim=1) > 0` is True from each row's first end on.",
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
    tests=(_f_filled, _f_kept, _f_never),
    probes=(calls(DRAWN, 9), calls(LONG, 9)),
)

EXERCISES = (TEMPERATURE, TOP_K, TOP_P, PENALTY, MIN_P, FINISH)
