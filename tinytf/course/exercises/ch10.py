"""Chapter 10: what training a Transformer needs besides the model."""

import math

import torch
from torch.nn import functional as F

from tinytf.course.evidence import copied
from tinytf.course.expect import (
    Counted,
    agrees,
    expect,
    gradients,
    numbers,
    same,
    saved,
    short,
    tensor,
    travels,
)
from tinytf.course.grading import Exercise, hint

PAD, BOS, EOS = 0, 1, 2


# 10.1 label-smoothed loss without the padding


def smoothed_loss(logits, targets, epsilon, pad_id):
    """Label-smoothed cross-entropy, averaged over the targets that are not padding.

    logits is (B, T, V), targets (B, T). The target distribution is 1 - epsilon on the target,
    plus epsilon shared equally by all V words (the target too).
    """
    raise NotImplementedError


LOGITS = torch.tensor(
    [
        [[1.0, 2.0, 0.0, 0.0], [0.0, 1.0, 3.0, 1.0], [0.0, 0.0, 1.0, 2.0]],
        [[1.0, 0.0, 0.0, 2.0], [4.0, 0.0, 0.0, 0.0], [3.0, 0.0, 1.0, 0.0]],
    ]
)
TARGETS = torch.tensor([[1, 2, 3], [3, 0, 0]])
_TARGETS = f"for targets={short(TARGETS)} with pad_id=0"


def _oracle_loss(epsilon):
    return F.cross_entropy(
        LOGITS.flatten(0, 1), TARGETS.flatten(), ignore_index=PAD, label_smoothing=epsilon
    )


def _no_smoothing(answer):
    """with epsilon 0 it is the mean negative log-likelihood of the real tokens"""
    got = answer(LOGITS, TARGETS, 0.0, PAD)
    same(got, _oracle_loss(0.0), f"{_TARGETS}, epsilon=0", note="Four tokens are real.")


def _uniform(answer):
    """a model that knows nothing scores ln V, whatever the smoothing"""
    where = "for all-zero logits over V=4 words, one real token, epsilon=0.2"
    got = answer(torch.zeros(1, 1, 4), torch.tensor([[3]]), 0.2, PAD)
    same(got, math.log(4), where, note="The smoothed target is a distribution: it sums to 1.")


def _smoothed(answer):
    """with epsilon 0.2 it agrees with `F.cross_entropy`"""
    got = answer(LOGITS, TARGETS, 0.2, PAD)
    same(got, _oracle_loss(0.2), f"{_TARGETS}, epsilon=0.2", note="Each word gets epsilon/V.")


def _pads_do_not_count(answer):
    """what the model says at padding does not count"""
    loud = LOGITS.clone()
    loud[1, 1:] = torch.tensor([-50.0, 0.0, 0.0, 0.0])
    quiet = tensor(answer(LOGITS, TARGETS, 0.1, PAD), _TARGETS)
    changed = tensor(answer(loud, TARGETS, 0.1, PAD), _TARGETS)
    message = (
        f"{_TARGETS}, changing only the logits at padding moves the loss from {short(quiet)} "
        f"to {short(changed)}; it should not move"
    )
    expect(quiet.numel() == 1 and torch.allclose(quiet, changed), message)


def _torchs(logits, targets, epsilon, pad_id):
    """The mean over the real tokens, by torch."""
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, label_smoothing=epsilon
    )


_PADDED = torch.tensor([[1, 4, 3, 3], [0, 2, 1, 4], [4, 3, 3, 3]])  # 3 is padding, 0 a word


