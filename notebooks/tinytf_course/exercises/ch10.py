"""Chapter 10: LayerNorm repaired, a Pre-LN stack, RMSNorm in half precision, BatchNorm."""

import torch
from torch import nn
from torch.nn import functional as F

from tinytf_course.evidence import record
from tinytf_course.expect import (
    agrees,
    expect,
    gradients,
    has_parameters,
    numbers,
    precise,
    same,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise, hint

# 10.1 repair a LayerNorm


class MyLayerNorm(nn.Module):
    """LayerNorm of each token of x (..., C), with a learned gain `weight` and a learned `bias`.

    Both are (d_model,). The variance is divided by C, and eps is added to it inside the root.
    """

    def __init__(self, d_model, eps=1e-5):
        raise NotImplementedError

    def forward(self, x):
        """Normalise each token of x (..., C)."""
        raise NotImplementedError


TOKENS = torch.tensor(
    [[[1.0, 2.0, 3.0, 6.0], [0.0, 4.0, -4.0, 8.0]], [[5.0, 5.0, 1.0, 1.0], [9.0, 1.0, 2.0, 0.0]],
     [[-3.0, 0.0, 1.0, 7.0], [2.0, 2.5, 3.0, -1.5]]]
)  # fmt: skip
ONE, NONE = torch.ones(4), torch.zeros(4)
GAIN, SHIFT = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.5, 0.0, -1.0, 2.0])
TINY = TOKENS * 1e-3


def _made(answer):
    """The answer as a function: a module with this gain and bias, called on a copy of x."""

    def run(x, weight=None, bias=None, eps=1e-5):
        module = answer(x.size(-1), eps).to(x.dtype)
        with torch.no_grad():
            for own, given in ((module.weight, weight), (module.bias, bias)):
                if given is not None:
                    own.copy_(given)
        out = module(x.clone())
        record(out.detach().clone() if isinstance(out, torch.Tensor) else out)
        return out

    return run


def _plain_norm(x, weight=None, bias=None, eps=1e-5):
    """torch's own, given the arguments in another order."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def _each_token(answer):
    """each token comes out with mean 0 and variance 1, divided by C"""
    run = _made(answer)
    agrees(run, _plain_norm, TOKENS[:1, :1], note="Its mean is 3, its variance 14 / 4.")
    agrees(run, _plain_norm, TOKENS[:, :1], note="Each token has its own mean and variance.")
    agrees(run, _plain_norm, TOKENS[:1], note="Each token has its own mean and variance.")
    agrees(run, _plain_norm, TOKENS)


def _any_shape(answer):
    """a token alone, and of four axes, is normalised alike"""
    agrees(_made(answer), _plain_norm, TOKENS[0, 0])
    agrees(_made(answer), _plain_norm, numbers(2, 1, 3, 4, seed=3), tolerance=1e-3)


@hint("A tensor becomes a weight of the module by `nn.Parameter(...)`.")
def _learned_parameters(answer):
    """gain and bias are weights of the module, and start as ones and zeros"""
    where = "for MyLayerNorm(3)"
    module = answer(3)
    has_parameters(module, {"weight": (3,), "bias": (3,)}, where)
    same(module.weight, [1.0] * 3, f"{where}, `weight`")
    same(module.bias, [0.0] * 3, f"{where}, `bias`")
    expect(module.weight.requires_grad and module.bias.requires_grad,
           f"{where}, gain or bias does not require a gradient")  # fmt: skip


def _affine(answer):
    """then come gain and bias, feature by feature"""
    agrees(_made(answer), _plain_norm, TOKENS[:1, :1], GAIN, SHIFT)
    agrees(_made(answer), _plain_norm, numbers(2, 3, 5, seed=1), *numbers(2, 5, seed=2))


def _eps_inside(answer):
    """eps is added to the variance"""

    def tiny(eps):
        return _made(answer)(TINY[:1, :1], eps=eps)

    note = "Its variance is 3.5e-06, less than eps: √(variance + eps)."
    where = "for x=[[[0.001, 0.002, 0.003, 0.006]]], eps=0.0001"
    same(tiny(1e-4), _plain_norm(TINY[:1, :1], eps=1e-4), where, 1e-4, note)
    got = answer(4)(TINY[:1, :1].clone())
    record(got.detach().clone() if isinstance(got, torch.Tensor) else got)
    where = "for x=[[[0.001, 0.002, 0.003, 0.006]]], no eps given"
    same(got, _plain_norm(TINY[:1, :1]), where, 1e-4, "Without an eps it is 1e-5.")


def _constant(answer):
    """a token of equal numbers comes out as its bias"""
    note = "0 is not divided by 0."
    agrees(_made(answer), _plain_norm, torch.full((1, 1, 4), 3.0), note=note)
    lone = torch.full((2, 1, 1), 3.0)
    agrees(_made(answer), _plain_norm, lone, GAIN[:1], SHIFT[:1], note="C = 1.")


@hint("The mean of the squares minus the square of the mean is a small difference of large ones.")
def _far_away(answer):
    """a large mean does not cost the digits of the variance"""
    far = TOKENS[:1, :1] + 10_000
    agrees(_made(answer), _plain_norm, far, tolerance=1e-3, note="Its variance is 3.5.")
    agrees(_made(answer), _plain_norm, far.double() * 1000, tolerance=1e-6)


def _caller_keeps_x(answer):
    """the caller's x is left as it was"""
    module, x = answer(4), TOKENS[:1, :1].clone()
    module(x)
    note = "The stream is added to again after the norm has read it."
    same(x, TOKENS[:1, :1], "after the call, the caller's x", note=note)


