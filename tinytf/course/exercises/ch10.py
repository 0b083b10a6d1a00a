"""Chapter 10: what training a Transformer needs besides the model."""

import math

import torch
from torch.nn import functional as F

from tinytf.course.grading import Exercise, WrongAnswer, calls, copied, expect, same, short, tensor

PAD, BOS, EOS = 0, 1, 2


# 10.1 label smoothing that ignores padding


def smoothed_loss(logits, targets, epsilon, pad_id):
    """Label-smoothed cross-entropy, averaged over the targets that are not padding.

    logits is (B, T, V), targets (B, T). The target distribution is 1 - epsilon on the target,
    plus epsilon shared equally by all V words (the target too).
    """
    log_p = logits.log_softmax(-1)  # (B, T, V)
    hit = log_p.gather(-1, targets[..., None]).squeeze(-1)  # (B, T)
    loss = -(1 - epsilon) * hit - epsilon * log_p.mean(-1)
    real = targets != pad_id
    return loss[real].mean()


def _loss_variant(spread=None, keep=None, average=None):
    """A `smoothed_loss` with one thing wrong."""

    def loss(logits, targets, epsilon, pad_id):
        log_p = logits.log_softmax(-1)
        hit = log_p.gather(-1, targets[..., None]).squeeze(-1)
        kept = keep(epsilon) if keep else 1 - epsilon
        each = -kept * hit - epsilon * (spread(log_p) if spread else log_p.mean(-1))
        real = targets != pad_id
        return average(each, real) if average else each[real].mean()

    return loss


def _others_only(logits, targets, epsilon, pad_id):
    log_p = logits.log_softmax(-1)
    hit = log_p.gather(-1, targets[..., None]).squeeze(-1)
    others = (log_p.sum(-1) - hit) / (logits.size(-1) - 1)
    return (-(1 - epsilon) * hit - epsilon * others)[targets != pad_id].mean()


def _shifted_twice(logits, targets, epsilon, pad_id):
    return smoothed_loss(logits[:, :-1], targets[:, 1:], epsilon, pad_id)


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


SMOOTHED_LOSS = Exercise(
    id="10.1",
    title="label-smoothed loss without the padding",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `smoothed_loss(logits, targets, epsilon, pad_id)`: the cross-entropy with a target "
        "distribution that puts $1-\\epsilon$ on the right word and shares $\\epsilon$ equally "
        "among all $V$ words, averaged over the real tokens of the whole batch."
    ),
    hint="`log_softmax`, `gather` for the target, `mean(-1)` for the shared part, then `[real]`.",
    reference=smoothed_loss,
    wrong=(
        WrongAnswer(
            "padding counted",
            _loss_variant(average=lambda each, real: each.mean()),
            "it should not move",
            "Predicting padding is easy, so the loss looks better than the model is: a model that "
            "only ever says padding can look good.",
        ),
        WrongAnswer(
            "mean of the sentences' means",
            _loss_variant(average=lambda each, real: ((each * real).sum(1) / real.sum(1)).mean()),
            "Four tokens are real",
            "A token of a short sentence then weighs more than one of a long sentence. Sum over "
            "the whole batch, and divide once by the number of real tokens.",
        ),
        WrongAnswer(
            "divided by all positions",
            _loss_variant(average=lambda each, real: (each * real).sum() / real.numel()),
            "Four tokens are real",
            "The padding is zeroed, but still counted in the denominator: the more padding, the "
            "smaller the loss and its gradient.",
        ),
        WrongAnswer(
            "smoothing added, not normalised",
            _loss_variant(keep=lambda epsilon: 1.0),
            "it sums to 1",
            "With 1 on the target and epsilon spread on top, the target sums to 1 + epsilon. Take "
            "from the target what the others get.",
        ),
        WrongAnswer(
            "smoothing summed over words",
            _loss_variant(spread=lambda log_p: log_p.sum(-1)),
            "it sums to 1",
            "Each of the V words gets epsilon/V, not epsilon.",
        ),
        WrongAnswer(
            "smoothing for the others only",
            _others_only,
            "Each word gets epsilon/V",
            "The share is spread over all V words, the right one too, as `F.cross_entropy` does. "
            "Here the V - 1 others get it all, so the smoothing is a little too strong.",
        ),
        WrongAnswer(
            "summed, not averaged",
            _loss_variant(average=lambda each, real: each[real].sum()),
            "Four tokens are real",
            "The loss then grows with the batch, and so does its gradient. Divide by the number of "
            "real tokens.",
        ),
        WrongAnswer(
            "target shifted twice",
            _shifted_twice,
            "Four tokens are real",
            "The labels are already one ahead of the decoder's input. Shifting again inside the "
            "loss trains the model to skip a word.",
        ),
    ),
    tests=(_no_smoothing, _pads_do_not_count, _uniform, _smoothed),
    probes=(calls(LOGITS, TARGETS, 0.2, PAD), calls(LOGITS, TARGETS, 0.0, PAD)),
)


