"""Exercises of chapter 20, Sampling."""

import math
import random

import torch

from tinytf_course.expect import agrees, expect, gradients, numbers, same, tensor
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import given, short

INF = math.inf


# 20.1 repair a top-p


def my_top_p(logits, p, least=1):
    """Keep the fewest tokens that hold p, but `least` or more, in each row of logits (B, V).

    The others get -inf.
    """
    raise NotImplementedError


BROKEN = """
def my_top_p(logits, p):
    ranked, order = logits.sort(dim=-1, descending=True)
    out = ranked.softmax(dim=-1).cumsum(dim=-1) > p
    logits[0, order[out]] = -math.inf
    return logits
"""

P = torch.tensor([[0.125, 0.5, 0.25, 0.125], [0.0625, 0.1875, 0.125, 0.625]])
LOGITS = P.log()
_P = f"for rows of probability {short(P)}"


def _kept(answer, p, expected, note, rows=slice(None)):
    where = f"{_P if rows == slice(None) else 'for a row of probability ' + short(P[rows])}, p={p}"
    got = tensor(answer(LOGITS[rows], p), where)
    expect(got.dim() == 2 and got.size(1) == 4, f"{where}, the shape is {tuple(got.shape)}")
    kept = [row.isfinite().nonzero()[:, 0].tolist() for row in got]
    expect(kept == expected, f"{where}, you keep the tokens {kept}, expected {expected}. {note}")


def _ranked(logits):
    """The ids of a row from the likeliest on; of equals the lowest id first."""
    row = logits.tolist()
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


def _p_by_rank(logits, p, least=1):
    """Row by row, token by token from the likeliest on, summed in float64."""
    stay = torch.zeros(logits.shape, dtype=torch.bool)
    for b, row in enumerate(logits.detach()):
        probs, held = row.double().softmax(-1).tolist(), 0.0
        for number, i in enumerate(_ranked(row)):
            if held >= p and number >= least:
                break
            stay[b, i] = True
            held += probs[i]
    return torch.where(stay, logits, -INF)


def _p_agrees(answer, logits, *arguments, note=""):
    """The tokens kept, as ids, against the oracle."""
    where = given(answer, (logits, *arguments))
    got = tensor(answer(logits, *arguments), where)
    message = f"{where}, the shape is {tuple(got.shape)}, expected {tuple(logits.shape)}"
    expect(got.shape == logits.shape, message)
    wanted = _p_by_rank(logits, *arguments).isfinite()
    for b, (mine, theirs) in enumerate(zip(got.isfinite(), wanted, strict=True)):
        kept, expected = (row.nonzero()[:, 0].tolist() for row in (mine, theirs))
        message = f"{where}, in row {b} you keep the tokens {short(kept)}"
        expect(kept == expected, f"{message}, expected {short(expected)}. {note}")


def _p_counts(answer, logits, p, count, note):
    """How many tokens of one row are kept, where it is open which."""
    where = f"{given(answer, (logits, p))}"
    kept = int(tensor(answer(logits, p), where).isfinite().sum())
    expect(kept == count, f"{where}, you keep {kept} tokens, expected {count}. {note}")


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


def _p_least_is_no_extra(answer):
    """a nucleus that has as many already stays as it is"""
    row = LOGITS[:1]
    note = "0.5 + 0.25 reaches 0.7, and these are two: `least` asks for no more than `p` does."
    _p_agrees(answer, row, 0.7, 2, note=note)
    _p_agrees(answer, row, 0.8, 2, note="It takes three to reach 0.8, and two are asked for.")
    _p_agrees(answer, row, 0.8, 3, note="It takes three to reach 0.8, and three are asked for.")


def _p_least_row_by_row(answer):
    """whether `least` matters is each row's own affair"""
    note = "Row 0 needs two for 0.6 anyway; row 1 needs one, and two are asked for."
    _p_agrees(answer, LOGITS, 0.6, 2, note=note)
    note = "Row 0 needs one, and two are asked for; row 1 needs two for 0.6 anyway."
    _p_agrees(answer, LOGITS.flip(0), 0.6, 2, note=note)
    three = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.1, 0.1, 0.8]]).log()
    _p_agrees(answer, three, 0.75, 2, note="Row 1 needs three for 0.75, the others two or one.")


