"""Exercises of chapter 14, Three families: what noise leaves and asks, both sides of a blank."""

import torch

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, short

# 14.3 T5's two sides of a noised text


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


IDS = torch.tensor([11, 12, 13, 14, 15, 16, 17])
NOISE = torch.tensor([False, True, True, False, False, True, False])
EDGES = torch.tensor([True, False, True, True, False, True, True])
MARKS = [99, 98, 97, 96]


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


def _pair(answer, noise):
    where = f"for ids={short(IDS)}, noise={short(noise.long())}, sentinels={MARKS}"
    got = answer(IDS, noise, MARKS)
    expect(got is not None, f"{where}, you return None: is a `return` missing?")
    fits = isinstance(got, list | tuple) and len(got) == 2
    expect(fits, f"{where}, you return a {type(got).__name__}, expected (corrupted, target)")
    return where, [list(map(int, part)) if _rows(part) else part for part in got]


def _rows(part):
    return isinstance(part, list | tuple | torch.Tensor) and all(
        isinstance(t, int) or (isinstance(t, torch.Tensor) and t.dim() == 0) for t in part
    )


def _reads(answer):
    """the encoder reads one sentinel for each span"""
    where, (corrupted, _) = _pair(answer, NOISE)
    expected = [11, 99, 14, 15, 98, 17]
    expect(corrupted == expected, f"{where}, corrupted is {corrupted}, expected {expected}")


def _writes(answer):
    """the decoder writes the spans behind their sentinels, and one sentinel more"""
    where, (_, target) = _pair(answer, NOISE)
    expected = [99, 12, 13, 98, 16, 97]
    expect(target == expected, f"{where}, the target is {target}, expected {expected}")


def _edges(answer):
    """spans may stand at either end"""
    where, got = _pair(answer, EDGES)
    expected = [[99, 12, 98, 15, 97], [99, 11, 98, 13, 14, 97, 16, 17, 96]]
    expect(got == expected, f"{where}, you get {got}, expected {expected}")


DROP_SPANS = Exercise(
    id="14.3",
    title="what T5 reads and what it writes",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `my_drop_spans(ids, noise, sentinels)`: given which tokens are to be dropped, the "
        "pair `(corrupted, target)` of T5, as two lists of ids. Each span (tokens dropped side by "
        "side) becomes the next sentinel of the list. The target holds each sentinel and its span, "
        "and ends in one sentinel more."
    ),
    hint=(
        "Walk over the tokens and remember whether the one before was dropped: only where that "
        "changes does a new span begin. A dropped token goes to the target, a kept one to the "
        "corrupted text."
    ),
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
    tests=(_reads, _writes, _edges),
    probes=(calls(IDS, NOISE, MARKS), calls(IDS, EDGES, MARKS)),
)


# 14.4 BART's infilling, spans of length 0 included


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


SPANS = [(1, 2), (4, 0), (5, 1)]
TWO = [(0, 0), (2, 3)]
TOUCHING = [(1, 2), (3, 0), (3, 1)]


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


def _infills(answer, spans):
    where = f"for ids={short(IDS)}, spans={spans}, mask_id=50"
    got = answer(IDS, spans, 50)
    same(got, my_infill(IDS, spans, 50), where)


def _any_length(answer):
    """a span of any length becomes one mask"""
    _infills(answer, [(1, 3), (5, 1)])


def _empty(answer):
    """a span of length 0 inserts a mask where nothing was"""
    _infills(answer, SPANS)


def _ends(answer):
    """masks may come first and last"""
    _infills(answer, TWO)
    _infills(answer, [(0, 2), (7, 0)])


def _touching(answer):
    """spans that touch have a mask each"""
    _infills(answer, TOUCHING)


INFILL = Exercise(
    id="14.4",
    title="BART's infilling, with spans of nothing",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_infill(ids, spans, mask_id)`: put one `mask_id` in the place of each span of "
        "`ids`, and return a list. `spans` holds pairs `(start, length)` in the places of the "
        "original, from left to right; they may touch. A span of length 0 inserts a mask before "
        "the token at `start`."
    ),
    hint="Build a new list: what lies between the last span's end and this start, then a mask.",
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
    tests=(_any_length, _empty, _ends, _touching),
    probes=(
        calls(IDS, SPANS, 50),
        calls(IDS, TWO, 50),
        calls(IDS, [(1, 3), (5, 1)], 50),
        calls(IDS, TOUCHING, 50),
    ),
)


# 14.5 both sides of a blank, from a model that sees the left


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


_AFTER = torch.randn(5, 5, generator=torch.Generator().manual_seed(3)) * 2  # by the last word
_TWO_BACK = torch.randn(5, 5, generator=torch.Generator().manual_seed(4))


def _model(ids):
    """A little language that looks two words back."""
    older = torch.cat([ids[:1], ids[:-1]])
    return (_AFTER[ids] + _TWO_BACK[older]).log_softmax(-1)


ROW = torch.tensor([0, 3, 1, 4, 2])


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


def _fills(answer, ids, at):
    note = "Sum log P(word | words before it) over the blank and all that follows; then normalise."
    where = f"for the row {short(ids)} with the blank at {at}"
    same(answer(_model, ids, at), my_fill(_model, ids, at), where, note=note)


def _in_the_middle(answer):
    """in the middle both sides count"""
    _fills(answer, ROW, 2)


def _early(answer):
    """all that follows counts, not the next word alone"""
    _fills(answer, ROW, 1)


def _last(answer):
    """at the end the left side is all there is"""
    _fills(answer, ROW, 4)


def _unseen(answer):
    """what stands at the blank does not matter"""
    other = torch.tensor([0, 3, 0, 4, 2])
    got = [answer(_model, row, 2) for row in (ROW, other)]
    same(got[0], my_fill(_model, ROW, 2), f"for the row {short(ROW)} with the blank at 2")
    same(got[1], got[0], f"for {short(other)} instead of {short(ROW)}, blank at 2: the two")


FILL = Exercise(
    id="14.5",
    title="both sides of a blank, from a model that sees one",
    difficulty=3,
    minutes=20,
    statement=(
        "Write `my_fill(log_probs, ids, at)`: the probability of every word at place `at`, given "
        "all other words of the row, from a decoder-only model. `log_probs(ids)` gives (T, V): row "
        "t holds the log-probability of each word after `ids[: t + 1]`. Return (V,), which sums "
        "to 1."
    ),
    hint=(
        "By Bayes' rule, P(word | left, right) goes with P(word | left) · P(right | left, "
        "word): the model's probability of the whole row with that word in it. Score V rows."
    ),
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
    tests=(_in_the_middle, _early, _last, _unseen),
    probes=(calls(_model, ROW, 2), calls(_model, ROW, 1), calls(_model, ROW, 4)),
)

EXERCISES = (DROP_SPANS, INFILL, FILL)
