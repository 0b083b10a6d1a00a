"""Counting what a module costs: parameters, floating-point operations, and memory kept."""

from collections.abc import Callable

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["count_flops", "count_parameters", "kept_bytes", "largest_made", "moved_bytes"]


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


def moved_bytes(function: Callable[[], object]) -> dict[str, int]:
    """Count the bytes that each kind of operation reads and writes in one call of `function`.

    Returns a dictionary from PyTorch's name of the operation ("mm", "_softmax") to the bytes of
    the tensors that go in and come out, added up over its calls. Views move nothing. An operation
    that PyTorch makes of several counts under their names; a fused kernel counts as one.
    """
    with _Moved() as mode:
        function()
    return mode.bytes


class _Largest(TorchDispatchMode):
    numbers = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = operation(*args, **(kwargs or {}))
        sizes = [x.numel() for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
        self.numbers = max([self.numbers, *sizes])
        return out


class _Moved(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[str, int] = {}

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = operation(*args, **(kwargs or {}))
        read, made = (
            [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]
            for tree in ((args, kwargs), out)
        )
        stores = {x.untyped_storage()._cdata for x in read}
        is_view = any(x.untyped_storage()._cdata in stores for x in made)
        moved = sum(x.nbytes for x in read + made)
        if moved and (operation._schema.is_mutable or not is_view):
            name = operation._schema.name.removeprefix("aten::")
            self.bytes[name] = self.bytes.get(name, 0) + moved
        return out