def _layer_dtypes(answer):
    """the numbers keep their dtype, and its precision"""
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.bfloat16, 3e-2)):
        x = TOKENS.to(dtype)
        where = f"for x of shape (3, 2, 4) ({str(dtype)[6:]}), the module too"
        right = F.layer_norm(x.double(), (4,)).to(dtype)
        same(_made(answer)(x), right, where, tolerance, dtype=True)


def _layer_gradient(answer):
    """gradients go to x, with mean and variance taking part, and to gain and bias"""
    module = answer(4)
    has_parameters(module, {"weight": (4,), "bias": (4,)}, "for MyLayerNorm(4)")

    def run(x, weight, bias):
        made = answer(4).double()
        return torch.func.functional_call(made, {"weight": weight, "bias": bias}, (x.clone(),))

    gradients(run, _plain_norm, TOKENS[:1, :1], GAIN, SHIFT)
    gradients(run, _plain_norm, TOKENS, GAIN, SHIFT)


BROKEN = """
class MyLayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = torch.ones(d_model)
        self.bias = torch.zeros(d_model)

    def forward(self, x):  # (B, T, C) -> (B, T, C)
        x -= x.mean(dim=-1, keepdim=True)
        return self.weight * x / (x.std(dim=1, keepdim=True) + self.eps) + self.bias
"""

LAYER = Exercise(
    id="10.1",
    title="repair a LayerNorm",
    difficulty=2,
    minutes=8,
    statement=(
        "This module runs and returns the right shape, but it has five faults. One keeps it from "
        "learning, one harms the caller, and three make its results differ from those of "
        "`layer_norm`."
        f"\n\n```python{BROKEN}```\n\n"
        "Write a correct version, for `x` of shape `(..., C)` with any number of axes before the "
        "last."
    ),
    hint="`x.std` divides by C - 1 unless it is given `correction=0`. And what does `x -= …` do to "
    "the tensor that the caller still holds?",
    function=MyLayerNorm,
    tests=(
        _each_token,
        _any_shape,
        _learned_parameters,
        _affine,
        _eps_inside,
        _constant,
        _far_away,
        _caller_keeps_x,
        _layer_dtypes,
        _layer_gradient,
    ),
)


# 10.2 a Pre-LN stack


class MyPreLNStack(nn.Module):
    """A Pre-LN stack of sublayers: modules that map (B, T, C) to (B, T, C), C = d_model.

    Its parts are called `sublayers`, `norms` (a LayerNorm for each sublayer), `dropout`, and
    `final_norm`, the LayerNorm at the end.
    """

    def __init__(self, sublayers, d_model, dropout=0.1):
        raise NotImplementedError

    def forward(self, x):
        """Map (B, T, C) to (B, T, C)."""
        raise NotImplementedError


