"""Answers to chapter 22: references and mistakes."""

import math

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 22.1 what T5 reads and what it writes


def my_drop_spans(ids, noise, sentinels):
    """Turn ids (N,) into the input of T5's encoder and the target of its decoder.

    noise (N,) is True at the tokens to drop, and sentinels is a list of ids in the order of use.
    Returns the pair (corrupted, target), two lists of ids.
    """
    left, corrupted, target = list(sentinels), [], []
    before = False
    for token, dropped in zip(ids.tolist(), noise.tolist()):
        if dropped and not before:  # a new span
            mark = left.pop(0)
            corrupted.append(mark)
            target.append(mark)
        (target if dropped else corrupted).append(token)
        before = dropped
    return corrupted, [*target, left[0]]


def _walk(span=True, final=True, target_marks=True, same_mark=False, leave=True, original=False):
    def answer(ids, noise, sentinels):
        corrupted, target, used, before = [], [], 0, False
        for token, dropped in zip(ids.tolist(), noise.tolist(), strict=True):
            if dropped and not (span and before):
                mark = sentinels[0 if same_mark else used]
                used += 1
                corrupted += [mark] if leave else []
                target += [mark] if target_marks else []
            (target if dropped else corrupted).append(token)
            before = dropped
        target += [sentinels[0 if same_mark else used]] if final else []
        return corrupted, ids.tolist() if original else target

    return answer


def _starts_at_changes(ids, noise, sentinels):
    """Begin a span where a neighbour on the left is kept: the first token has none."""
    first = noise.clone()
    first[0] = False
    first[1:] &= ~noise[:-1]
    corrupted, target, used = [], [], 0
    for token, dropped, begins in zip(ids.tolist(), noise.tolist(), first.tolist(), strict=True):
        if begins:
            corrupted.append(sentinels[used])
            target.append(sentinels[used])
            used += 1
        (target if dropped else corrupted).append(token)
    return corrupted, [*target, sentinels[used]]


def _computed_marks(ids, noise, sentinels):
    count = len(sentinels)
    return my_drop_spans(ids, noise, [sentinels[0] - i for i in range(count)])


def _by_value(ids, noise, sentinels):
    """Asks which words were dropped, not which places."""
    gone = ids[noise].tolist()
    return my_drop_spans(ids, torch.tensor([token in gone for token in ids.tolist()]), sentinels)


def _popped(ids, noise, sentinels):
    corrupted, target, before = [], [], False
    for token, dropped in zip(ids.tolist(), noise.tolist(), strict=True):
        if dropped and not before:
            corrupted.append(sentinels[0])
            target.append(sentinels.pop(0))
        (target if dropped else corrupted).append(token)
        before = dropped
    return corrupted, [*target, sentinels[0]]


def _silent_at_the_end(ids, noise, sentinels):
    corrupted, target = my_drop_spans(ids, noise, sentinels)
    return corrupted, target[:-1] if noise[-1] else target


def _one_to_spare(ids, noise, sentinels):
    corrupted, target = my_drop_spans(ids, noise, sentinels)
    return corrupted, [*target[:-1], sentinels[sentinels.index(target[-1]) + 1]]


