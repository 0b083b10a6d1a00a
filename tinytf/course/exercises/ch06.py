"""Chapter 06: LayerNorm, RMSNorm in half precision, a Pre-LN stack, BatchNorm without padding."""

import torch
from torch.nn import functional as F

from tinytf.course.expect import (
    Counted,
    agrees,
    expect,
    gradients,
    numbers,
    precise,
    same,
    tensor,
    travels,
)
from tinytf.course.grading import Exercise, hint

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


def _rms_norm(x, weight, eps=1e-6):
    """Token by token, its squares added one by one, in float64."""
    out = []
    for token in x.double().reshape(-1, x.size(-1)):
        size = sum(number**2 for number in token) / len(token)
        out.append(token / (size + eps) ** 0.5 * weight.double())
    return torch.stack(out).reshape(x.shape).to(x.dtype)


def _rms_one(answer):
    """a token comes out with mean square 1, its mean left in"""
    note = "Its mean square is 12.5; the mean is not taken out."
    agrees(answer, _rms_norm, TOKENS[0, 0], ONE, note=note)
    agrees(answer, _rms_norm, TOKENS[:, 0], ONE, note="Each token has its own mean square.")
    agrees(answer, _rms_norm, TOKENS, ONE, note="Each token has its own mean square.")


def _rms_gain(answer):
    """then comes the gain, feature by feature"""
    agrees(answer, _rms_norm, TOKENS[0, 0], GAIN)
    agrees(answer, _rms_norm, numbers(2, 3, 5, seed=1), numbers(5, seed=2))
    agrees(answer, _rms_norm, numbers(2, 1, 3, 4, seed=3), GAIN)


def _rms_eps(answer):
    """eps is added to the mean square"""
    note = "eps goes inside the root: √(mean square + eps)."
    agrees(answer, _rms_norm, TINY[0, 0], ONE, 1e-5, note=note)
    agrees(answer, _rms_norm, TINY[0, 0], ONE, note="Without an eps it is 1e-6.")


def _rms_zero(answer):
    """a token of zeros stays zeros, a token of one number becomes its sign"""
    agrees(answer, _rms_norm, torch.zeros(4), ONE, note="0 is not divided by 0.")
    agrees(answer, _rms_norm, torch.tensor([[-3.0], [0.0], [5.0]]), ONE[:1], note="C = 1.")


@hint("The largest number of float16 is 65,504. Which of your steps can pass it?")
def _half_square(answer):
    """in float16 a number above 256 has a square"""
    token, note = torch.tensor([300.0, 0.0, 0.0, 0.0]), "300² is past 65,504, its mean is not."
    precise(answer, _rms_norm, token, ONE, dtype=torch.float16, note=note)


@hint("The largest number of float16 is 65,504. Which of your steps can pass it?")
def _half(answer):
    """in float16 large numbers come out right, in float16"""
    large = torch.tensor([100.0, 200.0, 300.0, 600.0])
    precise(answer, _rms_norm, large, ONE, dtype=torch.float16, note="300² is past 65,504.")
    precise(answer, _rms_norm, TOKENS * 100, GAIN, dtype=torch.float16)
    precise(answer, _rms_norm, TOKENS, GAIN, dtype=torch.bfloat16)


@hint("The smallest number of float16 above 0 is 6e-8. Which of your steps can pass below it?")
def _half_tiny(answer):
    """in float16 tiny numbers come out right, too"""
    note = "0.0001² is 1e-8; float16's smallest number is 6e-8."
    where = "for x=[0.0001, 0.0002, 0.0003, 0.0006] (float16), eps=1e-8"
    precise(answer, _rms_norm, TOKENS[0, 0] * 1e-4, ONE, 1e-8, dtype=torch.float16,
            where=where, note=note)  # fmt: skip


def _rms_travels(answer):
    """it works where x is"""
    travels(answer, numbers(2, 3, 4, seed=4), GAIN)


def _rms_gradient(answer):
    """the mean square takes part in the gradient"""
    gradients(answer, _rms_norm, TOKENS[0, 0], GAIN, tolerance=1e-5)
    gradients(answer, _rms_norm, numbers(2, 3, 5, seed=5), numbers(5, seed=6), tolerance=1e-5)


