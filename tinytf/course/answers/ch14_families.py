"""Answers to chapter 14 (families): references and mistakes."""

import torch

from tinytf.course.grading import Answers, WrongAnswer

# 14.3 what T5 reads and what it writes


def my_drop_spans(ids, noise, sentinels):
    """Turn ids (N,) into what T5's encoder reads and what its decoder has to write.

    noise (N,) is True at the tokens to drop, sentinels a list of ids in the order to use them.
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


DROP_SPANS = Answers(
    reference=my_drop_spans,
    wrong=(
        WrongAnswer(
            "the whole text as target",
            _walk(original=True),
            "the target is [11, 12, 13, 14, 15, 16, 17]",
            "To write the original again is BART's task. T5 writes the dropped spans alone, which "
            "makes its targets short.",
        ),
        WrongAnswer(
            "a sentinel for each token",
            _walk(span=False),
            "corrupted is [11, 99, 98, 14",
            "A span has one sentinel however long it is, so the model has to find out how many "
            "tokens are missing.",
        ),
        WrongAnswer(
            "no sentinel at the end",
            _walk(final=False),
            "the target is [99, 12, 13, 98, 16], expected",
            "The last sentinel says that the last span is over. (T5's code leaves it out where "
            "the text ends in a span; the paper has it.)",
        ),
        WrongAnswer(
            "no sentinels in the target",
            _walk(target_marks=False),
            "the target is [12, 13, 16, 97]",
            "Nobody could tell which words belong in which gap: each span follows its sentinel.",
        ),
        WrongAnswer(
            "one sentinel for all",
            _walk(same_mark=True),
            "corrupted is [11, 99, 14, 15, 99, 17]",
            "That is a mask. Sentinels differ, so that the target can name its gaps.",
        ),
        WrongAnswer(
            "gaps closed",
            _walk(leave=False),
            "corrupted is [11, 14, 15, 17]",
            "That is token deletion, one of BART's noises. T5 leaves a sentinel in each gap.",
        ),
        WrongAnswer(
            "a first span without a sentinel",
            _starts_at_changes,
            "you get [[12, 99, 15, 98]",
            "A span may begin at the first token, where there is no neighbour to differ from.",
        ),
    ),
)


# 14.4 BART's infilling, with spans of nothing


def my_infill(ids, spans, mask_id):
    """Put one mask in the place of each span of ids (N,).

    spans is a list of (start, length) from left to right, which do not overlap; a length of 0
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


INFILL = Answers(
    reference=my_infill,
    wrong=(
        WrongAnswer(
            "a mask for each token",
            _one_for_each,
            "the shape is (7,), expected (5,)",
            "That is token masking. Infilling hides how many tokens are missing.",
        ),
        WrongAnswer(
            "empty spans left out",
            lambda ids, spans, mask_id: my_infill(ids, [s for s in spans if s[1]], mask_id),
            "spans=[(1, 2), (4, 0), (5, 1)], mask_id=50, the shape is (6,), expected (7,)",
            "A span of length 0 inserts a mask: the model must also learn that nothing is missing.",
        ),
        WrongAnswer(
            "places shift",
            _shifting,
            "spans=[(1, 3), (5, 1)], mask_id=50, the shape is (6,), expected (5,)",
            "Each replacement makes the list shorter, and the next start points too far right. "
            "Work from the right end, or build a new list.",
        ),
        WrongAnswer(
            "at least one token a span",
            lambda ids, spans, mask_id: my_infill(ids, [(s, max(n, 1)) for s, n in spans], mask_id),
            "spans=[(1, 2), (4, 0), (5, 1)], mask_id=50, the shape is (6,), expected (7,)",
            "Where the length is 0 no token may go.",
        ),
        WrongAnswer(
            "gaps closed",
            lambda ids, spans, mask_id: [t for t in my_infill(ids, spans, mask_id) if t != mask_id],
            "the shape is (3,), expected (5,)",
            "With no mask left the model can't see where something is missing: that is deletion.",
        ),
        WrongAnswer(
            "masks side by side made one",
            _merged,
            "spans=[(1, 2), (3, 0), (3, 1)], mask_id=50, the shape is (5,), expected (7,)",
            "Each span has a mask of its own, also where two of them touch.",
        ),
        WrongAnswer(
            "the length read as the end",
            _to_the_end,
            "spans=[(1, 3), (5, 1)], mask_id=50, the shape is",
            "(1, 3) is the span of three tokens that begins at 1.",
        ),
        WrongAnswer(
            "the rest forgotten",
            lambda ids, spans, mask_id: my_infill(ids[: sum(spans[-1])], spans, mask_id),
            "the shape is (4,), expected (5,)",
            "After the last span the text goes on.",
        ),
        WrongAnswer(
            "no mask at the first place",
            lambda ids, spans, mask_id: my_infill(ids, [s for s in spans if s[0]], mask_id),
            "spans=[(0, 0), (2, 3)]",
            "A span may begin at place 0: test for the length, not for the start.",
        ),
    ),
)


