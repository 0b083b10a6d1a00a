"""Chapter 06: LayerNorm, RMSNorm in half precision, a Pre-LN stack, BatchNorm without padding."""

import torch

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, short, tensor

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


TOKENS = torch.tensor(
    [[[1.0, 2.0, 3.0, 6.0], [0.0, 4.0, -4.0, 8.0]], [[5.0, 5.0, 1.0, 1.0], [9.0, 1.0, 2.0, 0.0]],
     [[-3.0, 0.0, 1.0, 7.0], [2.0, 2.5, 3.0, -1.5]]]
)  # fmt: skip
ONE, NONE = torch.ones(4), torch.zeros(4)
GAIN, SHIFT = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.5, 0.0, -1.0, 2.0])
TINY = TOKENS * 1e-3
SAME = torch.full((1, 2, 4), 3.0)
_THREE = "for three sentences of two tokens with 4 features"


def _each_token(answer):
    """each token comes out with mean 0"""
    got = tensor(answer(TOKENS, ONE, NONE), _THREE)
    expect(got.shape == TOKENS.shape, f"{_THREE}, the shape is {tuple(got.shape)}, not (3, 2, 4)")
    mean = got[0, 0].mean().item()
    message = f"{_THREE}, the features of the first token have mean {mean:.4g} after it, not 0"
    expect(abs(mean) < 1e-5, message)


def _variance_one(answer):
    """and with variance 1, divided by C"""
    got = tensor(answer(TOKENS, ONE, NONE), _THREE)[0, 0]
    variance = got.var(correction=0).item()
    message = f"{_THREE}, the first token's variance (divided by C) is {variance:.4g} after it"
    expect(abs(variance - 1) < 1e-3, f"{message}, not 1")


def _affine(answer):
    """then come gain and bias, feature by feature"""
    expected = my_layer_norm(TOKENS, GAIN, SHIFT)[0, 0]
    where = f"for the token [1, 2, 3, 6] with weight={short(GAIN)}, bias={short(SHIFT)}"
    same(tensor(answer(TOKENS, GAIN, SHIFT), where)[0, 0], expected, where, tolerance=1e-4)


def _eps_inside(answer):
    """eps is added to the variance"""
    where = "for the token [0.001, 0.002, 0.003, 0.006] and eps=1e-4"
    got = tensor(answer(TINY, ONE, NONE, 1e-4), where)[0, 0]
    note = "Its variance is 3.5e-06, less than eps: √(variance + eps)."
    same(got, my_layer_norm(TINY, ONE, NONE, 1e-4)[0, 0], where, tolerance=1e-4, note=note)


def _constant(answer):
    """a token of equal numbers comes out finite"""
    where = "for tokens whose four numbers are equal"
    got = tensor(answer(SAME, ONE, NONE), where)
    expect(got.isfinite().all(), f"{where}, you get {short(got[0, 0])}: 0 divided by 0")
    same(got[0, 0], [0.0] * 4, where)


def _any_shape(answer):
    """tokens without a batch are normalised alike"""
    where = "for two tokens without a batch, x of shape (2, 4)"
    got = tensor(answer(TOKENS[0], GAIN, SHIFT), where)
    same(got, my_layer_norm(TOKENS[0], GAIN, SHIFT), where, tolerance=1e-4)


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
    reference=my_layer_norm,
    wrong=(
        WrongAnswer(
            "over the batch",
            _layer_variant(axes=0),
            "the features of the first token have mean",
            "`dim=0` runs over the sentences: that is what BatchNorm does, and a token's result "
            "then depends on its neighbours in the batch. LayerNorm runs over the last axis.",
        ),
        WrongAnswer(
            "over positions and features",
            _layer_variant(axes=(-2, -1)),
            "the features of the first token have mean",
            "The tokens of a sentence then share one mean. Each token has its own: only `dim=-1`.",
        ),
        WrongAnswer(
            "over the whole tensor",
            _layer_variant(axes="all"),
            "the features of the first token have mean",
            "`x.mean()` without `dim` is one number for the whole batch. Give `dim=-1`.",
        ),
        WrongAnswer(
            "divided by C - 1",
            _layer_variant(correction=1),
            "the first token's variance (divided by C) is 0.75",
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
            "the first token's variance (divided by C) is 0.28",
            "Divide by the standard deviation, the root of the variance, or the scale stays in.",
        ),
        WrongAnswer(
            "no eps",
            _layer_variant(always=0.0),
            "0 divided by 0",
            "A token of equal numbers has variance 0, and 0/0 is NaN. eps also decides below which "
            "spread a token counts as constant.",
        ),
        WrongAnswer(
            "eps written into the code",
            _layer_variant(always=1e-5),
            "and eps=1e-4",
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
            "with weight=[1, 2, 3, 4]",
            "The last step is `* weight + bias`: it lets training undo the normalisation.",
        ),
    ),
    tests=(_each_token, _variance_one, _affine, _eps_inside, _constant, _any_shape),
    probes=(
        calls(TOKENS, ONE, NONE),
        calls(TOKENS, GAIN, SHIFT),
        calls(TINY, ONE, NONE, 1e-4),
        calls(SAME, ONE, NONE),
        calls(TOKENS[0], GAIN, SHIFT),
    ),
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


