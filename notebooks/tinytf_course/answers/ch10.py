"""Answers to chapter 10: references and mistakes."""

import torch
from torch import nn
from torch.nn import functional as F

from tinytf.norm import LayerNorm
from tinytf_course.exercises.ch10 import BROKEN
from tinytf_course.grading import Answers, WrongAnswer

# 10.1 repair a LayerNorm


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


def _norm_module(normed=None, kept=nn.Parameter, start=(torch.ones, torch.zeros), affine=True):
    """A `MyLayerNorm` with one thing wrong; `normed` makes the numbers before gain and bias."""

    def right(x, eps):
        return (x - x.mean(-1, keepdim=True)) / torch.sqrt(
            x.var(-1, correction=0, keepdim=True) + eps
        )

    class MyLayerNorm(nn.Module):
        def __init__(self, d_model, eps=1e-5):
            super().__init__()
            self.eps = eps
            self.weight, self.bias = (kept(make(d_model)) for make in start)

        def forward(self, x):
            y = (normed or right)(x, self.eps)
            return y * self.weight + self.bias if affine else y

    return MyLayerNorm


def _layer_variant(axes=-1, correction=0, outside=False, root=True, always=None):
    """The numbers of LayerNorm before gain and bias, with one thing wrong."""

    def normed(x, eps):
        along = tuple(range(x.dim())) if axes == "all" else axes
        eps = eps if always is None else always
        mean = x.mean(along, keepdim=True)
        variance = x.var(along, keepdim=True, correction=correction)
        spread = variance.sqrt() + eps if outside else torch.sqrt(variance + eps)
        return (x - mean) / (spread if root else variance + eps)

    return _norm_module(normed)


def _along_positions(x, eps):
    x = x - x.mean(-1, keepdim=True)
    return x / torch.sqrt(x.square().mean(1, keepdim=True) + eps)


def _digits_lost(x, eps):
    mean = x.mean(-1, keepdim=True)
    variance = x.square().mean(-1, keepdim=True) - mean.square()
    return (x - mean) / torch.sqrt(variance + eps)


def _detached(x, eps):
    mean = x.detach().mean(-1, keepdim=True)
    variance = x.detach().var(-1, keepdim=True, correction=0)
    return (x - mean) / torch.sqrt(variance + eps)


def _overwriting(x, eps):
    x -= x.mean(-1, keepdim=True)
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)


def _handed_over(broken):
    """The module of the statement, as it is."""
    scope = {"nn": nn, "torch": torch}
    exec(broken, scope)
    return scope["MyLayerNorm"]