def _p_all(answer):
    """p = 1 keeps all, p = 0 the `least` likeliest, and never are there more than all"""
    even = torch.zeros(2, 4)
    _p_agrees(answer, even, 1.0)
    _p_agrees(answer, LOGITS, 0.0, note="One stays at least, even for p = 0.")
    _p_agrees(answer, LOGITS, 0.0, 1)
    _p_agrees(answer, LOGITS, 0.3, 4)
    _p_agrees(answer, LOGITS, 0.9, 9, note="There are no more than four.")
    _p_agrees(answer, torch.tensor([[3.0], [-2.0]]), 0.5, 1)


def _p_many(answer):
    """in larger vocabularies, for any p and `least`, however far apart the logits"""
    for seed, (rows, size, p, least) in enumerate(
        [(3, 7, 0.5, 1), (2, 40, 0.9, 3), (5, 40, 0.35, 12), (4, 9, 0.97, 1), (3, 30, 0.8, 6)]
    ):
        _p_agrees(answer, numbers(rows, size, seed=seed, scale=2), p, least)
    far = numbers(3, 6, seed=7, scale=300, shift=1000)
    _p_agrees(answer, far, 0.9, 1, note="`exp(1000)` is infinite; `softmax` is not.")
    _p_agrees(answer, far, 0.9, 2, note="The second likeliest stays, at probability 0 even.")


def _p_values(answer):
    """what stays keeps its logit"""
    expected = torch.where(torch.tensor([[False, True, True, False]]), LOGITS[:1], -INF)
    same(answer(LOGITS[:1], 0.7), expected, f"for the logits {short(LOGITS[:1])}, p=0.7")


def _p_kinds(answer):
    """and its dtype and its gradient"""
    for dtype in (torch.float64, torch.float16):
        few = torch.tensor([[0.1, 3.0, 1.0, 2.0], [4.0, 0.5, 2.0, 3.0]], dtype=dtype)
        agrees(answer, _p_by_rank, few, 0.8)
        agrees(answer, _p_by_rank, few, 0.8, 3)
    near = torch.tensor([[0.0, 0.0, 0.0, 1e-10]], dtype=torch.float64)
    note = "Token 3 holds a quarter and 1.9e-11, in float64."
    agrees(answer, _p_by_rank, near, 0.25 + 1e-11, note=note)
    _p_counts(answer, near, 0.25 + 3e-11, 2, note)
    gradients(answer, _p_by_rank, numbers(3, 5, seed=4), 0.7, 2)


TOP_P = Exercise(
    id="20.1",
    title="repair a top-p",
    difficulty=3,
    minutes=12,
    statement=(
        "Code like this is passed around as top-p, and with a single text it seems to work. In a "
        "batch of eight, the first text turns into nonsense, and the others read as if there were "
        "no filter."
        f"\n\n```python{BROKEN}```\n\n"
        "Repair it, and add one argument. `my_top_p(logits, p, least=1)` keeps, in each row of "
        "`logits` (B, V), the fewest tokens whose probabilities sum to p or more, and gives all "
        "others `-inf`. A set that holds exactly p is complete. The first `least` tokens of "
        "the ranking, from the likeliest down, stay in any case, even if fewer hold p."
    ),
    hint=(
        "The code has three faults. Which rows lose tokens? Which token is the first to be "
        "dropped? What becomes of the caller's `logits`?",
        "Sort each row and sum. A token is ruled out if the likelier ones alone hold p already and "
        "it is not one of the first `least`. This is known in sorted order, and `scatter` takes it "
        "back to the tokens' own positions, in every row.",
    ),
    function=my_top_p,
    tests=(
        _p_one_row,
        _p_rows,
        _p_exact,
        _p_never_empty,
        _p_least,
        _p_least_is_no_extra,
        _p_least_row_by_row,
        _p_all,
        _p_many,
        _p_values,
        _p_kinds,
    ),
)


# 20.2 a penalty of the right strength


def my_alpha(logits, ids, share):
    """Find the presence penalty after which what a row has said holds `share` of its probability.

    logits is (B, V), ids (B, T), share a number between 0 and 1; returns one strength a row, (B,).
    """
    raise NotImplementedError


