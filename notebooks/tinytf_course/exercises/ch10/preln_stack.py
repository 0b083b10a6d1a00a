"""10.2 a Pre-LN stack, as a module (★★☆, 10 minutes)

Write the module `MyPreLNStack(sublayers, d_model, dropout=0.1)`, a whole Pre-LN stack of the given
`sublayers` with dropout on what each of them returns. Name its parts `sublayers`, `norms`,
`dropout` and `final_norm`, and leave the caller's `x` unchanged.

Hint: The order of calls in one step is norm, sublayer, dropout, addition.

Hint: `parameters()` does not find modules in a plain Python list; it does in an `nn.ModuleList`.
"""

import torch
from torch import nn
from torch.nn import functional as F

from tinytf.norm import LayerNorm
from tinytf_course.evidence import record
from tinytf_course.expect import expect, has_parameters, numbers, same
from tinytf_course.grading import hint


class MyPreLNStack(nn.Module):
    """A Pre-LN stack of sublayers: modules that map (B, T, C) to (B, T, C), C = d_model.

    Its parts are called `sublayers`, `norms` (a LayerNorm for each sublayer), `dropout`, and
    `final_norm`, the LayerNorm at the end.
    """

    def __init__(self, sublayers, d_model, dropout=0.1):
        super().__init__()
        self.sublayers = nn.ModuleList(sublayers)
        self.norms = nn.ModuleList(LayerNorm(d_model) for _ in sublayers)
        self.dropout = nn.Dropout(dropout)
        self.final_norm = LayerNorm(d_model)

    def forward(self, x):
        """Map (B, T, C) to (B, T, C)."""
        for sublayer, norm in zip(self.sublayers, self.norms):
            x = x + self.dropout(sublayer(norm(x)))
        return self.final_norm(x)


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
    """The answer's module, in evaluation mode, with random weights in its norms."""
    module = answer(sublayers, width, dropout)
    where = f"for a stack of {len(sublayers)} sublayers"
    expect(isinstance(module, nn.Module), f"{where}, you return no `nn.Module`")
    own = dict(module.named_parameters())
    for seed, name in enumerate(_norm_shapes(len(sublayers), width) if draw else ()):
        expect(name in own, f"{where}, there is no weight `{name}`: is it in a `ModuleList`?")
        with torch.no_grad():
            own[name].copy_(numbers(width, seed=seed + 1, shift=1.0))
    return module.eval()


def _called(module, x):
    """What the module makes of a copy of x, which is evidence, too."""
    out = module(x.clone())
    record(out.detach().clone() if isinstance(out, torch.Tensor) else out)
    return out


def _fits(module, x, sublayers, where, note=""):
    """Expect the module to make of x what the oracle does with its weights and these sublayers."""
    same(_called(module, x), _stack_oracle(x, sublayers, module), where, 1e-4, note)


def _stack_oracle(x, sublayers, module):
    """By torch's own norm, with weights that the module has under these names."""
    weights = dict(module.named_parameters())

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"])

    for i, sublayer in enumerate(sublayers):
        x = x + sublayer(norm(x, f"norms.{i}"))
    return norm(x, "final_norm")


def _added(module, x):
    """What the sublayers add to x in training, as the last norm reads it."""
    seen = []
    module.final_norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    module.train()(x.clone())
    message = f"in training, final_norm is called {len(seen)} times, expected once"
    expect(len(seen) == 1, message)
    return seen[-1] - x


STREAM = torch.tensor([[[1.0, 2.0, 6.0]]])


def test_one_sublayer(answer):
    """the sublayer reads the normalised stream, adds to the stream, and a norm ends it"""
    module = _stacked(answer, [_Squares()], 3, draw=False)
    read = F.layer_norm(STREAM, (3,))
    right = F.layer_norm(STREAM + read**2, (3,))
    where = "for x=[[[1, 2, 6]]] and one sublayer, which squares"
    same(_called(module, STREAM), right, where, 1e-4, dtype=True)


@hint("Modules in a plain list are no parts of the module: use `nn.ModuleList([...])`.")
def test_parts(answer):
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


def test_two_sublayers(answer):
    """each sublayer reads, through its own norm, the stream that the one before it wrote to"""
    sublayers, x = [_linear(3, 1), _linear(3, 4)], numbers(2, 4, 3, seed=1)
    module = _stacked(answer, sublayers, 3)
    _fits(module, x, sublayers, "for two linear maps, random gains and biases")


