"""Answers to chapter 10: references and mistakes."""

import torch

from tinytf.course.grading import Answers, WrongAnswer

# 10.1 label-smoothed loss without the padding


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


def _by_exp(logits, targets, epsilon, pad_id):
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    log_p = p.log()
    hit = log_p.gather(-1, targets[..., None]).squeeze(-1)
    return (-(1 - epsilon) * hit - epsilon * log_p.mean(-1))[targets != pad_id].mean()


SMOOTHED_LOSS = Answers(
    reference=smoothed_loss,
    equivalent={
        "… => real = (targets != pad_id).detach()": "ids and masks carry no gradient",
        "… => …targets.detach()…": "ids and masks carry no gradient",
        "… => …real.detach()…": "ids and masks carry no gradient",
        "… => real = targets.float() != pad_id": "ids of a vocabulary are the same in float32",
    },
    wrong=(
        WrongAnswer(
            "exp, divide, log",
            _by_exp,
            "for logits=[[[200, 0, -3]]]",
            "exp(200) is too large for a number, and what is left is NaN. `log_softmax` takes the "
            "largest logit away first.",
        ),
        WrongAnswer(
            "a plain number",
            lambda *arguments: smoothed_loss(*arguments).item(),
            "no gradient reaches `logits`",
            "`.item()` forgets where the number came from: `backward` has nothing to go back on.",
        ),
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
)


# 10.2 shift right


def teacher_forcing(target_ids, bos, eos, pad):
    """What the decoder reads and what it has to say, (B, T) -> two of (B, T + 1).

    target_ids holds words, padded on the right. The input is bos, then the words, then padding;
    the labels are the words, then eos, then padding.
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


def _eos_read(target_ids, bos, eos, pad):
    labels = teacher_forcing(target_ids, bos, eos, pad)[1]
    return _padded_with(labels[:, :-1], first=bos), labels


def _cpu_column(target_ids, bos, eos, pad):
    labels = teacher_forcing(target_ids, bos, eos, pad)[1]
    return torch.cat([torch.full((target_ids.size(0), 1), bos), target_ids], 1), labels


TEACHER_FORCING = Answers(
    reference=teacher_forcing,
    equivalent={
        "… => ….detach()…": "ids carry no gradient",
        "… => …(target_ids.float() != pad)…": "ids of a vocabulary are the same in float32",
    },
    wrong=(
        WrongAnswer(
            "eos read in the shorter rows",
            _eos_read,
            "for the input, you get [[1, 7, 8, 9], [1, 5, 2, 0]]",
            "The labels, shifted by one, have their eos in the rows that are not the longest. "
            "After eos nothing is left to say, so it is never read.",
        ),
        WrongAnswer(
            "a column on the CPU",
            _cpu_column,
            "on another device than the CPU it fails",
            "`torch.full` makes its tensor on the CPU. `torch.full_like`, or `device=...`, makes "
            "it where the words are.",
        ),
        WrongAnswer(
            "0 taken for the padding",
            lambda target_ids, bos, eos, pad: teacher_forcing(target_ids, bos, eos, 0),
            "Here 0 is a word and 5 is padding",
            "Another vocabulary has another padding: use `pad`.",
        ),
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
)


# 10.3 the paper's learning rate


def noam(step, d_model, warmup):
    """The learning rate at `step`, as in section 5.3 of "Attention Is All You Need".

    d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), with steps counted from 1; step 0, which
    schedulers ask for, counts as 1.
    """
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


NOAM = Answers(
    reference=noam,
    equivalent={},
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
            if parameter.grad is not None:
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


def _first_group(optimizer, batches, loss_and_tokens):
    optimizer.zero_grad()
    total = 0
    for batch in batches:
        loss, tokens = loss_and_tokens(batch)
        loss.backward()
        total += tokens
    for parameter in optimizer.param_groups[0]["params"]:
        parameter.grad /= total
    optimizer.step()


def _one_backward(optimizer, batches, loss_and_tokens):
    optimizer.zero_grad()
    losses, tokens = zip(*[loss_and_tokens(batch) for batch in batches], strict=True)
    (sum(losses) / sum(tokens)).backward()
    optimizer.step()


ACCUMULATION = Answers(
    reference=accumulated_step,
    equivalent={
        "loss.backward() => loss.float().backward()": "the slope of a cast is 1",
    },
    wrong=(
        WrongAnswer(
            "only the first group divided",
            _first_group,
            "in two groups, for group 1",
            "An optimizer may have several groups of weights; divide the gradients of all.",
        ),
        WrongAnswer(
            "one backward for all",
            _one_backward,
            "`backward` frees each before the next",
            "The step is right, and until `backward` every batch is held in memory: as much as "
            "one big batch takes.",
        ),
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
)

ANSWERS = {
    "10.1": SMOOTHED_LOSS,
    "10.2": TEACHER_FORCING,
    "10.3": NOAM,
    "10.4": ACCUMULATION,
}