RMS = Exercise(
    id="06.2",
    title="RMSNorm that survives float16",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_rms_norm(x, weight, eps=1e-6)` for `x` of shape `(..., C)`: each token divided "
        "by √(mean square + eps), times `weight`. It has to be right for float16 input such as "
        "[100, 200, 300, 600], or a millionth of it, and give back the dtype of `x`, which "
        "`weight` has, too."
    ),
    hint="The largest number of float16 is 65,504. Which of your steps can pass it?",
    function=my_rms_norm,
    tests=(
        _rms_one,
        _rms_gain,
        _rms_eps,
        _rms_zero,
        _half_square,
        _half,
        _half_tiny,
        _rms_travels,
        _rms_gradient,
    ),
)


# 06.3 a Pre-LN stack


def my_pre_norm_stack(x, sublayers, norms, dropout):
    """A whole Pre-LN stack: each sublayer adds what it finds to the stream x (B, T, C).

    sublayers and norms are lists of functions of (B, T, C). There is one norm more than sublayers:
    norms[i] is for sublayers[i], the last one for the end. dropout acts on what is added.
    """
    raise NotImplementedError


STREAM = torch.tensor([[[1.0, 2.0]]])


def _times(number):
    return lambda t: number * t


def _plus(number):
    return lambda t: t + number


def _stack_loop(x, sublayers, norms, dropout):
    """From the end: the last norm of what the sublayers left, each asked for in turn."""

    def left(i):
        before = x if i == 0 else left(i - 1)
        return before if i == 0 else before + dropout(sublayers[i - 1](norms[i - 1](before)))

    return norms[len(sublayers)](left(len(sublayers)))


_ONE_LAYER = ([_plus(1)], [_times(10), _times(1)])
_TWO_LAYERS = ([_plus(1), _plus(3)], [_times(10), _times(100), _times(2)])


def _stream_passes(answer):
    """if dropout drops everything, only the last norm acts on x"""
    where = (
        "for x=[1, 2], two sublayers, a last norm = times 2, and a dropout that drops everything"
    )
    note = "Nothing is added, and only the last norm acts."
    agrees(answer, [[[2.0, 4.0]]], STREAM, *_TWO_LAYERS, _times(0), where=where, note=note)


def _sublayer_reads_norm(answer):
    """the sublayer reads the normalised stream"""
    where = "for x=[1, 2], norm = times 10, sublayer = plus 1, a last norm = times 1, no dropout"
    note = "1 + (10·1 + 1) = 12."
    agrees(answer, [[[12.0, 23.0]]], STREAM, *_ONE_LAYER, _times(1), where=where, note=note)


def _all_of_it(answer):
    """dropout acts on what the sublayer returns"""
    where = "for x=[1, 2], norm = times 10, sublayer = plus 1, dropout = half of it"
    note = "1 + (10·1 + 1)/2 = 6.5."
    agrees(answer, [[[6.5, 12.5]]], STREAM, *_ONE_LAYER, _times(0.5), where=where, note=note)


def _two_layers(answer):
    """each sublayer reads the stream that the one before it wrote to, through its own norm"""
    where = "for x=[1, 2], norms times 10, 100 and (last) 2, sublayers plus 1, then plus 3"
    note = "12 after the first; 12 + (100·12 + 3) = 1215 after the second; times 2."
    agrees(answer, [[[2430.0, 4652.0]]], STREAM, *_TWO_LAYERS, _times(1), where=where, note=note)


def _any_depth(answer):
    """no sublayer, or three: each is called once, each norm once, in turn"""
    note = "Without sublayers only the one norm acts."
    where = "for x=[1, 2], no sublayers, a norm = times 3"
    agrees(answer, [[[3.0, 6.0]]], STREAM, [], [_times(3)], _times(1), where=where, note=note)
    parts = [Counted(part) for part in (torch.sin, _times(0.5), torch.tanh)]
    norms = [Counted(part) for part in (_times(2), _plus(1), torch.cos, torch.sigmoid)]
    dropout, x = Counted(_times(0.5)), numbers(2, 3, 4, seed=1)
    where = "for x of shape (2, 3, 4), three sublayers and four norms"
    got = answer(x, parts, norms, dropout)
    counts = [part.count for part in (*parts, *norms, dropout)]
    message = f"{where}, sublayers are called {counts[:3]} times, norms {counts[3:7]}, dropout "
    message += f"{counts[7]}; expected once each, and dropout 3 times"
    expect(counts == [1] * 7 + [3], message)
    same(got, _stack_loop(x, parts, norms, dropout), where, dtype=True)
    agrees(answer, _stack_loop, x.double(), parts, norms, dropout, where=f"{where} (float64)")


def _learned(x, maps, gains, answer):
    """A stack of linear sublayers and RMSNorms whose weights are arguments."""
    sublayers = [lambda t, w=w: t @ w for w in maps]
    norms = [lambda t, g=g: g * t / (t.square().mean(-1, keepdim=True) + 1) ** 0.5 for g in gains]
    return answer(x, sublayers, norms, _times(0.5))


def _stack_gradient(answer):
    """gradients reach x, and the weights of every sublayer and norm"""

    def mine(x, maps, gains):
        return _learned(x, maps, gains, answer)

    def right(x, maps, gains):
        return _learned(x, maps, gains, _stack_loop)

    arguments = numbers(2, 3, 4, seed=2), [*numbers(2, 4, 4, seed=3)], [*numbers(3, 4, seed=4)]
    gradients(mine, right, *arguments, where="for two linear sublayers and three RMSNorms")


PRE = Exercise(
    id="06.3",
    title="a Pre-LN stack",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_pre_norm_stack(x, sublayers, norms, dropout)`, a whole Pre-LN stack: each "
        "sublayer reads the normalised stream, dropout acts on what it returns, and that is added "
        "to the stream. `norms` is one longer than `sublayers`: a Pre-LN stack has a use for it. "
        "Call each once; the caller still needs `x` as it was."
    ),
    hint="Ask of each term: is this the stream `x`, or a normalised copy of it? And who normalises "
    "what the last sublayer leaves?",
    function=my_pre_norm_stack,
    tests=(
        _stream_passes,
        _sublayer_reads_norm,
        _all_of_it,
        _two_layers,
        _any_depth,
        _stack_gradient,
    ),
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
_BATCH = "for 4 real tokens and 2 of padding"


