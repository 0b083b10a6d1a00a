"""10.3 RMSNorm that survives float16 (★★☆, 8 minutes)

Write `my_rms_norm(x, weight, eps=1e-6)`, the RMSNorm of `x` with shape `(..., C)`. It has to be
correct for float16 inputs such as [100, 200, 300, 600], or a millionth of them, and to return the
dtype that `x` and `weight` share.

Hint: The largest number of float16 is 65,504. Which of your steps can exceed it?
"""

import torch

from tinytf_course.expect import agrees, gradients, numbers, precise, travels
from tinytf_course.grading import hint


def my_rms_norm(x, weight, eps=1e-6):
    """Divide each token of x (..., C) by its root mean square, then multiply by weight (C,).

    Correct for float16 too: squares are taken in float32, and the result has the dtype of x.
    """
    wide = x.float()
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide / torch.sqrt(mean_square + eps)).to(x.dtype) * weight


TOKENS = torch.tensor(
    [[[1.0, 2.0, 3.0, 6.0], [0.0, 4.0, -4.0, 8.0]], [[5.0, 5.0, 1.0, 1.0], [9.0, 1.0, 2.0, 0.0]],
     [[-3.0, 0.0, 1.0, 7.0], [2.0, 2.5, 3.0, -1.5]]]
)  # fmt: skip
ONE, GAIN, TINY = torch.ones(4), torch.tensor([1.0, 2.0, 3.0, 4.0]), TOKENS * 1e-3


def _rms_norm(x, weight, eps=1e-6):
    """Token by token, its squares added one by one, in float64."""

    def one(token):
        return token / (sum(number**2 for number in token) / len(token) + eps) ** 0.5

    out = torch.stack([one(token) for token in x.double().reshape(-1, x.size(-1))])
    return (out * weight.double()).reshape(x.shape).to(x.dtype)


def test_rms_one(answer):
    """a token comes out with mean square 1, its mean left in"""
    note = "Its mean square is 12.5; the mean is not taken out."
    agrees(answer, _rms_norm, TOKENS[0, 0], ONE, note=note)
    agrees(answer, _rms_norm, TOKENS[:, 0], ONE, note="Each token has its own mean square.")
    agrees(answer, _rms_norm, TOKENS, ONE, note="Each token has its own mean square.")


def test_rms_gain(answer):
    """then comes the gain, feature by feature"""
    agrees(answer, _rms_norm, TOKENS[0, 0], GAIN)
    agrees(answer, _rms_norm, numbers(2, 3, 5, seed=1), numbers(5, seed=2))
    agrees(answer, _rms_norm, numbers(2, 1, 3, 4, seed=3), GAIN)


def test_rms_eps(answer):
    """eps is added to the mean square"""
    note = "eps goes inside the root: √(mean square + eps)."
    agrees(answer, _rms_norm, TINY[0, 0], ONE, 1e-5, note=note)
    agrees(answer, _rms_norm, TINY[0, 0], ONE, note="Without an eps it is 1e-6.")


def test_rms_zero(answer):
    """a token of zeros stays zeros, a token of one number becomes its sign"""
    agrees(answer, _rms_norm, torch.zeros(4), ONE, note="0 is not divided by 0.")
    agrees(answer, _rms_norm, torch.tensor([[-3.0], [0.0], [5.0]]), ONE[:1], note="C = 1.")


@hint("The largest number of float16 is 65,504. Which of your steps can pass it?")
def test_half_square(answer):
    """in float16 a number above 256 has a square"""
    token, note = torch.tensor([300.0, 0.0, 0.0, 0.0]), "300² is past 65,504, its mean is not."
    precise(answer, _rms_norm, token, ONE, dtype=torch.float16, note=note)


@hint("The largest number of float16 is 65,504. Which of your steps can pass it?")
def test_half(answer):
    """in float16 large numbers come out right, in float16"""
    large = torch.tensor([100.0, 200.0, 300.0, 600.0])
    precise(answer, _rms_norm, large, ONE, dtype=torch.float16, note="300² is past 65,504.")
    precise(answer, _rms_norm, TOKENS * 100, GAIN, dtype=torch.float16)
    precise(answer, _rms_norm, TOKENS, GAIN, dtype=torch.bfloat16)


@hint("The smallest number of float16 above 0 is 6e-8. Which of your steps can pass below it?")
def test_half_tiny(answer):
    """in float16 tiny numbers come out right, too"""
    note = "0.0001² is 1e-8; float16's smallest number is 6e-8."
    where = "for x=[0.0001, 0.0002, 0.0003, 0.0006] (float16), eps=1e-8"
    precise(answer, _rms_norm, TOKENS[0, 0] * 1e-4, ONE, 1e-8, dtype=torch.float16,
            where=where, note=note)  # fmt: skip
    note = "One divided by the root is past 65,504, and the root has few digits left in float16."
    where = "for x=[3e-07, 6e-07, 9e-07, 1.8e-06] (float16), eps=1e-12"
    precise(answer, _rms_norm, TOKENS[0, 0] * 3e-7, ONE, 1e-12, dtype=torch.float16,
            where=where, note=note)  # fmt: skip


