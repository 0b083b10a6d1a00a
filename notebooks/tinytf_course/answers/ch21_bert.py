"""Answers to chapter 21 (bert): references and mistakes."""

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 21.1 write a pair for BERT


def my_pair(first, second, cls_id=1, sep_id=2):
    """Join two lists of ids into one input for BERT: (ids, segments), two lists of equal length.

    The ids are [CLS] first [SEP] second [SEP]. The segment is 0 up to and including the first
    [SEP], and 1 after it.
    """
    ids = [cls_id, *first, sep_id, *second, sep_id]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return ids, segments


def _paired(ids=None, segments=None):
    """A `my_pair` with one of its two lists made otherwise."""

    def pair(first, second, cls_id=1, sep_id=2):
        right = my_pair(first, second, cls_id, sep_id)
        f, s = list(first), list(second)
        return (
            ids(f, s, cls_id, sep_id) if ids else right[0],
            segments(len(f), len(s)) if segments else right[1],
        )

    return pair


def _lists_grown(first, second, cls_id=1, sep_id=2):
    first.insert(0, cls_id)
    first.append(sep_id)
    second.append(sep_id)
    return first + second, [0] * len(first) + [1] * len(second)


PAIR = Answers(
    reference=my_pair,
    equivalent={},
    wrong=(
        WrongAnswer(
            "no [SEP] at the end",
            _paired(
                lambda f, s, cls, sep: [cls, *f, sep, *s],
                lambda f, s: [0] * (f + 2) + [1] * s,
            ),
            "the ids are [1, 7, 2, 8], expected [1, 7, 2, 8, 2]",
            "The second sentence ends in a [SEP] too.",
        ),
        WrongAnswer(
            "a [CLS] for each",
            _paired(
                lambda f, s, cls, sep: [cls, *f, sep, cls, *s, sep],
                lambda f, s: [0] * (f + 2) + [1] * (s + 2),
            ),
            "the ids are [1, 7, 2, 1, 8, 2]",
            "There is one [CLS], which represents the whole input.",
        ),
        WrongAnswer(
            "no [SEP] between",
            _paired(
                lambda f, s, cls, sep: [cls, *f, *s, sep],
                lambda f, s: [0] * (f + 1) + [1] * (s + 1),
            ),
            "the ids are [1, 7, 8, 2]",
            "A [SEP] separates the two.",
        ),
        WrongAnswer(
            "marks swapped",
            _paired(lambda f, s, cls, sep: [sep, *f, cls, *s, cls]),
            "the ids are [2, 7, 1, 8, 1]",
            "[CLS] comes first, and a [SEP] ends each sentence.",
        ),
        WrongAnswer(
            "marks typed in",
            lambda first, second, cls_id=1, sep_id=2: my_pair(first, second),
            "cls_id=101, sep_id=102",
            "Use the arguments: BERT's own numbers are 101 and 102.",
        ),
        WrongAnswer(
            "middle [SEP] in the second sentence",
            _paired(segments=lambda f, s: [0] * (f + 1) + [1] * (s + 2)),
            "the segments are [0, 0, 1, 1, 1]",
            "A [SEP] belongs to the sentence that it ends.",
        ),
        WrongAnswer(
            "segments first",
            lambda *given: my_pair(*given)[::-1],
            "the ids are [0, 0, 0, 1, 1]",
            "Return the ids first, then the segments.",
        ),
        WrongAnswer(
            "segments as floats",
            lambda *given: (my_pair(*given)[0], [float(x) for x in my_pair(*given)[1]]),
            "for segments you return a list that holds 0, expected whole numbers",
            "A table of embeddings looks rows up by whole numbers.",
        ),
        WrongAnswer(
            "marks without a segment",
            _paired(segments=lambda f, s: [0] * f + [1] * s),
            "2 segments for 5 ids",
            "[CLS] and the two [SEP] have embeddings like any token, so they need a segment.",
        ),
        WrongAnswer(
            "one segment for all",
            _paired(segments=lambda f, s: [0] * (f + s + 3)),
            "the segments are [0, 0, 0, 0, 0]",
            "Then only the [SEP] shows where the second sentence begins.",
        ),
        WrongAnswer(
            "segments 1 and 2",
            _paired(segments=lambda f, s: [1] * (f + 2) + [2] * (s + 1)),
            "the segments are [1, 1, 1, 2, 2]",
            "BERT's table of segments has two rows, 0 and 1.",
        ),
        WrongAnswer(
            "the segment looked up by the word",
            lambda first, second, cls_id=1, sep_id=2: (
                my_pair(first, second, cls_id, sep_id)[0],
                [0, *[0] * len(first), 0, *[int(t not in first) for t in second], 1],
            ),
            "first=[7, 8], second=[8]",
            "A word may occur in both sentences: count positions instead of looking up words.",
        ),
        WrongAnswer(
            "the caller's lists changed",
            _lists_grown,
            "your code changes the caller's `first`",
            "`append` and `insert` write into the caller's own sentences. Build a new list.",
        ),
    ),
)


