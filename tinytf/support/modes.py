"""Train and evaluation mode: set for a while, and every module put back into its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["evaluation_mode", "training_mode"]


def evaluation_mode(model: nn.Module):
    """Put a model in evaluation mode for a while; each module then returns to the mode it had."""
    return _mode(model, training=False)


def training_mode(model: nn.Module):
    """Put a model in training mode for a while; each module then returns to the mode it had."""
    return _mode(model, training=True)


@contextmanager
def _mode(model: nn.Module, training: bool) -> Iterator[None]:
    before = [(module, module.training) for module in model.modules()]
    model.train(training)
    try:
        yield
    finally:
        for module, was in before:
            module.training = was
