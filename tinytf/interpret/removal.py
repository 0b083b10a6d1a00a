"""Remove whole sublayers, and measure what it costs; `ablation` does the same for heads."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention
from tinytf.feedforward import FeedForward
from tinytf.interpret.ablation import Damage, averages, cost
from tinytf.training.losses import Batch
from tinytf.transformer import Transformer

__all__ = ["KINDS", "damage", "kind_of", "mean_outputs", "removed", "sublayers"]

KINDS = (
    "encoder self-attention",
    "encoder feed-forward",
    "decoder self-attention",
    "decoder cross-attention",
    "decoder feed-forward",
)


def sublayers(model: Transformer) -> dict[str, nn.Module]:
    """Name every sublayer of a Transformer's encoder and decoder, as in its state dict."""
    parts = (MultiHeadAttention, FeedForward)
    return {name: part for name, part in model.named_modules() if isinstance(part, parts)}


def kind_of(name: str) -> str:
    """Say which of `KINDS` a sublayer is: the name without the number of its layer."""
    side, _, _, part = name.split(".")
    return f"{side} {part.replace('_', '-')}"


def mean_outputs(model: Transformer, batch: Batch) -> dict[str, Tensor]:
    """Average what each sublayer adds to the stream over real tokens: (C,) by name."""
    return averages(model, batch, sublayers(model), lambda _, out: out)


@contextmanager
def removed(
    model: Transformer, names: Iterable[str], to: Mapping[str, Tensor] | None = None
) -> Iterator[None]:
    """Replace what these sublayers add by zeros, or by `to` (from `mean_outputs`), in the block.

    The residual stream passes by and the norms stay. The rest of the model sees no way through the
    sublayer, so a model trained in the block is one that never had it: its weights get no gradient.
    Raises KeyError for a sublayer the model lacks.
    """
    names, parts, hooks = list(names), sublayers(model), []
    if unknown := [name for name in names if name not in parts]:
        raise KeyError(f"no sublayer {unknown[0]!r}; there are {', '.join(parts)}")
    try:
        for name in names:

            def change(_: nn.Module, _inputs, out: Tensor, name: str = name):
                if to is None:
                    return torch.zeros_like(out)
                return to[name].to(out).expand_as(out)

            hooks.append(parts[name].register_forward_hook(change))
        yield
    finally:
        for hook in hooks:
            hook.remove()


def damage(
    model: Transformer,
    batch: Batch,
    names: Iterable[str],
    to: Mapping[str, Tensor] | None = None,
    intact: tuple[Tensor, float] | None = None,
) -> Damage:
    """Remove these sublayers together and compare with the `intact` model's `teacher_forced`.

    Raises KeyError for a sublayer the model lacks.
    """
    return cost(model, batch, removed(model, names, to), intact)