LAYER = Answers(
    reference=MyLayerNorm,
    wrong=(
        WrongAnswer(
            "as it was",
            _handed_over(BROKEN),
            "you get [[[nan, nan, nan, nan]]]",
            "Nothing is repaired yet.",
        ),
        WrongAnswer(
            "spread over the positions",
            _norm_module(_along_positions),
            "Its mean is 3, its variance 14 / 4",
            "`dim=1` runs over the positions of a sentence: the tokens then share a spread, and "
            "padding counts in it. A token's features lie along `dim=-1`.",
        ),
        WrongAnswer(
            "over the batch",
            _layer_variant(axes=0),
            "Its mean is 3, its variance 14 / 4",
            "`dim=0` runs over the sentences: that is what BatchNorm does, and a token's result "
            "then depends on its neighbours in the batch. LayerNorm runs over the last axis.",
        ),
        WrongAnswer(
            "over the positions",
            _layer_variant(axes=1),
            "Its mean is 3, its variance 14 / 4",
            "`dim=1` runs over the positions of a sentence. A token's features lie along `dim=-1`.",
        ),
        WrongAnswer(
            "over positions and features",
            _layer_variant(axes=(-2, -1)),
            "Each token has its own mean and variance",
            "The tokens of a sentence then share one mean. Each token has its own: only `dim=-1`.",
        ),
        WrongAnswer(
            "over the whole tensor",
            _layer_variant(axes="all"),
            "Each token has its own mean and variance",
            "`x.mean()` without `dim` is one number for the whole batch. Give `dim=-1`.",
        ),
        WrongAnswer(
            "divided by C - 1",
            _layer_variant(correction=1),
            "you get [[[-0.9258, -0.4629, 0, 1.389]]]",
            "`x.var` and `x.std` divide by C - 1 unless told `correction=0`. With 4 features the "
            "result is 13 % too small, with 512 a thousandth; loaded weights then do not fit.",
        ),
        WrongAnswer(
            "eps outside the root",
            _layer_variant(outside=True),
            "less than eps: √(variance + eps)",
            "`std + eps` and `√(variance + eps)` part where the spread is small: 1e-5 beside the "
            "variance is like 3e-3 beside the standard deviation.",
        ),
        WrongAnswer(
            "divided by the variance",
            _layer_variant(root=False),
            "you get [[[-0.5714, -0.2857, 0, 0.8571]]]",
            "Divide by the standard deviation, the root of the variance, or the scale stays in.",
        ),
        WrongAnswer(
            "no eps",
            _layer_variant(always=0.0),
            "you get [[[nan, nan, nan, nan]]]",
            "A token of equal numbers has variance 0, and 0/0 is NaN. eps also decides below which "
            "spread a token counts as constant.",
        ),
        WrongAnswer(
            "eps written into the code",
            _layer_variant(always=1e-5),
            "eps=0.0001",
            "`eps` is an argument: models differ in it, and a loaded one brings its own.",
        ),
        WrongAnswer(
            "the third axis, not the last",
            _layer_variant(axes=2),
            "IndexError",
            "`dim=2` is the last axis only where there are three; `dim=-1` is it everywhere.",
        ),
        WrongAnswer(
            "gain and bias that do not learn",
            _norm_module(kept=lambda x: x),
            "there is no parameter `weight`",
            "A plain tensor is no weight: the optimiser never sees it, `.to(device)` leaves it "
            "behind, and it is not saved. `nn.Parameter(...)` makes it one.",
        ),
        WrongAnswer(
            "gain and bias as buffers",
            _norm_module(kept=lambda x: nn.Parameter(x, requires_grad=False)),
            "does not require a gradient",
            "They travel with the module and never learn. Leave `requires_grad` as it is.",
        ),
        WrongAnswer(
            "gain and bias forgotten",
            _norm_module(affine=False),
            "weight=[1, 2, 3, 4]",
            "The last step is `* self.weight + self.bias`: it lets training undo the norm.",
        ),
        WrongAnswer(
            "a gain that starts as zeros",
            _norm_module(start=(torch.zeros, torch.zeros)),
            "you get [[[0, 0, 0, 0]]]",
            "A gain of 0 silences the sublayer behind it. It starts as ones, so that the norm at "
            "first only normalises.",
        ),
        WrongAnswer(
            "the mean of the squares minus the square of the mean",
            _norm_module(_digits_lost),
            "Its variance is 3.5",
            "Of a token near 10,000 both are near 100,000,000, where float32 counts in eights: the "
            "difference is noise, and may be negative. Square `x - mean` instead.",
        ),
        WrongAnswer(
            "detached statistics",
            _norm_module(_detached),
            "for the gradient to `x`",
            "The numbers are right, and the gradient is not: mean and variance depend on x, too.",
        ),
        WrongAnswer(
            "x overwritten",
            _norm_module(_overwriting),
            "after the call, the caller's x",
            "`x -= mean` works in the caller's memory: the residual stream, which is added later, "
            "is no longer what it was. Write `x - mean`.",
        ),
    ),
    equivalent={
        "variance = (x - mean).square().mean(dim=-1, keepdim=True) => "
        "variance = (x - mean.detach()).square().mean(dim=-1, keepdim=True)": (
            "the variance does not change with the mean: its gradient is that of Σ (x - mean) = 0"
        ),
        "self.weight = … => ….float()": "it is float32 to begin with",
        "self.bias = … => ….float()": "it is float32 to begin with",
        "… => self.float().…": "there is no weight yet, or it is float32",
    },
)


# 10.2 a Pre-LN stack


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