# 21.3 find the answer


def my_best_span(start, end, allowed):
    """Find the answer: (first, last), two whole numbers, the last word included.

    start and end are scores (S,), and allowed (S,) is True where an answer may begin or end. Of
    all spans that do not end before they begin, return one with the largest start[first] +
    end[last].
    """
    scores = start[:, None] + end[None, :]  # (S, S)
    possible = (allowed[:, None] & allowed[None, :]).triu()
    best = int(scores.masked_fill(~possible, -torch.inf).argmax())
    return best // len(start), best % len(start)


def _search(possible):
    def span(start, end, allowed):
        size = range(len(start))
        all_of = [(i, j) for i in size for j in size if possible(i, j, allowed)]
        return max(all_of, key=lambda at: float(start[at[0]] + end[at[1]]))

    return span


def _two_argmaxes(start, end, allowed):
    hide = ~allowed
    start, end = (x.masked_fill(hide, -torch.inf) for x in (start, end))
    return int(start.argmax()), int(end.argmax())


def _start_first(start, end, allowed):
    first = int(start.masked_fill(~allowed, -torch.inf).argmax())
    return first, first + int(end.masked_fill(~allowed, -torch.inf)[first:].argmax())


def _times_mask(start, end, allowed):
    return my_best_span(start * allowed, end * allowed, torch.ones_like(allowed))


def _product(start, end, allowed):
    scores = (start[:, None] * end[None, :]).masked_fill(
        ~(allowed[:, None] & allowed[None, :]).triu(), -torch.inf
    )
    best = int(scores.argmax())
    return best // len(start), best % len(start)


def _probabilities(start, end, allowed):
    return my_best_span(start.softmax(0), end.softmax(0), allowed)


def _last_excluded(start, end, allowed):
    first, last = my_best_span(start, end, allowed)
    return first, last + 1


def _sorted(start, end, allowed):
    return tuple(sorted(_two_argmaxes(start, end, allowed)))


def _at_most(words):
    return _search(lambda i, j, a: i <= j < i + words and a[i] and a[j])


def _low_for_infinite(start, end, allowed):
    possible = (allowed[:, None] & allowed[None, :]).triu()
    best = int((start[:, None] + end).masked_fill(~possible, -10_000.0).argmax())
    return best // len(start), best % len(start)


def _beats_zero(start, end, allowed):
    best, found = 0.0, (0, 0)
    for i in range(len(start)):
        for j in range(i, len(start)):
            if allowed[i] and allowed[j] and start[i] + end[j] > best:
                best, found = start[i] + end[j], (i, j)
    return found


def _best_few(start, end, allowed):
    few = [x.masked_fill(~allowed, -torch.inf).topk(min(20, len(x))).indices for x in (start, end)]
    near = torch.zeros(len(start), len(start), dtype=torch.bool)
    near[few[0][:, None], few[1]] = True
    near[few[0], few[0]] = True
    return _search(lambda i, j, a: i <= j and a[i] and a[j] and near[i, j])(start, end, allowed)