EVEN = torch.zeros(1, 4)
SCORES = torch.tensor([[2.0, -1.0, 0.5, -4.0], [1.0, 3.0, -2.0, 0.0]])
SAID = torch.tensor([[0, 1, 1], [2, 2, 2]])


def _alpha_by_row(logits, ids, share):
    """Row by row: each token that was said adds its probability once, in float64."""
    rows = []
    for row, said in zip(logits.unbind(), ids.tolist(), strict=True):
        held, others = [], []
        for i, part in enumerate(row.double().unbind()):
            (held if i in said else others).append(part)
        tops = [max(part.item() for part in parts) for parts in (held, others)]
        sums = [
            sum((part - top).exp() for part in parts).log() + top
            for parts, top in zip((held, others), tops, strict=True)
        ]
        rows.append(sums[0] - sums[1] - math.log(share / (1 - share)))
    return torch.stack(rows).to(logits.dtype)


def _alpha_even(answer):
    """two of four equal tokens shall hold a quarter"""
    where = f"for logits={short(EVEN)}, ids=[[0, 2]], share=0.25"
    note = "Their odds are 1 now, 0.5 to 0.5, and shall be 1 to 3: e^-α is 1/3."
    got = tensor(answer(EVEN, torch.tensor([[0, 2]]), 0.25), where)
    same(got, torch.tensor([math.log(3)]), where, note=note)


def _alpha_up(answer):
    """where they hold too little, α is negative"""
    where = f"for logits={short(EVEN)}, ids=[[3]], share=0.75"
    note = "Their odds are 1 to 3 now and shall be 3 to 1: a penalty that rewards."
    got = tensor(answer(EVEN, torch.tensor([[3]]), 0.75), where)
    same(got, torch.tensor([-math.log(9)]), where, note=note)


def _alpha_repeats(answer):
    """a token said three times holds its probability once"""
    note = "The penalty asks whether a token was said, not how often."
    agrees(answer, _alpha_by_row, EVEN, torch.tensor([[1, 1, 1]]), 0.2, note=note)
    agrees(answer, _alpha_by_row, SCORES[:1], SAID[:1], 0.3, note=note)


def _alpha_rows(answer):
    """each row has said other things, and gets its own strength"""
    note = "Row 0 has said the tokens 0 and 1, row 1 the token 2."
    agrees(answer, _alpha_by_row, SCORES, SAID, 0.3, note=note)
    agrees(answer, _alpha_by_row, SCORES.flip(0), SAID, 0.5)
    agrees(answer, _alpha_by_row, torch.tensor([[3.0, 1.0]]), torch.tensor([[0]]), 0.9)
    ids = numbers(3, 5, seed=1).abs().mul(3).long().clamp(max=6)
    agrees(answer, _alpha_by_row, numbers(3, 8, seed=2, scale=3), ids, 0.07)
    agrees(answer, _alpha_by_row, numbers(3, 8, seed=2, scale=3, shift=50), ids[:, :1], 0.6)


@hint(
    "Compare the two sums, not 1 minus one of them; `logsumexp` of some logits is ln of their sum."
)
def _alpha_sure(answer):
    """also where the model is almost certain"""
    sure = torch.tensor([[60.0, 0.0, 1.0], [0.0, 40.0, -30.0], [-90.0, 2.0, 0.0]])
    note = "1 minus a probability that rounds to 1 is 0, and 0 has no logarithm."
    agrees(answer, _alpha_by_row, sure, torch.tensor([[0], [1], [0]]), 0.5, note=note)
    note = "In float32, `exp` is infinite from 89 on and 0 below -104; in float64, 710 and -746."
    for logits in ([100.0, 0.0, 0.0], [1000.0, 999.0, 998.0], [-2000.0, -2000.0, -1.0]):
        given = torch.tensor([logits]), torch.tensor([[0]]), 0.5
        agrees(answer, _alpha_by_row, *given, tolerance=1e-3, note=note)


