"""10.1 repair a LayerNorm (★★☆, 8 minutes)

This module runs and returns the right shape, but a sentence of a single token comes out as NaN.

```python
class MyLayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = torch.ones(d_model)
        self.bias = torch.zeros(d_model)

    def forward(self, x):  # (B, T, C) -> (B, T, C)
        x -= x.mean(dim=-1, keepdim=True)
        return self.weight * x / (x.std(dim=1, keepdim=True) + self.eps) + self.bias
```

Repair it so that it returns what `layer_norm` does, for `x` of shape `(..., C)` with any number of
axes before the last.

Hint: That is one fault of five. Compare the results with those of `layer_norm`, print
`list(module.parameters())`, and look at `x` after the call.

Hint: Gain and bias are no parameters; `x -= …` changes the tensor that the caller still needs; the
spread is taken over the positions; `std` divides by C - 1 unless it gets `correction=0`; and `eps`
is outside the root.
"""

import torch
from torch import nn
from torch.nn import functional as F

from tinytf_course.evidence import record
from tinytf_course.expect import (
    Mismatch,
    agrees,
    expect,
    gradients,
    has_parameters,
    numbers,
    precise,
    same,
)
from tinytf_course.grading import hint


class MyLayerNorm(nn.Module):
    """LayerNorm of each token of x (..., C), with a learned gain `weight` and a learned `bias`.

    Both are (d_model,). The variance is divided by C, and eps is added to it inside the root.
    """

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        """Normalise each token of x (..., C)."""
        mean = x.mean(dim=-1, keepdim=True)
        variance = (x - mean).square().mean(dim=-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


TOKENS = torch.tensor(
    [[[1.0, 2.0, 3.0, 6.0], [0.0, 4.0, -4.0, 8.0]], [[5.0, 5.0, 1.0, 1.0], [9.0, 1.0, 2.0, 0.0]],
     [[-3.0, 0.0, 1.0, 7.0], [2.0, 2.5, 3.0, -1.5]]]
)  # fmt: skip
GAIN, SHIFT = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.5, 0.0, -1.0, 2.0])


def _made(answer):
    """The answer as a function: a module with this gain and bias, called on a copy of x."""

    def run(x, weight=None, bias=None, *eps):
        module = answer(x.size(-1), *eps).to(x.dtype)
        with torch.no_grad():
            for name, given in (("weight", weight), ("bias", bias)):
                own, where = getattr(module, name, None), f"for MyLayerNorm({x.size(-1)})"
                if not isinstance(own, torch.Tensor):
                    raise Mismatch(f"{where}, there is no parameter `{name}`")
                if given is not None and own.shape != given.shape:
                    shapes = f"{tuple(own.shape)}, expected {tuple(given.shape)}"
                    raise Mismatch(f"{where}, `{name}` has shape {shapes}")
                if given is not None:
                    own.copy_(given)
        out = module(x.clone())
        record(out.detach().clone() if isinstance(out, torch.Tensor) else out)
        return out

    return run


