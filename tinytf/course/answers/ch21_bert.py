"""Answers to chapter 21 (bert): references and mistakes."""

import torch
import torch.nn.functional as F

from tinytf.course.grading import Answers, WrongAnswer

# 21.1 write a pair for BERT


def my_pair(first, second, cls_id=1, sep_id=2):
    """Two lists of ids as BERT reads them: (ids, segments), two lists of one length.

    [CLS] first [SEP] second [SEP]; the segment is 0 up to the first [SEP], it included, then 1.
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
            "There is one [CLS]: it stands for the whole input.",
        ),
        WrongAnswer(
            "no [SEP] between",
            _paired(
                lambda f, s, cls, sep: [cls, *f, *s, sep],
                lambda f, s: [0] * (f + 1) + [1] * (s + 1),
            ),
            "the ids are [1, 7, 8, 2]",
            "A [SEP] stands between the two.",
        ),
        WrongAnswer(
            "marks swapped",
            _paired(lambda f, s, cls, sep: [sep, *f, cls, *s, cls]),
            "the ids are [2, 7, 1, 8, 1]",
            "[CLS] begins, [SEP] separates.",
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
            "Then nothing but the [SEP] says where the second sentence begins.",
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
            "A word may stand in both sentences: count places, do not ask which words they hold.",
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
    """Where the answer is: (first, last), two whole numbers, the last word included.

    start and end are scores (S,), allowed (S,) is True where an answer may begin or end. Of all
    spans that do not end before they begin, the one whose start[first] + end[last] is largest.
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
            "Each end is best by itself, but together they may be no span at all: an answer needs "
            "first <= last.",
        ),
        WrongAnswer(
            "two argmaxes, put in order",
            _sorted,
            "From 0 to 1 is 3 + 5",
            "Turning a span round gives a start to what was scored as an end.",
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
            "Of 1 and 2, the places that are allowed",
            "The question's words score too, but the answer is in the text.",
        ),
        WrongAnswer(
            "only the start is checked",
            _search(possible=lambda i, j, a: i <= j and a[i]),
            "Of 1 and 2, the places that are allowed",
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
            "`allowed` says where an answer may begin or end, nothing about what lies between.",
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
            "Return the last word's own place, not Python's end of a slice.",
        ),
        WrongAnswer(
            "at most four words",
            _at_most(4),
            "nothing was said about how long",
            "Programs for BERT often stop at some length, 30 tokens say, and drop every longer "
            "answer without a word. Here an answer may be as long as it likes.",
        ),
        WrongAnswer(
            "at most 30 words",
            _at_most(30),
            "From 0 to 39 is 3 + 2",
            "Hugging Face's example has such a limit, `max_answer_length`; nobody asked for one "
            "here.",
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
            "may miss the best pair: good starts may all stand behind good ends.",
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

# 21.2 a masked-word loss to repair


def my_masked_loss(logits, ids, read, chosen):
    """The mean cross-entropy in nats at the chosen words; a 0 to call backward on if none is.

    logits (B, S, V); ids (B, S) are the words that stood there, read (B, S) what the model was
    given, chosen (B, S) is True where it was asked.
    """
    if not chosen.any():
        return logits.sum() * 0
    return F.cross_entropy(logits[chosen], ids[chosen])


def _asked(which=None, wanted=None, average=None):
    """A `my_masked_loss` with one thing wrong."""

    def loss(logits, ids, read, chosen):
        if not chosen.any():
            return logits.sum() * 0
        at = which(ids, read, chosen) if which else chosen
        right = read if wanted else ids
        each = F.cross_entropy(logits.flatten(0, 1), right.flatten(), reduction="none")
        each = each.view(ids.shape)
        return average(each, at) if average else each[at].mean()

    return loss


MASKED = Answers(
    reference=my_masked_loss,
    equivalent={
        "… => return logits.mean() * 0": "both are a 0 with a gradient of 0",
        "… => …ids.detach()…": "ids and masks carry no gradient",
        "… => …chosen.detach()…": "ids and masks carry no gradient",
        "if not chosen.any(): => if not chosen.float().any():": "true and false are 1 and 0",
    },
    wrong=(
        WrongAnswer(
            "the answer is what was read",
            _asked(wanted="read"),
            "Only place 0 of the first text is asked",
            "`read` holds the mask: the model would learn to say `[MASK]`. `ids` is what stood "
            "there.",
        ),
        WrongAnswer(
            "only what was changed",
            _asked(which=lambda ids, read, chosen: read != ids),
            "was chosen and kept",
            "A kept word is asked for too, or there would be no reason to keep it. And a word may "
            "be swapped for itself.",
        ),
        WrongAnswer(
            "divided by all places",
            _asked(average=lambda each, at: (each * at).mean()),
            "Only place 0 of the first text is asked",
            "The places that nobody asked about are 0, and still counted: the loss is seven times "
            "too small where 15 % are chosen.",
        ),
        WrongAnswer(
            "every place asked",
            _asked(which=lambda ids, read, chosen: chosen | True),
            "Only place 0 of the first text is asked",
            "At a word in sight that was not chosen the answer can be copied.",
        ),
        WrongAnswer(
            "mean of the texts' means",
            _asked(average=lambda each, at: ((each * at).sum(1) / at.sum(1).clamp(min=1)).mean()),
            "Only place 0 of the first text is asked",
            "Sum over the whole batch, and divide once by the number of chosen words.",
        ),
        WrongAnswer(
            "no word chosen",
            lambda logits, ids, read, chosen: F.cross_entropy(logits[chosen], ids[chosen]),
            "where no word is chosen",
            "The mean of nothing is NaN, and one such batch spoils all weights.",
        ),
        WrongAnswer(
            "a 0 from nowhere",
            lambda logits, ids, read, chosen: (
                my_masked_loss(logits, ids, read, chosen) if chosen.any() else torch.tensor(0.0)
            ),
            "gradient",
            "A new 0 does not hang on the logits, and `backward` fails on it. "
            "`logits.sum() * 0` does.",
        ),
        WrongAnswer(
            "infinity times 0",
            lambda logits, ids, read, chosen: (
                my_masked_loss(logits, ids, read, chosen)
                if chosen.any()
                else (logits.exp() * 0).sum()
            ),
            "logits are in the thousands",
            "`exp` of a large logit is infinite, and 0 times infinity is NaN.",
        ),
        WrongAnswer(
            "a plain number",
            lambda *given: my_masked_loss(*given).item(),
            "gradient",
            "`.item()` forgets where the number came from: `backward` has nothing to go back on.",
        ),
    ),
)

ANSWERS = {
    "21.1": PAIR,
    "21.2": MASKED,
    "21.3": SPAN,
}