def _ends_hidden_in_place(start, end, allowed):
    start[~allowed] = end[~allowed] = -torch.inf
    return my_best_span(start, end, allowed)


def _product_of_probabilities(start, end, allowed):
    first, last = (x.masked_fill(~allowed, -torch.inf).softmax(0) for x in (start, end))
    possible = (allowed[:, None] & allowed).triu()
    best = int((first[:, None] * last).masked_fill(~possible, -1).argmax())
    return best // len(end), best % len(end)


SPAN = Answers(
    reference=my_best_span,
    equivalent={
        "… => ….detach()…": "places are looked for, and nothing is trained by them",
        "… => ….double()…": "float64 holds every sum of smaller numbers",
        "… => scores = start[:, None] + end": "a row without the axis is broadcast as one",
        "… => possible = (allowed[:, None] & allowed).triu()": (
            "a row without the axis is broadcast as one"
        ),
        "best = … => best = scores.masked_fill(~possible, -torch.inf).argmax()": (
            "a tensor of one whole number is a number, too"
        ),
        "return … => …len(end)…": "start, end and allowed are equally long",
        "return … => …len(allowed)…": "start, end and allowed are equally long",
        "return … => …len(start.float())…": "only the length is asked",
    },
    wrong=(
        WrongAnswer(
            "two argmaxes",
            _two_argmaxes,
            "From 0 to 1 is 3 + 5",
            "Each end is best by itself, but together they may not form a span: an answer needs "
            "first <= last.",
        ),
        WrongAnswer(
            "two argmaxes, put in order",
            _sorted,
            "From 0 to 1 is 3 + 5",
            "If the two are swapped, the span begins where an end was scored.",
        ),
        WrongAnswer(
            "the start first, then the best end after it",
            _start_first,
            "From 0 to 1 is 3 + 5",
            "The best start may leave only bad ends. Compare sums.",
        ),
        WrongAnswer(
            "no answers of one word",
            _search(possible=lambda i, j, a: i < j and a[i] and a[j]),
            "From 1 to 1 is 6 + 6",
            "The diagonal belongs to the possible spans: `triu()`, not `triu(1)`.",
        ),
        WrongAnswer(
            "allowed not used",
            _search(possible=lambda i, j, a: i <= j),
            "At 1 and 2, the allowed positions",
            "The question's words have scores, too, but the answer is in the text.",
        ),
        WrongAnswer(
            "only the start is checked",
            _search(possible=lambda i, j, a: i <= j and a[i]),
            "At 1 and 2, the allowed positions",
            "The end must be allowed as well.",
        ),
        WrongAnswer(
            "mask by multiplying",
            _times_mask,
            "all scores are negative",
            "A hidden score becomes 0, and 0 beats a negative score. Use -inf.",
        ),
        WrongAnswer(
            "probabilities added",
            _probabilities,
            "9 + 1.5 = 10.5",
            "Probabilities of two things at once are multiplied: add their logarithms, or scores.",
        ),
        WrongAnswer(
            "scores multiplied",
            _product,
            "9 + 1.5 = 10.5",
            "Scores are logarithms, up to a constant: to multiply the odds, add the scores.",
        ),
        WrongAnswer(
            "every word between must be allowed",
            _search(possible=lambda i, j, a: i <= j and bool(a[i : j + 1].all())),
            "Only the two ends have to be allowed",
            "`allowed` marks where an answer may begin or end; what lies between may be anything.",
        ),
        WrongAnswer(
            "the end first",
            lambda start, end, allowed: my_best_span(start, end, allowed)[::-1],
            "The last word is part of the answer",
            "Return (first, last) in this order.",
        ),
        WrongAnswer(
            "the word after the last",
            _last_excluded,
            "The last word is part of the answer",
            "Return the last word's own position, not Python's end of a slice.",
        ),
        WrongAnswer(
            "at most four words",
            _at_most(4),
            "the length of an answer is not limited",
            "Programs for BERT often stop at some length, for example 30 tokens, and silently "
            "drop every longer answer. Here an answer may have any length.",
        ),
        WrongAnswer(
            "at most 30 words",
            _at_most(30),
            "From 0 to 39 is 3 + 2",
            "Hugging Face's example has such a limit, `max_answer_length`; here there is none.",
        ),
        WrongAnswer(
            "a low number for -∞",
            _low_for_infinite,
            "-10,000 is not low enough",
            "A score may be lower than any number that you choose, except -∞.",
        ),
        WrongAnswer(
            "the best so far begins at 0",
            _beats_zero,
            "all scores are negative",
            "Where all sums are negative none beats 0: begin with -∞, or with the first span.",
        ),
        WrongAnswer(
            "only the best few starts and ends",
            _best_few,
            "From 30 to 30 is 0.5",
            "A list of the 20 best starts and ends, as in Hugging Face's example, is quick and "
            "may miss the best pair: all good starts may come after all good ends.",
        ),
        WrongAnswer(
            "the scores overwritten",
            _ends_hidden_in_place,
            "your code changes the caller's `start`",
            "`start[~allowed] = …` works in the caller's memory; `masked_fill` is a new tensor.",
        ),
        WrongAnswer(
            "probabilities multiplied",
            _product_of_probabilities,
            "end=[0, -110, -300]",
            "The largest product is that of the largest sum, but exp(-110) is 0 in float32, and "
            "all products of it are equal. Stay with the scores, which add up.",
        ),
    ),
)

