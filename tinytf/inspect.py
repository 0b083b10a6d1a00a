"""Looking inside a model, and changing what one sees, through the one forward path it has."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention, attention_weights

__all__ = ["Record", "ablate_heads", "attention_layers", "record", "replace"]


def attention_layers(model: nn.Module) -> dict[str, MultiHeadAttention]:
    """Name every attention layer of a model, as in its state dict."""
    return {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}


class Record(dict[str, Tensor]):
    """Attention weights (B, H, T, S) by layer name, of the latest forward pass."""


@contextmanager
def record(model: nn.Module) -> Iterator[Record]:
    """Record every attention layer's weights, before dropout, while the block runs.

    Inside, the layers compute the explicit attention instead of the fused kernel; the outputs are
    equal to rounding, and the weights are those that were used. With a cache, each step overwrites
    the one before. Layers go back to what they were, also after an error.
    """
    seen = Record()

    def watch(name: str, change: Callable[[Tensor], Tensor] | None) -> Callable[..., Tensor]:
        def attend(
            q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
        ) -> Tensor:
            weights = attention_weights(q, k, mask)
            if change is not None:
                weights = change(weights)
            seen[name] = weights.detach()
            return F.dropout(weights, dropout, training=dropout > 0) @ v

        attend.change = change  # a replacement within which we record stays in force
        return attend

    layers = attention_layers(model)
    if not layers:
        raise ValueError(f"{type(model).__name__} has no attention layer to record")
    before = {name: layer.attention for name, layer in layers.items()}
    try:
        for name, layer in layers.items():
            layer.attention = watch(name, getattr(layer.attention, "change", None))
        yield seen
    finally:
        for name, layer in layers.items():
            layer.attention = before[name]


@contextmanager
def replace(model: nn.Module, name: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Pass what module `name` computes through `change` while the block runs.

    For an attention layer, `change` maps its weights (B, H, T, S) to weights of the same shape; for
    any other module, it maps the output to an output. Raises KeyError for an unknown name.
    """
    modules = dict(model.named_modules())
    if name not in modules:
        raise KeyError(f"no module {name!r}; there are {', '.join(n for n in modules if n)}")
    module = modules[name]
    if isinstance(module, MultiHeadAttention):

        def attend(
            q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
        ) -> Tensor:
            return F.dropout(change(attention_weights(q, k, mask)), dropout, dropout > 0) @ v

        attend.change = change
        before, module.attention = module.attention, attend
        try:
            yield
        finally:
            module.attention = before
    else:
        handle = module.register_forward_hook(lambda _m, _in, out: change(out))
        try:
            yield
        finally:
            handle.remove()


def ablate_heads(*heads: int) -> Callable[[Tensor], Tensor]:
    """Make a `change` for `replace` that silences these heads: their weights become 0."""

    def change(weights: Tensor) -> Tensor:
        bad = [h for h in heads if not 0 <= h < weights.size(1)]
        if bad:
            raise ValueError(f"heads {bad} are not among the layer's 0..{weights.size(1) - 1}")
        weights = weights.clone()
        weights[:, list(heads)] = 0.0
        return weights

    return change
