"""30.1 a check of padding (★★☆, 12 minutes)

Write `my_pads_move(read, src, pad)`, which returns True if an encoder is faulty and False if it is
healthy. It is faulty if appending more padding to `src` changes an output at a real token by more
than rounding can explain.

<details><summary>The rule in detail</summary>

`read` runs the encoder: it maps ids `(B, S)` to outputs `(B, S, C)`. The docstring tells how small
rounding is.

</details>

Hint: Run `read` twice, with a change that must not matter. Which positions can be compared?

Hint: `F.pad(src, (0, 3), value=pad)` appends three columns. Compare `before[real]` with `after[:,
:S][real]`.

Hint: Measure the largest change relative to the largest output, and acquit only if it is small: no
comparison with NaN is true.
"""

import math

import torch
import torch.nn.functional as F

from tinytf.support.randomness import seeded
from tinytf_course.clinic.patients import healthy, load
from tinytf_course.expect import numbers, same
from tinytf_course.grading import hint


def my_pads_move(read, src, pad):
    """Return True if more padding changes an output of `read` at a real token, else False.

    read maps ids (B, S) to outputs (B, S, C) of any size, for any S. The rows of src (B, S) are
    filled up with `pad` on the right. What `read` returns at the padding doesn't matter, even NaN.

    A change of up to a ten-thousandth of the largest output at a real token is rounding. A faulty
    encoder changes some output by at least a fiftieth of that when three columns are appended, or
    returns NaN there.
    """
    real = src != pad
    before = read(src)[real]
    after = read(F.pad(src, (0, 3), value=pad))[:, : src.size(1)][real]
    gap = (after - before).abs().max()
    return not bool(gap <= 1e-3 * before.abs().max())  # so that NaN is ill


TABLE = numbers(12, 5, seed=1)
SRC = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 3, 0, 0], [5, 5, 4, 11, 0]])


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


def _shifted(change, scale=1.0):
    """A healthy encoder of five columns; with n more its outputs are changed: change(out, n)."""
    return lambda src: change(_reader(_masked, scale)(src), src.size(1) - 5)


def _verdict(answer, read, ill, words, src=SRC, pad=0):
    where = f"for {words}, with src of shape {tuple(src.shape)}, pad={pad}"
    same(answer(read, src, pad), ill, where)


def test_two(answer):
    """an encoder that attends to padding is found, and one that masks it is not"""
    _verdict(answer, _reader(_masked), False, "an encoder that masks its padding")
    _verdict(answer, _reader(torch.ones_like), True, "an encoder that attends to its padding")


def test_twenty(answer):
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


def test_programs(answer):
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
def test_pads_do_not_count(answer):
    """what an encoder returns at the padding itself does not matter"""

    def padded_with(value, weigh=_masked):
        return lambda src: torch.where((src == 0)[..., None], value(src), _reader(weigh)(src))

    vary = padded_with(lambda src: 1.0 * src.size(1) + torch.zeros(5))
    _verdict(answer, vary, False, "an encoder whose outputs vary at the padded positions")
    huge = padded_with(lambda src: torch.tensor(1e6), torch.ones_like)
    _verdict(answer, huge, True, "a faulty encoder with a million at the padded positions")
    no_number = padded_with(lambda src: torch.tensor(math.nan))
    _verdict(answer, no_number, False, "a healthy encoder with NaN at the padded positions")


def test_any_pad(answer):
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


def test_one_place(answer):
    """one component at one position of one row is enough"""
    src = SRC.repeat(20, 1)  # a mean over all of them would not notice
    for at in ((0, 0, 0), (0, 4, 4), (1, 2, 1), (2, 0, 3), (2, 3, 2)):
        for share in (0.01, -0.01):

            def moved(out, more, at=at, share=share):
                out[at] += share * out.abs().max() * more
                return out

            words = "an encoder that is faulty in row {}, at position {}, in component {}"
            _verdict(answer, _shifted(moved), True, words.format(*at), src)
    late = _shifted(lambda out, more: out + 0.021 * out.abs().max() * (more > 2))
    words = "an encoder that a third column of padding moves by 0.021 of the largest output"
    _verdict(answer, late, True, words)


def test_sums_to_zero(answer):
    """changes up and down don't cancel"""
    swing = torch.tensor([0.3, -0.3, 0.3, -0.3, 0.0])
    swings = _shifted(lambda out, more: out + more * swing)
    _verdict(answer, swings, True, "an encoder whose changes sum to 0")


@hint("A NaN is neither above a limit nor below it: every comparison with it is False.")
def test_no_number(answer):
    """an output that is NaN is a fault, in either run"""
    every = _shifted(lambda out, more: out + math.nan if more else out)
    _verdict(answer, every, True, "an encoder that gives NaN when there is more padding")

    def one(out, more):
        if more:
            out[1, 0, 0] = math.nan
        return out

    words = "an encoder that gives a single NaN when there is more padding"
    _verdict(answer, _shifted(one), True, words)
    for most, when in ((9, "whatever the padding"), (0, "unless there is more padding")):

        def spoilt(out, more, most=most):
            if more <= most:
                out[1, 0, 0] = math.nan
            return out

        _verdict(answer, _shifted(spoilt), True, f"an encoder that gives a single NaN {when}")


