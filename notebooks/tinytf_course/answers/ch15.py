"""Answers to chapter 15: references and mistakes."""

from tinytf_course.grading import Answers, WrongAnswer

# 15.1 a schedule that waits


def my_rate(step, lr, warmup, steps, fall):
    """The learning rate at `step`, counted from 1: rise, stay, fall, each in a straight line.

    It rises for `warmup` steps to reach lr at step `warmup`, stays there, and falls over the last
    `fall` steps to reach 0 at step `steps`. Afterwards it is 0.
    """
    rise, left = step / warmup, (steps - step) / fall
    return lr * max(0.0, min(1.0, rise, left))


def _three_parts(up, down, after=lambda lr: 0.0):
    """A `my_rate` of three branches; `up` and `down` give the share of lr."""

    def rate(step, lr, warmup, steps, fall):
        if step > steps:
            return after(lr)
        if step <= warmup:
            return lr * up(step, warmup)
        if step > steps - fall:
            return lr * down(steps - step, fall)
        return lr

    return rate


SCHEDULE = Answers(
    reference=my_rate,
    equivalent={
        "… => rise, left = ((steps - step) / fall, step / warmup)": "the least has no order",
        "… => …max(-0.0, …": "as a number, -0.0 equals 0.0",
    },
    wrong=(
        WrongAnswer(
            "starts at 0",
            _three_parts(lambda s, w: (s - 1) / w, lambda left, f: left / f),
            "The first of ten steps",
            "Steps count from 1. A first step of rate 0 does nothing, and lr comes a step late.",
        ),
        WrongAnswer(
            "divided in whole numbers",
            lambda step, lr, warmup, steps, fall: (
                lr * max(0, min(1, step // warmup, (steps - step) // fall))
            ),
            "One of twenty steps down",
            "`//` rounds down: until the end of the warm-up the rate is 0, and in the fall it is 0 "
            "again. `/` gives the share of the way.",
        ),
        WrongAnswer(
            "arrives a step late",
            _three_parts(lambda s, w: s / (w + 1), lambda left, f: left / f),
            "The first of ten steps",
            "Divided by warmup + 1, the rise ends just below lr.",
        ),
        WrongAnswer(
            "never reaches 0",
            _three_parts(lambda s, w: s / w, lambda left, f: (left + 1) / f),
            "One of twenty steps down",
            "The fall begins a step late, and at the last step something is left of the rate.",
        ),
        WrongAnswer(
            "negative after the end",
            lambda step, lr, warmup, steps, fall: (
                lr * min(1.0, step / warmup, (steps - step) / fall)
            ),
            "Training is over",
            "The falling line goes on below 0, and a negative rate climbs. Keep it at 0.",
        ),
        WrongAnswer(
            "lr again after the end",
            _three_parts(lambda s, w: s / w, lambda left, f: left / f, after=lambda lr: lr),
            "Training is over",
            "After the last step the rate springs back to lr.",
        ),
        WrongAnswer(
            "no plateau",
            lambda step, lr, warmup, steps, fall: (
                lr * max(0.0, min(step / warmup, (steps - step) / (steps - warmup)))
            ),
            "The fall begins after step 80",
            "It falls from the end of the warm-up on; `fall` says how many steps the fall takes.",
        ),
        WrongAnswer(
            "the fall takes `steps`",
            lambda step, lr, warmup, steps, fall: (
                lr * max(0.0, min(1.0, step / warmup, (steps + fall - step) / fall))
            ),
            "One of twenty steps down",
            "The fall is part of the `steps`, the last of them: it begins after `steps - fall`.",
        ),
    ),
)


# 15.2 gradient accumulation


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


def _rate_divided(back):
    def step(optimizer, batches, loss_and_tokens):
        optimizer.zero_grad()
        total = 0
        for batch in batches:
            loss, tokens = loss_and_tokens(batch)
            loss.backward()
            total += tokens
        for group in optimizer.param_groups:
            group["lr"] /= total
        optimizer.step()
        for group in optimizer.param_groups if back else ():
            group["lr"] *= total

    return step


def _zeros_put_in(optimizer, batches, loss_and_tokens):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = parameter.detach() * 0
    total = 0
    for batch in batches:
        loss, tokens = loss_and_tokens(batch)
        loss.backward()
        total += tokens
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad /= total
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
            "the rate divided, and left so",
            _rate_divided(back=False),
            "give the optimizer back as it was",
            "The next step divides it again. Divide the gradients.",
        ),
        WrongAnswer(
            "the rate divided for the step",
            _rate_divided(back=True),
            "for weight 0",
            "Right for plain SGD alone: Adam divides a gradient by its own size, and decay goes "
            "by the rate. Divide the gradients.",
        ),
        WrongAnswer(
            "zeros put in for gradients",
            _zeros_put_in,
            "not even 0",
            "A weight that no loss reaches has the gradient None, and is left alone; with a "
            "gradient of 0 the optimizer decays it. `zero_grad()` puts None.",
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
    "15.1": SCHEDULE,
    "15.2": ACCUMULATION,
}
