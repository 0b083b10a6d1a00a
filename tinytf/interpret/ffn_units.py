"""The units of the feed-forward network: each hidden unit has a key and writes a value.

Unit i compares its input with the key k_i (row i of w_1) and adds the value v_i (column i of w_2),
multiplied by its activity: FFN(x) = Σ act(k_i · x + b_i) v_i + b. Source: Geva et al. 2021,
section 2.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from tinytf.feedforward import FeedForward, SwiGLU
from tinytf.norm import LayerNorm
from tinytf.transformer import Transformer

__all__ = [
    "contributions",
    "edited",
    "feed_forwards",
    "mirrored",
    "record_units",
    "values_of",
    "word_directions",
]


def feed_forwards(model: nn.Module) -> dict[str, FeedForward | SwiGLU]:
    """Name every feed-forward network of a model, as in its state dict."""
    return {n: m for n, m in model.named_modules() if isinstance(m, FeedForward | SwiGLU)}


def values_of(feed_forward: FeedForward | SwiGLU) -> Tensor:
    """Return a copy of the values of all hidden units, a row per unit: (d_ff, C)."""
    return feed_forward.w_2.weight.detach().T.clone()


def contributions(feed_forward: FeedForward, x: Tensor) -> Tensor:
    """Split FFN(x) into what each unit adds: (..., C) -> (..., d_ff, C), without w_2's bias.

    Summed over the units, and with the bias, it is the network's output (dropout left out).
    """
    activity = feed_forward.activation(feed_forward.w_1(x))  # (..., C) -> (..., d_ff)
    return activity[..., None] * feed_forward.w_2.weight.T


@contextmanager
def record_units(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record how active every hidden unit is while the block runs: (B, T, d_ff) by layer name.

    These are the numbers that w_2 reads; in training, dropout has acted on them. Raises ValueError
    for a model without a feed-forward network.
    """
    layers = feed_forwards(model)
    if not layers:
        raise ValueError(f"{type(model).__name__} has no feed-forward network to record")
    seen: dict[str, Tensor] = {}
    with ExitStack() as stack:
        for name, layer in layers.items():

            def keep(_: nn.Module, inputs: tuple[Tensor], name: str = name) -> None:
                seen[name] = inputs[0].detach()

            stack.callback(layer.w_2.register_forward_pre_hook(keep).remove)
        yield seen


def word_directions(model: Transformer) -> Tensor:
    """Give for each target word the direction in the last stream that raises its score: (V, C).

    The last norm computes (x - mean) / σ * gain + bias, and a word's logit is the dot product with
    its row of the output matrix. So adding y to x raises the logit by y · direction / σ, for the σ
    of the sum. Of the last norm: the decoder's own, or, post-norm, that of its last sublayer.
    Raises ValueError if that is no LayerNorm.
    """
    norm = model.decoder.final_norm
    if isinstance(norm, nn.Identity):
        norm = model.decoder.layers[-1].residual_3.norm
    if not isinstance(norm, LayerNorm):
        raise ValueError(f"the last norm is {type(norm).__name__}, expected LayerNorm")
    directions = model.output.weight.detach() * norm.weight.detach()
    return directions - directions.mean(dim=-1, keepdim=True)


def mirrored(values: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Reflect vectors (..., C) in the mirror between the directions `one` and `other`.

    The support for `one` against `other`, values · (one - other), changes its sign; the length and
    everything perpendicular to the difference stay the same (a Householder reflection).
    Raises ValueError where `one` equals `other`.
    """
    across = one - other
    if not across.any():
        raise ValueError("the two directions are equal: there is nothing to swap")
    across = across / across.norm()
    return values - 2 * (values @ across)[..., None] * across


@contextmanager
def edited(feed_forward: FeedForward | SwiGLU, units: Tensor, values: Tensor) -> Iterator[None]:
    """Let these units (n,) write these values (n, C) while the block runs.

    Raises IndexError for a unit the network lacks, ValueError if the shapes disagree or a unit is
    named twice.
    """
    weight, width = feed_forward.w_2.weight, feed_forward.w_2.in_features
    units = torch.as_tensor(units, device=weight.device).long()
    if values.shape != (len(units), weight.size(0)):
        raise ValueError(
            f"{len(units)} units of width {weight.size(0)} need values of shape "
            f"({len(units)}, {weight.size(0)}), got {tuple(values.shape)}"
        )
    if len(units) and not 0 <= int(units.min()) <= int(units.max()) < width:
        raise IndexError(f"units {units.tolist()} are not all among 0..{width - 1}")
    if len(units.unique()) < len(units):
        raise ValueError(f"units {units.tolist()} name one twice: which value should it write?")
    before = weight.detach().clone()
    with torch.no_grad():
        weight[:, units] = values.T.to(weight)
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(before)