@hint("`logsumexp` leaves out what is filled with `-inf`, and nothing else.")
def _alpha_ruled_out(answer):
    """and where tokens are ruled out, or nearly so"""
    ruled_out = torch.tensor([[1.0, -INF, 0.5, 2.0], [3.0, 0.0, -INF, 1.0]])
    agrees(answer, _alpha_by_row, ruled_out, torch.tensor([[0, 1], [0, 3]]), 0.4)
    low, note = torch.tensor([[-2e5, -2e5, -1.0]]), "A logit may lie below any number but -inf."
    agrees(answer, _alpha_by_row, low, torch.tensor([[0]]), 0.5, tolerance=1e-3, note=note)


def _alpha_kinds(answer):
    """in float64 too, with gradients"""
    ids = torch.tensor([[0, 1, 1], [3, 2, 3]])
    agrees(answer, _alpha_by_row, numbers(2, 5, seed=4).double(), ids, 1e-9)
    gradients(answer, _alpha_by_row, numbers(2, 5, seed=4), ids, 0.25)


PENALTY = Exercise(
    id="20.2",
    title="a penalty of the right strength",
    difficulty=2,
    minutes=8,
    statement=(
        "How strong is a presence penalty of 3? Turn the question round, and compute the strength "
        "that has a given effect. Write `my_alpha(logits, ids, share)`: for each row of `logits` "
        "(B, V), the α of the presence penalty after which the tokens that occur in the same "
        "row of `ids` (B, T) together hold exactly `share` of the probability. No search is "
        "needed. `share` lies between 0 and 1, and a row of `ids` contains at least one token of "
        "the vocabulary, but not all of them. The result must also be right where the model is "
        "almost certain."
    ),
    hint=(
        "Together these tokens hold a probability q. The penalty multiplies their odds q / (1 - q) "
        "by e^-α, and the odds that you want are share / (1 - share).",
        "Where the model is almost certain, 1 - q rounds to 0. The same odds are a quotient of two "
        "sums of e^logit, one over the tokens that occur and one over all others. `logsumexp` of "
        "logits is the logarithm of such a sum, and it leaves out what is filled with `-inf`.",
    ),
    function=my_alpha,
    tests=(
        _alpha_even,
        _alpha_up,
        _alpha_repeats,
        _alpha_rows,
        _alpha_sure,
        _alpha_ruled_out,
        _alpha_kinds,
    ),
)


# 20.3 rows that end, each on its own


def my_finish(ids, end_id):
    """End each row of a batch on its own: ids (B, T), drawn without stopping -> (B, N), N <= T.

    What comes after a row's first end_id becomes end_id. N is where the last row has ended, or T
    if some row never does.
    """
    raise NotImplementedError


DRAWN = torch.tensor([[5, 9, 3, 9, 4, 4], [5, 6, 7, 9, 8, 8], [9, 1, 2, 3, 3, 3]])
LONG = torch.tensor([[5, 6, 7], [9, 1, 2]])
_DRAWN = f"for ids={short(DRAWN)}, end_id=9"


def _row_after_row(ids, end_id):
    """Each row up to its first end, then filled to the longest."""
    rows = []
    for row in ids.tolist():
        rows.append(row[: row.index(end_id) + 1] if end_id in row else row)
    width = max(map(len, rows))
    return torch.tensor([row + [end_id] * (width - len(row)) for row in rows])


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


def _f_edges(answer):
    """also where all end at once, at the first token or the last, or end_id is 0"""
    agrees(answer, _row_after_row, torch.tensor([[9]]), 9)
    agrees(answer, _row_after_row, torch.tensor([[4]]), 9)
    agrees(answer, _row_after_row, torch.tensor([[9, 4], [9, 9]]), 9, note="All end at once.")
    agrees(answer, _row_after_row, torch.tensor([[4, 9], [5, 9]]), 9)
    agrees(answer, _row_after_row, torch.tensor([[7, 0, 3, 2], [0, 7, 3, 3]]), 0)


def _f_many(answer):
    """in larger batches"""
    for seed in range(4):
        drawn = numbers(5, 13, seed=seed).abs().mul(3).long()
        agrees(answer, _row_after_row, drawn, 3)


