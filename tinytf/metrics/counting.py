"""Counting what a module costs: parameters, floating-point operations, and memory kept."""

from collections.abc import Callable

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["count_flops", "count_parameters", "kept_bytes", "largest_made"]


def count_parameters(module: nn.Module) -> int:
    """Count the numbers a module learns; a tensor used in two places counts once."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def count_flops(function: Callable[[], object]) -> int:
    """Count the floating-point operations of the matrix products in one call of `function`.

    A product of (n, k) and (k, m) counts 2nkm, a multiplication and an addition each; softmax,
    sums and the like are not counted. What `function` does backward counts too. Some fused kernels
    count as nothing (attention's on a CPU): count with `explicit_attention` in their place.
    """
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def kept_bytes(function: Callable[[], object]) -> int:
    """Count the bytes of the tensors that one call of `function` keeps for its backward pass.

    A storage that is kept twice counts once; parameters and inputs count where they are kept.
    """
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        function()
    return sum(kept.values())


def largest_made(function: Callable[[], object]) -> int:
    """Count the numbers of the largest tensor that one call of `function` makes on its way."""
    with _Largest() as mode:
        function()
    return mode.numbers


class _Largest(TorchDispatchMode):
    numbers = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = operation(*args, **(kwargs or {}))
        sizes = [x.numel() for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
        self.numbers = max([self.numbers, *sizes])
        return out