@hint("The padding has the id `pad_id`, and 0 may be a word.")
def _any_batch(answer):
    """any batch, with any id for padding"""
    agrees(answer, _torchs, numbers(1, 1, 3, seed=1), torch.tensor([[0]]), 0.1, 2)
    agrees(answer, _torchs, numbers(3, 1, 2, seed=2), torch.tensor([[0], [1], [0]]), 0.1, 1)
    agrees(answer, _torchs, numbers(1, 3, 2, seed=3), torch.tensor([[0, 0, 1]]), 0.3, 1)
    for epsilon in (0.0, 0.1, 1.0):
        agrees(answer, _torchs, numbers(3, 4, 5, seed=4), _PADDED, epsilon, 3)


@hint("`log_softmax` takes the largest logit away first; `exp` of 200 is too large for a number.")
def _large_logits(answer):
    """large logits are no trouble"""
    logits = torch.tensor([[[200.0, 0.0, -3.0]]])
    agrees(answer, _torchs, logits, torch.tensor([[0]]), 0.0, 2)
    agrees(answer, _torchs, logits, torch.tensor([[1]]), 0.1, 2)
    agrees(answer, _torchs, numbers(3, 4, 5, seed=5, scale=1e4), _PADDED, 0.1, 3)


@hint("The loss is a tensor that knows its way back: no `.item()`, `.detach()` or `no_grad`.")
def _loss_gradients(answer):
    """it can be trained with: the gradient reaches every logit"""
    for epsilon in (0.0, 0.2):
        gradients(answer, _torchs, numbers(3, 4, 5, seed=6), _PADDED, epsilon, 3)


def _in_float64(answer):
    """float64 stays float64"""
    logits = numbers(3, 4, 5, seed=7, dtype=torch.float64)
    for epsilon in (0.2, 1.0):
        agrees(answer, _torchs, logits, _PADDED, epsilon, 3)


SMOOTHED_LOSS = Exercise(
    id="10.1",
    title="label-smoothed loss without the padding",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `smoothed_loss(logits, targets, epsilon, pad_id)`: the cross-entropy with a target "
        "distribution that puts $1-\\epsilon$ on the right word and shares $\\epsilon$ equally "
        "among all $V$ words, averaged over the real tokens of the whole batch. It is a tensor to "
        "call `backward` on, and stands logits of any size."
    ),
    hint="`log_softmax`, `gather` for the target, `mean(-1)` for the shared part, then `[real]`.",
    function=smoothed_loss,
    tests=(
        _no_smoothing,
        _pads_do_not_count,
        _uniform,
        _smoothed,
        _any_batch,
        _large_logits,
        _loss_gradients,
        _in_float64,
    ),
)


# 10.2 shift right


def teacher_forcing(target_ids, bos, eos, pad):
    """What the decoder reads and what it has to say, (B, T) -> two of (B, T + 1).

    target_ids holds words, padded on the right. The input is bos, then the words, then padding;
    the labels are the words, then eos, then padding.
    """
    raise NotImplementedError


WORDS = torch.tensor([[7, 8, 9], [5, 0, 0]])
WORD_LABELS = [[7, 8, 9, 2], [5, 2, 0, 0]]
_WORDS = f"for target_ids={short(WORDS)} (bos=1, eos=2, pad=0)"


def _pair(answer):
    got = answer(WORDS, BOS, EOS, PAD)
    message = f"{_WORDS}, you return {type(got).__name__}; expected (decoder_input, labels)"
    expect(isinstance(got, list | tuple) and len(got) == 2, message)
    return tensor(got[0], _WORDS), tensor(got[1], _WORDS)


def _pair_shape(answer):
    """both have one position more than the words"""
    for name, got in zip(("decoder_input", "labels"), _pair(answer), strict=True):
        message = f"{_WORDS}, {name} has shape {tuple(got.shape)}, expected (2, 4)"
        expect(got.shape == (2, 4), message)


def _labels_end(answer):
    """the labels are the words, eos right after them, then padding"""
    same(_pair(answer)[1], WORD_LABELS, f"{_WORDS}, for the labels")


def _input_starts(answer):
    """the input starts with bos"""
    first = _pair(answer)[0][:, 0].tolist()
    message = f"{_WORDS}, decoder_input starts with {first}, expected [1, 1]"
    expect(first == [1, 1], message)


