"""Training in bfloat16: matrices cast once a step, and their gradients added up in float32.

A model's own weights stay float32 and are what the optimiser changes: the masters. A bfloat16 has
eight binary digits, and most steps are smaller than its last one. Source: Micikevicius et al. 2018,
section 3.1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tinytf.checks import is_plain_linear
from tinytf.training.config import TrainingConfig
from tinytf.training.distributed import Team

__all__ = ["Bfloat16Matrices"]


class Bfloat16Matrices:
    """bfloat16 copies of the matrices of a model's linear maps, `in_use` in their place.

    Autocast would make each copy and its gradient itself, in fresh memory at every batch, and then
    finds that there is nothing to do. Outputs are the same to the bit, and so are gradients, but
    for the order in which those of an embedding are added up. Memory is kept from step to step.
    What is not float32, or no plain `nn.Linear`, is left to autocast.

    A process alone adds gradients to what is kept, directly. Those for which DDP or a hook on the
    parameter waits come the ordinary way.
    """

    def __init__(self, team: Team) -> None:
        self.team = team
        self._maps: list[nn.Linear] = []
        self._tables: list[nn.Embedding] = []
        self._copies: dict[nn.Parameter, Tensor] = {}
        self._gradients: dict[nn.Parameter, Tensor] = {}

    def prepare(self, model: nn.Module, config: TrainingConfig) -> None:
        """Look for the matrices; memory of those that have stayed what they were is kept.

        There are none in float32, nor where the model is sharded: those would have to be cast anew
        whenever a layer's are fetched.
        """
        sharded = config.parallel == "fsdp" and not self.team.alone
        once = config.precision == "bfloat16" and not sharded
        found = model.modules() if once else ()
        modules = [m for m in found if _is_float32(getattr(m, "weight", None))]
        self._maps = [m for m in modules if is_plain_linear(m)]
        # a GPU would wait for the processor to count the rows
        self._tables = [m for m in modules if type(m) is nn.Embedding and m.weight.is_cpu]
        there = {m.weight for m in (*self._maps, *self._tables)}
        for kept in (self._copies, self._gradients):
            for parameter in [p for p, t in kept.items() if p not in there or not _fit(t, p)]:
                del kept[parameter]

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Cast all matrices as they are now, and let the model compute with them in the block.

        Its backward passes belong into the block, too. Afterwards each parameter is where it was,
        with its gradient.
        """
        masters = [linear.weight for linear in self._maps]
        copies = {master: self._copy(master) for master in dict.fromkeys(masters)}
        # a dense gradient is mostly zeros, and all of them would be written
        tables = [m for m in self._tables if not m.sparse and self._goes_directly(m.weight)]
        try:
            for linear, master in zip(self._maps, masters, strict=True):
                linear._parameters["weight"] = copies[master]
            for table in tables:
                table.sparse = True
            yield
        finally:
            for linear, master in zip(self._maps, masters, strict=True):
                linear._parameters["weight"] = master
            for table in tables:
                table.sparse = False
                self._make_dense(table.weight)

    def _copy(self, master: nn.Parameter) -> Tensor:
        if master not in self._copies:
            self._copies[master] = torch.empty_like(master, dtype=torch.bfloat16)
        copy = self._copies[master].copy_(master.detach())
        return _Cast.apply(master, copy, self) if master.requires_grad else copy

    def _goes_directly(self, master: nn.Parameter) -> bool:
        """Say whether nobody but the optimiser waits for this gradient."""
        hooks = master._backward_hooks or master._post_accumulate_grad_hooks
        return self.team.alone and not hooks

    def _collect(self, master: nn.Parameter, gradient: Tensor) -> Tensor | None:
        """Add a gradient up in float32; what is returned goes the ordinary way."""
        if not self._goes_directly(master):
            return gradient.float()
        before = master.grad
        if before is None or before.is_sparse:
            master.grad = self._kept(master).copy_(gradient)
            if before is not None:
                master.grad += before
        else:
            before += gradient
        return None

    def _make_dense(self, parameter: nn.Parameter) -> None:
        """Make a table's gradient dense where no linear map has brought one that it adds to."""
        rows = parameter.grad
        if rows is not None and rows.is_sparse:
            parameter.grad = self._kept(parameter).zero_().add_(rows)

    def _kept(self, parameter: nn.Parameter) -> Tensor:
        if parameter not in self._gradients:
            self._gradients[parameter] = torch.empty_like(parameter)
        return self._gradients[parameter]


class _Cast(torch.autograd.Function):
    """From a float32 parameter to its bfloat16 copy, which stands ready."""

    @staticmethod
    def forward(ctx: Any, master: nn.Parameter, copy: Tensor, matrices: Bfloat16Matrices) -> Tensor:
        ctx.master, ctx.matrices = master, matrices
        return copy.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None]:
        return ctx.matrices._collect(ctx.master, gradient), None, None


def _is_float32(weight: object) -> bool:
    return type(weight) is nn.Parameter and weight.dtype == torch.float32


def _fit(tensor: Tensor, parameter: nn.Parameter) -> bool:
    return tensor.shape == parameter.shape and tensor.device == parameter.device
