"""Answers to chapter 06: references and mistakes."""

import torch

from tinytf.course.grading import Answers, WrongAnswer

# 06.1 layer norm


def my_layer_norm(x, weight, bias, eps=1e-5):
    """Each token of x (..., C) to mean 0 and variance 1 over its features, then gain and bias.

    weight and bias are (C,). The variance is divided by C, and eps is added to it inside the root.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def _layer_variant(axes=-1, correction=0, outside=False, affine=True, root=True, always=None):
    """A `my_layer_norm` with one thing wrong."""

    def norm(x, weight, bias, eps=1e-5):
        along = tuple(range(x.dim())) if axes == "all" else axes
        eps = eps if always is None else always
        mean = x.mean(along, keepdim=True)
        variance = x.var(along, keepdim=True, correction=correction)
        spread = variance.sqrt() + eps if outside else torch.sqrt(variance + eps)
        y = (x - mean) / (spread if root else variance + eps)
        return y * weight + bias if affine else y

    return norm


def _digits_lost(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    variance = x.square().mean(-1, keepdim=True) - mean.square()
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def _detached(x, weight, bias, eps=1e-5):
    mean = x.detach().mean(-1, keepdim=True)
    variance = x.detach().var(-1, keepdim=True, correction=0)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def _overwriting(x, weight, bias, eps=1e-5):
    x -= x.mean(-1, keepdim=True)
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight + bias


LAYER = Answers(
    reference=my_layer_norm,
    wrong=(
        WrongAnswer(
            "over the batch",
            _layer_variant(axes=0),
            "for x=[[1, 2, 3, 6], [5, 5, 1, 1]",
            "`dim=0` runs over the sentences: that is what BatchNorm does, and a token's result "
            "then depends on its neighbours in the batch. LayerNorm runs over the last axis.",
        ),
        WrongAnswer(
            "over positions and features",
            _layer_variant(axes=(-2, -1)),
            "for x=[[1, 2, 3, 6], [0, 4, -4, 8]]",
            "The tokens of a sentence then share one mean. Each token has its own: only `dim=-1`.",
        ),
        WrongAnswer(
            "over the whole tensor",
            _layer_variant(axes="all"),
            "for x=[[1, 2, 3, 6], [5, 5, 1, 1]",
            "`x.mean()` without `dim` is one number for the whole batch. Give `dim=-1`.",
        ),
        WrongAnswer(
            "divided by C - 1",
            _layer_variant(correction=1),
            "you get [-0.9258, -0.4629, 0, 1.389]",
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
            "you get [-0.5714, -0.2857, 0, 0.8571]",
            "Divide by the standard deviation, the root of the variance, or the scale stays in.",
        ),
        WrongAnswer(
            "no eps",
            _layer_variant(always=0.0),
            "you get [nan, nan, nan, nan]",
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
            "gain and bias forgotten",
            _layer_variant(affine=False),
            "weight=[1, 2, 3, 4]",
            "The last step is `* weight + bias`: it lets training undo the normalisation.",
        ),
        WrongAnswer(
            "the mean of the squares minus the square of the mean",
            _digits_lost,
            "Its variance is 3.5",
            "Of a token near 10,000 both are near 100,000,000, where float32 counts in eights: the "
            "difference is noise, and may be negative. Square `x - mean` instead.",
        ),
        WrongAnswer(
            "detached statistics",
            _detached,
            "for the gradient to `x`",
            "The numbers are right, and the gradient is not: mean and variance depend on x, too.",
        ),
        WrongAnswer(
            "x overwritten",
            _overwriting,
            "your code changes the caller's `x`",
            "`x -= mean` works in the caller's memory: the residual stream, which is added later, "
            "is no longer what it was. Write `x - mean`.",
        ),
    ),
    equivalent={
        "variance = (x - mean).square().mean(dim=-1, keepdim=True) => "
        "variance = (x - mean.detach()).square().mean(dim=-1, keepdim=True)": (
            "the variance does not change with the mean: its gradient is that of Σ (x - mean) = 0"
        ),
    },
)


# 06.2 RMSNorm that survives float16


def my_rms_norm(x, weight, eps=1e-6):
    """Each token of x (..., C) divided by the root of its mean square, times weight (C,).

    Right for float16 too: the squares are taken in float32, and the result has the dtype of x.
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
):
    """A `my_rms_norm` with one thing wrong."""

    def norm(x, weight, eps=1e-6):
        wide = x.float() if widen else x
        wide = wide - wide.mean(dim=-1, keepdim=True) if centre else wide
        squares = wide.square()
        size = squares.sum(axis, keepdim=True) if total else squares.mean(axis, keepdim=True)
        size = size.to(x.dtype) if early else size
        y = wide / (torch.sqrt(size) + eps if outside else torch.sqrt(size + eps))
        y = y.to(x.dtype) if narrow else y
        return y * weight if gain else y

    return norm


