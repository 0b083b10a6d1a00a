"""Direct logit attribution: a logit as the sum of what each part of a model adds.

With Pre-LN the residual stream is the sum of the embedding and the outputs of all heads and
feed-forward networks. The final norm and the output matrix follow. The norm's divisor is kept as it
was in the run ("frozen"), so everything else is linear, and the parts' logits add up.
Source: Elhage et al. 2021, "A mathematical framework for transformer circuits".
"""

from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention
from tinytf.inspect import attention_layers, record

__all__ = ["direct_logits", "head_parts", "stream_parts"]


def head_parts(layer: MultiHeadAttention, weights: Tensor, values: Tensor) -> Tensor:
    """Split what an attention layer writes into its heads: (B, H, T, C), without w_o's bias.

    `weights` (B, H, T, S) are the layer's, and `values` (B, S, C) is the output of its w_v.
    """
    v = values.unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)  # -> (B, H, S, D)
    w_o = layer.w_o.weight.T.unflatten(0, (layer.num_heads, -1))  # (C, C) -> (H, D, C)
    return weights @ v @ w_o  # -> (B, H, T, C)


def stream_parts(model: nn.Module, *inputs: Tensor) -> dict[str, Tensor]:
    """Run a model on its inputs; return each part of its decoder's final stream, (B, T, C) by name.

    Names are "embedding", then, for every attention layer, "layers.0.self_attention.0" for a head
    and "layers.0.self_attention.bias", then "layers.0.feed_forward" and so on. The embedding is
    the output of `model.positions`. With Pre-LN and in evaluation mode, their sum is the input
    of the final norm.
    """
    layers = attention_layers(model.decoder)
    networks = [f"layers.{i}.feed_forward" for i in range(len(model.decoder.layers))]
    wanted = [*layers, *(f"{name}.w_v" for name in layers), *networks]
    with record(model, "positions", *(f"decoder.{name}" for name in wanted)) as seen:
        model(*inputs)
    parts = {"embedding": seen["positions"]}
    for name, layer in layers.items():
        heads = head_parts(layer, seen[f"decoder.{name}"], seen[f"decoder.{name}.w_v"])
        parts |= {f"{name}.{h}": heads[:, h] for h in range(layer.num_heads)}
        parts[f"{name}.bias"] = layer.w_o.bias.expand_as(parts["embedding"])
    return parts | {name: seen[f"decoder.{name}"] for name in networks}


def direct_logits(norm: nn.Module, part: Tensor, stream: Tensor, direction: Tensor) -> Tensor:
    """Compute what one part (..., C) of `stream` adds to a logit, or to a logit difference: (...).

    `norm` is the LayerNorm before the output, `direction` (..., C) the token's row of the output
    matrix, or the difference of two rows. The stream's standard deviation, with
    `norm.eps` under its root, is kept as it is. The bias of `norm` belongs to no part; it adds
    `norm.bias @ direction`.
    """
    scale = (stream.var(dim=-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    centred = part - part.mean(dim=-1, keepdim=True)
    return (centred / scale * norm.weight * direction).sum(dim=-1)
