"""Exercises of chapter 30: a check of padding, the ill line, a repair, how much a bug costs."""

import math
from itertools import pairwise

import torch

from tinytf.support.randomness import seeded
from tinytf_course.clinic.patients import PATIENTS, healthy, load, source
from tinytf_course.expect import expect, numbers
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import short

# 30.1 a check of padding


def my_pads_move(read, src, pad):
    """Return True if more padding changes an output of `read` at a real token, else False.

    read maps ids (B, S) to outputs (B, S, C) of any size, for any S. The rows of src (B, S) are
    filled up with `pad` on the right. What `read` returns at the padding doesn't matter, even NaN.

    A change of up to a ten-thousandth of the largest output at a real token is rounding. A faulty
    encoder changes some output by at least a fiftieth of that when three columns are appended, or
    returns a value that is not finite.
    """
    raise NotImplementedError


TABLE = numbers(12, 5, seed=1)
SRC = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 3, 0, 0], [5, 5, 4, 11, 0]])
_SRC = "for src with rows of 5, 3 and 4 tokens, pad=0"


def _reader(weigh, scale=1.0, pad=0):
    """An encoder in small: each token's vector, and a mean of all of them, weighed by `weigh`."""

    def read(src):
        x = TABLE.to(src.device)[src]
        weights = weigh(src != pad).to(x.dtype)  # (B, S)
        mean = (weights[..., None] * x).sum(1) / weights.sum(1)[:, None]
        return scale * (x + mean[:, None])

    return read


def _masked(real):
    return real.float()


def _verdict(answer, read, ill, words, src=SRC, pad=0):
    got = answer(read, src, pad)
    where = f"{words}, with src of shape {tuple(src.shape)}, pad={pad}"
    plain = isinstance(got, bool) or (
        isinstance(got, torch.Tensor) and got.numel() == 1 and got.dtype == torch.bool
    )
    kind = f"{tuple(got.shape)}" if isinstance(got, torch.Tensor) else type(got).__name__
    expect(plain, f"{where}, you return {short(got)} ({kind}), expected True or False")
    expect(bool(got) == ill, f"{where}, you return {bool(got)}, expected {ill}")


def _two(answer):
    """an encoder that attends to padding is found, and one that masks it is not"""
    _verdict(answer, _reader(_masked), False, "an encoder that masks its padding")
    _verdict(answer, _reader(torch.ones_like), True, "an encoder that attends to its padding")


def _twenty(answer):
    """twenty healthy encoders are acquitted, and their faulty twins found"""
    for seed in range(20):
        draws = torch.Generator().manual_seed(seed)
        rows, width = 2 + seed % 4, 4 + seed % 5
        src = torch.randint(3, 12, (rows, width), generator=draws)
        lengths = torch.randint(1, width + 1, (rows, 1), generator=draws)
        src = src.masked_fill(torch.arange(width) >= lengths, 0)
        scale = 10.0 ** (seed % 7 - 3)
        _verdict(answer, _reader(_masked, scale), False, f"healthy encoder {seed}", src)
        _verdict(answer, _reader(torch.ones_like, scale), True, f"its faulty twin {seed}", src)


def _programs(answer):
    """the translator of this chapter is acquitted, untrained, with five seeds"""
    program = load(healthy("translator"))
    for seed in range(5):
        with seeded(seed):
            model = program.make_model(seed).eval()
            batch = program.batch(torch.Generator().manual_seed(seed), 6)

        def read(src, model=model):
            with torch.no_grad():
                return model.encode(src)[0]

        _verdict(answer, read, False, f"the translator with seed {seed}", batch["src"], program.PAD)


@hint("Outputs at padded positions don't matter: leave them out of the comparison.")
def _pads_do_not_count(answer):
    """what an encoder returns at the padding itself does not matter"""

    def read(src):
        out = _reader(_masked)(src)
        return torch.where((src == 0)[..., None], out + src.size(1), out)

    _verdict(answer, read, False, "an encoder whose outputs vary at the padded positions")

    def huge(src):
        return _reader(torch.ones_like)(src).masked_fill((src == 0)[..., None], 1e6)

    _verdict(answer, huge, True, "a faulty encoder with a million at the padded positions")

    def no_number(src):
        return _reader(_masked)(src).masked_fill((src == 0)[..., None], math.nan)

    _verdict(answer, no_number, False, "a healthy encoder with NaN at the padded positions")


