"""What a word is after each layer: the residual stream, recorded in the one forward pass."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["ResidualStream", "record_residual_stream", "stacks"]


def stacks(model: nn.Module) -> dict[str, nn.Module]:
    """Name every stack of layers in a model: the modules whose `layers` is an `nn.ModuleList`.

    A `Transformer` has `encoder` and `decoder`; a stack on its own has the name "".
    """
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(getattr(module, "layers", None), nn.ModuleList)
    }


class ResidualStream(dict[str, Tensor]):
    """The residual stream (B, T, C) at each place, by name, of the latest forward pass.

    `encoder.embedding` is what the first layer reads, embedding and position together;
    `encoder.layers.0` and so on what each layer hands on; `encoder.output` what the stack returns,
    behind its final norm if it has one. The decoder's have the same names behind `decoder`.
    """

    def by_layer(self, stack: str = "encoder") -> Tensor:
        """Stack the embedding and each layer's output, before any final norm: (1 + L, B, T, C).

        Raises KeyError naming the stacks there are, also before the first forward pass.
        """
        head = f"{stack}." if stack else ""
        if f"{head}embedding" not in self:
            ends = "embedding"
            there = [name.removesuffix(ends).rstrip(".") for name in self if name.endswith(ends)]
            known = there or "none so far"
            raise KeyError(f"no residual stream of stack {stack!r}; there are {known}")
        names = [name for name in self if name.startswith(f"{head}layers.")]
        return torch.stack([self[f"{head}embedding"], *(self[name] for name in names)])


@contextmanager
def record_residual_stream(model: nn.Module) -> Iterator[ResidualStream]:
    """Record what flows into and out of every layer while the block runs.

    The outputs stay the same to the bit; what is recorded is detached from the graph, not copied.
    Dropout is in it unless the model is in evaluation mode. With a cache, each step overwrites the
    one before. Changes made with `tinytf.replace` are seen if they were put in force before. One
    layer that stands in a stack several times is recorded at each of its places.
    Raises ValueError for a model without a stack of layers.
    """
    there = stacks(model)
    if not there:
        raise ValueError(f"{type(model).__name__} has no stack of layers to record")
    seen = ResidualStream()

    def reads(name: str, turns: list[Iterator[str]], names: list[list[str]]):
        def keep(_: nn.Module, inputs: tuple, named: dict[str, Any]) -> None:
            seen[name] = (inputs[0] if inputs else next(iter(named.values()))).detach()
            turns[:] = [cycle(part) for part in names]  # also after a pass that was cut short

        return keep

    def gives(turns: list[Iterator[str]], index: int):
        def keep(_: nn.Module, __: tuple, out: Tensor) -> None:
            seen[next(turns[index])] = out.detach()

        return keep

    with ExitStack() as hooks:
        for stack, module in there.items():
            head = f"{stack}." if stack else ""
            places: dict[nn.Module, list[str]] = {}  # a shared layer has several
            for i, layer in enumerate(module.layers):
                places.setdefault(layer, []).append(f"{head}layers.{i}")
            places.setdefault(module, []).append(f"{head}output")
            names = list(places.values())
            turns = [cycle(part) for part in names]
            read = reads(f"{head}embedding", turns, names)
            handle = module.register_forward_pre_hook(read, with_kwargs=True)
            hooks.callback(handle.remove)
            for index, part in enumerate(places):
                hooks.callback(part.register_forward_hook(gives(turns, index)).remove)
        yield seen
