"""Chapter 06: LayerNorm, RMSNorm in half precision, a Pre-LN stack, BatchNorm without padding."""

import torch
from torch.nn import functional as F

from tinytf.course.expect import agrees, expect, gradients, numbers, precise, same, short, tensor
from tinytf.course.grading import Exercise, hint, reference

# 06.1 layer norm


def my_layer_norm(x, weight, bias, eps=1e-5):
    """Each token of x (..., C) to mean 0 and variance 1 over its features, then gain and bias.

    weight and bias are (C,). The variance is divided by C, and eps is added to it inside the root.
    """
    raise NotImplementedError


TOKENS = torch.tensor(
    [[[1.0, 2.0, 3.0, 6.0], [0.0, 4.0, -4.0, 8.0]], [[5.0, 5.0, 1.0, 1.0], [9.0, 1.0, 2.0, 0.0]],
     [[-3.0, 0.0, 1.0, 7.0], [2.0, 2.5, 3.0, -1.5]]]
)  # fmt: skip
ONE, NONE = torch.ones(4), torch.zeros(4)
GAIN, SHIFT = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.5, 0.0, -1.0, 2.0])
TINY = TOKENS * 1e-3


def _layer_norm(x, weight, bias, eps=1e-5):
    """torch's own, given the arguments in another order."""
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def _each_token(answer):
    """each token comes out with mean 0 and variance 1, divided by C"""
    token = TOKENS[0, 0]
    agrees(answer, _layer_norm, token, ONE, NONE, note="Its mean is 3, its variance 14 / 4.")
    agrees(answer, _layer_norm, TOKENS[:, 0], ONE, NONE)
    agrees(answer, _layer_norm, TOKENS[:1], ONE, NONE)
    agrees(answer, _layer_norm, TOKENS, ONE, NONE)


def _affine(answer):
    """then come gain and bias, feature by feature"""
    agrees(answer, _layer_norm, TOKENS[0, 0], GAIN, SHIFT)
    agrees(answer, _layer_norm, numbers(2, 3, 5, seed=1), *numbers(2, 5, seed=2))


def _eps_inside(answer):
    """eps is added to the variance"""
    note = "Its variance is 3.5e-06, less than eps: √(variance + eps)."
    agrees(answer, _layer_norm, TINY[0, 0], ONE, NONE, 1e-4, note=note)
    agrees(answer, _layer_norm, TINY[0, 0], ONE, NONE, note="Without an eps it is 1e-5.")


def _constant(answer):
    """a token of equal numbers comes out as its bias"""
    agrees(answer, _layer_norm, torch.full((4,), 3.0), ONE, NONE, note="0 is not divided by 0.")
    agrees(answer, _layer_norm, torch.full((2, 1), 3.0), GAIN[:1], SHIFT[:1], note="C = 1.")


@hint("The mean of the squares minus the square of the mean is a small difference of large ones.")
def _far_away(answer):
    """a large mean does not cost the digits of the variance"""
    far = TOKENS[0, 0] + 10_000
    agrees(answer, _layer_norm, far, ONE, NONE, tolerance=1e-3, note="Its variance is 3.5.")
    agrees(answer, _layer_norm, far.double() * 1000, ONE.double(), NONE.double(), tolerance=1e-6)


def _any_shape(answer):
    """tokens without a batch, and of four axes, are normalised alike"""
    agrees(answer, _layer_norm, TOKENS[0], GAIN, SHIFT)
    agrees(answer, _layer_norm, numbers(2, 1, 3, 4, seed=3), GAIN, SHIFT)


def _layer_dtypes(answer):
    """the numbers keep their dtype, and its precision"""
    precise(answer, _layer_norm, TOKENS[0, 0], GAIN, SHIFT, dtype=torch.float64)
    precise(answer, _layer_norm, TOKENS[0, 0], GAIN, SHIFT, dtype=torch.bfloat16)


def _layer_gradient(answer):
    """mean and variance take part in the gradient"""
    gradients(answer, _layer_norm, TOKENS[0, 0], GAIN, SHIFT)
    gradients(answer, _layer_norm, TOKENS, GAIN, SHIFT)


