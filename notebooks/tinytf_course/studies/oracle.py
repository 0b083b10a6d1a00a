"""PyTorch's own Transformer with our weights in it, to compare the two."""

import warnings

import torch
from torch import Tensor, nn

from tinytf.attention import MultiHeadAttention
from tinytf.blocks import Decoder
from tinytf.masks import causal_mask
from tinytf.text.words import PAD
from tinytf.transformer import EncoderDecoder

__all__ = ["decoder_gap", "oracle_gap", "twin_of"]


@torch.no_grad()
def oracle_gap(ours: EncoderDecoder) -> Tensor:
    """Give the largest difference of hidden states from `nn.Transformer` with the same weights.

    Both read a padded batch. Weights are stirred first, since biases of 0 would hide a forgotten
    one: the model is changed.
    """
    for parameter in ours.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    c, device = ours.config, ours.table.device
    src = torch.randint(3, c.src_vocab_size, (2, 9), device=device)
    tgt = torch.randint(3, c.tgt_vocab_size, (2, 7), device=device)
    src[0, 6:], tgt[1, 5:] = PAD, PAD
    with warnings.catch_warnings():  # PyTorch announces that a part of it may change
        warnings.simplefilter("ignore")
        theirs = twin_of(ours.eval())(
            ours.positions(ours.src_embedding(src)), ours.positions(ours.tgt_embedding(tgt)),
            tgt_mask=~causal_mask(7, device)[0, 0], src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt == PAD, memory_key_padding_mask=src == PAD,
        )  # fmt: skip
    return (theirs - ours.decode(tgt, ours.encode(src))).abs().max()


def decoder_gap(ours: Decoder) -> float:
    """Give the largest difference from `nn.TransformerDecoder`, of outputs and of gradients.

    Both read five positions under a causal mask and a padded memory of seven, with the same
    weights in float64. They are stirred first, and gradients go back to both inputs: the decoder
    is changed. Its activation must be ReLU.
    """
    first = ours.layers[0]
    d_model, heads = first.self_attention.d_model, first.self_attention.num_heads
    pre = not isinstance(first.residual_1.final_norm(1), nn.Identity)  # by what it does
    theirs = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(d_model, heads, first.feed_forward.w_1.out_features, 0.0,
                                   batch_first=True, norm_first=pre),
        len(ours.layers), ours.final_norm if pre else None,
    )  # fmt: skip
    ours, theirs = ours.double().eval(), theirs.double().eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for pair in zip(theirs.layers, ours.layers, strict=True):
            _copy_layer(*pair)
        if pre:
            theirs.norm = ours.final_norm
    device = next(ours.parameters()).device
    theirs.to(device)
    x = torch.randn(2, 5, d_model, dtype=torch.double, device=device, requires_grad=True)
    memory = torch.randn(2, 7, d_model, dtype=torch.double, device=device, requires_grad=True)
    real = torch.ones(2, 7, dtype=torch.bool, device=device)
    real[1, 4:] = False
    mask = causal_mask(5, device)
    outs = (
        ours(x, memory, mask, real[:, None, None]),
        theirs(x, memory, tgt_mask=~mask[0, 0], memory_key_padding_mask=~real),
    )
    slopes = [torch.autograd.grad(out.sin().sum(), (x, memory)) for out in outs]
    pairs = [outs, *zip(*slopes, strict=True)]
    return max((a - b).abs().max().item() for a, b in pairs)


@torch.no_grad()
def twin_of(ours: EncoderDecoder) -> nn.Transformer:
    """Copy a model's layers into an `nn.Transformer`, its final norms included.

    PyTorch keeps W_Q, W_K and W_V in one matrix, says True = hide in its masks, and would end in
    final norms after Post-LN too.
    """
    c = ours.config
    with warnings.catch_warnings():  # PyTorch announces which fast path it will not take
        warnings.simplefilter("ignore")
        theirs = nn.Transformer(c.d_model, c.num_heads, c.num_layers, c.num_layers, c.d_ff, 0.0,
                                batch_first=True, norm_first=c.norm == "pre")  # fmt: skip
    for side in ("encoder", "decoder"):
        stack, copy = getattr(ours, side), getattr(theirs, side)
        for pair in zip(copy.layers, stack.layers, strict=True):
            _copy_layer(*pair)
        copy.norm = stack.final_norm
    return theirs.to(ours.table.device).eval()


def _copy_layer(theirs: nn.Module, ours: nn.Module) -> None:
    twins = {
        "linear1": ours.feed_forward.w_1, "linear2": ours.feed_forward.w_2,
        "norm1": ours.residual_1.norm, "norm2": ours.residual_2.norm,
    }  # fmt: skip
    _copy_attention(theirs.self_attn, ours.self_attention)
    if hasattr(ours, "cross_attention"):
        _copy_attention(theirs.multihead_attn, ours.cross_attention)
        twins["norm3"] = ours.residual_3.norm
    for name, part in twins.items():
        getattr(theirs, name).load_state_dict(part.state_dict())


def _copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    maps = (ours.w_q, ours.w_k, ours.w_v)
    theirs.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))
    theirs.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))
    theirs.out_proj.load_state_dict(ours.w_o.state_dict())
