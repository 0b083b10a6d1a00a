"""Data-parallel training: several processes, each with a share of every batch.

PyTorch adds the gradients up; what is here makes the sum that of the whole batch to rounding, also
where the shares are uneven. Under DistributedDataParallel (DDP, Li et al. 2020) each process has
the whole model. Under `fully_shard` (FSDP2) it has an N-th of every weight, gradient and moment,
and fetches a layer's weights when they are needed (Rajbhandari et al. 2020, section 5.3, stage 3,
and Zhao et al. 2023); a sharded tensor is a `DTensor`, whose shape is the whole one's. Started by
`torchrun --nproc-per-node N -m tinytf pretrain …` (or `train`), on one machine or on several.
"""

import copy
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tinytf.support.compiled import is_compiled
from tinytf.training.recompute import stacked_layers

__all__ = ["Team", "TeamError", "gathered", "part_of", "shard", "team", "whole"]

# What shards is imported where it is needed: it takes half a second, and most runs are of one.

Rows = TypeVar("Rows", bound=NamedTuple)
Objective = Callable[..., tuple[Tensor, int]]


class TeamError(RuntimeError):
    """Another process of the run has ended, so this one can't go on."""


class Team:
    """The processes that train one model together; by default this one alone.

    Process `rank`, of 0 .. world_size - 1, computes the gradients of every world_size-th row of a
    batch. Only the main one, rank 0, writes files and speaks.
    """

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        self.rank, self.world_size = rank, world_size

    @property
    def alone(self) -> bool:
        """Whether there is only this process."""
        return self.world_size == 1

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes and speaks."""
        return self.rank == 0

    def share(self, batch: Rows) -> tuple[Rows, float]:
        """Return this process's rows of a batch, and what its loss counts: 1, or 0 where none is.

        Row r belongs to process r mod world_size, so all rows are taken, each once. A process
        without a row computes the first one and throws its loss away: every process is needed at
        every step.
        """
        if self.alone:
            return batch, 1.0
        first, counts = (self.rank, 1.0) if self.rank < len(batch[0]) else (0, 0.0)
        return type(batch)(*(part[first :: self.world_size] for part in batch)), counts

    def wrap(self, model: nn.Module, objective: Objective, parallel: str = "ddp") -> Objective:
        """Bind an objective to a model, so that its backward pass adds up all gradients.

        The main process's weights become everybody's. With `parallel="fsdp"` the model is sharded,
        in place, and can be called through what is returned alone.
        """
        if self.alone:
            return functools.partial(objective, model)
        bound = _Bound(model, objective)
        if parallel == "fsdp":
            shard(bound, model)
            return bound
        # gradients lie in the buffers they are sent from: else there would be two of each
        return DistributedDataParallel(bound, gradient_as_bucket_view=True)

    def spare(self, model: nn.Module, parallel: str = "ddp") -> nn.Module:
        """Give the main process a copy of a model that `wrap` will shard, to judge and to export.

        Where the model will not be sharded, or not by the main process, it is the model itself.
        """
        sharded = parallel == "fsdp" and not self.alone
        return copy.deepcopy(model) if sharded and self.is_main else model

    def adding_up(self, bound: Objective, now: bool) -> AbstractContextManager:
        """Say whether backward passes inside send gradients: all but a step's last keep them."""
        if hasattr(bound, "set_requires_gradient_sync"):  # what FSDP2 gives a module
            bound.set_requires_gradient_sync(now)
            bound.set_is_last_backward(now)
            return nullcontext()
        return nullcontext() if self.alone or now else bound.no_sync()

    def total(self, values: Sequence[float], device: torch.device) -> list[float]:
        """Add each value up over the processes, in float64 where the device has it."""
        if self.alone:
            return [float(value) for value in values]
        kind = torch.float32 if device.type == "mps" else torch.float64
        sums = torch.tensor(values, dtype=kind, device=device)
        dist.all_reduce(sums)
        return sums.tolist()

    def agreed(self, stop: object, save: object, device: torch.device) -> tuple[bool, bool]:
        """Say whether any process is to stop, and whether the main one finds it time to save.

        All then do so after the same step, whatever their clocks say.
        """
        stops, saves = self.total([bool(stop), bool(save) and self.is_main], device)
        return stops > 0, saves > 0

    def wait(self) -> None:
        """Wait until all processes are here."""
        if not self.alone:
            dist.barrier()

    @contextmanager
    def words(self, step: int) -> Iterator[None]:
        """Turn what the network layer says when a process is gone into a TeamError."""
        try:
            yield
        except RuntimeError as error:
            if self.alone or not _is_networks(error):
                raise
            raise TeamError(
                f"process {self.rank} of {self.world_size} lost another one in step {step + 1}: "
                "that step is not taken, and the last checkpoint is whole"
            ) from error


class _Bound(nn.Module):
    """A model and its objective in one module, which is what DDP wraps and FSDP2 shards."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, *arguments: Any) -> tuple[Tensor, int]:
        return self.objective(self.model, *arguments)


@contextmanager
def team(device: torch.device) -> Iterator[tuple[Team, torch.device]]:
    """Join the processes that `torchrun` has started, or be alone where it has not.

    Yields the team and this process's device: on GPUs each has its own. They talk over NCCL on
    GPUs, else over gloo. Raises ValueError for more processes than GPUs, and on MPS, which has one.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Team(), device
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if device.type == "mps":
        raise ValueError(f"{size} processes can't share one MPS device: add --device cpu")
    if device.type == "cuda":
        if local >= torch.cuda.device_count():
            raise ValueError(
                f"process {local} of this machine has no GPU of its own: there are "
                f"{torch.cuda.device_count()}; start that many processes, or add --device cpu"
            )
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Team(dist.get_rank(), dist.get_world_size()), device
    finally:
        dist.destroy_process_group()


def _is_networks(error: RuntimeError) -> bool:
    said = str(error).lower()
    return isinstance(error, dist.DistError) or "gloo" in said or "nccl" in said


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


def whole(tensor: Tensor) -> Tensor:
    """Return the whole of a sharded tensor; every process must ask. Any other one is returned."""
    return tensor.detach().full_tensor() if _is_sharded(tensor) else tensor


def part_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Shard a whole tensor as `like` is, where that is sharded; each process cuts out its own."""
    if not _is_sharded(like) or tensor.shape != like.shape:
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
            kept[name] = full.cpu() if _is_sharded(tensor) else full
    return kept


def _is_sharded(tensor: Tensor) -> bool:
    """Say whether a tensor is a `DTensor`, without importing the class."""
    return hasattr(tensor, "full_tensor")
