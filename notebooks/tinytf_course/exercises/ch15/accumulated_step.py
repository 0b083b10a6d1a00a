"""15.2 gradient accumulation (★★☆, 12 minutes)

*Gradient accumulation* makes a batch size possible that would not fit into memory. Write
`accumulated_step(optimizer, batches, loss_and_tokens)`, which takes one step of the optimizer on
several small batches, equal to a step on all of them as one batch. `loss_and_tokens(batch)` returns
the summed loss and the number of tokens, which differs from batch to batch. Call `backward` batch
by batch, because that is what saves the memory.

Hint: `backward` adds to `.grad`. Clear the gradients once, add up over all batches, and divide once
by the number of all tokens.
"""

import torch

from tinytf_course.expect import Counted, expect, numbers, same, saved, short
from tinytf_course.grading import hint


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


CHANGES = ("optimizer",)


UNEVEN = ([1.0, 1.0, 1.0, 1.0], [6.0])
EVEN = ([1.0, 3.0], [2.0, 4.0])


def _moved(answer, batches, expected, note, stale=0.0):
    """One step from 0 at rate 1; the loss of a token x is -x * parameter."""
    parameter = torch.zeros((), requires_grad=True)
    parameter.grad = torch.tensor(stale)
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    answer(optimizer, list(batches), lambda batch: (-sum(batch) * parameter, len(batch)))
    where = f"for batches with gradients {short(list(batches))}, one step of rate 1"
    same(parameter.detach(), expected, where, note=note)


def test_one_batch(answer):
    """one batch makes a plain step"""
    _moved(answer, [[2.0, 4.0]], 3.0, "That is the mean over its 2 tokens.")


def test_even(answer):
    """even batches equal one big batch"""
    _moved(answer, EVEN, 2.5, "That is the mean over all 4 tokens.")


def test_uneven(answer):
    """uneven batches equal one big batch"""
    _moved(answer, UNEVEN, 2.0, "That is the mean over all 5 tokens.")


def test_starts_clean(answer):
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
def test_every_group(answer):
    """every weight of every group moves as on one big batch; one without a gradient stays"""
    parameters, _ = _weights()
    loss, tokens = _summed(parameters, torch.cat(_BATCHES))
    (loss / tokens).backward()
    rates = (0.5, 0.1, 0.1)
    moved = zip(parameters, rates, strict=True)
    wanted = [(p - r * p.grad if p.grad is not None else p).detach() for p, r in moved]
    got, _, steps = _stepped(answer, _BATCHES)
    where = "for batches of 5, 2, 7 and 1 tokens and three weights in two groups, for "
    names = ("group 0", "group 1", "a weight not used")
    for name, one, other in zip(names, got, wanted, strict=True):
        same(one, other, where + name)
    expect(steps == 1, f"optimizer.step is called {steps} times, expected once")


@hint("`loss.backward()` belongs inside the loop: it frees what the batch has kept.")
def test_frees(answer):
    """a batch's memory is freed before the next: backward batch by batch"""
    _, alone, _ = _stepped(answer, _BATCHES[:1])
    _, peak, _ = _stepped(answer, _BATCHES[:1] * 6)
    message = (
        f"autograd holds {alone} numbers for one batch, and {peak} at one time for six of this "
        "size; called batch by batch, `backward` frees each before the next"
    )
    expect(peak < 2 * alone or alone == 0, message)


@hint("Divide the gradients, not the rate: other optimizers do more with a rate than multiply.")
def test_any_optimizer(answer):
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


MISTAKES = r"""
only the first group divided
    optimizer.param_groups: => optimizer.param_groups[:1]:
    says: in two groups, for group 1
    An optimizer may have several groups of weights; divide the gradients of all.
one backward for all
    total = 0 => total = losses = 0
    loss.backward() => losses += loss
    for group in =>
        losses.backward()
        for group in
    says: `backward` frees each before the next
    The step is right, and until `backward` every batch is held in memory: as much as one big
    batch takes.
never divides
    parameter.grad /= total => pass
    says: the mean over all 4 tokens
    The step grows with the number of tokens, so accumulating twice as long doubles the learning
    rate. A well-known tutorial does this.
mean of the batches' means
    loss.backward() => (loss / tokens).backward()
    total += tokens => total += 1
    says: the mean over all 5 tokens
    A token of a small batch then weighs more than one of a large batch. Equal sizes hide it.
sum of the batches' means
    loss.backward() => (loss / tokens).backward()
    parameter.grad /= total => pass
    says: the mean over all 4 tokens
    Each batch is divided by its own tokens, and the means add up: the step grows with the
    number of batches.
divides by the number of batches only
    total += tokens => total += 1
    says: the mean over its 2 tokens
    The losses are sums over tokens; dividing by the number of batches leaves a step that grows
    with their length.
clears the gradient in every batch
    loss.backward() =>
        optimizer.zero_grad()
        loss.backward()
    says: the mean over all 4 tokens
    `zero_grad` inside the loop throws away all batches but the last.
never clears the gradient
    optimizer.zero_grad() =>
    says: A gradient of -5 was left over
    `backward` adds to what is there: the last step's gradient is still in it.
the rate divided, and left so
    parameter.grad /= total => pass
    optimizer.param_groups: =>
        optimizer.param_groups:
            group["lr"] /= total
    says: give the optimizer back as it was
    The next step divides it again. Divide the gradients.
the rate divided for the step
    parameter.grad /= total => pass
    optimizer.param_groups: =>
        optimizer.param_groups:
            group["lr"] /= total
    optimizer.step() =>
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= total
    says: for weight 0
    Right for plain SGD alone: Adam divides a gradient by its own size, and weight decay depends on
    the rate. Divide the gradients.
zeros put in for gradients
    optimizer.zero_grad() =>
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.zeros_like(parameter)
    says: not even 0
    A weight that no loss reaches has the gradient None, and is left alone; with a gradient of 0
    the optimizer decays it. `zero_grad()` puts None.
no step
    optimizer.step() =>
    says: you get 0, expected 3
    The gradient is there and the weights have not moved: `optimizer.step()` is missing.
a step in every batch
    optimizer.step() =>
    loss.backward() =>
        (loss / tokens).backward()
        optimizer.step()
    says: the mean over all 4 tokens
    The weights already move after the first batch, and its gradient is used again for the
    second.
"""

HARMLESS = r"""
loss.backward() => loss.float().backward()
    the slope of a cast is 1
"""