def _any_pad(answer):
    """the id of the padding is the argument `pad`, whatever its value"""
    src = SRC.masked_fill(SRC == 0, 9)
    src[1, 1] = 2
    _verdict(answer, _reader(_masked, pad=9), False, "a healthy encoder", src, 9)
    _verdict(answer, _reader(torch.ones_like, pad=9), True, "a faulty encoder", src, 9)
    zero = torch.tensor([[0, 4, 0, 6], [3, 0, 9, 9]])
    _verdict(answer, _reader(_masked, pad=9), False, "an encoder for which 0 is a token", zero, 9)

    def last_row(src):  # only the token 0, a real one here, is changed by the padding
        out = _reader(_masked, pad=9)(src)
        return out + ((src == 0) * 0.5 * src.size(1))[..., None]

    _verdict(answer, last_row, True, "an encoder that is faulty only at the token 0", zero, 9)


def _one_place(answer):
    """one component at one position of one row is enough"""
    src = SRC.repeat(20, 1)  # a mean over all of them would not notice
    for b, t, c in ((0, 0, 0), (0, 4, 4), (1, 2, 1), (2, 0, 3), (2, 3, 2)):
        for sign in (1, -1):

            def read(src, b=b, t=t, c=c, sign=sign):
                out = _reader(_masked)(src)
                out[b, t, c] += sign * 0.01 * out.abs().max() * (src.size(1) - 5)
                return out

            words = f"an encoder that is faulty in row {b}, at position {t}, in component {c}"
            _verdict(answer, read, True, words, src)

    def late(src):
        out = _reader(_masked)(src)
        return out + 0.021 * out.abs().max() * (src.size(1) > 7)

    words = "an encoder that a third column of padding moves by 0.021 of the largest output"
    _verdict(answer, late, True, words, SRC)


def _sums_to_zero(answer):
    """changes up and down don't cancel"""

    def read(src):
        out = _reader(_masked)(src)
        swing = torch.tensor([1.0, -1.0, 1.0, -1.0, 0.0]) * (src.size(1) - 5)
        return out + 0.3 * swing

    _verdict(answer, read, True, "an encoder whose changes sum to 0")


@hint("A NaN is neither above a limit nor below it: every comparison with it is False.")
def _no_number(answer):
    """an output that is not finite is a fault"""

    def read(src):
        out = _reader(_masked)(src)
        return out if src.size(1) == 5 else out + math.nan

    _verdict(answer, read, True, "an encoder that gives NaN when there is more padding")

    def one(src):
        out = _reader(_masked)(src)
        if src.size(1) > 5:
            out[1, 0, 0] = math.nan
        return out

    _verdict(answer, one, True, "an encoder that gives a single NaN when there is more padding")


@hint("Rounding grows with the numbers: compare with the size of the outputs.")
def _rounding(answer):
    """rounding is not a fault, and a small change of small outputs is one"""
    for scale in (1e-12, 1e-8, 1.0, 1e6):

        def rounded(src, scale=scale):
            return _reader(_masked, scale)(src) + scale * 1e-5 * (src.size(1) - 5) / 3

        def ill(src, scale=scale):
            return _reader(_masked, scale)(src) + scale * 0.2 * (src.size(1) > 5)

        size = f"outputs of size {scale:g}"
        _verdict(answer, rounded, False, f"an encoder with rounding, {size}")
        _verdict(answer, ill, True, f"a faulty encoder, {size}")
    _verdict(
        answer, lambda src: -_reader(_masked)(src).abs() - 1, False, "outputs that are all negative"
    )
    _verdict(answer, lambda src: 0 * _reader(_masked)(src), False, "outputs that are all 0")

    def near_zero(src):  # beside large numbers a small one, and rounding of the large ones' size
        out = _reader(_masked)(src)
        out[..., 0] = 1e-3 * out[..., 0] + 9e-5 * out.abs().max() * (src.size(1) > 5)
        return out

    words = "an encoder that rounds by 0.00009 of the largest output, at small outputs as well"
    _verdict(answer, near_zero, False, words)
    small = SRC[:1, :3]
    _verdict(answer, _reader(_masked), False, "nothing padded at first, healthy", small)
    _verdict(answer, _reader(torch.ones_like), True, "nothing padded at first, faulty", small)


def _no_gradient_needed(answer):
    """outputs that require a gradient are handled, too"""
    weight = torch.ones((), requires_grad=True)
    _verdict(
        answer, lambda src: weight * _reader(_masked)(src), False, "a healthy encoder with weights"
    )
    _verdict(answer, lambda src: weight * _reader(torch.ones_like)(src), True, "a faulty one")


