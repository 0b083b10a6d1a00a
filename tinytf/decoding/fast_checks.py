"""What a fast decoder may be made of: layers that are as their classes make them, nothing else."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import nn

from tinytf.attention import MultiHeadAttention, fused_attention
from tinytf.checks import is_plain_linear
from tinytf.feedforward import FeedForward, SwiGLU
from tinytf.grouped_query import GroupedQueryAttention
from tinytf.norm import LayerNorm, RMSNorm
from tinytf.residual import PostNorm, PreNorm

__all__ = ["DECODER", "GPT_STACK", "LLAMA_STACK", "Kind", "check_linear", "check_stack"]


class Kind(NamedTuple):
    """What the layers of a stack are made of."""

    attention: type
    feed_forward: type
    norms: tuple[type, ...]
    residuals: tuple[type, ...]


_LAYER_NORMS = (LayerNorm, nn.LayerNorm, nn.Identity)  # the last ends a stack in Post-LN
GPT_STACK = Kind(MultiHeadAttention, FeedForward, _LAYER_NORMS, (PreNorm,))
LLAMA_STACK = Kind(GroupedQueryAttention, SwiGLU, (RMSNorm,), (PreNorm,))
DECODER = Kind(MultiHeadAttention, FeedForward, _LAYER_NORMS, (PostNorm, PreNorm))


def check_stack(stack: nn.Module, kind: Kind) -> None:
    """Raise ValueError for a stack `decoder` with a part that fast decoding would pass by."""
    for number, layer in enumerate(stack.layers):
        _check_layer(f"decoder.layers.{number}", layer, kind)
    for name, part in stack.named_modules():
        if name.endswith("norm") and type(part) not in kind.norms:
            wanted = kind.norms[0].__name__
            raise ValueError(f"decoder.{name} is a {type(part).__name__}: no {wanted}")
        if part._forward_hooks or part._forward_pre_hooks:
            raise ValueError(f"decoder.{name} has hooks, which fast decoding would pass by")


def _check_layer(where: str, layer: nn.Module, kind: Kind) -> None:
    for attention in _named(layer, "attention"):
        if type(attention) is not kind.attention:
            name = type(attention).__name__
            raise ValueError(f"fast decoding computes {kind.attention.__name__}, not {name}")
        if attention.attention is not fused_attention:
            raise ValueError("fast decoding needs layers whose attention is fused_attention")
    parts = [layer.feed_forward, *_named(layer, "residual")]
    kinds = [type(part) for part in parts]
    one = len({*kinds[1:]}) == 1 and kinds[1] in kind.residuals
    if kinds[0] is not kind.feed_forward or not one:
        wanted = f"{kind.feed_forward.__name__} in {_names(kind.residuals, ' or ')}"
        raise ValueError(f"fast decoding computes {wanted}, not {_names(kinds, ', ')}")
    for name, part in layer.named_modules():
        if name.rpartition(".")[2].startswith("w_"):
            check_linear(f"{where}.{name}", part)


def check_linear(name: str, part: nn.Module) -> None:
    """Raise ValueError for a map that does more than its weight and bias."""
    if not is_plain_linear(part):
        raise ValueError(
            f"{name} is no nn.Linear as it comes, without hooks: fast decoding would pass it by"
        )


def _named(layer: nn.Module, word: str) -> list[nn.Module]:
    return [part for name, part in layer.named_children() if word in name]


def _names(kinds: Sequence[type], between: str) -> str:
    return between.join(kind.__name__ for kind in kinds)
