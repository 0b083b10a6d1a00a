"""Silence heads, and measure what it costs: zeros or averages in the place of what they pass on."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tinytf.inspect import attention_layers
from tinytf.interpret.head_roles import Head
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import BOS, PAD
from tinytf.training.losses import Batch
from tinytf.transformer import Transformer

__all__ = ["Damage", "averages", "cost", "damage", "mean_outputs", "silenced", "teacher_forced"]


def mean_outputs(model: Transformer, batch: Batch) -> dict[str, Tensor]:
    """Average each layer's joined heads, what `w_o` reads, over real tokens: (C,) by layer name."""
    readers = {name: layer.w_o for name, layer in attention_layers(model).items()}
    return averages(model, batch, readers, lambda inputs, _: inputs[0])


@torch.no_grad()
def averages(
    model: Transformer,
    batch: Batch,
    modules: Mapping[str, nn.Module],
    of: Callable[[tuple[Tensor, ...], Tensor], Tensor],
) -> dict[str, Tensor]:
    """Average `of` (inputs, output) of these modules over a batch's real tokens, by name.

    A name that begins with "encoder" belongs to the source's tokens, any other to the target's.
    """
    means: dict[str, Tensor] = {}
    hooks = []
    for name, module in modules.items():
        real = (batch.src if name.startswith("encoder") else batch.tgt_in) != PAD

        def keep(_: nn.Module, inputs, out: Tensor, name: str = name, real: Tensor = real):
            means[name] = of(inputs, out)[real].mean(dim=0)

        hooks.append(module.register_forward_hook(keep))
    try:
        with evaluation_mode(model):
            model(batch.src, batch.tgt_in)
    finally:
        for hook in hooks:
            hook.remove()
    return means


@contextmanager
def silenced(
    model: Transformer, heads: Iterable[Head], to: Mapping[str, Tensor] | None = None
) -> Iterator[None]:
    """Replace what these heads pass on by zeros, or by `to` (from `mean_outputs`), in the block.

    Zeros take away what a head adds on average too, which later layers count on; the mean takes
    away only what it says about this sentence. Raises KeyError for a layer the model lacks and
    ValueError for a head the layer lacks.
    """
    layers, hooks = attention_layers(model), []
    try:
        for name, index in heads:
            layer = layers[name]
            if not 0 <= index < layer.num_heads:
                raise ValueError(f"head {index} is not among {name}'s 0..{layer.num_heads - 1}")
            width = layer.d_model // layer.num_heads
            part = slice(index * width, (index + 1) * width)

            def change(_: nn.Module, inputs: tuple[Tensor], name: str = name, part: slice = part):
                joined = inputs[0].clone()
                joined[..., part] = 0.0 if to is None else to[name][part].to(joined)
                return (joined,)

            hooks.append(layer.w_o.register_forward_pre_hook(change))
        yield
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def teacher_forced(model: Transformer, batch: Batch) -> tuple[Tensor, float]:
    """Read the gold target in one pass: which sentences are right in every word, and the loss.

    A sentence is right if each word is the likeliest after the gold words before it, <eos>
    included, and of words that decoding may write (<pad> and <bos> it may not). Greedy decoding
    gets the same sentences right, since up to its first mistake it has written the gold words; only
    where two words are as likely to the last bit may rounding decide otherwise. Returns booleans
    (B,) and nats per token.
    """
    real = batch.tgt_out != PAD
    with evaluation_mode(model):
        hidden = model.decode(batch.tgt_in, model.encode(batch.src))
        log_p = model.output(hidden[real]).float().log_softmax(-1)  # (B, T, C) -> (tokens, V)
    gold = batch.tgt_out[real]
    wrong = torch.zeros_like(real)
    loss = -log_p.gather(-1, gold[:, None]).mean().item()
    log_p[:, [PAD, BOS]] = -torch.inf
    wrong[real] = log_p.argmax(-1) != gold
    return ~wrong.any(dim=1), loss


class Damage(NamedTuple):
    """What silencing costs: negative where it helps."""

    exact: float  # the share of sentences right in every word falls by
    loss: float  # nats per token more


def damage(
    model: Transformer,
    batch: Batch,
    heads: Iterable[Head],
    to: Mapping[str, Tensor] | None = None,
    intact: tuple[Tensor, float] | None = None,
) -> Damage:
    """Silence these heads together and compare with the `intact` model's `teacher_forced`.

    Raises KeyError for a layer the model lacks and ValueError for a head the layer lacks.
    """
    return cost(model, batch, silenced(model, heads, to), intact)


def cost(
    model: Transformer,
    batch: Batch,
    change: AbstractContextManager[None],
    intact: tuple[Tensor, float] | None = None,
) -> Damage:
    """Compare the model inside the block `change` with the `intact` model's `teacher_forced`."""
    right, loss = intact or teacher_forced(model, batch)
    with change:
        still_right, without = teacher_forced(model, batch)
    lost = right.float().mean() - still_right.float().mean()
    return Damage(lost.item(), without - loss)