def test_rms_travels(answer):
    """it works where x is"""
    travels(answer, numbers(2, 3, 4, seed=4), GAIN)


def test_rms_gradient(answer):
    """the mean square takes part in the gradient"""
    gradients(answer, _rms_norm, TOKENS[0, 0], GAIN, tolerance=1e-5)
    gradients(answer, _rms_norm, numbers(2, 3, 5, seed=5), numbers(5, seed=6), tolerance=1e-5)


MISTAKES = r"""
squares in float16
    wide = x.float() => wide = x
    says: 300² is past 65,504, its mean is not
    float16 ends at 65,504, the square of 256. The mean square is inf, and a number divided by
    inf is 0: the token is silently erased. Take the squares of `x.float()`.
widened after the square
    wide.square() => x.square().float()
    says: 300² is past 65,504, its mean is not
    The squares were still taken in float16, and inf stays inf in float32: widen `x`, not its
    square.
scaled down by a fixed number
    mean_square = wide.square().mean(dim=-1, keepdim=True) =>
        small = x / 1024  # keeps large squares below 65,504
        mean_square = small.square().mean(dim=-1, keepdim=True).float() * 1024**2
    says: float16's smallest number is 6e-8
    Large squares are saved and small ones lost: below 6e-8 they are 0 in float16. float32 has
    room for both.
narrowed too early
    keepdim=True) => keepdim=True).to(x.dtype)
    says: 300² is past 65,504
    The squares were taken in float32, but their mean, 125,000, went back to float16 before the
    root. Narrow the result, not what it is made of.
the root narrowed
    return (wide / torch.sqrt(mean_square + eps)).to(x.dtype) * weight =>
        return x * torch.rsqrt(mean_square + eps).to(x.dtype) * weight
    says: One divided by the root is past 65,504
    The root went back to float16 before the division, and for tiny tokens one divided by it is
    past 65,504. Narrow the result, not what it is made of.
one size for the whole tensor
    dim=-1 => dim=(-3, -2, -1)
    says: IndexError
    Each token has a size of its own: `mean(dim=-1, keepdim=True)`.
the size of the mean over everything
    .mean(dim=-1, keepdim=True) => .mean()
    says: Each token has its own mean square
    `mean()` without `dim` is one number for the whole batch. Give `dim=-1`, and `keepdim=True`.
the mean taken out
    wide = x.float() => wide = x.float() - x.float().mean(dim=-1, keepdim=True)
    says: the mean is not taken out
    That is LayerNorm without its bias. RMSNorm saves just this step.
divided by the standard deviation
    wide.square().mean(dim=-1, => wide.var(dim=-1, correction=0,
    says: the mean is not taken out
    The root mean square is the standard deviation only where the mean is 0. RMSNorm normalises
    the mean square, not the variance, as a published tutorial claims.
divided by the length
    .mean(dim=-1 => .sum(dim=-1
    says: Its mean square is 12.5
    That brings a token to length 1, not to mean square 1: √C times too small.
no root
    torch.sqrt(mean_square + eps) => (mean_square + eps)
    says: Its mean square is 12.5
    Divide by the root of the mean square, or a token twice as large comes out half as large.
eps outside the root
    torch.sqrt(mean_square + eps) => (torch.sqrt(mean_square) + eps)
    says: √(mean square + eps)
    Outside the root the same eps counts for much less.
eps written into the code
    + eps => + 1e-6
    says: √(mean square + eps)
    `eps` is an argument: models differ in it, and a loaded one brings its own.
no eps
     + eps =>
    says: 0 is not divided by 0
    A token of zeros, such as an embedding of padding, has mean square 0, and 0/0 is NaN.
float32 comes out
    .to(x.dtype) * weight => * weight.float()
    says: the dtype is float32, expected float16
    The next layer's weights are float16: return the dtype that came in.
gain forgotten
     * weight =>
    says: weight=[1, 2, 3, 4]
    The last step is `* weight`.
detached mean square
    wide.square() => wide.detach().square()
    says: for the gradient to `x`
    The numbers are right, and the gradient is not: the mean square depends on x, too.
on the CPU
    return (wide / torch.sqrt(mean_square + eps)).to(x.dtype) * weight =>
        out = torch.zeros(x.shape, dtype=x.dtype)
        out[:] = wide / torch.sqrt(mean_square + eps) * weight
        return out
    says: on another device than the CPU it fails
    `torch.zeros(...)` is on the CPU, wherever `x` is: compute from `x`, or take
    `torch.zeros_like(x)`.
"""

HARMLESS = r"""
wide = x.float() => wide = x.float().float()
    it is float32 already
wide = x.float() => wide = x.float().double()
    more digits on the way
mean_square = … => ….float()
    it is float32 already
mean_square = … => ….double()
    more digits on the way
mean_square = … => …wide.float()…
    it is float32 already
return … => …wide.float()…
    it is float32 already
return … => …mean_square.float()…
    it is float32 already
return … => ….to(weight.dtype) * weight
    weight has the dtype of x
"""