# 21.2 how likely is a sentence?


def my_sentence_score(logits_of, ids, mask_id, asked):
    """Return a sentence's pseudo-log-likelihood under a masked language model, in nats.

    Each word where asked (S,) is True is predicted with only this word masked by mask_id and all
    other ids (S,) left as they are. logits_of maps ids (B, S) to logits (B, S, V).
    """
    places = asked.nonzero().flatten()  # (n,)
    rows = torch.arange(len(places))
    read = ids.repeat(len(places), 1)  # (S,) -> (n, S)
    read[rows, places] = mask_id
    log_p = logits_of(read)[rows, places].log_softmax(dim=-1)  # (n, S, V) -> (n, V)
    return log_p[rows, ids[places]].sum()


def _scores(hide=None, wanted=None, odds=None, total=torch.sum, which=None):
    """A `my_sentence_score` with one thing done otherwise."""

    def score(logits_of, ids, mask_id, asked):
        asked = which(asked) if which else asked
        places = asked.nonzero().flatten()
        rows = torch.arange(len(places))
        read = ids.repeat(len(places), 1)
        if hide:
            hide(read, rows, places, mask_id)
        else:
            read[rows, places] = mask_id
        logits = logits_of(read)[rows, places]
        log_p = odds(logits) if odds else logits.log_softmax(dim=-1)
        right = wanted(ids, places) if wanted else ids[places]
        return total(log_p[rows, right])

    return score


def _hide_all(read, rows, places, mask_id):
    read[:, places] = mask_id


def _hide_behind(read, rows, places, mask_id):
    for row, place in zip(rows, places):
        read[row, place:] = mask_id


def _call_by_call(logits_of, ids, mask_id, asked):
    total = 0.0
    for place in asked.nonzero().flatten().tolist():
        read = ids.clone()
        read[place] = mask_id
        total = total + logits_of(read[None])[0, place].log_softmax(dim=-1)[ids[place]]
    return total


def _row_for_every_place(logits_of, ids, mask_id, asked):
    rows = torch.arange(len(ids))
    read = ids.repeat(len(ids), 1)
    read[rows, rows] = mask_id
    log_p = logits_of(read)[rows, rows].log_softmax(dim=-1)[rows, ids]
    return log_p[asked].sum()


def _written_into_the_sentence(logits_of, ids, mask_id, asked):
    score = my_sentence_score(logits_of, ids, mask_id, asked)
    ids[asked] = mask_id
    return score


def _first_of_each(ids, asked):
    first = [i for i in range(len(ids)) if ids[i] not in ids[:i]]
    return asked & torch.isin(torch.arange(len(ids)), torch.tensor(first))


