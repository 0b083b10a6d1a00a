"""Train and evaluation mode, and computing without gradients: set for a while, then put back."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tinytf.attention import explicit_attention, fused_attention
from tinytf.checks import values_can_be_read
from tinytf.support.compiled import is_compiled

__all__ = ["evaluation_mode", "training_as_found", "training_mode", "without_gradients"]


def evaluation_mode(model: nn.Module):
    """Put a model in evaluation mode for a while; each module then returns to the mode it had."""
    return _mode(model, training=False)


def training_mode(model: nn.Module):
    """Put a model in training mode for a while; each module then returns to the mode it had."""
    return _mode(model, training=True)


def training_as_found(model: nn.Module):
    """Let a model train for a while, each part in the mode it is found in.

    A part that was put in evaluation mode stays there, without dropout, while the rest trains. A
    model in evaluation mode as a whole, as loaders give it, trains as a whole. Afterwards each
    module returns to the mode it had.
    """
    found = any(module.training for module in model.modules())
    return _mode(model, training=None if found else True)


def without_gradients(model: nn.Module):
    """Let a model compute without gradients, in torch's inference mode where nobody can notice.

    That mode takes a tenth off a small model's step, but what it makes can't be learned from later,
    nor changed. So it is for models of torch's parts and ours alone, into which nobody looks by
    hooks or by `record`, and which were not compiled; others get `torch.no_grad()`, and so do all
    under a mode that counts or changes operations. What leaves the block has to be copied outside
    of it.
    """
    unseen = values_can_be_read() and not is_compiled(model) and not _watched()
    if unseen and all(_keeps_nothing(part) for part in model.modules()):
        return torch.inference_mode()
    return torch.no_grad()


def _watched() -> bool:
    """Say whether a mode of torch's, such as a counter of operations, is told of every call."""
    return bool(torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack())


def _keeps_nothing(part: nn.Module) -> bool:
    """Say whether what a module computes goes nowhere but to the next one."""
    known = type(part).__module__.partition(".")[0] in ("torch", "tinytf")
    hooks = part._forward_hooks or part._forward_pre_hooks
    attention = getattr(part, "attention", fused_attention)
    plain = attention is fused_attention or attention is explicit_attention
    return known and plain and not hooks and "forward" not in vars(part)


@contextmanager
def _mode(model: nn.Module, training: bool | None) -> Iterator[None]:
    before = [(module, module.training) for module in model.modules()]
    if training is not None:
        model.train(training)
    try:
        yield
    finally:
        for module, was in before:
            module.training = was