# 10.2 teacher forcing


def teacher_forcing(target_ids, bos, eos, pad):
    """What the decoder reads and what it has to say, (B, T) -> two of (B, T + 1).

    target_ids holds words, padded on the right. The input starts with bos; the labels are the
    words, then eos, then padding.
    """
    column = target_ids[:, :1]
    decoder_input = torch.cat([torch.full_like(column, bos), target_ids], 1)
    labels = torch.cat([target_ids, torch.full_like(column, pad)], 1)
    lengths = (target_ids != pad).sum(1, keepdim=True)
    return decoder_input, labels.scatter(1, lengths, eos)


def _padded_with(ids, first=None, last=None):
    parts = [torch.full_like(ids[:, :1], value) for value in (first, last) if value is not None]
    return torch.cat([parts[0], ids] if first is not None else [ids, parts[-1]], 1)


def _unshifted(target_ids, bos, eos, pad):
    labels = teacher_forcing(target_ids, bos, eos, pad)[1]
    return labels.clone(), labels


def _labels_first(target_ids, bos, eos, pad):
    return teacher_forcing(target_ids, bos, eos, pad)[::-1]


def _not_split(target_ids, bos, eos, pad):
    labels = _padded_with(teacher_forcing(target_ids, bos, eos, pad)[1], first=bos)
    return labels.clone(), labels


def _no_eos(target_ids, bos, eos, pad):
    return _padded_with(target_ids, first=bos), _padded_with(target_ids, last=pad)


def _shifted_left(target_ids, bos, eos, pad):
    labels = teacher_forcing(target_ids, bos, eos, pad)[1]
    return _padded_with(labels[:, 1:], last=pad), labels


def _eos_after_padding(target_ids, bos, eos, pad):
    return _padded_with(target_ids, first=bos), _padded_with(target_ids, last=eos)


def _bos_in_labels(target_ids, bos, eos, pad):
    decoder_input, labels = teacher_forcing(target_ids, bos, eos, pad)
    ends = _padded_with(labels, first=bos)[:, :-1]
    return decoder_input, ends


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