LAYER = Exercise(
    id="06.1",
    title="layer norm",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_layer_norm(x, weight, bias, eps=1e-5)` for `x` of shape `(..., C)`: each token "
        "minus its mean, divided by √(variance + `eps`), then times `weight` plus `bias`. The "
        "variance is the mean of C squares."
    ),
    hint="`x.mean(dim=-1, keepdim=True)`; `x.var` divides by C - 1 unless told `correction=0`.",
    function=my_layer_norm,
    tests=(
        _each_token,
        _affine,
        _eps_inside,
        _constant,
        _any_shape,
        _far_away,
        _layer_dtypes,
        _layer_gradient,
    ),
)


# 06.2 RMSNorm that survives float16


def my_rms_norm(x, weight, eps=1e-6):
    """Each token of x (..., C) divided by the root of its mean square, times weight (C,).

    Right for float16 too: the squares are taken in float32, and the result has the dtype of x.
    """
    raise NotImplementedError


LARGE = (TOKENS * 100).half()
_TOKEN = "for the token [1, 2, 3, 6]"


def _rms_one(answer):
    """a token comes out with mean square 1, its mean left in"""
    got = tensor(answer(TOKENS, ONE), _TOKEN)
    expect(got.shape == TOKENS.shape, f"{_TOKEN}, the shape is {tuple(got.shape)}, not (3, 2, 4)")
    note = "Its mean square is 12.5; the mean is not taken out."
    same(got[0, 0], reference("06.2")(TOKENS, ONE)[0, 0], _TOKEN, tolerance=1e-4, note=note)


def _rms_gain(answer):
    """then comes the gain"""
    where = f"{_TOKEN} with weight={short(GAIN)}"
    same(
        tensor(answer(TOKENS, GAIN), where)[0, 0],
        reference("06.2")(TOKENS, GAIN)[0, 0],
        where,
        1e-4,
    )


def _rms_eps(answer):
    """eps is added to the mean square"""
    where = "for the token [0.001, 0.002, 0.003, 0.006] and eps=1e-5"
    expected = reference("06.2")(TINY, ONE, 1e-5)[0, 0]
    note = "eps goes inside the root: √(mean square + eps)."
    same(tensor(answer(TINY, ONE, 1e-5), where)[0, 0], expected, where, 1e-4, note)


def _half(answer):
    """in float16 large numbers come out right, in float16"""
    where = "for the float16 token [100, 200, 300, 600]"
    got = tensor(answer(LARGE, ONE.half()), where)
    message = f"{where}, you get {short(got[0, 0])}: a number past 65,504 stood in float16"
    expect(got[0, 0].isfinite().all() and got[0, 0].abs().max() > 0, message)
    same(got[0, 0].float(), reference("06.2")(TOKENS, ONE)[0, 0], where, tolerance=5e-3)
    where_last = "for the float16 token [200, 250, 300, -150]"
    expected = reference("06.2")(TOKENS, ONE)[2, 1]
    same(got[2, 1].float(), expected, where_last, 5e-3, "300² is past 65,504.")
    expect(got.dtype == torch.float16, f"{where}, the result is {got.dtype}, expected float16")


RMS = Exercise(
    id="06.2",
    title="RMSNorm that survives float16",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_rms_norm(x, weight, eps=1e-6)` for `x` of shape `(..., C)`: each token divided "
        "by √(mean square + eps), times `weight`. It has to be right for float16 input such as "
        "[100, 200, 300, 600], and give back the dtype of `x`."
    ),
    hint="The largest number of float16 is 65,504. Which of your steps can pass it?",
    function=my_rms_norm,
    tests=(_rms_one, _rms_gain, _rms_eps, _half),
)


# 06.3 a Pre-LN stack


def my_pre_norm_stack(x, sublayers, norms, dropout):
    """A whole Pre-LN stack: each sublayer adds what it finds to the stream x (B, T, C).

    sublayers and norms are lists of functions of (B, T, C). There is one norm more than sublayers:
    norms[i] is for sublayers[i], the last one for the end. dropout acts on what is added.
    """
    raise NotImplementedError


STREAM = torch.tensor([[[1.0, 2.0], [3.0, -1.0]]])


def _times(number):
    return lambda t: number * t


def _plus(number):
    return lambda t: t + number


_ONE_LAYER = ([_plus(1)], [_times(10), _times(1)])
_TWO_LAYERS = ([_plus(1), _plus(3)], [_times(10), _times(100), _times(2)])


def _stream_passes(answer):
    """if dropout drops everything, only the last norm acts on x"""
    where = (
        "for x=[1, 2], two sublayers, a last norm = times 2, and a dropout that drops everything"
    )
    got = tensor(answer(STREAM, *_TWO_LAYERS, _times(0)), where)
    expect(got.shape == STREAM.shape, f"{where}, the shape is {tuple(got.shape)}, not (1, 2, 2)")
    same(got[0, 0], [2.0, 4.0], where, note="Nothing is added, and only the last norm acts.")


def _sublayer_reads_norm(answer):
    """the sublayer reads the normalised stream"""
    where = "for x=[1, 2], norm = times 10, sublayer = plus 1, a last norm = times 1, no dropout"
    got = tensor(answer(STREAM, *_ONE_LAYER, _times(1)), where)
    same(got[0, 0], [12.0, 23.0], where, note="1 + (10·1 + 1) = 12.")


def _all_of_it(answer):
    """dropout acts on what the sublayer returns"""
    where = "for x=[1, 2], norm = times 10, sublayer = plus 1, dropout = half of it"
    got = tensor(answer(STREAM, *_ONE_LAYER, _times(0.5)), where)
    same(got[0, 0], [6.5, 12.5], where, note="1 + (10·1 + 1)/2 = 6.5.")