SCORE = Answers(
    reference=my_sentence_score,
    equivalent={
        "… => ….detach()…": "a score is read, and nothing is trained by it",
        "… => …len(rows)…": "a row for each place",
        "… => …places.float()…": "only how many there are is asked",
        "… => …asked.float()…": "true is 1, and nothing else is not 0",
        "… => …[rows, asked]…": "a mask picks the same places in the same order",
        "… => …ids[asked]…": "a mask picks the same places in the same order",
        "… => …log_softmax(dim=1)": "the second of two axes is the last",
    },
    wrong=(
        WrongAnswer(
            "nothing hidden",
            _scores(hide=lambda *_: None),
            "Only position 1 is predicted",
            "The word is in the input, so the model only has to copy it.",
        ),
        WrongAnswer(
            "all hidden at once",
            _scores(hide=_hide_all),
            "While position 1 is predicted, position 2 shows its word",
            "Words that are predicted later help with this one: mask one word per row.",
        ),
        WrongAnswer(
            "all later words hidden, too",
            _scores(hide=_hide_behind),
            "Only position 1 is predicted",
            "That is GPT's task. BERT sees both sides.",
        ),
        WrongAnswer(
            "always the first word of the vocabulary",
            _scores(wanted=lambda ids, places: 0 * places),
            "Only position 1 is predicted",
            "The target is the original word, `ids[places]`.",
        ),
        WrongAnswer(
            "logits added up",
            _scores(odds=lambda logits: logits),
            "Only position 1 is predicted",
            "A logit means nothing without the others: take `log_softmax` first.",
        ),
        WrongAnswer(
            "probabilities added up",
            _scores(odds=lambda logits: logits.softmax(dim=-1)),
            "Only position 1 is predicted",
            "Probabilities are multiplied, so their logarithms are added.",
        ),
        WrongAnswer(
            "the mean",
            _scores(total=torch.mean),
            "While position 1 is predicted, position 2 shows its word",
            "Return the sum. (The mean compares sentences of different lengths.)",
        ),
        WrongAnswer(
            "the loss",
            _scores(total=lambda log_p: -log_p.sum()),
            "Only position 1 is predicted",
            "A loss should be small, whereas the likelier sentence has the larger sum.",
        ),
        WrongAnswer(
            "every position predicted",
            _scores(which=torch.ones_like),
            "Only position 1 is predicted",
            "[CLS] and [SEP] are not words of the sentence: sum where `asked` is True.",
        ),
        WrongAnswer(
            "each word once",
            lambda logits_of, ids, mask_id, asked: my_sentence_score(
                logits_of, ids, mask_id, _first_of_each(ids, asked)
            ),
            "each is predicted by itself",
            "A word that occurs twice is predicted twice: count positions, not words.",
        ),
        WrongAnswer(
            "a call for each word",
            _call_by_call,
            "expected one call, with 3 rows",
            "The sum is right. One batch of n rows is a single pass through the model.",
        ),
        WrongAnswer(
            "a row for each position",
            _row_for_every_place,
            "expected 3: a row for each word",
            "The sum is right, but the model gets rows that are not needed.",
        ),
        WrongAnswer(
            "the logarithm of a probability of 0",
            _scores(odds=lambda logits: logits.softmax(dim=-1).log()),
            "No probability is 0",
            "`softmax` rounds a small probability to 0, and its logarithm is minus infinity.",
        ),
        WrongAnswer(
            "a plain number",
            lambda *given: my_sentence_score(*given).item(),
            "expected a tensor",
            "`.item()` leaves torch: two scores can no longer be stacked or sent to a device.",
        ),
        WrongAnswer(
            "always float32",
            lambda *given: my_sentence_score(*given).float(),
            "expected float64",
            "The result has the logits' dtype.",
        ),
        WrongAnswer(
            "hidden in the caller's sentence",
            _written_into_the_sentence,
            "your code changes the caller's `ids`",
            "`ids[asked] = mask_id` writes into the caller's sentence; `repeat` makes a copy.",
        ),
    ),
)

ANSWERS = {
    "21.1": PAIR,
    "21.2": SCORE,
    "21.3": SPAN,
}