# 14.5 both sides of a blank, from a model that sees one


def my_fill(log_probs, ids, at):
    """Give the probability of each word at place `at` of ids (T,), given all the other words.

    log_probs(ids) of a decoder-only model are (T, V): row t is the log-probability of each word
    after ids[: t + 1]. What stands at `at` (1 or more) is not looked at. Returns (V,).
    """
    scores = []
    for word in range(log_probs(ids).size(-1)):
        row = ids.clone()
        row[at] = word
        said = log_probs(row)
        scores.append(sum(said[t - 1, row[t]] for t in range(at, len(row))))
    return torch.stack(scores).softmax(-1)


def _scored(begin=lambda at: at, shift=1, end=lambda row, at: len(row), mean=False):
    def answer(log_probs, ids, at):
        scores = []
        for word in range(log_probs(ids).size(-1)):
            row = ids.clone()
            row[at] = word
            said = log_probs(row)
            steps = [said[t - shift, row[t]] for t in range(begin(at), end(row, at))]
            scores.append(sum(steps) / (len(steps) if mean else 1))
        return torch.stack([torch.as_tensor(s, dtype=torch.float32) for s in scores]).softmax(-1)

    return answer


FILL = Answers(
    reference=my_fill,
    wrong=(
        WrongAnswer(
            "the left side alone",
            lambda log_probs, ids, at: log_probs(ids)[at - 1].exp(),
            "with the blank at 2, ",
            "That is what the model says when it comes to the blank. Words to the right were not "
            "asked.",
        ),
        WrongAnswer(
            "the right side alone",
            _scored(begin=lambda at: at + 1),
            "with the blank at 2, ",
            "The word's own probability after what is left of it belongs to the product.",
        ),
        WrongAnswer(
            "the next word alone",
            _scored(end=lambda row, at: min(len(row), at + 2)),
            "with the blank at 1, ",
            "The sum stops before the end of the row: words further right depend on the blank too.",
        ),
        WrongAnswer(
            "one place off",
            _scored(shift=0),
            "with the blank at 2, ",
            "Row t speaks of the word *after* place t: the word at t is scored by row t - 1.",
        ),
        WrongAnswer(
            "the mean instead of the sum",
            _scored(mean=True),
            "with the blank at 2, ",
            "A mean of logarithms is a root of the product: it flattens the odds. Bayes' rule has "
            "the product.",
        ),
        WrongAnswer(
            "logarithms returned",
            lambda log_probs, ids, at: my_fill(log_probs, ids, at).log(),
            "with the blank at 2, ",
            "Probabilities are asked for: softmax, not log_softmax.",
        ),
        WrongAnswer(
            "not normalised",
            lambda log_probs, ids, at: torch.stack(
                [
                    sum(log_probs(row)[t - 1, row[t]] for t in range(at, len(row))).exp()
                    for row in (ids.index_fill(0, torch.tensor(at), w) for w in range(5))
                ]
            ),
            "with the blank at 2, ",
            "These are probabilities of whole rows. Divided by their sum they are odds of words.",
        ),
        WrongAnswer(
            "the word's place read from the row",
            lambda log_probs, ids, at: log_probs(ids)[at].exp(),
            "with the blank at 2, ",
            "Row `at` has read what stands at the blank, which is to be found out.",
        ),
    ),
)

ANSWERS = {
    "14.3": DROP_SPANS,
    "14.4": INFILL,
    "14.5": FILL,
}