def _plain_norm(x, weight=None, bias=None, eps=1e-5):
    """torch's own, given the arguments in another order."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def test_each_token(answer):
    """each token comes out with mean 0 and variance 1, divided by C"""
    run = _made(answer)
    agrees(run, _plain_norm, TOKENS[:1, :1], note="Its mean is 3, its variance 14 / 4.")
    agrees(run, _plain_norm, TOKENS[:, :1], note="Each token has its own mean and variance.")
    agrees(run, _plain_norm, TOKENS[:1], note="Each token has its own mean and variance.")
    agrees(run, _plain_norm, TOKENS)


def test_any_shape(answer):
    """a token alone, and of four axes, is normalised alike"""
    agrees(_made(answer), _plain_norm, TOKENS[0, 0])
    agrees(_made(answer), _plain_norm, numbers(2, 1, 3, 4, seed=3), tolerance=1e-3)


@hint("Gain and bias are each an `nn.Parameter` of shape (d_model,), and the module has no other.")
def test_learned_parameters(answer):
    """gain and bias are weights of the module, and start as ones and zeros"""
    where = "for MyLayerNorm(3)"
    module = answer(3)
    has_parameters(module, {"weight": (3,), "bias": (3,)}, where)
    same(module.weight, [1.0] * 3, f"{where}, `weight`")
    same(module.bias, [0.0] * 3, f"{where}, `bias`")
    expect(module.weight.requires_grad and module.bias.requires_grad,
           f"{where}, gain or bias does not require a gradient")  # fmt: skip


def test_affine(answer):
    """then come gain and bias, feature by feature"""
    agrees(_made(answer), _plain_norm, TOKENS[:1, :1], GAIN, SHIFT)
    agrees(_made(answer), _plain_norm, numbers(2, 3, 5, seed=1), *numbers(2, 5, seed=2))


def test_eps_inside(answer):
    """eps is added to the variance"""
    run, tiny = _made(answer), TOKENS[:1, :1] * 1e-3
    where = "for x=[[[0.001, 0.002, 0.003, 0.006]]]"
    note = "Its variance is 3.5e-06, less than eps: √(variance + eps)."
    agrees(run, _plain_norm, tiny, None, None, 1e-4, tolerance=1e-4, note=note,
           where=f"{where}, eps=0.0001")  # fmt: skip
    agrees(run, _plain_norm, tiny, tolerance=1e-4, note="Without an eps it is 1e-5.",
           where=f"{where}, no eps given")  # fmt: skip


def test_constant(answer):
    """a token of equal numbers comes out as its bias"""
    note = "0 is not divided by 0."
    agrees(_made(answer), _plain_norm, torch.full((1, 1, 4), 3.0), note=note)
    lone = torch.full((2, 1, 1), 3.0)
    agrees(_made(answer), _plain_norm, lone, GAIN[:1], SHIFT[:1], note="C = 1.")


@hint("The mean of the squares minus the square of the mean is a small difference of large ones.")
def test_far_away(answer):
    """a large mean does not cost the digits of the variance"""
    far = TOKENS[:1, :1] + 10_000
    agrees(_made(answer), _plain_norm, far, tolerance=1e-3, note="Its variance is 3.5.")
    agrees(_made(answer), _plain_norm, far.double() * 1000, tolerance=1e-6)


def test_caller_keeps_x(answer):
    """the caller's x is left as it was"""
    module, x = answer(4), TOKENS[:1, :1].clone()
    module(x)
    note = "The stream is added to again after the norm has read it."
    same(x, TOKENS[:1, :1], "after the call, the caller's x", note=note)


def test_layer_dtypes(answer):
    """the numbers keep their dtype, and its precision"""
    for dtype in (torch.float64, torch.bfloat16):
        where = f"for x of shape (3, 2, 4) ({str(dtype)[6:]}), the module too"
        precise(_made(answer), _plain_norm, TOKENS, dtype=dtype, where=where)


def test_layer_gradient(answer):
    """gradients go to x, with mean and variance taking part, and to gain and bias"""
    module = answer(4)
    has_parameters(module, {"weight": (4,), "bias": (4,)}, "for MyLayerNorm(4)")

    def run(x, weight, bias):
        made = answer(4).double()
        return torch.func.functional_call(made, {"weight": weight, "bias": bias}, (x.clone(),))

    gradients(run, _plain_norm, TOKENS[:1, :1], GAIN, SHIFT)
    gradients(run, _plain_norm, TOKENS, GAIN, SHIFT)