def _one_behind(answer):
    """where a label counts, the input is the word before it"""
    got = _pair(answer)[0]
    for b, row in enumerate(WORD_LABELS):
        for t in range(1, 4):
            if row[t] != PAD:
                message = (
                    f"{_WORDS}, sentence {b} has to say {row[t]} at position {t} and reads "
                    f"{int(got[b, t])} there, expected {row[t - 1]}, the word before"
                )
                expect(got.shape == (2, 4) and got[b, t] == row[t - 1], message)


def _eos_unread(answer):
    """the input ends in padding: eos is never read"""
    note = "After eos nothing is left to say, so nobody reads it."
    wanted = [[1, 7, 8, 9], [1, 5, 0, 0]]
    same(_pair(answer)[0], wanted, f"{_WORDS}, for the input", note=note)


def _row_by_row(target_ids, bos, eos, pad):
    """Lists, a row at a time."""
    reads, says = [], []
    for row in target_ids.tolist():
        words = row[: row.index(pad)] if pad in row else row
        blank = [pad] * (len(row) - len(words))
        reads.append([bos, *words, *blank])
        says.append([*words, eos, *blank])
    return torch.tensor(reads), torch.tensor(says)


@hint("Use the arguments `bos`, `eos` and `pad`, which are other numbers here.")
def _own_ids(answer):
    """the special ids are the arguments"""
    note = "Here 0 is a word and 5 is padding."
    agrees(answer, _row_by_row, torch.tensor([[0, 3], [4, 5]]), 8, 9, 5, note=note)
    note = "Here eos is the padding, too, as in GPT-2."
    agrees(answer, _row_by_row, torch.tensor([[3, 4, 7], [5, 2, 2]]), 1, 2, 2, note=note)


def _any_words(answer):
    """any batch: of one word, without padding, with a sentence of no word; ids stay integers"""
    agrees(answer, _row_by_row, torch.tensor([[5]]), BOS, EOS, PAD)
    agrees(answer, _row_by_row, torch.tensor([[5, 6], [7, 8], [9, 9]]), BOS, EOS, PAD)
    rows = [[0, 0, 0, 0], [4, 0, 0, 0], [4, 4, 0, 0], [9, 8, 7, 0], [6, 5, 6, 5]]
    agrees(answer, _row_by_row, torch.tensor(rows), BOS, EOS, PAD)
    large = torch.tensor([[16777217, 50001], [33333, 0]])
    agrees(answer, _row_by_row, large, 70001, 70003, PAD)


def _forcing_travels(answer):
    """it works on another device"""
    travels(answer, WORDS, BOS, EOS, PAD)


TEACHER_FORCING = Exercise(
    id="10.2",
    title="shift right",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `teacher_forcing(target_ids, bos, eos, pad)` for a batch of words padded on the "
        "right, `(B, T)`. It returns `(decoder_input, labels)`, both `(B, T + 1)`: the labels are "
        "the words, then `eos`, then padding; the input is `bos`, then the words, then padding. "
        "`eos` is never read."
    ),
    hint="Add a column in front for the input, behind for the labels; `scatter` puts the `eos`.",
    function=teacher_forcing,
    tests=(
        _pair_shape,
        _labels_end,
        _input_starts,
        _one_behind,
        _eos_unread,
        _own_ids,
        _any_words,
        _forcing_travels,
    ),
)


# 10.3 the paper's learning rate


def noam(step, d_model, warmup):
    """The learning rate at `step`, as in section 5.3 of "Attention Is All You Need".

    d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), with steps counted from 1; step 0, which
    schedulers ask for, counts as 1.
    """
    raise NotImplementedError


def _rate(answer, step, d_model, warmup):
    where = f"for step={step}, d_model={d_model}, warmup={warmup}"
    return tensor(answer(step, d_model, warmup), where).double(), where