def _stack_variant(
    step=None, last=True, listed=nn.ModuleList, shared=False, stale=False, drop=nn.Dropout, twice=1,
    normed=LayerNorm,
):  # fmt: skip
    """A `MyPreLNStack` with one thing wrong; `step` is what one sublayer does."""
    step = step or (lambda x, read, sublayer, norm, dropout: x + dropout(sublayer(norm(read))))

    class MyPreLNStack(nn.Module):
        def __init__(self, sublayers, d_model, dropout=0.1):
            super().__init__()
            self.sublayers = listed(sublayers)
            one = LayerNorm(d_model)
            self.norms = listed([one if shared else normed(d_model) for _ in sublayers])
            self.dropout = drop(dropout)
            self.final_norm = LayerNorm(d_model)

        def forward(self, x):
            first = x
            for sublayer, norm in zip(self.sublayers, self.norms, strict=True):
                for _ in range(twice):
                    said = step(x, first if stale else x, sublayer, norm, self.dropout)
                x = said
            return self.final_norm(x) if last else x

    return MyPreLNStack


def _normalised_stream(x, _, sublayer, norm, dropout):
    x = norm(x)
    return x + dropout(sublayer(x))


def _added_in_place(x, _, sublayer, norm, dropout):
    x += dropout(sublayer(norm(x)))
    return x


def _bare_norm(d_model):
    return nn.LayerNorm(d_model, elementwise_affine=False)