DROP_SPANS = Answers(
    reference=my_drop_spans,
    equivalent={
        "… => ….detach()…": "ids and noise carry no gradient",
        "… => for token, dropped in zip(ids, noise.tolist()):": (
            "a tensor of one whole number is a number, too"
        ),
        "… => for token, dropped in zip(ids.tolist(), noise):": (
            "a tensor of one boolean decides as well"
        ),
        "… => …noise.float().tolist()…": "1.0 is as true as True",
    },
    wrong=(
        WrongAnswer(
            "the whole text as target",
            _walk(original=True),
            "the target is [11, 12, 13], expected [99, 12, 40]",
            "Writing the whole text again is BART's task. T5 writes only the dropped spans, which "
            "makes its targets short.",
        ),
        WrongAnswer(
            "a sentinel for each token",
            _walk(span=False),
            "corrupted is [11, 99, 40, 14",
            "A span has one sentinel however long it is, so the model has to find out how many "
            "tokens are missing.",
        ),
        WrongAnswer(
            "no sentinel at the end",
            _walk(final=False),
            "the target is [99, 12], expected [99, 12, 40]",
            "The last sentinel marks the end of the last span. (T5's code leaves it out where "
            "the text ends in a span; the paper has it.)",
        ),
        WrongAnswer(
            "no sentinels in the target",
            _walk(target_marks=False),
            "the target is [12, 40], expected",
            "It would be unclear which words belong in which gap: put each span after its "
            "sentinel.",
        ),
        WrongAnswer(
            "one sentinel for all",
            _walk(same_mark=True),
            "corrupted is [11, 99, 14, 15, 99, 17]",
            "That is a mask. Sentinels differ, so that the target can refer to each gap.",
        ),
        WrongAnswer(
            "gaps closed",
            _walk(leave=False),
            "corrupted is [11, 13], expected [11, 99, 13]",
            "That is token deletion, one of BART's noises. T5 leaves a sentinel in each gap.",
        ),
        WrongAnswer(
            "a first span without a sentinel",
            _starts_at_changes,
            "noise=[1, 0], sentinels=[99, 40, 98, 3, 77], corrupted is [12]",
            "A span may begin at the first token, where there is no neighbour to differ from.",
        ),
        WrongAnswer(
            "sentinels counted down from the first",
            _computed_marks,
            "corrupted is [11, 99, 14, 15, 98, 17]",
            "T5's own sentinels do count down, but here the list gives their ids.",
        ),
        WrongAnswer(
            "looked up by the word",
            _by_value,
            "ids=[5, 5, 5]",
            "A word may occur twice: `noise` marks the positions that are dropped, not the words.",
        ),
        WrongAnswer(
            "no last sentinel after a span at the end",
            _silent_at_the_end,
            "noise=[0, 1], sentinels=[99, 40, 98, 3, 77], target is [99, 12], expected",
            "That is what T5's own code does. The paper's figure always has a last sentinel, and "
            "so does this exercise.",
        ),
        WrongAnswer(
            "a sentinel skipped",
            _one_to_spare,
            "the target is [99, 12, 98], expected",
            "The last sentinel is the next unused one: count those that are used, from 0.",
        ),
        WrongAnswer(
            "the caller's sentinels used up",
            _popped,
            "your code changes the caller's `sentinels`",
            "`pop` takes them out of the caller's own list, and none are left for the next row. "
            "Copy it first, or count.",
        ),
    ),
)


# 22.2 BART's infilling, with spans of nothing


def my_infill(ids, spans, mask_id):
    """Replace each span of ids (N,) by one mask.

    spans is a list of (start, length) from left to right, which do not overlap. A length of 0
    inserts a mask before the token at start. Returns a list of ids.
    """
    out, at = [], 0
    for start, length in spans:
        out += [*ids[at:start].tolist(), mask_id]
        at = start + length
    return out + ids[at:].tolist()


def _one_for_each(ids, spans, mask_id):
    out = ids.tolist()
    for start, length in spans:
        out[start : start + length] = [mask_id] * length
    return out


def _merged(ids, spans, mask_id):
    made = my_infill(ids, spans, mask_id)
    return [t for before, t in zip([None, *made], made) if not before == t == mask_id]


def _to_the_end(ids, spans, mask_id):
    return my_infill(ids, [(start, max(0, end - start)) for start, end in spans], mask_id)


def _shifting(ids, spans, mask_id):
    out = ids.tolist()
    for start, length in spans:
        out[start : start + length] = [mask_id]
    return out


def _cut_by_value(ids, spans, mask_id):
    row = my_infill(ids, spans, mask_id)
    extra = sum(t == mask_id for t in row) - len(spans)
    for _ in range(extra):
        row.remove(mask_id)
    return row


def _searched(ids, spans, mask_id):
    """Marks what goes by the mask itself, and keeps one of each run of them."""
    row = ids.tolist()
    for start, length in spans:
        row[start : start + length] = [mask_id] * length
    return [t for t, before in zip(row, [None, *row]) if not t == before == mask_id]


def _never_before_the_end(ids, spans, mask_id):
    """Checks at each token whether a span starts there, but not after the last token."""
    return my_infill(ids, [s for s in spans if s[0] < len(ids)], mask_id)