TEACHER_FORCING = Exercise(
    id="10.2",
    title="shift right",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `teacher_forcing(target_ids, bos, eos, pad)` for a batch of words padded on the "
        "right, `(B, T)`. It returns `(decoder_input, labels)`, both `(B, T + 1)`: the labels are "
        "the words, then `eos`, then padding; the input starts with `bos` and is one word behind."
    ),
    hint="Add a column in front for the input, behind for the labels; `scatter` puts the `eos`.",
    reference=teacher_forcing,
    wrong=(
        WrongAnswer(
            "input equals labels",
            _unshifted,
            "decoder_input starts with [7, 5]",
            "The decoder reads the very word that it has to say. Copying it is enough, the loss "
            "falls to 0, and the model cannot generate.",
        ),
        WrongAnswer(
            "labels returned first",
            _labels_first,
            "decoder_input starts with [7, 5]",
            "Both halves are right and in the wrong order: the input, which starts with bos, comes "
            "first.",
        ),
        WrongAnswer(
            "the whole sentence twice",
            _not_split,
            "decoder_input has shape (2, 5), expected (2, 4)",
            "With bos, words and eos on both sides, each position is asked for the word that it "
            "reads. The input drops the last position, the labels drop the first.",
        ),
        WrongAnswer(
            "eos missing",
            _no_eos,
            "for the labels, you get [[7, 8, 9, 0], [5, 0, 0, 0]]",
            "A model that has never been asked to say eos never stops.",
        ),
        WrongAnswer(
            "shifted left",
            _shifted_left,
            "decoder_input starts with [8, 2]",
            "The input runs ahead of the labels: the decoder is shown the word after the one that "
            "it has to say.",
        ),
        WrongAnswer(
            "eos after the padding",
            _eos_after_padding,
            "for the labels, you get [[7, 8, 9, 2], [5, 0, 0, 2]]",
            "In a short sentence eos belongs right after the last word, before the padding, at a "
            "place that differs from row to row.",
        ),
        WrongAnswer(
            "labels start with bos",
            _bos_in_labels,
            "for the labels, you get [[1, 7, 8, 9], [1, 5, 2, 0]]",
            "Nobody has to say bos: it is what the decoder reads first. Here input and labels are "
            "aligned, so the model learns to copy.",
        ),
    ),
    tests=(_pair_shape, _labels_end, _input_starts, _one_behind),
    probes=(calls(WORDS, BOS, EOS, PAD),),
)


# 10.3 warm-up, then inverse square root


def noam(step, d_model, warmup):
    """The learning rate at `step`, as in section 5.3 of "Attention Is All You Need".

    d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), with steps counted from 1; step 0, which
    schedulers ask for, counts as 1.
    """
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


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
    reference=noam,
    wrong=(
        WrongAnswer(
            "step 0 divides by zero",
            lambda step, d_model, warmup: d_model**-0.5 * min(step**-0.5, step * warmup**-1.5),
            "ZeroDivisionError",
            "`LambdaLR` asks for step 0 when it is built, and 0**-0.5 has no value. Use "
            "`max(step, 1)`.",
        ),
        WrongAnswer(
            "one step ahead",
            lambda step, d_model, warmup: (
                d_model**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)
            ),
            "you get 0.0065, expected 0.00625",
            "Adding 1 everywhere makes step 0 safe, but moves the whole schedule by a step. Only "
            "step 0 counts as step 1: `max(step, 1)`.",
        ),
        WrongAnswer(
            "max for min",
            lambda step, d_model, warmup: (
                d_model**-0.5 * max(max(step, 1) ** -0.5, max(step, 1) * warmup**-1.5)
            ),
            "Four times the steps, half the peak",
            "The larger branch starts at its highest and then grows without end: the opposite of "
            "a warm-up.",
        ),
        WrongAnswer(
            "exponents swapped",
            lambda step, d_model, warmup: (
                d_model**-0.5 * min(max(step, 1) ** -1.5, max(step, 1) * warmup**-0.5)
            ),
            "The peak is 1/√(d_model · warmup)",
            "The -1.5 belongs to warmup and the -0.5 to step; only then do the two branches meet "
            "at the end of the warm-up.",
        ),
        WrongAnswer(
            "no d_model",
            lambda step, d_model, warmup: min(max(step, 1) ** -0.5, max(step, 1) * warmup**-1.5),
            "d_model=16 has 0.025",
            "Without d_model**-0.5 the rate of a model of width 512 is 22.6 times too high.",
        ),
        WrongAnswer(
            "no warm-up",
            lambda step, d_model, warmup: d_model**-0.5 * max(step, 1) ** -0.5,
            "A quarter of the way up",
            "This is the second half only: the first step, when the gradients are worst, is the "
            "largest.",
        ),
    ),
    tests=(_rises, _peak, _falls, _wider_is_slower, _step_zero),
    probes=tuple(
        calls(*at) for at in ((400, 16, 100), (25, 16, 100), (100, 64, 100), (0, 16, 100))
    ),
)