class _Plus(nn.Module):
    """Adds a number, and counts how often."""

    def __init__(self, number):
        super().__init__()
        self.number, self.count = number, 0

    def forward(self, x):
        self.count += 1
        return x + self.number


class _Squares(nn.Module):
    """Squares what it reads."""

    def forward(self, x):
        return x**2


def _linear(width, seed):
    """A linear map with random weights, without symmetry."""
    linear = nn.Linear(width, width)
    with torch.no_grad():
        linear.weight.copy_(numbers(width, width, seed=seed))
        linear.bias.copy_(numbers(width, seed=seed + 1))
    return linear


def _norm_shapes(count, width):
    names = [f"norms.{i}" for i in range(count)] + ["final_norm"]
    return {f"{name}.{part}": (width,) for name in names for part in ("weight", "bias")}


def _stacked(answer, sublayers, width, dropout=0.0, draw=True):
    """The answer's module, in evaluation mode; its norms' weights are drawn by their names."""
    module = answer(sublayers, width, dropout)
    where = f"for a stack of {len(sublayers)} sublayers"
    expect(isinstance(module, nn.Module), f"{where}, you return no `nn.Module`")
    if draw:
        shapes = _norm_shapes(len(sublayers), width)
        own = {name: p for name, p in module.named_parameters() if name in shapes}
        for name in shapes:
            expect(name in own, f"{where}, there is no weight `{name}`: is it in a `ModuleList`?")
        with torch.no_grad():
            for name, parameter in own.items():
                seed = sum(ord(letter) * (i + 1) for i, letter in enumerate(name))
                parameter.copy_(numbers(width, seed=seed, shift=1.0))
    return module.eval()


def _called(module, x):
    """What the module makes of x, which is evidence, too."""
    out = module(x)
    record(out.detach().clone() if isinstance(out, torch.Tensor) else out)
    return out


def _stack_oracle(x, sublayers, weights, dropout=lambda said: said):
    """From the end: the last norm of what the sublayers left, each asked for in turn."""

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"])

    def left(i):
        before = x if i == 0 else left(i - 1)
        if i == 0:
            return before
        return before + dropout(sublayers[i - 1](norm(before, f"norms.{i - 1}")))

    return norm(left(len(sublayers)), "final_norm")


STREAM = torch.tensor([[[1.0, 2.0, 6.0]]])


def _one_sublayer(answer):
    """the sublayer reads the normalised stream, adds to the stream, and a norm ends it"""
    module = _stacked(answer, [_Squares()], 3, draw=False)
    read = F.layer_norm(STREAM, (3,))
    right = F.layer_norm(STREAM + read**2, (3,))
    where = "for x=[[[1, 2, 6]]] and one sublayer, which squares"
    same(_called(module, STREAM.clone()), right, where, 1e-4, dtype=True)


@hint("A list of modules is `nn.ModuleList([...])`: what stands in a plain list is no part of it.")
def _parts(answer):
    """norms and sublayers are parts of the module, each norm with its own weights"""
    where = "for a stack of two linear maps of width 3"
    module = answer([_linear(3, 1), _linear(3, 2)], 3)
    expect(isinstance(module, nn.Module), f"{where}, you return no `nn.Module`")
    for name in ("norms", "sublayers"):
        plain = isinstance(getattr(module, name, None), list | tuple)
        expect(not plain, f"{where}, there is no parameter in `{name}`, which is a plain list")
    maps = {f"sublayers.{i}.weight": (3, 3) for i in range(2)}
    maps |= {f"sublayers.{i}.bias": (3,) for i in range(2)}
    has_parameters(module, _norm_shapes(2, 3) | maps, where)


def _two_sublayers(answer):
    """each sublayer reads, through its own norm, the stream that the one before it wrote to"""
    sublayers, x = [_linear(3, 1), _linear(3, 4)], numbers(2, 4, 3, seed=1)
    module = _stacked(answer, sublayers, 3)
    right = _stack_oracle(x, sublayers, dict(module.named_parameters()))
    same(_called(module, x.clone()), right, "for two linear maps, random gains and biases", 1e-4)


