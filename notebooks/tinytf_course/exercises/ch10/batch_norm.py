"""10.4 BatchNorm that leaves padding out (★★★, 12 minutes)

Write `my_batch_norm(x, real, eps=1e-5)`, which brings every feature of `x`, of shape `(B, T, C)`,
to mean 0 and variance 1 over the real tokens of the batch: those where `real`, of shape `(B, T)`,
is True. Padding must not count, even where it contains NaN, and comes out as 0.

<details><summary>The rule in detail</summary>

The variance is divided by the number of real tokens, and `eps` is added to it. There is no gain or
bias, and no running average.

</details>

Hint: `x[real]` contains only the real tokens, with shape `(N, C)`.

Hint: At the end, `.where(real[..., None], 0.0)` sets the padding to 0.
"""

import torch
from torch.nn import functional as F

from tinytf_course.expect import agrees, expect, gradients, numbers, same, tensor
from tinytf_course.grading import hint


def my_batch_norm(x, real, eps=1e-5):
    """Bring each feature of x (B, T, C) to mean 0, variance 1 over the batch's real tokens.

    real (B, T) is True at real tokens; padding takes no part in the statistics and comes out as 0.
    Variances are divided by the number of real tokens.
    """
    tokens = x[real]  # (B, T, C) -> (N, C)
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0)
    y = (x - mean) / torch.sqrt(variance + eps)
    return y.where(real[..., None], 0.0)


BATCH = torch.tensor(
    [[[1.0, 10.0, 4.0], [2.0, 20.0, 0.0], [6.0, 60.0, 8.0]],
     [[3.0, -5.0, 1.0], [50.0, 70.0, 90.0], [50.0, 70.0, 90.0]]]
)  # fmt: skip
REAL = torch.tensor([[True, True, True], [True, False, False]])
_BATCH = "for 4 real tokens and 2 of padding"


def _batch_norm(x, real, eps=1e-5):
    """torch's own on the list of real tokens; the rest zeros."""
    places = tuple(real.nonzero().T)
    done = F.batch_norm(x[places].T[None], None, None, training=True, eps=eps)
    return torch.zeros_like(x).index_put(places, done[0].T)


def test_padding_zero(answer):
    """padding comes out as 0"""
    got = tensor(answer(BATCH, REAL), _BATCH)
    expect(got.shape == BATCH.shape, f"{_BATCH}, the shape is {tuple(got.shape)}, not (2, 3, 3)")
    worst = got[~REAL].abs().max().item()
    expect(worst == 0, f"{_BATCH}, padding comes out as large as {worst:.4g}, expected 0")


def test_features(answer):
    """each feature has mean 0 over the real tokens"""
    x, real = torch.tensor([[[1.0], [3.0]], [[8.0], [9.0]]]), REAL[:, :2]
    where = "for the real tokens [1], [3] and [8], and [9] as padding"
    mean = tensor(answer(x, real), where)[real].mean()
    note = "One mean for each feature, of all real tokens."
    same(mean, 0.0, f"{where}, the mean of what they become", 1e-4, note)
    mean = tensor(answer(BATCH, REAL), _BATCH)[REAL].mean(dim=0)
    same(mean, [0.0] * 3, f"{_BATCH}, the mean of each feature over them", 1e-4, note)


def test_feature_variance(answer):
    """and variance 1"""
    got = tensor(answer(BATCH, REAL), _BATCH)[REAL][:, 0]
    note = "Its variance is that of all 4 numbers together, divided by 4."
    where = f"{_BATCH}, whose first feature is [1, 2, 6, 3]"
    same(got, _batch_norm(BATCH, REAL)[REAL][:, 0], where, 1e-4, note)


def test_whole_batch(answer):
    """every real token of every sentence, whichever they are"""
    real = torch.tensor([[False, True, True], [False, False, False], [True, False, True],
                         [True, True, True]])  # fmt: skip
    note = "All real tokens of the batch share one mean and one variance a feature."
    agrees(answer, _batch_norm, numbers(4, 3, 5, seed=1, shift=2.0), real, note=note)
    real = torch.arange(8).reshape(2, 4) != 6
    agrees(answer, _batch_norm, numbers(2, 4, 1, seed=2), real, note=note)
    real = torch.arange(4)[:, None] != 1
    agrees(answer, _batch_norm, numbers(4, 1, 2, seed=3), real, note=note)


def test_eps_of_batch(answer):
    """eps is added to the variance"""
    x, real = torch.tensor([[[0.001], [0.003], [9.0]]]), torch.tensor([[True, True, False]])
    note = "Its variance is 1e-6: √(variance + eps)."
    agrees(answer, _batch_norm, x, real, 1e-4, note=note)
    agrees(answer, _batch_norm, x, real, note="Without an eps it is 1e-5.")


def test_constant_feature(answer):
    """a feature that is the same in all real tokens becomes 0, as does a single token"""
    note = "0 is not divided by 0."
    x, real = torch.tensor([[[5.0, 1.0], [5.0, 3.0]]]), torch.tensor([[True, True]])
    agrees(answer, _batch_norm, x, real, tolerance=1e-3, note=note)
    lone = torch.tensor([[True, False]])
    agrees(answer, torch.zeros(1, 2, 2), x, lone, note="A single token is its own mean.")


@hint("The mean of the squares minus the square of the mean is a small difference of large ones.")
def test_features_far_away(answer):
    """a large mean does not cost the digits of the variance"""
    x = torch.tensor([[[10_001.0], [10_002.0], [10_006.0], [9.0]]])
    real = torch.tensor([[True, True, True, False]])
    agrees(answer, _batch_norm, x, real, tolerance=1e-3, note="Its variance is 14 / 3.")