def _rises(answer):
    """it rises in a straight line until the end of the warm-up"""
    got, where = _rate(answer, 25, 16, 100)
    same(got, 0.25 * 25 / 1000, where, note="A quarter of the way up to 0.025.")


def _peak(answer):
    """it peaks where the warm-up ends"""
    got, where = _rate(answer, 100, 16, 100)
    same(got, 0.025, where, note="The peak is 1/√(d_model · warmup).")


def _falls(answer):
    """then it falls as one over the root of the step"""
    got, where = _rate(answer, 400, 16, 100)
    same(got, 0.0125, where, note="Four times the steps, half the peak of 0.025.")


def _wider_is_slower(answer):
    """a model four times as wide has half the rate"""
    got, where = _rate(answer, 100, 64, 100)
    same(got, 0.0125, where, note="d_model=16 has 0.025.")


def _step_zero(answer):
    """step 0 is safe"""
    got, where = _rate(answer, 0, 16, 100)
    same(got, 0.25 / 1000, where, note="Schedulers ask for step 0 first; count it as step 1.")


def _papers(answer):
    """with the paper's numbers it is the paper's rate"""
    cases = (
        (1, 512, 4000, 1.7469281e-07), (2000, 512, 4000, 3.4938562e-04),
        (4000, 512, 4000, 6.9877124e-04), (100000, 512, 4000, 1.3975425e-04), (3, 9, 1, 0.19245009),
    )  # fmt: skip
    for step, d_model, warmup, rate in cases:
        got, where = _rate(answer, step, d_model, warmup)
        same(got / rate, 1.0, f"{where}, expected {rate:.4g}, your rate divided by that")


NOAM = Exercise(
    id="10.3",
    title="the paper's learning rate",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `noam(step, d_model, warmup)`, the schedule of section 5.3 of the paper: "
        "$d_{model}^{-0.5}\\cdot\\min(step^{-0.5},\\ step\\cdot warmup^{-1.5})$. "
        "Step 0 counts as step 1."
    ),
    hint="The two branches cross at `step == warmup`; the smaller one is the rate.",
    function=noam,
    tests=(_rises, _peak, _falls, _wider_is_slower, _step_zero, _papers),
)


# 10.4 gradient accumulation


def accumulated_step(optimizer, batches, loss_and_tokens):
    """One optimizer step on all `batches`, as if they were one batch.

    loss_and_tokens(batch) returns the loss summed over the batch's tokens, and their number. The
    step follows the gradient of the mean loss per token. Gradients left from before do not count.
    """
    raise NotImplementedError


UNEVEN = ([1.0, 1.0, 1.0, 1.0], [6.0])
EVEN = ([1.0, 3.0], [2.0, 4.0])


def _after(answer, batches, stale=0.0):
    """The parameter after one step from 0 with rate 1; the loss of a token x is -x * parameter.

    Returns None when the answer looked at no batch: it is a stub.
    """
    parameter = torch.zeros((), requires_grad=True)
    parameter.grad = torch.tensor(stale)
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    seen = []

    def loss_and_tokens(batch):
        seen.append(batch)
        return -sum(batch) * parameter, len(batch)

    answer(optimizer, copied(list(batches)), loss_and_tokens)
    return parameter.detach() if seen else None


def _moved(answer, batches, expected, note, stale=0.0):
    where = f"for batches with gradients {short(list(batches))}, one step of rate 1"
    got = _after(answer, batches, stale)
    same(torch.zeros(()) if got is None else got, expected, where, note=note)


def _one_batch(answer):
    """one batch makes a plain step"""
    _moved(answer, [[2.0, 4.0]], 3.0, "That is the mean over its 2 tokens.")


def _even(answer):
    """even batches equal one big batch"""
    _moved(answer, EVEN, 2.5, "That is the mean over all 4 tokens.")


