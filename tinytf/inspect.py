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

    That is a module with a function `attention` (q, k, v, mask, dropout=0.0) and an output
    projection `w_o`, as `MultiHeadAttention` and `GroupedQueryAttention` have them.
    """
    return {name: module for name, module in model.named_modules() if _attends(module)}


def _attends(module: nn.Module) -> bool:
    return callable(getattr(module, "attention", None)) and hasattr(module, "w_o")


def weights_of(attention: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the function (q, k, mask) that computes the weights by which `attention` mixes values.

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
    """Attention weights (B, H, T, S), and other modules' outputs, of the latest forward pass."""


class _Watch:
    """What is done with a value that a module computes: first it is changed, then recorded."""

    def __init__(self) -> None:
        self.changes: list[Callable[[Tensor], Tensor]] = []
        self.records: list[tuple[Record, str]] = []

    def passed(self, value: Tensor) -> Tensor:
        for change in self.changes:
            value = change(value)
        for record, name in self.records:
            record[name] = value.detach()
        return value


class _Hook(_Watch):
    """A forward hook: watches the output of a module."""

    def __call__(self, _module: nn.Module, _inputs: tuple, out: Tensor) -> Tensor:
        return self.passed(out)


class _Probe(_Watch):
    """The explicit attention of one layer: watches its weights."""

    def __init__(self, attention: Callable[..., Tensor]) -> None:
        super().__init__()
        self.weights = weights_of(attention)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        weights = self.passed(self.weights(q, k, mask))
        return F.dropout(weights, dropout, training=dropout > 0) @ v


def _find(module: nn.Module) -> _Watch | None:
    """The watch that an outer block has put on a module."""
    places = [module.attention] if _attends(module) else module._forward_hooks.values()
    return next((place for place in places if isinstance(place, _Watch)), None)


def _put(module: nn.Module) -> tuple[_Watch, Callable[[], None]]:
    """Put a watch on a module; returns it and the function that takes it away."""
    if _attends(module):
        before = module.attention
        module.attention = _Probe(before)
        return module.attention, lambda: setattr(module, "attention", before)
    hook = _Hook()
    return hook, module.register_forward_hook(hook).remove


@contextmanager
def _watched(model: nn.Module, name: str) -> Iterator[_Watch]:
    """Watch a module, or share the watch that an outer block has put on it."""
    modules = dict(model.named_modules())
    if name not in modules:
        raise KeyError(f"no module {name!r}; there are {', '.join(n for n in modules if n)}")
    watch, remove = _find(modules[name]), None
    if watch is None:
        watch, remove = _put(modules[name])
    try:
        yield watch
    finally:
        if remove is not None:
            remove()


@contextmanager
def record(model: nn.Module, *names: str) -> Iterator[Record]:
    """Record what these modules compute while the block runs; by default, all attention weights.

    Of an attention layer its weights are recorded, before dropout; of any other module its output,
    by a forward hook. Inside, the layers compute the explicit attention instead of the fused
    kernel; the outputs are equal to rounding, and the weights are those that were used, changes by
    `replace` included. With a cache, each step overwrites the one before. Layers go back to what
    they were, also after an error. Raises ValueError for a model without attention, KeyError for an
    unknown name, TypeError for a layer whose attention does not say what its weights are
    (`weights_of`).
    """
    names = names or tuple(attention_layers(model))
    if not names:
        raise ValueError(f"{type(model).__name__} has no attention layer to record")
    seen = Record()
    with ExitStack() as stack:
        watches = {name: stack.enter_context(_watched(model, name)) for name in names}
        for name, watch in watches.items():
            watch.records.append((seen, name))
        try:
            yield seen
        finally:
            for watch in watches.values():
                watch.records[:] = [entry for entry in watch.records if entry[0] is not seen]


@contextmanager
def replace(model: nn.Module, name: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Pass what module `name` computes through `change` while the block runs.

    For an attention layer, `change` maps its weights (B, H, T, S) to weights of the same shape; for
    any other module, it maps the output to an output. Several replacements of one module hold
    together, the outermost first. Raises KeyError for an unknown name, and TypeError as `record`.
    """
    with _watched(model, name) as watch:
        watch.changes.append(change)
        try:
            yield
        finally:
            watch.changes.remove(change)


def ablate_heads(*heads: int) -> Callable[[Tensor], Tensor]:
    """Make a `change` for `replace` that silences these heads: their weights become 0.

    The other weights stay, with their gradients. A head that is not there is a ValueError when the
    model runs; heads are counted from 0, and -1 is none.
    """

    def change(weights: Tensor) -> Tensor:
        if bad := [h for h in heads if not 0 <= h < weights.size(1)]:
            raise ValueError(f"heads {bad} are not among the layer's 0..{weights.size(1) - 1}")
        weights = weights.clone()
        weights[:, list(heads)] = 0.0
        return weights

    return change
