"""Chapter 15: what training a Transformer needs besides the model."""

import torch

from tinytf_course.evidence import copied
from tinytf_course.expect import (
    Counted,
    expect,
    numbers,
    same,
    saved,
    short,
    tensor,
)
from tinytf_course.grading import Exercise, hint

# 15.1 a schedule that waits


def my_rate(step, lr, warmup, steps, fall):
    """The learning rate at `step`, counted from 1: rise, stay, fall, each in a straight line.

    It rises for `warmup` steps to reach lr at step `warmup`, stays there, and falls over the last
    `fall` steps to reach 0 at step `steps`. Afterwards it is 0.
    """
    raise NotImplementedError


def _rate_is(answer, expected, note, step, lr=0.5, warmup=10, steps=100, fall=20):
    where = f"for step={step}, lr={lr}, warmup={warmup}, steps={steps}, fall={fall}"
    got = tensor(answer(step, lr, warmup, steps, fall), where).double()
    same(got, expected, where, note=note, tolerance=1e-9)


def _rises(answer):
    """it rises in a straight line, and reaches lr at the end of the warm-up"""
    _rate_is(answer, 0.05, "The first of ten steps: a tenth of the way.", 1)
    _rate_is(answer, 0.2, "Four tenths of the way.", 4)
    _rate_is(answer, 0.5, "The warm-up ends here.", 10)


def _stays(answer):
    """it stays at lr until the fall begins"""
    for step in (11, 50, 80):
        _rate_is(answer, 0.5, "The fall begins after step 80.", step)


def _falls(answer):
    """it falls in a straight line to 0 at the last step"""
    _rate_is(answer, 0.475, "One of twenty steps down.", 81)
    _rate_is(answer, 0.25, "Half of the way down.", 90)
    _rate_is(answer, 0.025, "One step before the last.", 99)
    _rate_is(answer, 0.0, "The last step.", 100)


def _over(answer):
    """after the last step it is 0, and never negative"""
    for step in (101, 150):
        _rate_is(answer, 0.0, "Training is over.", step)


def _other_settings(answer):
    """any settings: one step of warm-up, a fall of one step, no plateau between"""
    _rate_is(answer, 0.3, "A warm-up of one step is none.", 1, 0.3, 1, 8, 2)
    _rate_is(answer, 0.3, "A fall of one step.", 7, 0.3, 2, 8, 1)
    _rate_is(answer, 0.0, "A fall of one step.", 8, 0.3, 2, 8, 1)
    for step in range(1, 13):  # rises for 5 steps, stays for none, falls for 7
        wanted = 0.007 * (step / 5 if step <= 5 else (12 - step) / 7)
        _rate_is(answer, wanted, "There is no plateau here.", step, 0.007, 5, 12, 7)


SCHEDULE = Exercise(
    id="15.1",
    title="a schedule that waits",
    difficulty=1,
    minutes=10,
    statement=(
        "The cosine schedule has to know from the first step when training will end. The schedule"
        " called *warmup-stable-decay* decides late: it rises linearly to `lr` over `warmup` "
        "steps (`lr` is reached at step `warmup`), stays there for as long as you like, and falls"
        " linearly over the last `fall` steps, to reach 0 at step `steps`. Afterwards it is 0. "
        "Write `my_rate(step, lr, warmup, steps, fall)`, with steps counted from 1. `warmup` and "
        "`fall` are at least 1, and together at most `steps`."
    ),
    hint="Three straight lines: the learning rate is the smallest of them, and never below 0.",
    function=my_rate,
    tests=(_rises, _stays, _falls, _over, _other_settings),
)


# 15.2 gradient accumulation


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


def _weights(seed=1):
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
    parameters, optimizer = _weights()
    loss_and_tokens = Counted(lambda batch: _summed(parameters, batch))
    optimizer.step = Counted(optimizer.step)
    with saved() as memory:
        answer(optimizer, batches, loss_and_tokens)
    return [p.detach() for p in parameters], memory.peak, optimizer.step.count


_BATCHES = [numbers(n, 3, seed=n, dtype=torch.float64) for n in (5, 2, 7, 1)]


@hint("Every weight of every group takes part: `for group in optimizer.param_groups`.")
def _every_group(answer):
    """every weight of every group moves as on one big batch; one without a gradient stays"""
    parameters, _ = _weights()
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


@hint("Divide the gradients, not the rate: other optimizers do more with a rate than multiply.")
def _any_optimizer(answer):
    """two steps of AdamW are those on big batches; its rate stays, and a weight without a loss"""

    def two_steps(step):
        parameters = _weights(seed=5)[0]
        optimizer = torch.optim.AdamW(parameters, lr=0.1, weight_decay=0.5)
        for batches in (_BATCHES[:2], _BATCHES[2:]):
            step(optimizer, batches, lambda batch: _summed(parameters, batch))
        return [p.detach() for p in parameters], optimizer.param_groups[0]["lr"]

    def at_once(optimizer, batches, loss_and_tokens):
        optimizer.zero_grad()
        loss, tokens = loss_and_tokens(torch.cat(batches))
        (loss / tokens).backward()
        optimizer.step()

    (got, rate), (wanted, _) = two_steps(answer), two_steps(at_once)
    where = "after two steps of AdamW with a rate of 0.1 and decay"
    expect(rate == 0.1, f"{where}, the rate is {rate:.3g}: give the optimizer back as it was")
    note = "Where no loss reaches there is no gradient, not even 0, and AdamW leaves it alone."
    same(got[2], wanted[2], f"{where}, for a weight not used", note=note)
    for i in range(2):
        same(got[i], wanted[i], f"{where}, for weight {i}")


ACCUMULATION = Exercise(
    id="15.2",
    title="gradient accumulation",
    difficulty=2,
    minutes=12,
    statement=(
        "*Gradient accumulation* makes a batch size possible that would not fit into memory. "
        "Write `accumulated_step(optimizer, batches, loss_and_tokens)`, which takes one step of "
        "the optimizer on several small batches, equal to a step on all of them as one batch. "
        "`loss_and_tokens(batch)` returns the summed loss and the number of tokens, which differs"
        " from batch to batch. Call `backward` batch by batch, because that is what saves the "
        "memory."
    ),
    hint=(
        "`backward` adds to `.grad`. Clear the gradients once, add up over all batches, and "
        "divide once by the number of all tokens."
    ),
    function=accumulated_step,
    changes=("optimizer",),
    tests=(_one_batch, _even, _uneven, _starts_clean, _every_group, _frees, _any_optimizer),
)


EXERCISES = (SCHEDULE, ACCUMULATION)
