"""Fully sharded training: each process keeps an N-th of every weight, gradient and moment.

PyTorch's FSDP2 fetches a layer's weights when they are needed, and gives each process its part of
the summed gradient. A sharded tensor is a `DTensor`: its shape is the whole one's. Source:
Rajbhandari et al. 2020, section 5.3 (stage 3), and Zhao et al. 2023.
"""

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tinytf.support.compiled import is_compiled
from tinytf.training.recompute import stacked_layers

__all__ = ["gathered", "is_sharded", "local", "part_of", "shard", "whole"]

# What shards is imported where it is needed: it takes half a second, and most runs are of one.


def shard(bound: nn.Module, model: nn.Module) -> None:
    """Shard a model in place over all processes, layer by layer; `bound` is what is called.

    The first process's weights become everybody's. What is in no layer, the embeddings, goes with
    `bound`. Raises ValueError for a compiled model, and for one without a stack of layers.
    """
    if is_compiled(model):
        raise ValueError("a compiled model can't be sharded: leave it plain, or take ddp")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    layers = stacked_layers(model)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, 0)
    device = next(model.parameters()).device
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(bound, mesh=mesh)


def is_sharded(tensor: Tensor) -> bool:
    """Say whether a tensor is a `DTensor`, without importing the class."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """Return the whole of a sharded tensor; every process must ask. Any other one is returned."""
    return tensor.detach().full_tensor() if is_sharded(tensor) else tensor


def local(tensor: Tensor) -> Tensor:
    """Return what this process keeps of a tensor: its part of a sharded one, all of another."""
    return tensor.detach().to_local() if is_sharded(tensor) else tensor


def part_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Shard a whole tensor as `like` is, where that is sharded; each process cuts out its own."""
    if not is_sharded(like) or tensor.shape != like.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    tensor = tensor.detach().to(like.device)
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)


def gathered(tensors: Mapping[str, Tensor], keep: bool) -> dict[str, Tensor]:
    """Make every tensor whole, one after the other; every process must call it.

    Those that do not `keep` them are left with none. Sharded ones come to the CPU, since all of
    them may be more than a GPU holds.
    """
    kept = {}
    for name, tensor in tensors.items():
        full = whole(tensor)
        if keep:
            kept[name] = full.cpu() if is_sharded(tensor) else full
    return kept