PADS = Exercise(
    id="30.1",
    title="a check of padding",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_pads_move(read, src, pad)`, which returns True if an encoder is faulty and "
        "False if it is healthy. It is faulty if appending more padding to `src` changes an "
        "output at a real token by more than rounding can explain. `read` runs the encoder: "
        "it maps ids `(B, S)` to outputs `(B, S, C)`. The docstring says how small rounding "
        "is."
    ),
    hint=(
        "Run `read` twice, with a change that must not matter. Which positions can be compared?",
        "`F.pad(src, (0, 3), value=pad)` appends three columns. Compare `before[real]` with "
        "`after[:, :S][real]`.",
        "Measure the largest change relative to the largest output, and acquit only if it is "
        "small: no comparison with NaN is true.",
    ),
    function=my_pads_move,
    tests=(
        _two, _twenty, _programs, _pads_do_not_count, _any_pad, _one_place, _sums_to_zero,
        _no_number, _rounding, _no_gradient_needed,
    ),
)  # fmt: skip


# 30.2 the ill line


def my_diagnosis():
    """Return the faulty line of program `two`, and the lengths T at which the program runs.

    Returns (line, lengths): the line as a string, copied from the code (spaces don't matter), and
    the list of those T from 1 to 8 for which ids of shape (3, T) raise no error.
    """
    raise NotImplementedError


def _two_parts(answer):
    """it returns a line and a list"""
    got = answer()
    expect(
        isinstance(got, tuple | list) and len(got) == 2,
        f"you return {short(got)}, expected two things: (line, lengths)",
    )
    expect(isinstance(got[0], str), f"the line is a {type(got[0]).__name__}, expected a string")
    return got


@hint("Which line gives the mask its axes? Count them, and those of `scores`.")
def _line(answer):
    """it is the line with the mistake"""
    line = "".join(_two_parts(answer)[0].split("#")[0].split())
    text = source(PATIENTS["mask_meets_heads"])
    squeezed = ["".join(row.split("#")[0].split()) for row in text.splitlines()]
    expect(line in squeezed, "this line is not in the program: copy it as it is")
    ill = PATIENTS["mask_meets_heads"].edits[0][1]
    where = f"{_two_parts(answer)[0].strip()!r} is in the healthy twin as well, and is right"
    expect(line == "".join(ill.split()), f"{where} there")


@hint("Write both shapes under each other, aligned on the right: each pair is equal, or one is 1.")
def _lengths(answer):
    """it runs at these lengths, and at no other"""
    got = _two_parts(answer)[1]
    whole = isinstance(got, list | tuple | set) and all(isinstance(n, int) for n in got)
    expect(whole, f"the lengths are {got!r:.80}, expected a list of whole numbers")
    wrong = sorted(set(got) ^ {1, 8})
    if wrong:
        runs = "runs" if wrong[0] in (1, 8) else "ends in an error"
        expect(
            False, f"at T={wrong[0]} the program {runs}: the shapes are (B, 8, T, T) and (1, T, …)"
        )


DIAGNOSIS = Exercise(
    id="30.2",
    title="name the line",
    difficulty=2,
    minutes=10,
    statement=(
        "Find the line with the mistake in program `two`, and the lengths at which this "
        "mistake raises no error. Write `my_diagnosis()`, without arguments. It returns the "
        "line as a string, and a list of all lengths T from 1 to 8 at which the model of "
        "`two`, with its 8 heads, accepts ids of shape `(3, T)`. You can find the lengths by "
        "trying, but it is better to derive them from the shapes."
    ),
    hint=(
        "Which line makes the mask, and how many axes does it have after that? How many do the "
        "scores have?",
        "A mask fits scores of its own shape, or of a shape to which it can be broadcast.",
        "Broadcasting aligns shapes on the right. Write (B, H, T, T), and the mask's shape below "
        "it: which axis of the scores does the mask's first axis meet?",
    ),
    function=my_diagnosis,
    tests=(_two_parts, _line, _lengths),
)


# 30.3 the repair


def my_repair(text):
    """Return the source of a program without its mistake, given the source with the mistake."""
    raise NotImplementedError


def _mended(answer):
    text = answer(source(PATIENTS["pads_as_keys"]))
    expect(isinstance(text, str), f"you return a {type(text).__name__}, expected a string")
    try:
        m = load(text)
    except SyntaxError as error:
        expect(False, f"what you return is not a program: {error.msg}, line {error.lineno}")
    return m, load(healthy("reader"))


def _both_outputs(answer, lengths, seed):
    mended, twin = _mended(answer)
    with seeded(seed):
        models = [program.make_model(seed).eval() for program in (mended, twin)]
        draws = torch.Generator().manual_seed(seed)
        ids = twin.lines(torch.tensor(lengths), draws)
    with torch.no_grad():
        mine, right = (m.outputs(model, {"ids": ids}) for m, model in
                       zip((mended, twin), models, strict=True))  # fmt: skip
    return mine[ids != twin.PAD], right[ids != twin.PAD]


def _runs(answer):
    """what it returns is a program that runs"""
    _both_outputs(answer, [6, 6], 0)


@hint("The mask has to reach the scores, before the softmax.")
def _padding_hidden(answer):
    """in a batch of long and short lines its outputs are those of the healthy program"""
    for seed in range(5):
        mine, right = _both_outputs(answer, [6, 12, 9, 7], seed)
        gap = (mine - right).abs().max().item()
        expect(
            gap < 1e-4,
            f"with lines of 6, 12, 9 and 7 tokens in a batch, seed {seed}, an output at a real "
            f"token is off by {gap:.2g}, expected 0",
        )


def _rest_kept(answer):
    """where nothing is padded its outputs are what they were before"""
    mine, right = _both_outputs(answer, [9, 9, 9], 1)
    gap = (mine - right).abs().max().item()
    expect(gap < 1e-4, f"with three lines of 9 tokens, an output is off by {gap:.2g}, expected 0")


def _training_kept(answer):
    """it trains as before"""
    mended, twin = _mended(answer)
    for entrance in ("make_model", "batch", "loss_of", "make_optimizer", "train", "score"):
        expect(hasattr(mended, entrance), f"`{entrance}` is missing from the program")
    with seeded(0):
        mine, right = mended.train(0, steps=4)[1], twin.train(0, steps=4)[1]
    apart = max(abs(a - b) for a, b in zip(mine, right, strict=True))
    expect(apart < 1e-3, f"the losses of four steps are off by {apart:.2g} from the twin's")


REPAIR = Exercise(
    id="30.3",
    title="repair a program",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_repair(text)`. It receives the source of `pads_as_keys`, an encoder that "
        "attends to its padding, and returns the repaired source. At every real token, "
        "the repaired program must have the outputs of the healthy one, however the batch is "
        "padded; everything else stays as it is. The mask reaches `forward` as `real`, boolean "
        "`(B, T)`, True at real tokens, and `text.replace(old, new)` returns a changed copy of a "
        "text."
    ),
    hint=(
        "Where does `forward` use `real`? And where would it have to?",
        "After the softmax is too late, because the row would no longer sum to 1. A line is "
        "missing before it.",
        "Scores have the shape `(B, H, T, T)`, and the last axis is that of the keys: "
        "`real[:, None, None, :]`.",
    ),
    function=my_repair,
    tests=(_runs, _padding_hidden, _rest_kept, _training_kept),
)