def _batch_norm(x, real, eps=1e-5):
    """torch's own on the list of real tokens; the rest zeros."""
    kept = [x[b, t] for b, t in real.nonzero().tolist()]
    done = F.batch_norm(torch.stack(kept).T[None], None, None, training=True, eps=eps)
    done = iter(done[0].T)
    zero = x.new_zeros(x.size(-1))
    return torch.stack([torch.stack([next(done) if r else zero for r in row]) for row in real])


def _padding_zero(answer):
    """padding comes out as 0"""
    got = tensor(answer(BATCH, REAL), _BATCH)
    expect(got.shape == BATCH.shape, f"{_BATCH}, the shape is {tuple(got.shape)}, not (2, 3, 3)")
    worst = got[~REAL].abs().max().item()
    expect(worst == 0, f"{_BATCH}, padding comes out as large as {worst:.4g}, expected 0")


def _features(answer):
    """each feature has mean 0 over the real tokens"""
    x, real = torch.tensor([[[1.0], [3.0]], [[8.0], [9.0]]]), REAL[:, :2]
    where = "for the real tokens [1], [3] and [8], and [9] as padding"
    mean = tensor(answer(x, real), where)[real].mean()
    note = "One mean for each feature, of all real tokens."
    same(mean, 0.0, f"{where}, the mean of what they become", 1e-4, note)
    mean = tensor(answer(BATCH, REAL), _BATCH)[REAL].mean(dim=0)
    same(mean, [0.0] * 3, f"{_BATCH}, the mean of each feature over them", 1e-4, note)


def _feature_variance(answer):
    """and variance 1"""
    got = tensor(answer(BATCH, REAL), _BATCH)[REAL][:, 0]
    note = "Its variance is that of all 4 numbers together, divided by 4."
    where = f"{_BATCH}, whose first feature is [1, 2, 6, 3]"
    same(got, _batch_norm(BATCH, REAL)[REAL][:, 0], where, 1e-4, note)


