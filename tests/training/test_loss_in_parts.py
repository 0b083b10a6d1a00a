"""The loss part by part against torch's own over all logits at once."""

import pytest
import torch
import torch.nn.functional as F

from tinytf.training import loss_in_parts, losses
from tinytf.training.loss_in_parts import cross_entropy_in_parts


@pytest.fixture(params=[1, 2 * 13, 7 * 13], ids="{} logits at a time".format)
def part(request, monkeypatch):
    monkeypatch.setattr(loss_in_parts, "_AT_A_TIME", request.param)


def both(logits, targets, smoothing):
    """Loss and gradient, by parts and all at once."""
    found = []
    for wide in (False, True):
        mine = logits.clone().requires_grad_()
        if wide:
            options = {"reduction": "sum", "label_smoothing": smoothing}
            loss = F.cross_entropy(mine.float(), targets, **options)
        else:
            loss = cross_entropy_in_parts(mine, targets, smoothing)
        (loss / 3).backward()
        found.append((loss, mine.grad))
    return found


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_it_is_the_loss_of_all_at_once(part, smoothing, dtype):
    torch.manual_seed(0)
    logits, targets = (3 * torch.randn(5, 13)).to(dtype), torch.randint(13, (5,))
    (loss, gradient), (want, slopes) = both(logits, targets, smoothing)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, want, rtol=1e-6, atol=1e-6)
    assert gradient.dtype == dtype
    digit = max(torch.finfo(dtype).eps, 1e-6)
    torch.testing.assert_close(gradient, slopes, rtol=digit, atol=1e-7)


def test_extreme_logits_are_as_finite_as_torchs(part):
    logits = torch.tensor([[3e38, 0.0, -3e38], [-1e4, -1e4, -1e4]]).bfloat16()
    (loss, gradient), (want, slopes) = both(logits, torch.tensor([0, 2]), 0.0)
    assert loss.isfinite()
    torch.testing.assert_close(loss, want)
    torch.testing.assert_close(gradient, slopes)


def test_a_gradient_of_the_gradient_is_refused():
    logits = torch.zeros(2, 3).bfloat16().requires_grad_()
    loss = cross_entropy_in_parts(logits, torch.tensor([0, 1]))
    (slopes,) = torch.autograd.grad(loss, logits, create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|does not require grad"):
        slopes.sum().backward()


@pytest.mark.parametrize("ignored", [None, 0])
def test_many_logits_in_bfloat16_are_taken_by_parts_and_counted(ignored, monkeypatch):
    monkeypatch.setattr(losses, "PART", 20)
    calls = []
    monkeypatch.setattr(
        losses, "cross_entropy_in_parts", lambda *a: calls.append(a) or cross_entropy_in_parts(*a)
    )
    torch.manual_seed(1)
    logits, targets = torch.randn(2, 3, 11).bfloat16(), torch.tensor([[0, 1, 2], [3, 0, 4]])
    for few in (logits.float().requires_grad_(), logits, logits[:1].clone().requires_grad_()):
        losses.cross_entropy(few, targets[: len(few)], 0.1, ignored)
    with monkeypatch.context() as compiling:
        compiling.setattr(torch.compiler, "is_compiling", lambda: True)
        losses.cross_entropy(logits.clone().requires_grad_(), targets, 0.1, ignored)
    assert not calls  # float32, nothing to learn, too few, or left to a compiler
    found, count = losses.cross_entropy(logits.requires_grad_(), targets, 0.1, ignored)
    assert len(calls) == 1
    want, number = losses.cross_entropy(logits.float(), targets, 0.1, ignored)
    assert count == number == (6 if ignored is None else 4)
    torch.testing.assert_close(found, want, rtol=1e-6, atol=0)