LARGE = (TOKENS * 100).half()
_TOKEN = "for the token [1, 2, 3, 6]"


def _rms_one(answer):
    """a token comes out with mean square 1, its mean left in"""
    got = tensor(answer(TOKENS, ONE), _TOKEN)
    expect(got.shape == TOKENS.shape, f"{_TOKEN}, the shape is {tuple(got.shape)}, not (3, 2, 4)")
    note = "Its mean square is 12.5; the mean is not taken out."
    same(got[0, 0], my_rms_norm(TOKENS, ONE)[0, 0], _TOKEN, tolerance=1e-4, note=note)


def _rms_gain(answer):
    """then comes the gain"""
    where = f"{_TOKEN} with weight={short(GAIN)}"
    same(tensor(answer(TOKENS, GAIN), where)[0, 0], my_rms_norm(TOKENS, GAIN)[0, 0], where, 1e-4)


def _rms_eps(answer):
    """eps is added to the mean square"""
    where = "for the token [0.001, 0.002, 0.003, 0.006] and eps=1e-5"
    expected = my_rms_norm(TINY, ONE, 1e-5)[0, 0]
    note = "eps goes inside the root: √(mean square + eps)."
    same(tensor(answer(TINY, ONE, 1e-5), where)[0, 0], expected, where, 1e-4, note)


def _half(answer):
    """in float16 large numbers come out right, in float16"""
    where = "for the float16 token [100, 200, 300, 600]"
    got = tensor(answer(LARGE, ONE.half()), where)
    message = f"{where}, you get {short(got[0, 0])}: a number past 65,504 stood in float16"
    expect(got[0, 0].isfinite().all() and got[0, 0].abs().max() > 0, message)
    same(got[0, 0].float(), my_rms_norm(TOKENS, ONE)[0, 0], where, tolerance=5e-3)
    where_last = "for the float16 token [200, 250, 300, -150]"
    expected = my_rms_norm(TOKENS, ONE)[2, 1]
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
    tests=(_rms_one, _rms_gain, _rms_eps, _half),
    probes=(
        calls(TOKENS, ONE),
        calls(TOKENS, GAIN),
        calls(TINY, ONE, 1e-5),
        calls(LARGE, ONE.half()),
        lambda answer: answer(LARGE, ONE.half()).dtype == torch.float16,
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
    tests=(_stream_passes, _sublayer_reads_norm, _all_of_it, _two_layers),
    probes=(
        calls(STREAM, *_ONE_LAYER, _times(1)),
        calls(STREAM, *_ONE_LAYER, _times(0.5)),
        calls(STREAM, *_TWO_LAYERS, _times(0)),
        calls(STREAM, *_TWO_LAYERS, _times(1)),
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
    same(got, my_batch_norm(BATCH, REAL)[REAL][:, 0], where, 1e-3, note)


def _eps_of_batch(answer):
    """eps is added to the variance, and keeps a constant feature finite"""
    where = f"{_BATCH}, the second feature constant, the third tiny, and eps=1e-4"
    got = tensor(answer(FLAT, REAL, 1e-4), where)[REAL]
    expect(got.isfinite().all(), f"{where}, you get {short(got[0])}: 0 divided by 0")
    note = "√(variance + eps)."
    same(got[0], my_batch_norm(FLAT, REAL, 1e-4)[REAL][0], f"{where}, in one token", 1e-3, note)


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
    tests=(_padding_zero, _features, _feature_variance, _eps_of_batch, _padding_unseen),
    probes=(calls(BATCH, REAL), calls(OTHER, REAL), calls(FLAT, REAL, 1e-4)),
)

EXERCISES = (LAYER, RMS, PRE, BATCHNORM)