MISTAKES = r"""
as it was
    nn.Parameter(torch.ones(d_model)) => torch.ones(d_model)
    nn.Parameter(torch.zeros(d_model)) => torch.zeros(d_model)
    mean = x.mean(dim=-1, keepdim=True) => x -= x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True) => spread = x.std(dim=1, keepdim=True)
    (x - mean) / torch.sqrt(variance + self.eps) => x / (spread + self.eps)
    says: you get [[[nan, nan, nan, nan]]]
    Nothing is repaired yet.
spread over the positions
    square().mean(dim=-1 => square().mean(dim=1
    says: Its mean is 3, its variance 14 / 4
    `dim=1` runs over the positions of a sentence: the tokens then share a spread, and padding
    counts in it. A token's features lie along `dim=-1`.
over the batch
    = x.mean(dim=-1 => = x.mean(dim=0
    square().mean(dim=-1 => square().mean(dim=0
    says: Its mean is 3, its variance 14 / 4
    `dim=0` runs over the sentences: that is what BatchNorm does, and a token's result then
    depends on its neighbours in the batch. LayerNorm runs over the last axis.
over the positions
    = x.mean(dim=-1 => = x.mean(dim=1
    square().mean(dim=-1 => square().mean(dim=1
    says: Its mean is 3, its variance 14 / 4
    `dim=1` runs over the positions of a sentence. A token's features lie along `dim=-1`.
over positions and features
    = x.mean(dim=-1 => = x.mean(dim=(-2, -1)
    square().mean(dim=-1 => square().mean(dim=(-2, -1)
    says: Each token has its own mean and variance
    The tokens of a sentence then share one mean. Each token has its own: only `dim=-1`.
over the whole tensor
    = x.mean(dim=-1, keepdim=True) => = x.mean()
    square().mean(dim=-1, keepdim=True) => square().mean()
    says: Each token has its own mean and variance
    `x.mean()` without `dim` is one number for the whole batch. Give `dim=-1`.
divided by C - 1
    (x - mean).square().mean(dim=-1, keepdim=True) => x.var(dim=-1, keepdim=True)
    says: you get [[[-0.9258, -0.4629, 0, 1.389]]]
    `x.var` and `x.std` divide by C - 1 unless they get `correction=0`. With 4 features the
    result is 13 % too small, with 512 a thousandth; loaded weights then do not fit.
eps outside the root
    torch.sqrt(variance + self.eps) => (torch.sqrt(variance) + self.eps)
    says: less than eps: √(variance + eps)
    `std + eps` and `√(variance + eps)` differ where the spread is small: 1e-5 beside the
    variance is like 3e-3 beside the standard deviation.
divided by the variance
    torch.sqrt(variance + self.eps) => (variance + self.eps)
    says: you get [[[-0.5714, -0.2857, 0, 0.8571]]]
    Divide by the standard deviation, the root of the variance, or the scale stays in.
no eps
     + self.eps =>
    says: you get [[[nan, nan, nan, nan]]]
    A token of equal numbers has variance 0, and 0/0 is NaN. eps also decides below which spread
    a token counts as constant.
eps written into the code
    self.eps = eps => self.eps = 1e-5
    says: eps=0.0001
    `eps` is an argument: models differ in it, and a loaded one brings its own.
the third axis, not the last
    = x.mean(dim=-1 => = x.mean(dim=2
    square().mean(dim=-1 => square().mean(dim=2
    says: IndexError
    `dim=2` is the last axis only where there are three; `dim=-1` is it everywhere.
gain and bias that do not learn
    nn.Parameter(torch.ones(d_model)) => torch.ones(d_model)
    nn.Parameter(torch.zeros(d_model)) => torch.zeros(d_model)
    says: there is no parameter `weight`
    A plain tensor is no weight: the optimiser never gets it, `.to(device)` leaves it behind,
    and it is not saved. `nn.Parameter(...)` makes it one.
gain and bias as buffers
    torch.ones(d_model) => torch.ones(d_model), requires_grad=False
    torch.zeros(d_model) => torch.zeros(d_model), requires_grad=False
    says: does not require a gradient
    They travel with the module and never learn. Leave `requires_grad` as it is.
one gain for all features
    torch.ones(d_model) => torch.ones(1)
    torch.zeros(d_model) => torch.zeros(1)
    says: `weight` has shape (1,), expected (3,)
    Each feature has a gain and a bias of its own: both are of shape (d_model,).
gain and bias forgotten
     * self.weight + self.bias =>
    says: weight=[1, 2, 3, 4]
    The last step is `* self.weight + self.bias`: it lets training undo the norm.
a gain that starts as zeros
    torch.ones(d_model) => torch.zeros(d_model)
    says: you get [[[0, 0, 0, 0]]]
    A gain of 0 silences the sublayer behind it. It starts as ones, so that the norm at first
    only normalises.
the mean of the squares minus the square of the mean
    (x - mean).square().mean(dim=-1, keepdim=True) =>
        x.square().mean(dim=-1, keepdim=True) - mean.square()
    says: Its variance is 3.5
    Of a token near 10,000 both are near 100,000,000, where float32 counts in eights: the
    difference is noise, and may be negative. Square `x - mean` instead.
detached statistics
    mean = x.mean( => mean = x.detach().mean(
    variance = (x - mean) => variance = (x.detach() - mean)
    says: for the gradient to `x`
    The numbers are right, and the gradient is not: mean and variance depend on x, too.
x overwritten
    mean = x.mean(dim=-1, keepdim=True) => x -= x.mean(dim=-1, keepdim=True)
    variance = (x - mean) => variance = x
    return (x - mean) => return x
    says: after the call, the caller's x
    `x -= mean` works in the caller's memory: the residual stream, which is added later, is no
    longer what it was. Write `x - mean`.
"""

HARMLESS = r"""
variance = (x - mean).square().mean(dim=-1, keepdim=True) => …(x - mean.detach())…
    the variance does not change with the mean: its gradient is that of Σ (x - mean) = 0
"""
