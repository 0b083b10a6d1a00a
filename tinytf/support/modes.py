"""Train and evaluation mode: set for a while, and every module put back into its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["evaluation_mode", "training_as_found", "training_mode"]


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