def _uneven(answer):
    """uneven batches equal one big batch"""
    _moved(answer, UNEVEN, 2.0, "That is the mean over all 5 tokens.")


def _starts_clean(answer):
    """gradients left from an earlier step do not count"""
    note = "A gradient of -5 was left over; clear it once, at the start."
    _moved(answer, EVEN, 2.5, note, stale=5.0)


def _model(seed=1):
    """Two weights in groups of their own rates, and one weight that no batch uses."""
    first = numbers(3, 2, seed=seed, dtype=torch.float64).requires_grad_()
    second = numbers(2, seed=seed + 1, dtype=torch.float64).requires_grad_()
    unused = numbers(2, seed=seed + 2, dtype=torch.float64).requires_grad_()
    groups = [{"params": [first], "lr": 0.5}, {"params": [second, unused], "lr": 0.1}]
    return [first, second, unused], torch.optim.SGD(groups, lr=1.0)


def _summed(parameters, batch):
    """A loss with a product in it, so that autograd has something to keep."""
    return ((batch @ parameters[0]).tanh() * parameters[1]).square().sum(), len(batch)


def _stepped(answer, batches):
    """The parameters after a step on these batches, what autograd held, and the calls."""
    parameters, optimizer = _model()
    loss_and_tokens = Counted(lambda batch: _summed(parameters, batch))
    optimizer.step = Counted(optimizer.step)
    with saved() as memory:
        answer(optimizer, batches, loss_and_tokens)
    return [p.detach() for p in parameters], memory.peak, optimizer.step.count


_BATCHES = [numbers(n, 3, seed=n, dtype=torch.float64) for n in (5, 2, 7, 1)]


@hint("Every weight of every group takes part: `for group in optimizer.param_groups`.")
def _every_group(answer):
    """every weight of every group moves as on one big batch; one without a gradient stays"""
    parameters, _ = _model()
    loss, tokens = _summed(parameters, torch.cat(_BATCHES))
    (loss / tokens).backward()
    rates = (0.5, 0.1, 0.1)
    moved = zip(parameters, rates, strict=True)
    wanted = [(p - r * p.grad if p.grad is not None else p).detach() for p, r in moved]
    got, _, steps = _stepped(answer, _BATCHES)
    where = "for batches of 5, 2, 7 and 1 tokens and three weights in two groups, for "
    for name, one, other in zip(
        ("group 0", "group 1", "a weight not used"), got, wanted, strict=True
    ):
        same(one, other, where + name)
    expect(steps == 1, f"optimizer.step is called {steps} times, expected once")


@hint("`loss.backward()` belongs inside the loop: it frees what the batch has kept.")
def _frees(answer):
    """a batch's memory is freed before the next: backward batch by batch"""
    _, alone, _ = _stepped(answer, _BATCHES[:1])
    _, peak, _ = _stepped(answer, _BATCHES[:1] * 6)
    message = (
        f"autograd holds {alone} numbers for one batch, and {peak} at one time for six of this "
        "size; called batch by batch, `backward` frees each before the next"
    )
    expect(peak < 2 * alone or alone == 0, message)


ACCUMULATION = Exercise(
    id="10.4",
    title="gradient accumulation",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `accumulated_step(optimizer, batches, loss_and_tokens)`: one step of the optimizer "
        "on several small batches, equal to a step on all of them as one batch. "
        "`loss_and_tokens(batch)` gives the summed loss and the number of tokens, which differs "
        "from batch to batch. Call `backward` batch by batch: that is what saves the memory."
    ),
    hint="`backward` adds to `.grad`. Clear once, add up all batches, divide once by all tokens.",
    function=accumulated_step,
    changes=("optimizer",),
    tests=(_one_batch, _even, _uneven, _starts_clean, _every_group, _frees),
)


EXERCISES = (SMOOTHED_LOSS, TEACHER_FORCING, NOAM, ACCUMULATION)