FINISH = Exercise(
    id="20.3",
    title="rows that end, each on its own",
    difficulty=2,
    minutes=8,
    statement=(
        "A batch was generated without stopping. Write `my_finish(ids, end_id)`: in each row of "
        "`ids` (B, T), everything after the first `end_id` becomes `end_id`, too, and the batch is "
        "cut off after the first `end_id` of the row that ends last. If some row never ends, "
        "nothing is cut off."
    ),
    hint="`(ids == end_id).cumsum(dim=1) > 0` is True from each row's first end on.",
    function=my_finish,
    tests=(_f_filled, _f_kept, _f_never, _f_edges, _f_many),
)


# 20.4 the temperature for a wished entropy


def my_temperature(logits, wished):
    """Find the temperature at which softmax(logits / T) has an entropy of `wished` nats.

    logits is (V,); the temperature sought lies between 0.01 and 100. Returns a number.
    """
    raise NotImplementedError


def _nats(z, t):
    log_p = (z.double() / t).log_softmax(-1)
    return float(-(log_p.exp() * log_p).sum())


Z = torch.tensor([2.0, 1.0, 0.0, -3.0])
FIVE = torch.tensor([6.0, 4.5, 4.0, -1.0, -2.0])


def _finds(answer, logits, wished, note=""):
    few = logits.numel() <= 12
    words = f"logits={short(logits, 6)}" if few else f"logits of shape {tuple(logits.shape)}"
    where = f"for {words}, wished={wished:.4g}"
    got = tensor(answer(logits, wished), where)
    expect(got.numel() == 1, f"{where}, the shape is {tuple(got.shape)}, expected one number")
    t = float(got)
    expect(math.isfinite(t) and t > 0, f"{where}, you get T={short(got)}, which is no temperature")
    found = _nats(logits, t)
    message = f"{where}, you get T={t:.4g}, at which the entropy is {found:.4f} nats"
    expect(abs(found - wished) < 1.001e-3, f"{message}, expected {wished:.4f}.{note}")


def _finds_again(answer, logits, t, note=""):
    """The temperature at which we measured the entropy."""
    _finds(answer, logits, _nats(logits, t), f" It is T={t:g} at which it is that.{note}")


def _cooler(answer):
    """it finds a temperature below 1"""
    _finds(answer, Z, 0.5)


def _warmer(answer):
    """it finds one above 1"""
    _finds(answer, Z, 1.3, " Above 1 the entropy changes slowly, and the search has far to go.")


def _other_logits(answer):
    """for other logits it finds another"""
    _finds(answer, FIVE, 1.0)


@hint("The statement names the interval: search all of it, from 0.01 to 100.")
def _to_the_ends(answer):
    """the temperature may lie anywhere between 0.01 and 100"""
    small = torch.tensor([0.02, 0.0])
    _finds_again(answer, small, 0.5)
    _finds_again(answer, small, 0.05)
    _finds_again(answer, small, 0.012)
    large = torch.tensor([300.0, 0.0])
    _finds_again(answer, large, 70.0)
    _finds_again(answer, large, 99.5)


def _to_a_thousandth(answer):
    """the entropy is right to 0.001 nats, also where it rises steeply"""
    steep = torch.tensor([0.1, 0.096, 0.0, -0.1])
    for t in (0.011, 0.02, 0.037, 1.0):
        _finds_again(answer, steep, t)
    for t in (0.3, 3.0, 31.0, 95.0):
        _finds_again(answer, numbers(50, seed=1, scale=2 + 6 * t), t)
    _finds_again(answer, numbers(2000, seed=2), 1.5)


@hint("`log_softmax` neither overflows nor takes the logarithm of 0.")
def _extreme(answer):
    """large logits, unlikely tokens, and ties are no trouble"""
    note = " `exp` of such logits is infinite: subtract the largest first, as `softmax` does."
    _finds_again(answer, torch.tensor([10002.0, 10001.0, 10000.0]), 2.0, note)
    note = " The last token's probability rounds to 0, and 0 · log 0 is NaN."
    _finds_again(answer, torch.tensor([2.0, 1.0, 0.0, -150.0]), 0.8, note)
    _finds_again(answer, torch.tensor([1.0, 3.0, 3.0, 0.0]), 0.7, " Two tokens tie.")
    _finds_again(answer, torch.tensor([-5.0, -3.0, -4.0], dtype=torch.float64), 1.7)


