"""Looking inside a model, and changing what one sees, through the one forward path it has."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.attention import attention_weights, explicit_attention, fused_attention

__all__ = ["Record", "ablate_heads", "attention_layers", "record", "replace", "weights_of"]

# All three compute softmax(q kᵀ / √d_k) v.
_PLAIN = (fused_attention, explicit_attention, F.scaled_dot_product_attention)


def attention_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Name every attention layer of a model, as in its state dict.

    That is a module with a function `attention` (q, k, v, mask, dropout=0.0) and a map `w_o` of
    what it gives, as `MultiHeadAttention` and `GroupedQueryAttention` have them.
    """
    return {name: module for name, module in model.named_modules() if _attends(module)}


def _attends(module: nn.Module) -> bool:
    return callable(getattr(module, "attention", None)) and hasattr(module, "w_o")


def weights_of(attention: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Give the function (q, k, mask) of the weights by which `attention` mixes values.

    An attention with scores of its own (`tinytf.relative`) has a method `weights`. Raises TypeError
    for one that has none: the plain weights would not be those that it uses.
    """
    if hasattr(attention, "weights"):
        return attention.weights
    if attention in _PLAIN:
        return attention_weights
    name = getattr(attention, "__name__", type(attention).__name__)
    raise TypeError(
        f"the attention {name} does not say what its weights are: "
        "give it a method weights(q, k, mask), or set the layer's attention to fused_attention"
    )


class Record(dict[str, Tensor]):
    """Attention weights (B, H, T, S) by layer name, of the latest forward pass."""


class _Probe:
    """The explicit attention of one layer, with the changes and the records now in force on it."""

    def __init__(self, attention: Callable[..., Tensor]) -> None:
        self.weights = weights_of(attention)
        self.changes: list[Callable[[Tensor], Tensor]] = []
        self.records: list[tuple[Record, str]] = []

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        weights = self.weights(q, k, mask)
        for change in self.changes:
            weights = change(weights)
        for seen, name in self.records:
            seen[name] = weights.detach()
        return F.dropout(weights, dropout, training=dropout > 0) @ v


@contextmanager
def _probed(layer: nn.Module) -> Iterator[_Probe]:
    """Put a probe into a layer, or share the one that an outer block has put there."""
    before = layer.attention
    if isinstance(before, _Probe):
        yield before
        return
    layer.attention = _Probe(before)
    try:
        yield layer.attention
    finally:
        layer.attention = before


@contextmanager
def record(model: nn.Module) -> Iterator[Record]:
    """Record every attention layer's weights, before dropout, while the block runs.

    Inside, the layers compute the explicit attention instead of the fused kernel; the outputs are
    equal to rounding, and the weights are those that were used, changes by `replace` included. With
    a cache, each step overwrites the one before. Layers go back to what they were, also after an
    error. Raises ValueError for a model without attention, TypeError for a layer whose attention
    does not say what its weights are (`weights_of`).
    """
    layers = attention_layers(model)
    if not layers:
        raise ValueError(f"{type(model).__name__} has no attention layer to record")
    seen = Record()
    with ExitStack() as stack:
        probes = {name: stack.enter_context(_probed(layer)) for name, layer in layers.items()}
        for name, probe in probes.items():
            probe.records.append((seen, name))
        try:
            yield seen
        finally:
            for probe in probes.values():
                probe.records[:] = [entry for entry in probe.records if entry[0] is not seen]


@contextmanager
def replace(model: nn.Module, name: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Pass what module `name` computes through `change` while the block runs.

    For an attention layer, `change` maps its weights (B, H, T, S) to weights of the same shape; for
    any other module, it maps the output to an output. Several replacements of one module hold
    together, the outermost first. Raises KeyError for an unknown name, and TypeError as `record`.
    """
    modules = dict(model.named_modules())
    if name not in modules:
        raise KeyError(f"no module {name!r}; there are {', '.join(n for n in modules if n)}")
    module = modules[name]
    if _attends(module):
        with _probed(module) as probe:
            probe.changes.append(change)
            try:
                yield
            finally:
                probe.changes.pop()
    else:
        handle = module.register_forward_hook(lambda _module, _inputs, out: change(out))
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