def _whole_batch(answer):
    """every real token of every sentence, whichever they are"""
    real = torch.tensor([[False, True, True], [False, False, False], [True, False, True],
                         [True, True, True]])  # fmt: skip
    note = "All real tokens of the batch share one mean and one variance a feature."
    agrees(answer, _batch_norm, numbers(4, 3, 5, seed=1, shift=2.0), real, note=note)
    agrees(
        answer, _batch_norm, numbers(2, 4, 1, seed=2), torch.arange(8).reshape(2, 4) != 6, note=note
    )
    agrees(answer, _batch_norm, numbers(4, 1, 2, seed=3), torch.arange(4)[:, None] != 1, note=note)


def _eps_of_batch(answer):
    """eps is added to the variance"""
    x, real = torch.tensor([[[0.001], [0.003], [9.0]]]), torch.tensor([[True, True, False]])
    note = "Its variance is 1e-6: √(variance + eps)."
    agrees(answer, _batch_norm, x, real, 1e-4, note=note)
    agrees(answer, _batch_norm, x, real, note="Without an eps it is 1e-5.")


def _constant_feature(answer):
    """a feature that is the same in all real tokens becomes 0, as does a single token"""
    note = "0 is not divided by 0."
    x, real = torch.tensor([[[5.0, 1.0], [5.0, 3.0]]]), torch.tensor([[True, True]])
    agrees(answer, _batch_norm, x, real, tolerance=1e-3, note=note)
    lone = torch.tensor([[True, False]])
    agrees(answer, torch.zeros(1, 2, 2), x, lone, note="A single token is its own mean.")


@hint("The mean of the squares minus the square of the mean is a small difference of large ones.")
def _features_far_away(answer):
    """a large mean does not cost the digits of the variance"""
    x = torch.tensor([[[10_001.0], [10_002.0], [10_006.0], [9.0]]])
    real = torch.tensor([[True, True, True, False]])
    agrees(answer, _batch_norm, x, real, tolerance=1e-3, note="Its variance is 14 / 3.")


def _padding_unseen(answer):
    """what stands in the padding changes nothing, not even NaN"""
    got = tensor(answer(BATCH, REAL), _BATCH)
    for other in (-7.0, torch.inf, torch.nan):
        now = tensor(answer(BATCH.where(REAL[..., None], other), REAL), _BATCH)
        gap = (got - now).abs().max().item()
        expect(gap < 1e-5, f"{_BATCH}, with {other} in the padding the result moves by {gap:.4g}, "
               "expected 0")  # fmt: skip


def _batch_dtype(answer):
    """the numbers keep their dtype"""
    agrees(answer, _batch_norm, numbers(2, 3, 2, seed=6, dtype=torch.float64), REAL)


def _batch_gradient(answer):
    """mean and variance take part in the gradient"""
    real = torch.tensor([[True, True, True, False]])
    gradients(answer, _batch_norm, numbers(1, 4, 1, seed=4), real)
    gradients(answer, _batch_norm, BATCH, REAL)


BATCHNORM = Exercise(
    id="06.4",
    title="BatchNorm that leaves padding out",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_batch_norm(x, real, eps=1e-5)` for `x` of shape `(B, T, C)` and a boolean "
        "`real` of shape `(B, T)`: every feature to mean 0 and variance 1 over all real tokens of "
        "the batch (training statistics, no gain or bias). Padding must not count, "
        "whatever stands there, NaN even, and comes out as 0."
    ),
    hint="`x[real]` is the real tokens alone, `(N, C)`. Then `.where(real[..., None], 0.0)`.",
    function=my_batch_norm,
    tests=(
        _padding_zero,
        _features,
        _feature_variance,
        _whole_batch,
        _eps_of_batch,
        _constant_feature,
        _features_far_away,
        _padding_unseen,
        _batch_dtype,
        _batch_gradient,
    ),
)


EXERCISES = (LAYER, RMS, PRE, BATCHNORM)