def _spread(x, weight, eps=1e-6):
    return x / torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps) * weight


RMS = Answers(
    reference=my_rms_norm,
    wrong=(
        WrongAnswer(
            "squares in float16",
            _rms_variant(widen=False),
            "stood in float16",
            "float16 ends at 65,504, the square of 256. The mean square is inf, and a number "
            "divided by inf is 0: the token is silently erased. Widening after the square is "
            "too late.",
        ),
        WrongAnswer(
            "narrowed too early",
            _rms_variant(early=True),
            "stood in float16",
            "The squares were taken in float32, but their mean, 125,000, went back to float16 "
            "before the root. Narrow the result, not what it is made of.",
        ),
        WrongAnswer(
            "one size for the whole tensor",
            _rms_variant(axis=(-3, -2, -1)),
            "Its mean square is 12.5",
            "Each token has a size of its own: `mean(dim=-1, keepdim=True)`.",
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
            "eps outside the root",
            _rms_variant(outside=True),
            "√(mean square + eps)",
            "Outside the root the same eps counts for much less.",
        ),
        WrongAnswer(
            "float32 comes out",
            _rms_variant(narrow=False),
            "the result is torch.float32, expected float16",
            "The next layer's weights are float16: hand back the dtype that came in.",
        ),
        WrongAnswer(
            "gain forgotten",
            _rms_variant(gain=False),
            "with weight=[1, 2, 3, 4]",
            "The last step is `* weight`.",
        ),
    ),
)


# 06.3 a Pre-LN stack


def my_pre_norm_stack(x, sublayers, norms, dropout):
    """A whole Pre-LN stack: each sublayer adds what it finds to the stream x (B, T, C).

    sublayers and norms are lists of functions of (B, T, C). There is one norm more than sublayers:
    norms[i] is for sublayers[i], the last one for the end. dropout acts on what is added.
    """
    for sublayer, norm in zip(sublayers, norms[:-1], strict=True):
        x = x + dropout(sublayer(norm(x)))
    return norms[-1](x)


def _stack_variant(step=None, last=True, norm_of=lambda norms, i: norms[i], stale=False):
    """A `my_pre_norm_stack` with one thing wrong; `step` is what one sublayer does."""
    step = step or (lambda x, read, sublayer, norm, dropout: x + dropout(sublayer(norm(read))))

    def stack(x, sublayers, norms, dropout):
        first = x
        for i, sublayer in enumerate(sublayers):
            x = step(x, first if stale else x, sublayer, norm_of(norms, i), dropout)
        return norms[-1](x) if last else x

    return stack


def _normalised_stream(x, _, sublayer, norm, dropout):
    x = norm(x)
    return x + dropout(sublayer(x))