class _Always(nn.Module):
    """Dropout that does not know the evaluation mode."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(x, self.p)


PRE = Answers(
    reference=MyPreLNStack,
    wrong=(
        WrongAnswer(
            "the normalised x is added",
            _stack_variant(_normalised_stream),
            "one sublayer, which squares",
            "`x = norm(x)` overwrote the stream, so every layer normalises it again, and the way "
            "around passes through each norm.",
        ),
        WrongAnswer(
            "Post-LN",
            _stack_variant(lambda x, _, f, norm, dropout: norm(x + dropout(f(x)))),
            "one sublayer, which squares",
            "This normalises the sum: the paper's order, Post-LN.",
        ),
        WrongAnswer(
            "no norm at the end",
            _stack_variant(last=False),
            "one sublayer, which squares",
            "The stream has grown with every sublayer: return `self.final_norm(x)`.",
        ),
        WrongAnswer(
            "norm after the sublayer",
            _stack_variant(lambda x, _, f, norm, dropout: x + dropout(norm(f(x)))),
            "one sublayer, which squares",
            "Here the sublayer reads the stream as it is, which grows with depth. Normalise "
            "before the sublayer.",
        ),
        WrongAnswer(
            "no way around",
            _stack_variant(lambda _, read, f, norm, dropout: dropout(f(norm(read)))),
            "one sublayer, which squares",
            "The residual is missing: add `x`.",
        ),
        WrongAnswer(
            "modules in a plain list",
            _stack_variant(listed=list),
            "there is no parameter in `norms`, which is a plain list",
            "`parameters()` does not look into Python lists, so what stands there is never "
            "trained, moved or saved. `nn.ModuleList` holds modules.",
        ),
        WrongAnswer(
            "norms without gain and bias",
            _stack_variant(normed=_bare_norm),
            "there is no parameter `norms.0.weight`",
            "A LayerNorm has a gain and a bias for each feature, which are learned.",
        ),
        WrongAnswer(
            "whole tokens dropped",
            _stack_variant(drop=nn.Dropout1d),
            "each token is dropped as a whole",
            "`nn.Dropout1d` drops all numbers of a token together. `nn.Dropout` draws for each "
            "number.",
        ),
        WrongAnswer(
            "one norm for all",
            _stack_variant(shared=True),
            "there is no parameter `norms.1.weight`",
            "Every sublayer has a norm of its own, with its own gain and bias.",
        ),
        WrongAnswer(
            "all read the input",
            _stack_variant(stale=True),
            "for two linear maps, random gains and biases",
            "Each sublayer reads what the ones before it added, too: keep the sum in one variable, "
            "and read that.",
        ),
        WrongAnswer(
            "each sublayer called twice",
            _stack_variant(twice=2),
            "called [2, 2, 2] times",
            "Twice the work, and dropout inside a sublayer draws anew: keep what it returned in "
            "a variable.",
        ),
        WrongAnswer(
            "dropout on the sum",
            _stack_variant(lambda x, _, f, norm, dropout: dropout(x + f(norm(x)))),
            "only the last norm acts",
            "Dropout on the sum drops parts of the stream itself, at every layer anew.",
        ),
        WrongAnswer(
            "dropout on the input",
            _stack_variant(lambda x, _, f, norm, dropout: x + f(dropout(norm(x)))),
            "only the last norm acts",
            "Section 5.4 of the paper puts dropout on the output of each sublayer.",
        ),
        WrongAnswer(
            "dropout forgotten",
            _stack_variant(lambda x, _, f, norm, __: x + f(norm(x))),
            "only the last norm acts",
            "`self.dropout` was made and is not called.",
        ),
        WrongAnswer(
            "dropout in use, too",
            _stack_variant(drop=_Always),
            "after .eval()",
            "`F.dropout` drops in every mode unless it is told `training=self.training`; "
            "`nn.Dropout` knows its mode.",
        ),
        WrongAnswer(
            "x overwritten",
            _stack_variant(_added_in_place),
            "after the call, the caller's x",
            "`x += …` works in the caller's memory, and `backward` then finds numbers that are no "
            "longer what a layer read. Write `x = x + …`.",
        ),
        WrongAnswer(
            "cut off from the graph",
            _stack_variant(
                lambda x, _, f, norm, dropout: x.detach() + dropout(f(norm(x.detach())))
            ),
            "no gradient reaches `x`",
            "The numbers are right, but nothing below the stack would learn: leave `detach`, "
            "`.data` and `no_grad` out of it.",
        ),
    ),
    equivalent={
        "self.norms = … => ….float()": "a new LayerNorm is in float32",
        "self.final_norm = … => ….float()": "a new LayerNorm is in float32",
        "self.dropout = … => self.dropout = nn.Dropout(dropout).…": "dropout has no weights",
        "self.sublayers = … => self.float().…": "there is no weight yet",
    },
)


# 10.3 RMSNorm that survives float16


def my_rms_norm(x, weight, eps=1e-6):
    """Divide each token of x (..., C) by its root mean square, then multiply by weight (C,).

    Correct for float16 too: squares are taken in float32, and the result has the dtype of x.
    """
    wide = x.float()
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide / torch.sqrt(mean_square + eps)).to(x.dtype) * weight


def _rms_variant(
    widen=True,
    narrow=True,
    early=False,
    centre=False,
    total=False,
    outside=False,
    gain=True,
    axis=-1,
    root=True,
    always=None,
    detached=False,
    product=False,
):
    """A `my_rms_norm` with one thing wrong."""

    def norm(x, weight, eps=1e-6):
        eps = eps if always is None else always
        wide = x.float() if widen else x
        wide = wide - wide.mean(dim=-1, keepdim=True) if centre else wide
        squares = wide.square()
        squares = squares.detach() if detached else squares
        size = squares.sum(axis, keepdim=True) if total else squares.mean(axis, keepdim=True)
        size = size.to(x.dtype) if early else size
        spread = torch.sqrt(size) + eps if outside else torch.sqrt(size + eps)
        spread = spread if root else size + eps
        y = wide * spread if product else wide / spread
        y = y.to(x.dtype) if narrow else y
        return y * weight if gain else y

    return norm


def _spread(x, weight, eps=1e-6):
    wide = x.float()
    spread = torch.sqrt(wide.var(-1, keepdim=True, correction=0) + eps)
    return (wide / spread).to(x.dtype) * weight


def _widened_late(x, weight, eps=1e-6):
    mean_square = x.square().float().mean(-1, keepdim=True)
    return (x.float() / torch.sqrt(mean_square + eps)).to(x.dtype) * weight


def _scaled_down(x, weight, eps=1e-6):
    small = x / 1024  # keeps large squares below 65,504
    mean_square = small.square().mean(-1, keepdim=True).float() * 1024**2
    return (x.float() / torch.sqrt(mean_square + eps)).to(x.dtype) * weight


def _narrow_root(x, weight, eps=1e-6):
    wide = x.float()
    root = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps).to(x.dtype)
    return x * root * weight


def _on_the_cpu(x, weight, eps=1e-6):
    out = torch.zeros(x.shape, dtype=x.dtype)
    out[:] = my_rms_norm(x, weight, eps)
    return out


_MEAN_SQUARE = "mean_square = wide.square().mean(dim=-1, keepdim=True)"
_RMS = "return (wide / torch.sqrt(mean_square + eps)).to(x.dtype) * weight"

RMS = Answers(
    reference=my_rms_norm,
    wrong=(
        WrongAnswer(
            "squares in float16",
            _rms_variant(widen=False),
            "300² is past 65,504, its mean is not",
            "float16 ends at 65,504, the square of 256. The mean square is inf, and a number "
            "divided by inf is 0: the token is silently erased. Take the squares of `x.float()`.",
        ),
        WrongAnswer(
            "widened after the square",
            _widened_late,
            "300² is past 65,504, its mean is not",
            "The squares were still taken in float16, and inf stays inf in float32: widen `x`, "
            "not its square.",
        ),
        WrongAnswer(
            "scaled down by a fixed number",
            _scaled_down,
            "float16's smallest number is 6e-8",
            "Large squares are saved and small ones lost: below 6e-8 they are 0 in float16. "
            "float32 holds both.",
        ),
        WrongAnswer(
            "narrowed too early",
            _rms_variant(early=True),
            "300² is past 65,504",
            "The squares were taken in float32, but their mean, 125,000, went back to float16 "
            "before the root. Narrow the result, not what it is made of.",
        ),
        WrongAnswer(
            "the root narrowed",
            _narrow_root,
            "One divided by the root is past 65,504",
            "The root went back to float16 before the division, and for tiny tokens one divided "
            "by it is past 65,504. Narrow the result, not what it is made of.",
        ),
        WrongAnswer(
            "one size for the whole tensor",
            _rms_variant(axis=(-3, -2, -1)),
            "IndexError",
            "Each token has a size of its own: `mean(dim=-1, keepdim=True)`.",
        ),
        WrongAnswer(
            "the size of the mean over everything",
            lambda x, weight, eps=1e-6: (
                (x.float() / torch.sqrt(x.float().square().mean() + eps)).to(x.dtype) * weight
            ),
            "Each token has its own mean square",
            "`mean()` without `dim` is one number for the whole batch. Give `dim=-1`, and "
            "`keepdim=True`.",
        ),
        WrongAnswer(
            "the mean taken out",
            _rms_variant(centre=True),
            "the mean is not taken out",
            "That is LayerNorm without its bias. RMSNorm saves just this step.",
        ),
        WrongAnswer(
            "divided by the standard deviation",
            _spread,
            "the mean is not taken out",
            "The root mean square is not the standard deviation unless the mean is 0. “It "
            "normalises the variance”, one tutorial says; it normalises the mean square.",
        ),
        WrongAnswer(
            "divided by the length",
            _rms_variant(total=True),
            "Its mean square is 12.5",
            "That brings a token to length 1, not to mean square 1: √C times too small.",
        ),
        WrongAnswer(
            "no root",
            _rms_variant(root=False),
            "Its mean square is 12.5",
            "Divide by the root of the mean square, or a token twice as large comes out half as "
            "large.",
        ),
        WrongAnswer(
            "eps outside the root",
            _rms_variant(outside=True),
            "√(mean square + eps)",
            "Outside the root the same eps counts for much less.",
        ),
        WrongAnswer(
            "eps written into the code",
            _rms_variant(always=1e-6),
            "√(mean square + eps)",
            "`eps` is an argument: models differ in it, and a loaded one brings its own.",
        ),
        WrongAnswer(
            "no eps",
            _rms_variant(always=0.0),
            "0 is not divided by 0",
            "A token of zeros, an embedding of padding say, has mean square 0, and 0/0 is NaN.",
        ),
        WrongAnswer(
            "float32 comes out",
            lambda x, weight, eps=1e-6: my_rms_norm(x.float(), weight.float(), eps),
            "the dtype is float32, expected float16",
            "The next layer's weights are float16: hand back the dtype that came in.",
        ),
        WrongAnswer(
            "gain forgotten",
            _rms_variant(gain=False),
            "weight=[1, 2, 3, 4]",
            "The last step is `* weight`.",
        ),
        WrongAnswer(
            "detached mean square",
            _rms_variant(detached=True),
            "for the gradient to `x`",
            "The numbers are right, and the gradient is not: the mean square depends on x, too.",
        ),
        WrongAnswer(
            "on the CPU",
            _on_the_cpu,
            "on another device than the CPU it fails",
            "`torch.zeros(...)` is on the CPU, wherever `x` is: compute from `x`, or take "
            "`torch.zeros_like(x)`.",
        ),
    ),
    equivalent={
        "wide = x.float() => wide = x.float().float()": "it is float32 already",
        "wide = x.float() => wide = x.float().double()": "more digits on the way",
        f"{_MEAN_SQUARE} => {_MEAN_SQUARE}.float()": "it is float32 already",
        f"{_MEAN_SQUARE} => {_MEAN_SQUARE}.double()": "more digits on the way",
        f"{_MEAN_SQUARE} => {_MEAN_SQUARE.replace('wide', 'wide.float()')}": (
            "it is float32 already"
        ),
        f"{_RMS} => {_RMS.replace('x.dtype', 'weight.dtype')}": "weight has the dtype of x",
        f"{_RMS} => {_RMS.replace('wide', 'wide.float()')}": "it is float32 already",
        f"{_RMS} => {_RMS.replace('mean_square', 'mean_square.float()')}": "it is float32 already",
    },
)


# 10.4 BatchNorm that leaves padding out


def my_batch_norm(x, real, eps=1e-5):
    """Bring each feature of x (B, T, C) to mean 0, variance 1 over the batch's real tokens.

    real (B, T) is True at real tokens; padding takes no part in the statistics and comes out as 0.
    Variances are divided by the number of real tokens.
    """
    tokens = x[real]  # (B, T, C) -> (N, C)
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0)
    y = (x - mean) / torch.sqrt(variance + eps)
    return y.where(real[..., None], 0.0)


def _batch_variant(
    over=lambda x, real: (x[real], 0), correction=0, zero=True, always=None, root=True
):
    """A `my_batch_norm` with one thing wrong."""

    def norm(x, real, eps=1e-5):
        tokens, axis = over(x, real)
        eps = eps if always is None else always
        mean = tokens.mean(axis, keepdim=axis != 0)
        variance = tokens.var(axis, correction=correction, keepdim=axis != 0)
        y = (x - mean) / (torch.sqrt(variance + eps) if root else variance + eps)
        return y.where(real[..., None], 0.0) if zero else y

    return norm


def _masked(x, real, eps=1e-5, axes=(0, 1), count=None, squares=False, hide=None, detach=False):
    """By sums over the real tokens, along some axes."""
    hide = hide or (lambda x: x.where(real[..., None], 0.0))
    count = count or (lambda: real.sum(axes, keepdim=True)[..., None].clamp_min(1))
    source = x.detach() if detach else x
    mean = hide(source).sum(axes, keepdim=True) / count()
    off = hide(source.square()) if squares else hide((source - mean).square())
    variance = off.sum(axes, keepdim=True) / count() - (mean.square() if squares else 0)
    return hide((x - mean) / torch.sqrt(variance + eps))


def _eps_outside(x, real, eps=1e-5):
    tokens = x[real]
    y = (x - tokens.mean(dim=0)) / (tokens.std(dim=0, correction=0) + eps)
    return y.where(real[..., None], 0.0)


def _cleared_in_place(x, real, eps=1e-5):
    x[~real] = 0.0
    return my_batch_norm(x, real, eps)


_CLEARED = "return y.where(real[..., None], 0.0)"

BATCHNORM = Answers(
    reference=my_batch_norm,
    wrong=(
        WrongAnswer(
            "padding counted",
            _batch_variant(lambda x, real: (x.flatten(0, 1), 0)),
            "the mean of what they become",
            "This is `nn.BatchNorm1d` on the flattened batch: the more padding, the more it moves "
            "the real words.",
        ),
        WrongAnswer(
            "padding set to 0 and counted",
            lambda x, real, eps=1e-5: _masked(x, real, eps, count=lambda: real.numel()),
            "the mean of what they become",
            "The sums are right, but they are divided by B·T. Divide by `real.sum()`.",
        ),
        WrongAnswer(
            "over the features",
            _batch_variant(lambda x, real: (x, -1)),
            "the mean of each feature over them",
            "That is LayerNorm: a mean for each token. BatchNorm has a mean for each feature.",
        ),
        WrongAnswer(
            "position by position",
            _batch_variant(lambda x, real: (x, (0,))),
            "the mean of what they become",
            "`x.mean(0)` gives every position statistics of its own, from B tokens only.",
        ),
        WrongAnswer(
            "sentence by sentence",
            _batch_variant(lambda x, real: (x, (1,))),
            "the mean of what they become",
            "`x.mean(1)` gives every sentence statistics of its own: instance normalisation.",
        ),
        WrongAnswer(
            "sentence by sentence, padding left out",
            lambda x, real, eps=1e-5: _masked(x, real, eps, axes=(1,)),
            "divided by 4",
            "Padding does not count, but every sentence has statistics of its own, that is "
            "instance normalisation. Sum over both axes, `dim=(0, 1)`.",
        ),
        WrongAnswer(
            "position by position, padding left out",
            lambda x, real, eps=1e-5: _masked(x, real, eps, axes=(0,)),
            "divided by 4",
            "Padding does not count, but every position has statistics of its own. Sum over both "
            "axes, `dim=(0, 1)`.",
        ),
        WrongAnswer(
            "over everything, features too",
            lambda x, real, eps=1e-5: (
                (x - x[real].mean()) / torch.sqrt(x[real].var(correction=0) + eps)
            ).where(real[..., None], 0.0),
            "the mean of each feature over them",
            "`x[real].mean()` without `dim` is one number for all features: `mean(dim=0)`.",
        ),
        WrongAnswer(
            "divided by N - 1",
            _batch_variant(correction=1),
            "divided by 4",
            "`var` divides by N - 1 unless told `correction=0`.",
        ),
        WrongAnswer(
            "the mask the wrong way round",
            lambda x, real, eps=1e-5: my_batch_norm(x, ~real, eps),
            "you get [0, 0, 0, 0]",
            "`real` is True at words. `x[real]` are the words, `x[~real]` the padding.",
        ),
        WrongAnswer(
            "no eps",
            _batch_variant(always=0.0),
            "0 is not divided by 0",
            "A feature that is the same in all tokens has variance 0, and 0/0 is NaN.",
        ),
        WrongAnswer(
            "eps outside the root",
            _eps_outside,
            "Its variance is 1e-6",
            "Outside the root the same eps counts for much less: √(variance + eps).",
        ),
        WrongAnswer(
            "padding not cleared",
            _batch_variant(zero=False),
            "padding comes out as large as",
            "The statistics are right. Padding still has to become 0.",
        ),
        WrongAnswer(
            "divided by the variance",
            _batch_variant(root=False),
            "divided by 4",
            "Divide by the standard deviation, the root of the variance, or the scale stays in.",
        ),
        WrongAnswer(
            "eps written into the code",
            _batch_variant(always=1e-5),
            "Its variance is 1e-6",
            "`eps` is an argument.",
        ),
        WrongAnswer(
            "padding multiplied by 0",
            lambda x, real, eps=1e-5: _masked(x, real, eps, hide=lambda x: x * real[..., None]),
            "with inf in the padding",
            "0 · ∞ and 0 · NaN are NaN, and memory that was never written may hold either. Choose, "
            "do not multiply: `x.where(real[..., None], 0.0)`, or `x[real]`.",
        ),
        WrongAnswer(
            "the mean of the squares minus the square of the mean",
            lambda x, real, eps=1e-5: _masked(x, real, eps, squares=True),
            "Its variance is 14 / 3",
            "Of a feature near 10,000 both are near 100,000,000, where float32 counts in eights: "
            "the difference is noise, and may be negative. Square `x - mean` instead.",
        ),
        WrongAnswer(
            "float32 comes out",
            lambda x, real, eps=1e-5: my_batch_norm(x.float(), real, eps),
            "the dtype is float32, expected float64",
            "`.float()` or `torch.zeros(...)` makes float32 of whatever came in. Hand back the "
            "dtype of x.",
        ),
        WrongAnswer(
            "detached statistics",
            lambda x, real, eps=1e-5: _masked(x, real, eps, detach=True),
            "for the gradient to `x`",
            "The numbers are right, and the gradient is not: mean and variance depend on x, too.",
        ),
        WrongAnswer(
            "x overwritten",
            _cleared_in_place,
            "your code changes the caller's `x`",
            "`x[~real] = 0` works in the caller's memory. `x.where(real[..., None], 0.0)` is a new "
            "tensor.",
        ),
    ),
    equivalent={
        "tokens = x[real] => tokens = x[real.detach()]": "booleans have no gradient to lose",
        f"{_CLEARED} => {_CLEARED.replace('real', 'real.detach()')}": (
            "booleans have no gradient to lose"
        ),
        f"{_CLEARED} => {_CLEARED.replace('0.0', '-0.0')}": "-0.0 equals 0.0, and adds like it",
    },
)

ANSWERS = {
    "10.1": LAYER,
    "10.2": PRE,
    "10.3": RMS,
    "10.4": BATCHNORM,
}