INFILL = Answers(
    reference=my_infill,
    equivalent={
        "… => ….detach()…": "ids carry no gradient",
        "… => out += [*ids[at:start], mask_id]": "a tensor of one whole number is a number, too",
    },
    wrong=(
        WrongAnswer(
            "a mask for each token",
            _one_for_each,
            "spans=[(1, 2)], mask_id=50, you get [11, 50, 50, 14], expected [11, 50, 14]",
            "That is token masking. Infilling hides how many tokens are missing.",
        ),
        WrongAnswer(
            "empty spans left out",
            lambda ids, spans, mask_id: my_infill(ids, [s for s in spans if s[1]], mask_id),
            "spans=[(1, 0)], mask_id=50, you get [11, 12], expected [11, 50, 12]",
            "A span of length 0 inserts a mask: the model must also learn that nothing is missing.",
        ),
        WrongAnswer(
            "positions shift",
            _shifting,
            "spans=[(1, 3), (5, 1)], mask_id=50, you get [11, 50, 15, 16, 17, 50]",
            "Each replacement makes the list shorter, and the next start points too far right. "
            "Work from the right end, or build a new list.",
        ),
        WrongAnswer(
            "at least one token a span",
            lambda ids, spans, mask_id: my_infill(ids, [(s, max(n, 1)) for s, n in spans], mask_id),
            "spans=[(1, 0)], mask_id=50, you get [11, 50], expected [11, 50, 12]",
            "If the length is 0, no token may be dropped.",
        ),
        WrongAnswer(
            "a token too many",
            lambda ids, spans, mask_id: my_infill(ids, [(s, n + 1) for s, n in spans], mask_id),
            "spans=[(1, 1)], mask_id=50, you get [11, 50], expected [11, 50, 13]",
            "A slice stops before its end: `ids[start : start + length]` are `length` tokens.",
        ),
        WrongAnswer(
            "gaps closed",
            lambda ids, spans, mask_id: [t for t in my_infill(ids, spans, mask_id) if t != mask_id],
            "spans=[(1, 1)], mask_id=50, you get [11, 13], expected",
            "With no mask left the model can't see where something is missing: that is deletion.",
        ),
        WrongAnswer(
            "masks side by side made one",
            _merged,
            "spans=[(0, 1), (1, 1)], mask_id=50, you get [50], expected [50, 50]",
            "Each span has a mask of its own, even where two of them touch.",
        ),
        WrongAnswer(
            "the length read as the end",
            _to_the_end,
            "spans=[(1, 1)], mask_id=50, you get [11, 50, 12, 13]",
            "(1, 3) is the span of three tokens that begins at 1.",
        ),
        WrongAnswer(
            "the rest forgotten",
            lambda ids, spans, mask_id: my_infill(ids[: sum(spans[-1])], spans, mask_id),
            "spans=[(1, 1)], mask_id=50, you get [11, 50], expected",
            "After the last span the text goes on.",
        ),
        WrongAnswer(
            "no mask at the first position",
            lambda ids, spans, mask_id: my_infill(ids, [s for s in spans if s[0]], mask_id),
            "spans=[(0, 0)], mask_id=50, you get [11], expected [50, 11]",
            "A span may begin at position 0: test for the length, not for the start.",
        ),
        WrongAnswer(
            "no mask after the last token",
            _never_before_the_end,
            "spans=[(1, 0)], mask_id=50, you get [11], expected [11, 50]",
            "A span of length 0 may come after the last token, at position N.",
        ),
        WrongAnswer(
            "masked first, then runs made one",
            _searched,
            "ids=[11, 12], spans=[(1, 0)]",
            "That loses empty spans, and joins those that touch.",
        ),
        WrongAnswer(
            "at least one span expected",
            lambda ids, spans, mask_id: my_infill(ids, spans, mask_id) if spans else [],
            "spans=[], mask_id=50, you get []",
            "Noise may leave a row alone: without a span all tokens stay.",
        ),
        WrongAnswer(
            "masks of the row made one with a span's",
            _cut_by_value,
            "ids=[50, 11, 50, 11]",
            "The row may contain masks already: work with positions, not with the ids there.",
        ),
    ),
)


# 22.3 both sides of a blank, from a model that sees one


def my_fill(log_probs, ids, at):
    """Return the probability of each word at position `at` of ids (T,), given all other words.

    log_probs(ids) of a decoder-only model has shape (T, V): row t is the log-probability of each
    word after ids[: t + 1]. The id at `at` (1 or more) is to be ignored. Returns (V,).
    """
    scores = []
    for word in range(log_probs(ids).size(-1)):
        row = ids.clone()
        row[at] = word
        log_p = log_probs(row)
        scores.append(sum(log_p[t - 1, row[t]] for t in range(at, len(row))))
    return torch.stack(scores).softmax(-1)


def _scored(begin=lambda at: at, shift=1, end=lambda row, at: len(row), mean=False, product=False):
    """A `my_fill` with one thing wrong."""

    def answer(log_probs, ids, at):
        scores = []
        for word in range(log_probs(ids).size(-1)):
            row = ids.clone()
            row[at] = word
            said = log_probs(row)
            steps = [said[t - shift, row[t]] for t in range(begin(at), end(row, at))]
            whole = math.prod(s.exp() for s in steps) if product else sum(steps)
            scores.append(whole / (len(steps) if mean else 1))
        scores = torch.stack([torch.as_tensor(s, dtype=torch.float32) for s in scores])
        return scores / scores.sum() if product else scores.softmax(-1)

    return answer