# 10.4 gradient accumulation


def accumulated_step(optimizer, batches, loss_and_tokens):
    """One optimizer step on all `batches`, as if they were one batch.

    loss_and_tokens(batch) returns the loss summed over the batch's tokens, and their number. The
    step follows the gradient of the mean loss per token. Gradients left from before do not count.
    """
    optimizer.zero_grad()
    total = 0
    for batch in batches:
        loss, tokens = loss_and_tokens(batch)
        loss.backward()
        total += tokens
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad /= total
    optimizer.step()


def _step_variant(divisor=None, zero_each=False, zero_first=True, steps=1):
    """An `accumulated_step` with one thing wrong. steps: 1, 0, or None for one in every batch."""

    def step(optimizer, batches, loss_and_tokens):
        total = sum(loss_and_tokens(batch)[1] for batch in batches)
        if zero_first:
            optimizer.zero_grad()
        for batch in batches:
            if zero_each:
                optimizer.zero_grad()
            loss, tokens = loss_and_tokens(batch)
            (loss / (divisor(tokens, len(batches)) if divisor else total)).backward()
            if steps is None:
                optimizer.step()
        if steps:
            optimizer.step()

    return step


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
    reference=accumulated_step,
    wrong=(
        WrongAnswer(
            "never divides",
            _step_variant(divisor=lambda tokens, batches: 1),
            "the mean over all 4 tokens",
            "The step grows with the number of tokens, so accumulating twice as long doubles the "
            "learning rate. A well-known tutorial does this.",
        ),
        WrongAnswer(
            "mean of the batches' means",
            _step_variant(divisor=lambda tokens, batches: tokens * batches),
            "the mean over all 5 tokens",
            "A token of a small batch then weighs more than one of a large batch. Equal sizes "
            "hide it.",
        ),
        WrongAnswer(
            "sum of the batches' means",
            _step_variant(divisor=lambda tokens, batches: tokens),
            "the mean over all 4 tokens",
            "Each batch is divided by its own tokens, and the means add up: the step grows with "
            "the number of batches.",
        ),
        WrongAnswer(
            "divides by the number of batches only",
            _step_variant(divisor=lambda tokens, batches: batches),
            "the mean over its 2 tokens",
            "The losses are sums over tokens; dividing by the number of batches leaves a step that "
            "grows with their length.",
        ),
        WrongAnswer(
            "clears the gradient in every batch",
            _step_variant(zero_each=True),
            "the mean over all 4 tokens",
            "`zero_grad` inside the loop throws away all batches but the last.",
        ),
        WrongAnswer(
            "never clears the gradient",
            _step_variant(zero_first=False),
            "A gradient of -5 was left over",
            "`backward` adds to what is there: the last step's gradient is still in it.",
        ),
        WrongAnswer(
            "no step",
            _step_variant(steps=0),
            "you get 0, expected 3",
            "The gradient is there and the weights have not moved: `optimizer.step()` is missing.",
        ),
        WrongAnswer(
            "a step in every batch",
            _step_variant(steps=None),
            "the mean over all 4 tokens",
            "The weights already move after the first batch, and its gradient is used again for "
            "the second.",
        ),
    ),
    tests=(_one_batch, _even, _uneven, _starts_clean),
    probes=(
        lambda answer: _after(answer, UNEVEN),
        lambda answer: _after(answer, EVEN, 5.0),
        lambda answer: _after(answer, [[2.0, 4.0]]),
    ),
)

EXERCISES = (SMOOTHED_LOSS, TEACHER_FORCING, NOAM, ACCUMULATION)