def test_any_depth(answer):
    """no sublayer, or three: each is called once"""
    x = numbers(2, 4, 5, seed=2)
    _fits(_stacked(answer, [], 5), x, [], "for a stack without sublayers")
    sublayers = [_Plus(1.0), _Plus(-3.0), _Plus(2.0)]
    module = _stacked(answer, sublayers, 5)
    got = _called(module, x)
    counts = [part.count for part in sublayers]
    expect(counts == [1, 1, 1], f"three sublayers are called {counts} times, expected once each")
    right = _stack_oracle(x, sublayers, module)
    same(got, right, "for three sublayers, which add 1, -3 and 2", 1e-4)


def test_dropped(answer):
    """in training, dropout acts on what each sublayer returns, and on nothing else"""
    x, sublayers = numbers(2, 4, 3, seed=3), [_linear(3, 1), _linear(3, 4)]
    module = _stacked(answer, sublayers, 3, dropout=1.0).train()
    note = "Nothing is added, and only the last norm acts."
    _fits(module, x, [], "in training, with dropout=1.0", note)
    many = numbers(40, 50, 3, seed=5)
    added = _added(_stacked(answer, [_Plus(7.0)], 3, dropout=0.25, draw=False), many)
    kept, where = added.abs() >= 1e-4, "in training, with dropout=0.25,"
    off = 1 - kept.float().mean().item()
    message = f"{where} a share of {off:.2f} of what is added is 0, expected 0.25"
    expect(abs(off - 0.25) < 0.03, message)
    mixed = (kept.any(-1) & ~kept.all(-1)).any()
    message = f"{where} each token is dropped as a whole or not at all, expected number by number"
    expect(mixed, message)
    returned = F.layer_norm(many, (3,)) + 7.0
    same((added / returned)[kept].mean(), 1 / 0.75, f"{where} what is kept grows by", 1e-3)


def test_not_in_use(answer):
    """in evaluation mode nothing is dropped; dropout is 0.1 unless it is given"""
    sublayers, x = [_linear(3, 1)], numbers(2, 4, 3, seed=4)
    module = _stacked(answer, sublayers, 3, dropout=0.9)
    _fits(module, x, sublayers, "with dropout=0.9, after .eval()")
    added = _added(answer([_Plus(7.0)], 3), numbers(40, 50, 3, seed=5))
    off, where = (added.abs() < 1e-4).float().mean().item(), "in training, with no dropout given,"
    message = f"{where} a share of {off:.2f} of what is added is 0, expected 0.1"
    expect(abs(off - 0.1) < 0.02, message)


def test_stream_kept(answer):
    """the caller's x is left as it was"""
    module, x = _stacked(answer, [_Plus(5.0)], 3, draw=False), STREAM.clone()
    module(x)
    same(x, STREAM, "after the call, the caller's x", note="Write `x = x + …`, not `x += …`.")


def test_stack_gradient(answer):
    """gradients reach x and every weight, in float64 too"""
    sublayers = [_linear(3, 1).double(), _linear(3, 4).double()]
    module = _stacked(answer, sublayers, 3)
    kept = sublayers[0].weight.dtype == torch.float64
    expect(kept, "for sublayers in float64, your code makes float32 of their weights")
    module, x = module.double(), numbers(2, 4, 3, seed=6, dtype=torch.float64).requires_grad_()
    weights = dict(module.named_parameters())
    leaves = {"x": x} | {name: weights[name] for name in _norm_shapes(2, 3)}
    leaves |= {f"sublayers.{i}.weight": part.weight for i, part in enumerate(sublayers)}
    out, right = module(x), _stack_oracle(x, sublayers, module)
    expect(isinstance(out, torch.Tensor), "you return no tensor: is a `return` missing?")
    expect(out.requires_grad, "no gradient reaches anything: leave `detach` and `no_grad` out")
    same(out, right, "for two linear maps in float64", 1e-9, dtype=True)
    loss = numbers(2, 4, 3, seed=7, dtype=torch.float64)
    got, wanted = (
        torch.autograd.grad((y * loss).sum(), list(leaves.values()), allow_unused=True)
        for y in (out, right)
    )
    for name, mine, theirs in zip(leaves, got, wanted, strict=True):
        expect(mine is not None, f"no gradient reaches `{name}`")
        same(mine, theirs, f"the gradient to `{name}`", 1e-6)


