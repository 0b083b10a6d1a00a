"""Activation checkpointing: layers that keep their input alone and compute the rest again."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.utils.checkpoint import checkpoint

__all__ = ["recomputing", "stacked_layers"]


def stacked_layers(model: nn.Module) -> list[nn.Module]:
    """List the layers of a model's stacks: what stands in an `nn.ModuleList` named `layers`.

    A layer inside another one is left out. Raises ValueError for a model without any.
    """
    found: list[nn.Module] = []
    inside: set[nn.Module] = set()
    for module in model.modules():  # a module comes before what it holds
        layers = getattr(module, "layers", None)
        if module not in inside and isinstance(layers, nn.ModuleList):
            found += layers
            inside.update(part for layer in layers for part in layer.modules())
    if not found:
        raise ValueError(f"{type(model).__name__} has no stack: no nn.ModuleList named `layers`")
    return found


@contextmanager
def recomputing(model: nn.Module) -> Iterator[None]:
    """Keep only each layer's input for the backward pass, which computes the layer again.

    Outputs and gradients are the same to the bit, dropout's draws included. Each layer computes its
    forward pass twice, which makes four passes of three: a third more operations. Raises ValueError
    as `stacked_layers`. Source: Chen et al. 2016, section 4.
    """
    layers = stacked_layers(model)
    own = [vars(layer).get("forward") for layer in layers]  # one that was set on the layer itself
    for layer in layers:
        # inside the module's call, so that hooks (of FSDP, say) are run once and not again
        layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)
    try:
        yield
    finally:
        for layer, forward in zip(layers, own, strict=True):
            del layer.forward
            if forward is not None:
                layer.forward = forward
