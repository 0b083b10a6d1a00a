"""What a step computes in: its precision, and its attention in one kernel or in steps.

In bfloat16 matrices are cast once a step, and their gradients added up in float32. A model's own
weights stay float32 and are what the optimiser changes: the masters. A bfloat16 has eight binary
digits, and most steps are smaller than its last one. Source: Micikevicius et al. 2018, section 3.1.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from tinytf.attention import explicit_attention, fused_attention
from tinytf.checks import is_plain_linear
from tinytf.inspect import attention_layers, weights_of
from tinytf.support.device import choose_precision
from tinytf.training.config import TrainingConfig
from tinytf.training.distributed import Team
from tinytf.training.losses import Batch, TextBatch

__all__ = ["Bfloat16Matrices", "InFloat32", "attending", "autocast", "settled"]

SHORT = 64  # tokens; over longer ones the fused kernel is the faster, and needs less memory


def settled(
    config: TrainingConfig,
    model: nn.Module,
    batches: Callable[[int], Batch | TextBatch],
    team: Team,
) -> TrainingConfig:
    """Replace each "auto" by what is faster on the main process's device.

    Raises ValueError for weights stored in half precision that are to be trained in it: small steps
    would be lost.
    """
    device, main = model.device, team.is_main
    if config.precision == "auto":
        half = choose_precision(device.type) == "bfloat16"
        (half,) = team.total([half and main], device)
        config = replace(config, precision="bfloat16" if half else "float32")
    if config.attention == "auto":
        short = max(part.size(1) for part in batches(0)) <= SHORT
        explicit = device.type == "cpu" and torch.get_num_threads() > 1 and short
        (explicit,) = team.total([explicit and main], device)
        config = replace(config, attention="explicit" if explicit else "fused")
    for name, parameter in model.named_parameters():
        in_half = parameter.requires_grad and parameter.element_size() < 4
        if in_half and config.precision == "bfloat16":
            raise ValueError(
                f"precision='bfloat16' computes in it and keeps the weights in float32, but {name} "
                f"is of {parameter.dtype}, in which small steps are lost: train model.float()"
            )
    return config


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Compute in "float32" as it stands, or in "bfloat16" where torch finds that it is safe."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


@contextmanager
def attending(model: nn.Module, kind: str, in_float32: bool = False) -> Iterator[None]:
    """Attend in one kernel ("fused") or step by step ("explicit") while the block runs.

    Layers with an attention of their own keep it. With `in_float32` attention stays in float32
    where the rest is in bfloat16: on a CPU its backward pass is fast in that alone.
    """
    before = {layer: layer.attention for layer in attention_layers(model).values()}
    for layer, attention in before.items():
        if kind == "explicit" and attention is fused_attention:
            attention = explicit_attention
        layer.attention = InFloat32(attention) if in_float32 else attention
    try:
        yield
    finally:
        for layer, attention in before.items():
            layer.attention = attention


class InFloat32:
    """An attention computed in float32; its weights are those of the attention inside."""

    def __init__(self, attention: Callable[..., Tensor]) -> None:
        self.attention = attention

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Tensor:
        """Compute it; the result is in float32."""
        with torch.autocast(q.device.type, enabled=False):
            return self.attention(q.float(), k.float(), v.float(), *rest)

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Give the weights of the attention inside, for `record` in a running training."""
        with torch.autocast(q.device.type, enabled=False):
            return weights_of(self.attention)(q.float(), k.float(), mask)


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