@hint("Compare the change with the size of the outputs, all of which may be 0.")
def test_rounding(answer):
    """rounding is not a fault, and a small change of small outputs is one"""
    for size in (1e-12, 1e-8, 1.0, 1e6):
        rounded = _shifted(lambda out, more, size=size: out + size * 1e-5 * more / 3, size)
        _verdict(answer, rounded, False, f"an encoder with rounding, outputs of size {size:g}")
        ill = _shifted(lambda out, more, size=size: out + size * 0.2 * (more > 0), size)
        _verdict(answer, ill, True, f"a faulty encoder, outputs of size {size:g}")
    negative = _shifted(lambda out, more: -out.abs() - 1)
    _verdict(answer, negative, False, "outputs that are all negative")
    _verdict(answer, _shifted(lambda out, more: 0 * out), False, "outputs that are all 0")

    def near_zero(out, more):  # beside large numbers a small one, rounded like the large ones
        out[..., 0] = 1e-3 * out[..., 0] + 9e-5 * out.abs().max() * (more > 0)
        return out

    words = "an encoder that rounds by 0.00009 of the largest output, at small outputs as well"
    _verdict(answer, _shifted(near_zero), False, words)
    small = SRC[:1, :3]
    _verdict(answer, _reader(_masked), False, "nothing padded at first, healthy", small)
    _verdict(answer, _reader(torch.ones_like), True, "nothing padded at first, faulty", small)


def test_no_gradient_needed(answer):
    """outputs that require a gradient are handled, too"""
    weight = torch.ones((), requires_grad=True)
    for weigh, ill in ((_masked, False), (torch.ones_like, True)):
        words = f"a {'faulty' if ill else 'healthy'} encoder with weights"
        _verdict(answer, lambda src, weigh=weigh: weight * _reader(weigh)(src), ill, words)


MISTAKES = r"""
the padding's own outputs compared
    read(src)[real] => read(src)
    src.size(1)][real] => src.size(1)]
    says: whose outputs vary at the padded positions
    Outputs at padded positions are not used: compare the real tokens only.
NaN passes
    not bool(gap <= 1e-3 => bool(gap > 1e-3
    says: NaN when there is more padding
    Every comparison with NaN is False, so `gap > limit` acquits it. Check whether the gap is at
    most the limit, and return True if it is not.
NaN is equal to NaN
    gap = =>
        both = after.isnan() & before.isnan()
        after, before = after.masked_fill(both, 0), before.masked_fill(both, 0)
        gap =
    says: gives a single NaN whatever the padding
    An encoder that always gives NaN at a token is no healthy one.
the mean of the changes
    (after - before).abs().max() => (after - before).abs().mean()
    says: that is faulty in row
    A single change is averaged away among all outputs that stay. Take the largest.
changes without their absolute value
    (after - before).abs().max() => (after - before).max()
    says: that is faulty in row
    A change downwards is a change, too: take `.abs()` before the largest.
one limit for outputs of every size
    1e-3 * before.abs().max() => 1e-4
    says: outputs of size 1e-12
    Rounding grows with the numbers. Measure the change as a share of the outputs.
equal to the last bit
    gap <= 1e-3 * before.abs().max() => gap == 0
    says: an encoder with rounding
    Sums of another length are rounded differently. A check with false alarms is switched off by
    the first person it wakes up.
changes added up
    (after - before).abs().max() => (after - before).sum().abs()
    says: whose changes sum to 0
    Changes up and down cancel in a sum. Take the largest absolute value.
0 taken for the padding
    src != pad => src != 0
    says: faulty only at the token 0
    The id of the padding is the argument `pad`; elsewhere 0 can be a token.
numpy asked for a tensor with a gradient
    (after - before).abs().max() => abs((after - before).numpy()).max()
    says: Can't call numpy()
    The outputs require a gradient: stay with tensors, or `detach()` first.
the padding's outputs taken for the largest
    before.abs().max() => read(src).abs().max()
    says: a million at the padded positions
    The largest output must be that of a real token: take it from `before[real]`, like the gap.
the padding multiplied by 0
    src != pad => (src != pad)[..., None].float()
    read(src)[real] => read(src) * real
    src.size(1)][real] => src.size(1)] * real
    says: NaN at the padded positions
    0 times NaN is NaN. Select the real tokens: `before[real]`.
one pad appended
    (0, 3) => (0, 1)
    says: that a third column of padding moves
    Some encoders show no change for one or two columns. The docstring promises one for three.
each output measured by itself
    (after - before).abs().max() => (after - before).abs()
    bool(gap <= 1e-3 * before.abs().max()) => bool((gap <= 0.01 * before.abs()).all())
    says: at small outputs as well
    Rounding is a share of the largest number in the sum: a small output may change by much of
    itself. Compare the largest gap with the largest output.
the verdict turned round
    return not bool => return bool
    says: you get True, expected False
    True means that the encoder is faulty.
"""

HARMLESS = r"""
… => ….detach()…
    a verdict carries no gradient
… => ….float()…
    the outputs are float32 already; the ids are small
… => ….double()
    more digits than needed change no verdict
… => ….item()
    a number in place of a tensor of one
… => return not gap <= …
    `not` of a tensor of one element is a bool as well
… => …0.002 * …
    any limit between a ten-thousandth and a fiftieth is right
… => …(0, 4)…
    the statement lets one append any number from three on
… => …after.__isub__(before)…
    `after` is a copy of the answer's own
… => …real.size(1)…
    the mask has the shape of the ids
… => …before.abs_()…
    `before` is a copy, and read no more
… => …after.abs().max())
    of a healthy encoder both outputs have the same size
"""