def _not_normalised(log_probs, ids, at):
    rows = [ids.index_fill(0, torch.tensor(at), w) for w in range(log_probs(ids).size(-1))]
    sums = [sum(log_probs(row)[t - 1, row[t]] for t in range(at, len(row))) for row in rows]
    return torch.stack(sums).exp()


def _in_place(log_probs, ids, at):
    scores = []
    for word in range(log_probs(ids).size(-1)):
        ids[at] = word
        said = log_probs(ids)
        scores.append(said[at - 1 : -1].gather(1, ids[at:, None]).sum())
    return torch.stack(scores).softmax(-1)


FILL = Answers(
    reference=my_fill,
    equivalent={
        "… => ….detach()…": "nothing is trained by what is guessed",
        "… => ….double()…": "float64 can represent the model's whole output",
        "… => ….float()…": "seven digits of a probability are enough",
        "… => …log_probs(ids).size(1)):": "(T, V) has two axes, and the last is 1",
        "… => return torch.stack(scores).softmax(-0)": "(V,) has one axis, first and last",
        "… => …for t in range(at, len(log_p)))))": "the model returns a row for each id",
    },
    wrong=(
        WrongAnswer(
            "the left side alone",
            lambda log_probs, ids, at: log_probs(ids)[at - 1].exp(),
            "ids=[0, 1, 0], at=1, you get",
            "That is the model's prediction at the blank. The words to the right were not scored, "
            "or were scored only once, after the same word for every candidate.",
        ),
        WrongAnswer(
            "the right side alone",
            _scored(begin=lambda at: at + 1),
            "ids=[0, 1], at=1, you get [0.5, 0.5]",
            "The word's own probability, given the left side, is part of the product.",
        ),
        WrongAnswer(
            "the next word alone",
            _scored(end=lambda row, at: min(len(row), at + 2)),
            "ids=[0, 1, 0, 0], at=1, you get",
            "The sum stops before the end of the row: words further right depend on the blank too.",
        ),
        WrongAnswer(
            "one position off",
            _scored(shift=0),
            "ids=[0, 1], at=1, you get",
            "Row t is about the word *after* position t: the word at t is scored by row t - 1.",
        ),
        WrongAnswer(
            "the mean instead of the sum",
            _scored(mean=True),
            "ids=[0, 1, 0], at=1, you get",
            "A mean of logarithms is a root of the product: it flattens the odds. Bayes' rule has "
            "the product.",
        ),
        WrongAnswer(
            "logarithms returned",
            lambda log_probs, ids, at: my_fill(log_probs, ids, at).log(),
            "ids=[0, 1], at=1, you get [-",
            "Return probabilities: softmax, not log_softmax.",
        ),
        WrongAnswer(
            "not normalised",
            _not_normalised,
            "ids=[0, 1, 0], at=1, you get",
            "These are probabilities of whole rows. Divided by their sum, they become "
            "probabilities of words.",
        ),
        WrongAnswer(
            "the word's own row read",
            lambda log_probs, ids, at: log_probs(ids)[at].exp(),
            "ids=[0, 1], at=1, you get",
            "Row `at` already depends on the id at the blank, which is to be predicted.",
        ),
        WrongAnswer(
            "probabilities multiplied",
            _scored(product=True),
            "a row of 60 tokens, at=3",
            "A product of many probabilities is smaller than the smallest float, and 0/0 is NaN. "
            "Add logarithms, and let softmax subtract the largest.",
        ),
        WrongAnswer(
            "five words always",
            lambda log_probs, ids, at: _scored()(lambda row: log_probs(row)[:, :5], ids, at),
            "for a model of 11 words",
            "The number of words is the size of the last axis of the model's output.",
        ),
        WrongAnswer(
            "words up to the largest in the row",
            lambda log_probs, ids, at: _scored()(
                lambda row: log_probs(row)[:, : int(ids.max()) + 1], ids, at
            ),
            "the shape is (8,), expected (11,)",
            "The missing word may not be among those in the row: score all V.",
        ),
        WrongAnswer(
            "the row overwritten",
            _in_place,
            "your code changes the caller's `ids`",
            "`ids[at] = word` writes into the caller's row. Take a copy, `ids.clone()`.",
        ),
    ),
)

ANSWERS = {
    "22.1": DROP_SPANS,
    "22.2": INFILL,
    "22.3": FILL,
}