PRE = Answers(
    reference=my_pre_norm_stack,
    wrong=(
        WrongAnswer(
            "the normalised x is added",
            _stack_variant(_normalised_stream),
            "only the last norm acts",
            "`x = norm(x)` overwrote the stream, so every layer normalises it again, and the way "
            "around passes through each norm. A well-known course does this in its decoder.",
        ),
        WrongAnswer(
            "Post-LN",
            _stack_variant(lambda x, _, f, norm, dropout: norm(x + dropout(f(x)))),
            "only the last norm acts",
            "This normalises the sum: the paper's order, Post-LN.",
        ),
        WrongAnswer(
            "no norm at the end",
            _stack_variant(last=False),
            "only the last norm acts",
            "The stream has grown with every sublayer. One of the tutorials hands it on like this; "
            "call `norms[-1]` on what you return.",
        ),
        WrongAnswer(
            "norm after the sublayer",
            _stack_variant(lambda x, _, f, norm, dropout: x + dropout(norm(f(x)))),
            "1 + (10·1 + 1) = 12",
            "Here the sublayer reads the stream as it is, which grows with depth. Normalise "
            "before the sublayer.",
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
            "no way around",
            _stack_variant(lambda _, read, f, norm, dropout: dropout(f(norm(read)))),
            "only the last norm acts",
            "The residual is missing: add `x`.",
        ),
        WrongAnswer(
            "dropout forgotten",
            _stack_variant(lambda x, _, f, norm, __: x + f(norm(x))),
            "only the last norm acts",
            "`dropout` came in and was not called.",
        ),
        WrongAnswer(
            "all read the input",
            _stack_variant(stale=True),
            "12 after the first",
            "Each sublayer reads what the ones before it added, too: keep the sum in one variable, "
            "and read that.",
        ),
        WrongAnswer(
            "one norm for all",
            _stack_variant(norm_of=lambda norms, _: norms[0]),
            "12 after the first",
            "Every sublayer has a norm of its own, with its own gain and bias.",
        ),
    ),
)


# 06.4 BatchNorm that leaves padding out


def my_batch_norm(x, real, eps=1e-5):
    """Each feature of x (B, T, C) to mean 0 and variance 1 over all real tokens of the batch.

    real (B, T) is True at real tokens; padding takes no part in the statistics and comes out as 0.
    Variances are divided by the number of real tokens.
    """
    tokens = x[real]  # (B, T, C) -> (N, C)
    mean, variance = tokens.mean(dim=0), tokens.var(dim=0, correction=0)
    y = (x - mean) / torch.sqrt(variance + eps)
    return y.where(real[..., None], 0.0)


def _batch_variant(over=lambda x, real: (x[real], 0), correction=0, zero=True, always=None):
    """A `my_batch_norm` with one thing wrong."""

    def norm(x, real, eps=1e-5):
        tokens, axis = over(x, real)
        eps = eps if always is None else always
        mean = tokens.mean(axis, keepdim=axis != 0)
        variance = tokens.var(axis, correction=correction, keepdim=axis != 0)
        y = (x - mean) / torch.sqrt(variance + eps)
        return y.where(real[..., None], 0.0) if zero else y

    return norm


def _zeros_counted(x, real, eps=1e-5):
    count = real.numel()
    kept = x.where(real[..., None], 0.0)
    mean = kept.sum(dim=(0, 1)) / count
    variance = (x - mean).where(real[..., None], 0.0).square().sum(dim=(0, 1)) / count
    return ((x - mean) / torch.sqrt(variance + eps)).where(real[..., None], 0.0)


BATCHNORM = Answers(
    reference=my_batch_norm,
    wrong=(
        WrongAnswer(
            "padding counted",
            _batch_variant(lambda x, real: (x.flatten(0, 1), 0)),
            "the mean of each feature over them",
            "This is `nn.BatchNorm1d` on the flattened batch: the more padding, the more it moves "
            "the real words.",
        ),
        WrongAnswer(
            "padding set to 0 and counted",
            _zeros_counted,
            "the mean of each feature over them",
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
            "the mean of each feature over them",
            "`x.mean(0)` gives every position statistics of its own, from B tokens only.",
        ),
        WrongAnswer(
            "sentence by sentence",
            _batch_variant(lambda x, real: (x, (1,))),
            "the mean of each feature over them",
            "`x.mean(1)` gives every sentence statistics of its own: instance normalisation.",
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
            "0 divided by 0",
            "A feature that is the same in all tokens has variance 0, and 0/0 is NaN.",
        ),
        WrongAnswer(
            "padding not cleared",
            _batch_variant(zero=False),
            "padding comes out as large as",
            "The statistics are right. Padding still has to become 0.",
        ),
    ),
)

ANSWERS = {
    "06.1": LAYER,
    "06.2": RMS,
    "06.3": PRE,
    "06.4": BATCHNORM,
}