def _any_depth(answer):
    """no sublayer, or three: each is called once"""
    x = numbers(2, 4, 5, seed=2)
    module = _stacked(answer, [], 5)
    right = _stack_oracle(x, [], dict(module.named_parameters()))
    same(_called(module, x.clone()), right, "for a stack without sublayers", 1e-4)
    sublayers = [_Plus(1.0), _Plus(-3.0), _Plus(2.0)]
    module = _stacked(answer, sublayers, 5)
    got = _called(module, x.clone())
    counts = [part.count for part in sublayers]
    expect(counts == [1, 1, 1], f"three sublayers are called {counts} times, expected once each")
    right = _stack_oracle(x, sublayers, dict(module.named_parameters()))
    same(got, right, "for three sublayers, which add 1, -3 and 2", 1e-4)


def _dropped(answer):
    """in training, dropout acts on what each sublayer returns, and on nothing else"""
    x, sublayers = numbers(2, 4, 3, seed=3), [_linear(3, 1), _linear(3, 4)]
    module = _stacked(answer, sublayers, 3, dropout=1.0).train()
    right = _stack_oracle(x, [], dict(module.named_parameters()))
    note = "Nothing is added, and only the last norm acts."
    same(_called(module, x.clone()), right, "in training, with dropout=1.0", 1e-4, note)
    many = numbers(40, 50, 3, seed=5)
    module = _stacked(answer, [_Plus(7.0)], 3, dropout=0.25, draw=False).train()
    seen = []
    module.final_norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    module(many.clone())
    expect(len(seen) == 1, f"in training, final_norm is called {len(seen)} times, expected once")
    added = seen[0] - many
    said = F.layer_norm(many, (3,)) + 7.0
    off = (added.abs() < 1e-4).float().mean().item()
    expect(abs(off - 0.25) < 0.03, f"in training, with dropout=0.25, a share of {off:.2f} of what "
           "is added is 0, expected 0.25")  # fmt: skip
    kept = added.abs() >= 1e-4
    mixed = (kept.any(-1) & ~kept.all(-1)).any()
    expect(mixed, "in training, with dropout=0.25, each token is dropped as a whole or not at all, "
           "expected number by number")  # fmt: skip
    same((added / said)[kept].mean(), 1 / 0.75, "with dropout=0.25, what is kept grows by", 1e-3)


def _not_in_use(answer):
    """in evaluation mode nothing is dropped; dropout is 0.1 unless it is given"""
    sublayers, x = [_linear(3, 1)], numbers(2, 4, 3, seed=4)
    module = _stacked(answer, sublayers, 3, dropout=0.9)
    right = _stack_oracle(x, sublayers, dict(module.named_parameters()))
    same(_called(module, x.clone()), right, "with dropout=0.9, after .eval()", 1e-4)
    module = answer([_Plus(7.0)], 3).train()
    seen, many = [], numbers(40, 50, 3, seed=5)
    module.final_norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    module(many.clone())
    expect(len(seen) == 1, f"in training, final_norm is called {len(seen)} times, expected once")
    off = ((seen[0] - many).abs() < 1e-4).float().mean().item()
    expect(abs(off - 0.1) < 0.02, f"in training, with no dropout given, a share of {off:.2f} of "
           "what is added is 0, expected 0.1")  # fmt: skip


def _stream_kept(answer):
    """the caller's x is left as it was"""
    module, x = _stacked(answer, [_Plus(5.0)], 3, draw=False), STREAM.clone()
    module(x)
    same(x, STREAM, "after the call, the caller's x", note="Write `x = x + …`, not `x += …`.")


