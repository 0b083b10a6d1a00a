"""An encoder-decoder written plainly: what a good engineer writes in an hour, nothing clever.

Pre-norm, queries, keys and values in one product, torch's fused attention; the weights of ours.
"""

import math

import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.recipe import joined
from tinytf.transformer import Transformer

__all__ = ["Reference"]


def split(x: Tensor, heads: int) -> Tensor:
    """(B, T, C) to (B, H, T, D)."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


class Layer(nn.Module):
    """Self-attention, attention to the memory where there is one, feed-forward."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, crosses: bool) -> None:
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 + crosses))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        if crosses:
            self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
            self.cross_out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Tensor | None = None) -> Tensor:
        """(B, T, C) to (B, T, C); the mask is the source's, True at words."""
        q, k, v = (split(p, self.heads) for p in self.qkv(self.norms[0](x)).chunk(3, dim=2))
        if memory is None:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.out(y.transpose(1, 2).flatten(2)))
        if memory is not None:
            q = split(self.q(self.norms[1](x)), self.heads)
            k, v = (split(p, self.heads) for p in self.kv(memory).chunk(2, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + self.dropout(self.cross_out(y.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.down(F.relu(self.up(self.norms[-1](x)))))

    def load(self, layer: nn.Module) -> None:
        """Take the weights of one of our layers."""
        a, f = layer.self_attention, layer.feed_forward
        self.qkv.load_state_dict(joined((a.w_q, a.w_k, a.w_v)))
        pairs = [(self.out, a.w_o), (self.up, f.w_1), (self.down, f.w_2)]
        if hasattr(layer, "cross_attention"):
            c = layer.cross_attention
            self.kv.load_state_dict(joined((c.w_k, c.w_v)))
            pairs += [(self.q, c.w_q), (self.cross_out, c.w_o)]
        names = ("residual_1", "residual_2", "residual_3")[: len(self.norms)]
        pairs += [(n, getattr(layer, name).norm) for n, name in zip(self.norms, names, strict=True)]
        for mine, ours in pairs:
            mine.load_state_dict(ours.state_dict())


class Reference(nn.Module):
    """The whole model, with the weights of a pre-norm one of ours."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        c = model.config
        self.scale, self.dropout = math.sqrt(c.d_model), nn.Dropout(c.dropout)
        self.source = nn.Embedding(c.src_vocab_size, c.d_model)
        self.target = nn.Embedding(c.tgt_vocab_size, c.d_model)
        self.register_buffer("positions", model.positions.table.clone(), persistent=False)
        sizes = (c.d_model, c.num_heads, c.d_ff, c.dropout)
        self.encoder = nn.ModuleList(Layer(*sizes, False) for _ in range(c.num_layers))
        self.decoder = nn.ModuleList(Layer(*sizes, True) for _ in range(c.num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(c.d_model) for _ in range(2))
        self.head = nn.Linear(c.d_model, c.tgt_vocab_size, bias=False)
        self.head.weight = self.target.weight
        self.load(model)

    def load(self, model: Transformer) -> None:
        """Take the weights of ours."""
        self.source.load_state_dict({"weight": model.src_embedding.weight.detach()})
        self.target.load_state_dict({"weight": model.tgt_embedding.weight.detach()})
        for mine, norm, ours in zip(
            (self.encoder, self.decoder), self.norms, (model.encoder, model.decoder), strict=True
        ):
            norm.load_state_dict(ours.final_norm.state_dict())
            for layer, theirs in zip(mine, ours.layers, strict=True):
                layer.load(theirs)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Ids (B, S) and (B, T) to logits (B, T, V); targets are padded at the end, if at all."""
        mask = (src != 0)[:, None, None, :]
        x = self.dropout(self.source(src) * self.scale + self.positions[: src.size(1)])
        for layer in self.encoder:
            x = layer(x, mask)
        memory = self.norms[0](x)
        y = self.dropout(self.target(tgt) * self.scale + self.positions[: tgt.size(1)])
        for layer in self.decoder:
            y = layer(y, mask, memory)
        return self.head(self.norms[1](y))