MISTAKES = r"""
the normalised x is added
    x = x + self.dropout(sublayer(norm(x))) =>
        x = norm(x)
        x = x + self.dropout(sublayer(x))
    says: one sublayer, which squares
    `x = norm(x)` overwrote the stream, so every layer normalises it again, and the residual path
    leads through each norm.
Post-LN
    x + self.dropout(sublayer(norm(x))) => norm(x + self.dropout(sublayer(x)))
    says: one sublayer, which squares
    This normalises the sum: the paper's order, Post-LN.
no norm at the end
    return self.final_norm(x) => return x
    says: one sublayer, which squares
    The stream has grown with every sublayer: return `self.final_norm(x)`.
norm after the sublayer
    sublayer(norm(x)) => norm(sublayer(x))
    says: one sublayer, which squares
    Here the sublayer reads the stream as it is, which grows with depth. Normalise before the
    sublayer.
no way around
    x = x + => x =
    says: one sublayer, which squares
    The residual is missing: add `x`.
modules in a plain list
    nn.ModuleList(sublayers) => list(sublayers)
    nn.ModuleList(LayerNorm(d_model) for _ in sublayers) => [LayerNorm(d_model) for _ in sublayers]
    says: there is no parameter in `norms`, which is a plain list
    `parameters()` does not look into Python lists, so modules in one are never trained, moved or
    saved. Put them into an `nn.ModuleList`.
norms without gain and bias
    nn.ModuleList(LayerNorm(d_model) =>
        nn.ModuleList(nn.LayerNorm(d_model, elementwise_affine=False)
    says: there is no parameter `norms.0.weight`
    A LayerNorm has a gain and a bias for each feature, which are learned.
whole tokens dropped
    nn.Dropout(dropout) => nn.Dropout1d(dropout)
    says: each token is dropped as a whole
    `nn.Dropout1d` drops all numbers of a token together. `nn.Dropout` draws for each number.
one norm for all
    LayerNorm(d_model) for _ in sublayers => [LayerNorm(d_model)] * len(sublayers)
    says: there is no parameter `norms.1.weight`
    Every sublayer has a norm of its own, with its own gain and bias.
all read the input
    for sublayer, norm in zip(self.sublayers, self.norms): =>
        first = x
        for sublayer, norm in zip(self.sublayers, self.norms):
    sublayer(norm(x)) => sublayer(norm(first))
    says: for two linear maps, random gains and biases
    Each sublayer reads what the ones before it added, too: keep the sum in one variable, and
    read that.
each sublayer called twice
    x = x + self.dropout(sublayer(norm(x))) =>
        added = sublayer(norm(x))
        x = x + self.dropout(sublayer(norm(x)))
    says: called [2, 2, 2] times
    Twice the work, and dropout inside a sublayer draws anew: keep what it returned in a
    variable.
dropout on the sum
    x + self.dropout(sublayer(norm(x))) => self.dropout(x + sublayer(norm(x)))
    says: only the last norm acts
    Dropout on the sum drops parts of the stream itself, at every layer anew.
dropout on the input
    self.dropout(sublayer(norm(x))) => sublayer(self.dropout(norm(x)))
    says: only the last norm acts
    Section 5.4 of the paper puts dropout on the output of each sublayer.
dropout forgotten
    self.dropout(sublayer(norm(x))) => sublayer(norm(x))
    says: only the last norm acts
    `self.dropout` was made and is not called.
dropout in use, too
    self.dropout(sublayer(norm(x))) => F.dropout(sublayer(norm(x)), self.dropout.p)
    says: after .eval()
    `F.dropout` drops in every mode unless it gets `training=self.training`; `nn.Dropout` knows
    its mode.
x overwritten
    x = x + => x +=
    says: after the call, the caller's x
    `x += …` works in the caller's memory, and `backward` then finds numbers that are no longer
    what a layer read. Write `x = x + …`.
cut off from the graph
    for sublayer, norm in zip(self.sublayers, self.norms): =>
        x = x.detach()
        for sublayer, norm in zip(self.sublayers, self.norms):
    says: no gradient reaches `x`
    The numbers are right, but nothing below the stack would learn: leave `detach`, `.data` and
    `no_grad` out of it.
"""
