"""Ablate heads and whole sublayers, and measure the effect on what the model says.

To ablate is to put other values in the place of what a part computes: zeros, its mean over many
sentences, or what it computed for another sentence.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention
from tinytf.feedforward import FeedForward
from tinytf.inspect import attention_layers
from tinytf.interpret.head_roles import Head
from tinytf.metrics.translation import teacher_forced
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import PAD
from tinytf.training.losses import Batch
from tinytf.transformer import Transformer

__all__ = [
    "SUBLAYER_KINDS",
    "AblationEffect",
    "ablated",
    "ablation_effect",
    "mean_outputs",
    "record_outputs",
    "sublayer_kind",
    "sublayers",
]

SUBLAYER_KINDS = (
    "encoder self-attention",
    "encoder feed-forward",
    "decoder self-attention",
    "decoder cross-attention",
    "decoder feed-forward",
)


def sublayers(model: Transformer) -> dict[str, nn.Module]:
    """Name every sublayer of a Transformer's encoder and decoder, as in its state dict."""
    kinds = (MultiHeadAttention, FeedForward)
    return {name: module for name, module in model.named_modules() if isinstance(module, kinds)}


def sublayer_kind(name: str) -> str:
    """Say which of `SUBLAYER_KINDS` a sublayer is: its name without the number of its layer."""
    side, _, _, part = name.split(".")
    return f"{side} {part.replace('_', '-')}"


@torch.no_grad()
def record_outputs(model: Transformer, batch: Batch) -> dict[str, Tensor]:
    """Record what heads pass on and what sublayers compute for a batch: (B, T, C) by name.

    "encoder.layers.0.self_attention.heads" is what that layer's heads hand to `w_o`, side by side;
    "encoder.layers.0.self_attention" is what the sublayer computes from it. The model reads the
    gold target, in evaluation mode.
    """
    outputs: dict[str, Tensor] = {}
    with ExitStack() as hooks, evaluation_mode(model):
        for name, layer in attention_layers(model).items():

            def keep_heads(_: nn.Module, inputs: tuple[Tensor], name: str = name) -> None:
                outputs[f"{name}.heads"] = inputs[0]

            hooks.callback(layer.w_o.register_forward_pre_hook(keep_heads).remove)
        for name, sublayer in sublayers(model).items():

            def keep(_: nn.Module, _inputs: tuple, out: Tensor, name: str = name) -> None:
                outputs[name] = out

            hooks.callback(sublayer.register_forward_hook(keep).remove)
        model(batch.src, batch.tgt_in)
    return outputs


def mean_outputs(model: Transformer, batch: Batch) -> dict[str, Tensor]:
    """Average `record_outputs` over a batch's real tokens: (C,) by name.

    A name that begins with "encoder" belongs to the source's tokens, any other to the target's.
    """
    real = {True: batch.src != PAD, False: batch.tgt_in != PAD}
    return {
        name: values[real[name.startswith("encoder")]].mean(dim=0)
        for name, values in record_outputs(model, batch).items()
    }


@contextmanager
def ablated(
    model: Transformer, parts: Iterable[Head | str], to: Mapping[str, Tensor] | None = None
) -> Iterator[None]:
    """Put zeros, or the values `to`, in the place of what these parts compute, in the block.

    A part is a `Head`, or the name of one of the `sublayers`. `to` comes from `mean_outputs`, or
    from `record_outputs` of another batch of the same size. Zeros take away what a part adds on
    average too, which later layers count on; the mean takes away only what it says about this
    sentence. The residual stream passes by and the norms stay. A whole sublayer passes no gradient
    on: a model trained in the block is one that never had it. Raises KeyError for a layer or
    sublayer the model lacks, ValueError for a head the layer lacks, and, when the model runs, for
    values that don't fit.
    """
    with ExitStack() as hooks:
        for part in parts:
            if isinstance(part, str):
                handle = _ablate_sublayer(model, part, to)
            else:
                handle = _ablate_head(model, part, to)
            hooks.callback(handle.remove)
        yield


def _ablate_sublayer(model: Transformer, name: str, to: Mapping[str, Tensor] | None):
    there = sublayers(model)
    if name not in there:
        raise KeyError(f"no sublayer {name!r}; there are {', '.join(there)}")

    def change(_: nn.Module, _inputs: tuple, out: Tensor) -> Tensor:
        return torch.zeros_like(out) if to is None else _fitted(to[name], out, name)

    return there[name].register_forward_hook(change)


def _ablate_head(model: Transformer, head: Head, to: Mapping[str, Tensor] | None):
    name, index = head
    layers = attention_layers(model)
    if name not in layers:
        raise KeyError(f"no attention layer {name!r}; there are {', '.join(layers)}")
    layer = layers[name]
    if not 0 <= index < layer.num_heads:
        raise ValueError(f"head {index} is not among {name}'s 0..{layer.num_heads - 1}")
    width = layer.d_model // layer.num_heads
    columns = slice(index * width, (index + 1) * width)

    def change(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        joined = inputs[0].clone()  # (B, T, C): the heads side by side
        if to is None:
            joined[..., columns] = 0.0
        else:
            values = _fitted(to[f"{name}.heads"], joined, name)
            joined[..., columns] = values[..., columns]
        return (joined,)

    return layer.w_o.register_forward_pre_hook(change)


def _fitted(values: Tensor, out: Tensor, name: str) -> Tensor:
    """Cast and expand `values` to what they stand for."""
    try:
        return values.to(out).expand_as(out)
    except RuntimeError:
        raise ValueError(
            f"values of shape {tuple(values.shape)} can't stand for what {name} computes, "
            f"{tuple(out.shape)}"
        ) from None


class AblationEffect(NamedTuple):
    """What the model loses: negative where the ablation helps."""

    exact: float  # the share of sentences right in every word falls by
    loss: float  # nats per token more


def ablation_effect(
    model: Transformer,
    batch: Batch,
    parts: Iterable[Head | str],
    to: Mapping[str, Tensor] | None = None,
    intact: tuple[Tensor, float] | None = None,
) -> AblationEffect:
    """Ablate these parts together and compare with the `intact` model's `teacher_forced`.

    Raises KeyError and ValueError as `ablated`.
    """
    right, loss = intact or teacher_forced(model, batch)
    with ablated(model, parts, to):
        still_right, ablated_loss = teacher_forced(model, batch)
    lost = right.float().mean() - still_right.float().mean()
    return AblationEffect(lost.item(), ablated_loss - loss)
