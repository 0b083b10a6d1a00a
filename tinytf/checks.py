"""What the models check: sizes when they are made, and later what may be taken for granted."""

import torch
from torch import nn

__all__ = [
    "check_dropout",
    "check_heads",
    "check_one_of",
    "check_sizes",
    "is_plain_linear",
    "values_can_be_read",
]


def check_sizes(config: object, *names: str) -> None:
    """Raise ValueError naming the first of these attributes that is below 1."""
    for name in names:
        if getattr(config, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(config, name)}")


def check_heads(d_model: int, num_heads: int) -> None:
    """Raise ValueError if the heads can't share d_model equally, or there are none."""
    if num_heads < 1:
        raise ValueError(f"num_heads must be at least 1, got {num_heads}")
    if d_model < 1 or d_model % num_heads != 0:
        raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")


def check_dropout(dropout: float) -> None:
    """Raise ValueError if dropout is no probability below 1."""
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must lie in [0, 1), got {dropout}")


def check_one_of(config: object, **known: dict) -> None:
    """Raise ValueError naming the first of these attributes that is no key of its dictionary."""
    for name, choices in known.items():
        if getattr(config, name) not in choices:
            raise ValueError(f"{name}={getattr(config, name)!r} is not one of {tuple(choices)}")


def is_plain_linear(module: nn.Module) -> bool:
    """Say whether a module does what `nn.Linear` does with its weight and bias, and no more.

    Then another product may stand for it. A subclass (LoRA), a wrapper, a quantised or parametrised
    map, one with hooks, or with a forward of its own does more, and has to be called.
    """
    hooks = (
        module._forward_hooks or module._forward_pre_hooks
        or module._backward_hooks or module._backward_pre_hooks
    )  # fmt: skip
    return type(module) is nn.Linear and not hooks and "forward" not in vars(module)


def values_can_be_read() -> bool:
    """Say whether Python may look at the numbers in a tensor.

    Not while torch.compile traces, where that would break the graph, nor under `torch.func.vmap`
    and its like, where a tensor stands for many.
    """
    return not (torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active())