def _two_layers(answer):
    """each sublayer reads the stream that the one before it wrote to, through its own norm"""
    where = "for x=[1, 2], norms times 10, 100 and (last) 2, sublayers plus 1, then plus 3"
    got = tensor(answer(STREAM, *_TWO_LAYERS, _times(1)), where)
    note = "12 after the first; 12 + (100·12 + 3) = 1215 after the second; times 2."
    same(got[0, 0], [2430.0, 4652.0], where, note=note)


PRE = Exercise(
    id="06.3",
    title="a Pre-LN stack",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_pre_norm_stack(x, sublayers, norms, dropout)`, a whole Pre-LN stack: each "
        "sublayer reads the normalised stream, dropout acts on what it returns, and that is added "
        "to the stream. `norms` is one longer than `sublayers`: a Pre-LN stack has a use for it."
    ),
    hint="Ask of each term: is this the stream `x`, or a normalised copy of it? And who normalises "
    "what the last sublayer leaves?",
    function=my_pre_norm_stack,
    tests=(_stream_passes, _sublayer_reads_norm, _all_of_it, _two_layers),
)


# 06.4 BatchNorm that leaves padding out


def my_batch_norm(x, real, eps=1e-5):
    """Each feature of x (B, T, C) to mean 0 and variance 1 over all real tokens of the batch.

    real (B, T) is True at real tokens; padding takes no part in the statistics and comes out as 0.
    Variances are divided by the number of real tokens.
    """
    raise NotImplementedError


BATCH = torch.tensor(
    [[[1.0, 10.0, 4.0], [2.0, 20.0, 0.0], [6.0, 60.0, 8.0]],
     [[3.0, -5.0, 1.0], [50.0, 70.0, 90.0], [50.0, 70.0, 90.0]]]
)  # fmt: skip
REAL = torch.tensor([[True, True, True], [True, False, False]])
OTHER = BATCH.where(REAL[..., None], -7.0)
FLAT = BATCH * torch.tensor([1.0, 0.0, 0.001]) + torch.tensor([0.0, 5.0, 0.0])  # feature 1 constant
_BATCH = "for 4 real tokens and 2 of padding"


def _padding_zero(answer):
    """padding comes out as 0"""
    got = tensor(answer(BATCH, REAL), _BATCH)
    expect(got.shape == BATCH.shape, f"{_BATCH}, the shape is {tuple(got.shape)}, not (2, 3, 3)")
    worst = got[~REAL].abs().max().item()
    expect(worst == 0, f"{_BATCH}, padding comes out as large as {worst:.4g}, expected 0")


def _features(answer):
    """each feature has mean 0 over the real tokens"""
    mean = tensor(answer(BATCH, REAL), _BATCH)[REAL].mean(dim=0)
    note = "One mean for each feature, of all 4 real tokens."
    same(mean, [0.0] * 3, f"{_BATCH}, the mean of each feature over them", 1e-4, note)


def _feature_variance(answer):
    """and variance 1"""
    got = tensor(answer(BATCH, REAL), _BATCH)[REAL][:, 0]
    note = "Its variance is that of all 4 numbers together, divided by 4."
    where = f"{_BATCH}, whose first feature is [1, 2, 6, 3]"
    same(got, reference("06.4")(BATCH, REAL)[REAL][:, 0], where, 1e-3, note)


def _eps_of_batch(answer):
    """eps is added to the variance, and keeps a constant feature finite"""
    where = f"{_BATCH}, the second feature constant, the third tiny, and eps=1e-4"
    got = tensor(answer(FLAT, REAL, 1e-4), where)[REAL]
    expect(got.isfinite().all(), f"{where}, you get {short(got[0])}: 0 divided by 0")
    note = "√(variance + eps)."
    same(got[0], reference("06.4")(FLAT, REAL, 1e-4)[REAL][0], f"{where}, in one token", 1e-3, note)


def _padding_unseen(answer):
    """what stands in the padding changes nothing"""
    got, other = (tensor(answer(x, REAL), _BATCH) for x in (BATCH, OTHER))
    gap = (got - other)[REAL].abs().max().item()
    message = f"{_BATCH}, other numbers in the padding move a real token by {gap:.4g}, expected 0"
    expect(gap < 1e-5, message)


BATCHNORM = Exercise(
    id="06.4",
    title="BatchNorm that leaves padding out",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_batch_norm(x, real, eps=1e-5)` for `x` of shape `(B, T, C)` and a boolean "
        "`real` of shape `(B, T)`: every feature to mean 0 and variance 1 over all real tokens of "
        "the batch (training statistics, no gain or bias). Padding must not count, and comes out "
        "as 0."
    ),
    hint="`x[real]` is the real tokens alone, `(N, C)`. Then `.where(real[..., None], 0.0)`.",
    function=my_batch_norm,
    tests=(_padding_zero, _features, _feature_variance, _eps_of_batch, _padding_unseen),
)


EXERCISES = (LAYER, RMS, PRE, BATCHNORM)