# 30.4 how bad is it?


def my_severity():
    """Return the names of four patients, from the one that costs least to the one that costs most.

    The names are "cache_off_by_one", "pads_as_keys", "scale_by_model" and "top_p_drops_all".
    """
    raise NotImplementedError


FOUR = ("scale_by_model", "pads_as_keys", "top_p_drops_all", "cache_off_by_one")


def _names(answer):
    """it returns the four names, each once"""
    got = answer()
    fine = isinstance(got, list | tuple) and sorted(map(str, got)) == sorted(FOUR)
    expect(fine, f"you return {short(got)}, expected a list of the four names, each once")
    return list(got)


@hint("Which of them can training make up for, because it is there in training, too?")
def _least(answer):
    """the first costs least"""
    got = _names(answer)
    expect(
        got[0] == FOUR[0],
        f"{got[0]} does not cost least: training can't make up for it",
    )


@hint("How often does each matter: at every token, at every sample, in some batches?")
def _order(answer):
    """each costs more than the one before"""
    got = _names(answer)
    for one, other in pairwise(got):
        expect(FOUR.index(one) < FOUR.index(other), f"{one} costs more than {other}")


SEVERITY = Exercise(
    id="30.4",
    title="how bad is it?",
    difficulty=1,
    minutes=8,
    statement=(
        "Order four patients by the share of the score that they cost. *scale_by_model* divides "
        "the scores by √d_model in place of √d_k, in training and at inference. *pads_as_keys*, "
        "an encoder trained without any padding, attends to the padding of short lines. "
        "*top_p_drops_all* drops the most likely token where its probability exceeds p, and a "
        "third of its score is for sampling with top-p. *cache_off_by_one* gives each new token "
        "the position of the one before, and only when it uses its cache. Write `my_severity()`, "
        "without arguments, which returns the list of the four names, from the one that costs "
        "least to the one that costs most."
    ),
    hint=(
        "For each patient, ask first whether the mistake is there in training, too.",
        "Training often makes up for a mistake that is there in training.",
        "Of the others, the first concerns short lines only, the second a third of the score, and "
        "the third every token.",
    ),
    function=my_severity,
    tests=(_names, _least, _order),
)

EXERCISES = (PADS, DIAGNOSIS, REPAIR, SEVERITY)