def test_padding_unseen(answer):
    """what the padding contains changes nothing, not even NaN"""
    got = tensor(answer(BATCH, REAL), _BATCH)
    for other in (-7.0, torch.inf, torch.nan):
        now = tensor(answer(BATCH.where(REAL[..., None], other), REAL), _BATCH)
        gap = (got - now).abs().max().item()
        expect(gap < 1e-5, f"{_BATCH}, with {other} in the padding the result moves by {gap:.4g}, "
               "expected 0")  # fmt: skip


def test_batch_dtype(answer):
    """the numbers keep their dtype"""
    agrees(answer, _batch_norm, numbers(2, 3, 2, seed=6, dtype=torch.float64), REAL)


def test_batch_gradient(answer):
    """mean and variance take part in the gradient"""
    real = torch.tensor([[True, True, True, False]])
    gradients(answer, _batch_norm, numbers(1, 4, 1, seed=4), real)
    gradients(answer, _batch_norm, BATCH, REAL)


MISTAKES = r"""
padding counted
    x[real] => x.flatten(0, 1)
    says: the mean of what they become
    This is `nn.BatchNorm1d` on the flattened batch: the more padding, the more it moves the
    real words.
padding set to 0 and counted
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0) =>
        mean = tokens.sum(dim=0) / real.numel()
        variance = (tokens - mean).square().sum(dim=0) / real.numel()
    says: the mean of what they become
    The sums are right, but they are divided by B·T. Divide by `real.sum()`.
over the features
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0) =>
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    says: the mean of each feature over them
    That is LayerNorm: a mean for each token. BatchNorm has a mean for each feature.
position by position
    x[real] => x
    says: the mean of what they become
    `x.mean(0)` gives every position statistics of its own, from B tokens only.
sentence by sentence
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0) =>
        mean, variance = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True)
    says: the mean of what they become
    `x.mean(1)` gives every sentence statistics of its own: instance normalisation.
sentence by sentence, padding left out
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0) =>
        words, count = real[..., None], real.sum(1)[:, None, None].clamp_min(1)
        mean = x.where(words, 0.0).sum(1, keepdim=True) / count
        variance = (x - mean).square().where(words, 0.0).sum(1, keepdim=True) / count
    says: divided by 4
    Padding does not count, but every sentence has statistics of its own, that is instance
    normalisation. Sum over both axes, `dim=(0, 1)`.
position by position, padding left out
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0) =>
        words, count = real[..., None], real.sum(0)[:, None].clamp_min(1)
        mean = x.where(words, 0.0).sum(0) / count
        variance = (x - mean).square().where(words, 0.0).sum(0) / count
    says: divided by 4
    Padding does not count, but every position has statistics of its own. Sum over both axes,
    `dim=(0, 1)`.
over everything, features too
    tokens.mean(dim=0), tokens.var(dim=0, correction=0) => tokens.mean(), tokens.var(correction=0)
    says: the mean of each feature over them
    `x[real].mean()` without `dim` is one number for all features: `mean(dim=0)`.
divided by N - 1
    , correction=0 =>
    says: divided by 4
    `var` divides by N - 1 unless it gets `correction=0`.
the mask the wrong way round
    x[real] => x[~real]
    says: the mean of what they become
    `real` is True at words. `x[real]` are the words, `x[~real]` the padding.
no eps
     + eps =>
    says: 0 is not divided by 0
    A feature that is the same in all tokens has variance 0, and 0/0 is NaN.
eps outside the root
    torch.sqrt(variance + eps) => (torch.sqrt(variance) + eps)
    says: Its variance is 1e-6
    Outside the root the same eps counts for much less: √(variance + eps).
padding not cleared
    y.where(real[..., None], 0.0) => y
    says: padding comes out as large as
    The statistics are right. Padding still has to become 0.
divided by the variance
    torch.sqrt(variance + eps) => (variance + eps)
    says: divided by 4
    Divide by the standard deviation, the root of the variance, or the scale stays in.
eps written into the code
    + eps => + 1e-5
    says: Its variance is 1e-6
    `eps` is an argument.
padding multiplied by 0
    y.where(real[..., None], 0.0) => y * real[..., None]
    says: with inf in the padding
    0 · ∞ and 0 · NaN are NaN, and memory that was never written may contain either. Choose, do
    not multiply: `x.where(real[..., None], 0.0)`, or `x[real]`.
the mean of the squares minus the square of the mean
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0) =>
        mean = tokens.mean(dim=0)
        variance = tokens.square().mean(dim=0) - mean.square()
    says: Its variance is 14 / 3
    Of a feature near 10,000 both are near 100,000,000, where float32 counts in eights: the
    difference is noise, and may be negative. Square `x - mean` instead.
float32 comes out
    y.where => y.float().where
    says: the dtype is float32, expected float64
    `.float()` or `torch.zeros(...)` makes float32 of whatever came in. Return the dtype of x.
detached statistics
    x[real] => x.detach()[real]
    says: for the gradient to `x`
    The numbers are right, and the gradient is not: mean and variance depend on x, too.
x overwritten
    tokens = x[real] =>
        x[~real] = 0.0
        tokens = x[real]
    says: your code changes the caller's `x`
    `x[~real] = 0` works in the caller's memory. `x.where(real[..., None], 0.0)` is a new
    tensor.
"""