TEMPERATURE = Exercise(
    id="20.4",
    title="the temperature for a wished entropy",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_temperature(logits, wished)`. It returns the temperature, a number between 0.01 "
        "and 100, at which `softmax(logits / T)` has an entropy of `wished` nats, right to 0.001 "
        "nats. `logits` is (V,)."
    ),
    hint=(
        "The entropy only rises with T. Try the middle of the interval, measure the entropy there, "
        "and keep the half in which the answer must lie. Fifty rounds are plenty."
    ),
    function=my_temperature,
    tests=(_cooler, _warmer, _other_logits, _to_the_ends, _to_a_thousandth, _extreme),
)


# 20.5 spot the broken story


def my_first_fault(sentences):
    """Return the number, from 0, of the first sentence that makes no sense; None if all do.

    sentences: strings such as "Mia had a kite.", "Mia gave Ben the kite.", "Ben lost the kite.",
    "Ben found the kite." and "Ben carried the kite."
    """
    raise NotImplementedError


def _parts(sentence):
    """Who does what with which thing, and to whom it is given, if it is."""
    who, verb, *between, thing = sentence.rstrip(".").split()
    return who, verb, thing, between[0] if verb == "gave" else None


def _holder_before(sentences, number, thing):
    """Who has a thing before a sentence: read backwards to the last one that moves it."""
    for sentence in reversed(sentences[:number]):
        who, verb, moved, to = _parts(sentence)
        if moved == thing and verb != "carried":
            return {"had": who, "found": who, "gave": to, "lost": None}[verb]
    return None


def _owner_fault(sentences):
    """The first sentence that breaks the rule and why, from backward readings alone."""
    for number, sentence in enumerate(sentences):
        who, verb, thing, _ = _parts(sentence)
        holder = _holder_before(sentences, number, thing)
        if verb not in ("had", "found") and holder != who:
            where = f"it is with {holder}" if holder else "nobody has it"
            return number, f"Sentence {number} breaks the rule: {who} has no {thing}, {where}."
    return None, "No sentence breaks the rule."


def _story(seed, length=8):
    """A sound story in the five forms, about three people and three things."""
    rng, people = random.Random(seed), ["Mia", "Ben", "Olive"]
    holders, told = {}, []
    while len(told) < length:
        thing, who = rng.choice(["kite", "drum", "bell"]), rng.choice(people)
        if thing not in holders:
            holders[thing], sentence = who, f"{who} had a {thing}."
        elif holders[thing] is None:
            holders[thing], sentence = who, f"{who} found the {thing}."
        else:
            owner, verb = holders[thing], rng.choice(["gave", "gave", "carried", "lost"])
            other = rng.choice([name for name in people if name != owner])
            holders[thing] = {"gave": other, "carried": owner, "lost": None}[verb]
            sentence = f"{owner} {verb} {other + ' ' if verb == 'gave' else ''}the {thing}."
        told.append(sentence)
    return told


def _exchanged(seed):
    """The same story with another person in one sentence, who does not have the thing."""
    told, rng = _story(seed), random.Random(f"exchange {seed}")
    able = [i for i, sentence in enumerate(told) if _parts(sentence)[1] not in ("had", "found")]
    at = rng.choice(able)
    who, _, _, to = _parts(told[at])
    other = next(name for name in ("Mia", "Ben", "Olive") if name not in (who, to))
    return [*told[:at], told[at].replace(who, other, 1), *told[at + 1 :]]


def _spots(answer, *sentences, note=""):
    """The number that the answer gives, against the oracle's, with the oracle's reason."""
    expected, why = _owner_fault(sentences)
    got = answer(list(sentences))
    story = " ".join(f"({number}) {sentence}" for number, sentence in enumerate(sentences))
    where = f"for the story {story}".rstrip()
    if got is not None:
        tensor(got, where, "a number or None")
    right = got is expected if None in (got, expected) else got == expected
    message = f"{where}, you get {short(got)}, expected {expected}. {why}"
    expect(right, f"{message} {note}".rstrip())


def _spots_none(answer):
    """a story without a fault gives None"""
    _spots(answer, "Mia had a kite.", "Mia carried the kite.")
    _spots(answer)


def _spots_one(answer):
    """the sentence is counted from 0, and it is the one that makes no sense"""
    note = "The first sentence is number 0."
    _spots(answer, "Mia had a kite.", "Mia carried the kite.", "Ben carried the kite.", note=note)


def _spots_at_once(answer):
    """it may be the very first"""
    note = "0 is a number like any other, and None is another answer."
    _spots(answer, "Ben carried the drum.", "Mia had a kite.", note=note)


def _spots_gift(answer):
    """who gives a thing away does not have it any more, and who is given it does"""
    given_away = ["Mia had a kite.", "Mia gave Ben the kite."]
    _spots(answer, *given_away, "Ben carried the kite.", note="It was given to Ben.")
    _spots(answer, *given_away, "Mia carried the kite.", note="It was given away.")
    note = "It was given back."
    back = "Ben gave Mia the kite."
    _spots(answer, *given_away, back, "Mia carried the kite.", "Ben lost the kite.", note=note)


def _spots_loss(answer):
    """what is lost is with nobody until somebody finds it"""
    lost = ["Mia had a bell.", "Mia lost the bell."]
    _spots(answer, *lost, "Mia carried the bell.", note="It is lost.")
    found = [*lost, "Ben found the bell."]
    _spots(answer, *found, "Ben gave Mia the bell.", "Mia carried the bell.", note="It was found.")
    _spots(answer, *found, "Mia gave Ben the bell.", note="It was found, but not by Mia.")


def _spots_things(answer):
    """each thing has a holder of its own"""
    two = ["Mia had a kite.", "Ben had a drum."]
    _spots(answer, *two, "Mia carried the kite.", note="The drum is another thing.")
    _spots(answer, *two, "Mia carried the drum.", note="Mia has the kite only.")
    _spots(answer, *two, "Ben lost the drum.", "Mia gave Ben the kite.", "Ben carried the kite.")


def _spots_first(answer):
    """of several faults it gives the first"""
    note = "There is a later one, too, and it is not asked for."
    faults = ["Mia had a kite.", "Ben lost the kite.", "Mia carried the kite.", "Ben carried the "]
    _spots(answer, *faults[:3], faults[3] + "kite.", note=note)


def _spots_giver(answer):
    """a gift needs a giver who has it, and so does a loss"""
    _spots(answer, "Mia had a kite.", "Ben gave Olive the kite.", "Olive carried the kite.")
    _spots(answer, "Mia had a kite.", "Ben gave Mia the kite.")
    _spots(answer, "Mia had a kite.", "Ben lost the kite.")


def _spots_generated(answer):
    """and so on, in stories of eight sentences, sound ones and ones with a person exchanged"""
    for seed in range(12):
        _spots(answer, *_story(seed))
        _spots(answer, *_exchanged(seed))


STORY = Exercise(
    id="20.5",
    title="spot the broken story",
    difficulty=2,
    minutes=8,
    statement=(
        "You have spotted faults by eye. Now write one rule of a checker. "
        "`my_first_fault(sentences)` gets a story as a list of strings in five forms: `Mia had a "
        "kite.`, `Mia gave Ben the kite.`, `Ben lost the kite.`, `Ben found the kite.` and `Ben "
        "carried the kite.` Return the number, counted from 0, of the first sentence in which "
        "somebody gives, loses or carries a thing that they do not have, and None if there is "
        "none. Anybody can have or find a thing, and from then on it is theirs until they give or "
        "lose it, or somebody else has or finds it; a thing that is given belongs to its receiver."
    ),
    hint=(
        "Keep the state of the world in a dictionary: for each thing, who has it now. A sentence "
        "first has to agree with the dictionary; then it changes it.",
        "`sentence.rstrip('.').split()` gives the words: the first is a person, the second the "
        "verb, the last the thing.",
    ),
    function=my_first_fault,
    none_is_a_result=True,
    tests=(
        _spots_one,
        _spots_none,
        _spots_at_once,
        _spots_gift,
        _spots_loss,
        _spots_things,
        _spots_first,
        _spots_giver,
        _spots_generated,
    ),
)


EXERCISES = (TOP_P, PENALTY, FINISH, TEMPERATURE, STORY)