def _stack_gradient(answer):
    """gradients reach x and every weight, in float64 too"""
    sublayers = [_linear(3, 1).double(), _linear(3, 4).double()]
    module = _stacked(answer, sublayers, 3)
    kept = sublayers[0].weight.dtype == torch.float64
    expect(kept, "for sublayers in float64, your code makes float32 of their weights")
    module = module.double()
    x = numbers(2, 4, 3, seed=6, dtype=torch.float64).requires_grad_()
    weights = dict(module.named_parameters())
    leaves = {"x": x} | {name: weights[name] for name in _norm_shapes(2, 3)}
    leaves |= {f"sublayers.{i}.weight": part.weight for i, part in enumerate(sublayers)}
    out = module(x)
    expect(isinstance(out, torch.Tensor), "you return no tensor: is a `return` missing?")
    expect(out.requires_grad, "no gradient reaches anything: leave `detach` and `no_grad` out")
    right = _stack_oracle(x, sublayers, weights)
    same(out, right, "for two linear maps in float64", 1e-9, dtype=True)
    loss = numbers(2, 4, 3, seed=7, dtype=torch.float64)
    got, wanted = (
        torch.autograd.grad((y * loss).sum(), list(leaves.values()), allow_unused=True)
        for y in (out, right)
    )
    for name, mine, theirs in zip(leaves, got, wanted, strict=True):
        expect(mine is not None, f"no gradient reaches `{name}`")
        same(mine, theirs, f"the gradient to `{name}`", 1e-6)


PRE = Exercise(
    id="10.2",
    title="a Pre-LN stack, as a module",
    difficulty=2,
    minutes=10,
    statement=(
        "Write the module `MyPreLNStack(sublayers, d_model, dropout=0.1)`, a whole Pre-LN stack "
        "of the given `sublayers` with dropout on what each of them returns. Name its parts "
        "`sublayers`, `norms`, `dropout` and `final_norm`, and leave the caller's `x` unchanged."
    ),
    hint="The order of calls in one step is norm, sublayer, dropout, addition. Modules in a plain "
    "Python list are not found by `parameters()`; `nn.ModuleList` holds them.",
    function=MyPreLNStack,
    tests=(
        _one_sublayer,
        _parts,
        _two_sublayers,
        _any_depth,
        _dropped,
        _not_in_use,
        _stream_kept,
        _stack_gradient,
    ),
)


# 10.3 RMSNorm that survives float16


def my_rms_norm(x, weight, eps=1e-6):
    """Divide each token of x (..., C) by its root mean square, then multiply by weight (C,).

    Correct for float16 too: squares are taken in float32, and the result has the dtype of x.
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
    note = "One divided by the root is past 65,504, and the root has few digits left in float16."
    where = "for x=[3e-07, 6e-07, 9e-07, 1.8e-06] (float16), eps=1e-12"
    precise(answer, _rms_norm, TOKENS[0, 0] * 3e-7, ONE, 1e-12, dtype=torch.float16,
            where=where, note=note)  # fmt: skip


def _rms_travels(answer):
    """it works where x is"""
    travels(answer, numbers(2, 3, 4, seed=4), GAIN)


def _rms_gradient(answer):
    """the mean square takes part in the gradient"""
    gradients(answer, _rms_norm, TOKENS[0, 0], GAIN, tolerance=1e-5)
    gradients(answer, _rms_norm, numbers(2, 3, 5, seed=5), numbers(5, seed=6), tolerance=1e-5)


RMS = Exercise(
    id="10.3",
    title="RMSNorm that survives float16",
    difficulty=2,
    minutes=8,
    statement=(
        "Write `my_rms_norm(x, weight, eps=1e-6)`, the RMSNorm of `x` with shape `(..., C)`. It "
        "has to be correct for float16 inputs such as [100, 200, 300, 600], or a millionth of "
        "them, and to return the dtype that `x` and `weight` share."
    ),
    hint="The largest number of float16 is 65,504. Which of your steps can exceed it?",
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


# 10.4 BatchNorm that leaves padding out


def my_batch_norm(x, real, eps=1e-5):
    """Bring each feature of x (B, T, C) to mean 0, variance 1 over the batch's real tokens.

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
    id="10.4",
    title="BatchNorm that leaves padding out",
    difficulty=3,
    minutes=12,
    statement=(
        "Write `my_batch_norm(x, real, eps=1e-5)`, which brings every feature of `x`, of shape "
        "`(B, T, C)`, to mean 0 and variance 1 over the real tokens of the batch. The boolean "
        "`real`, of shape `(B, T)`, marks them (there is no gain or bias, and no running "
        "average). Padding must not count, even where it contains NaN, and comes out as 0."
    ),
    hint="`x[real]` holds only the real tokens, with shape `(N, C)`. At the end, "
    "`.where(real[..., None], 0.0)` sets the padding to 0.",
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


EXERCISES = (LAYER, PRE, RMS, BATCHNORM)
