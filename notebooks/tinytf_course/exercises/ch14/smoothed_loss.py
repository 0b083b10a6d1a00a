r"""14.2 label-smoothed loss without the padding (★★☆, 15 minutes)

Write `smoothed_loss(logits, targets, epsilon, pad_id)`, which returns the cross-entropy with a
target distribution that puts $1-\epsilon$ on the right word and shares $\epsilon$ equally among all
$V$ words, averaged over the real tokens of the whole batch. It is a tensor to call `backward` on,
has the logits' dtype, and is right for logits of any size.

Hint: `log_softmax`, `gather` for the target, `mean(-1)` for the shared part, then `[real]`.
"""

import math

import torch
from torch.nn import functional as F

from tinytf_course.expect import agrees, expect, gradients, numbers, same, short, tensor
from tinytf_course.grading import hint


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


PAD = 0
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


def test_no_smoothing(answer):
    """with epsilon 0 it is the mean negative log-likelihood of the real tokens"""
    got = answer(LOGITS, TARGETS, 0.0, PAD)
    same(got, _oracle_loss(0.0), f"{_TARGETS}, epsilon=0", note="Four tokens are real.")


def test_uniform(answer):
    """a model that knows nothing scores ln V, whatever the smoothing"""
    where = "for all-zero logits over V=4 words, one real token, epsilon=0.2"
    got = answer(torch.zeros(1, 1, 4), torch.tensor([[3]]), 0.2, PAD)
    same(got, math.log(4), where, note="The smoothed target is a distribution: it sums to 1.")


def test_smoothed(answer):
    """with epsilon 0.2 it agrees with `F.cross_entropy`"""
    got = answer(LOGITS, TARGETS, 0.2, PAD)
    same(got, _oracle_loss(0.2), f"{_TARGETS}, epsilon=0.2", note="Each word gets epsilon/V.")


def test_pads_do_not_count(answer):
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
def test_any_batch(answer):
    """any batch, with any id for padding"""
    agrees(answer, _torchs, numbers(1, 1, 3, seed=1), torch.tensor([[0]]), 0.1, 2)
    agrees(answer, _torchs, numbers(3, 1, 2, seed=2), torch.tensor([[0], [1], [0]]), 0.1, 1)
    agrees(answer, _torchs, numbers(1, 3, 2, seed=3), torch.tensor([[0, 0, 1]]), 0.3, 1)
    for epsilon in (0.0, 0.1, 1.0):
        agrees(answer, _torchs, numbers(3, 4, 5, seed=4), _PADDED, epsilon, 3)


@hint("`log_softmax` takes the largest logit away first; `exp` of 200 is too large for a number.")
def test_large_logits(answer):
    """large logits are no trouble"""
    logits = torch.tensor([[[200.0, 0.0, -3.0], [0.0, 3.0, 200.0]]])
    agrees(answer, _torchs, logits, torch.tensor([[0, 1]]), 0.0, 2)
    agrees(answer, _torchs, logits, torch.tensor([[1, 1]]), 0.1, 2)
    agrees(answer, _torchs, numbers(3, 4, 5, seed=5, scale=1e4), _PADDED, 0.1, 3)


@hint("The loss is a tensor that knows its way back: no `.item()`, `.detach()` or `no_grad`.")
def test_loss_gradients(answer):
    """it can be trained with: the gradient reaches every logit"""
    for epsilon in (0.0, 0.2):
        gradients(answer, _torchs, numbers(3, 4, 5, seed=6), _PADDED, epsilon, 3)


def test_in_float64(answer):
    """float64 stays float64"""
    logits = numbers(3, 4, 5, seed=7, dtype=torch.float64)
    for epsilon in (0.2, 1.0):
        agrees(answer, _torchs, logits, _PADDED, epsilon, 3)


MISTAKES = r"""
exp, divide, log
    logits.log_softmax(-1) => (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()
    says: for logits=[[[200, 0, -3]
    exp(200) is too large for a number, and what is left is NaN. `log_softmax` subtracts the largest
    logit first.
0 taken for the padding
    targets != pad_id => targets != 0
    says: for logits of shape
    Another vocabulary pads with another id: use the argument `pad_id`. Here 0 is a word, and
    the padding is counted.
a plain number
    loss[real].mean() => loss[real].mean().item()
    says: no gradient reaches `logits`
    `.item()` forgets how the number was computed, so `backward` can't start from it.
padding counted
    loss[real].mean() => loss.mean()
    says: it should not move
    Predicting padding is easy, so the loss looks better than the model is: a model that predicts
    nothing but padding can look good.
mean of the sentences' means
    loss[real].mean() => ((loss * real).sum(1) / real.sum(1)).mean()
    says: Four tokens are real
    A token of a short sentence then weighs more than one of a long sentence. Sum over the whole
    batch, and divide once by the number of real tokens.
divided by all positions
    loss[real].mean() => (loss * real).mean()
    says: Four tokens are real
    The padding is zeroed, but still counted in the denominator: the more padding, the smaller
    the loss and its gradient.
smoothing added, not normalised
    -(1 - epsilon) * hit => -hit
    says: it sums to 1
    With 1 on the target and epsilon spread on top, the target sums to 1 + epsilon. Take from
    the target what the others get.
smoothing summed over words
    log_p.mean(-1) => log_p.sum(-1)
    says: it sums to 1
    Each of the V words gets epsilon/V, not epsilon.
smoothing for the others only
    log_p.mean(-1) => (log_p.sum(-1) - hit) / (logits.size(-1) - 1)
    says: Each word gets epsilon/V
    The share is spread over all V words, the right one too, as `F.cross_entropy` does. Here the
    V - 1 others get it all, so the smoothing is a little too strong.
summed, not averaged
    loss[real].mean() => loss[real].sum()
    says: Four tokens are real
    The loss then grows with the batch, and so does its gradient. Divide by the number of real
    tokens.
target shifted twice
    log_p = logits.log_softmax(-1) =>
        logits, targets = logits[:, :-1], targets[:, 1:]
        log_p = logits.log_softmax(-1)
    says: Four tokens are real
    The labels are already one ahead of the decoder's input. Shifting again inside the loss
    trains the model to skip a word.
"""
