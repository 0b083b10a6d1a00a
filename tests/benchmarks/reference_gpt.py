"""GPT written plainly, in the shape of nanoGPT, and with torch's own encoder layers."""

import functools

import torch
import torch.nn.functional as F
from support import copy_twins, stack_twins
from torch import Tensor, nn

from benchmarks.recipe import joined
from tinytf.gpt import GPT

__all__ = ["Reference", "TorchEncoder"]


class Layer(nn.Module):
    """Attention with joined projections and the causal kernel, then a feed-forward with GELU."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(c, dim=2)
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.proj(y.transpose(1, 2).contiguous().view(b, t, c)))
        inner = F.gelu(self.up(self.ln_2(x)), approximate="tanh")
        return x + self.dropout(self.down(inner))

    def load(self, layer: nn.Module) -> None:
        """Take the weights of one of our layers."""
        a, f = layer.self_attention, layer.feed_forward
        self.qkv.load_state_dict(joined((a.w_q, a.w_k, a.w_v)))
        for mine, ours in (
            (self.ln_1, layer.residual_1.norm), (self.proj, a.w_o),
            (self.ln_2, layer.residual_2.norm), (self.up, f.w_1), (self.down, f.w_2),
        ):  # fmt: skip
            mine.load_state_dict(ours.state_dict())


class Around(nn.Module):
    """What stands around the layers: learned positions, a head that is the embedding."""

    def __init__(self, model: GPT) -> None:
        super().__init__()
        c = model.config
        self.dropout = nn.Dropout(c.dropout)
        self.wte = nn.Embedding(c.vocab_size, c.d_model)
        self.wpe = nn.Embedding(c.max_len, c.d_model)
        self.head = nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.head.weight = self.wte.weight
        self.wte.load_state_dict(model.embedding.state_dict())
        self.wpe.load_state_dict({"weight": model.positions.table.detach()})

    def embed(self, ids: Tensor) -> Tensor:
        """Ids (B, T) to (B, T, C)."""
        places = torch.arange(ids.size(1), device=ids.device)
        return self.dropout(self.wte(ids) + self.wpe(places))


class Reference(Around):
    """What nanoGPT has, with the weights of ours."""

    def __init__(self, model: GPT) -> None:
        super().__init__(model)
        c = model.config
        sizes = (c.d_model, c.num_heads, c.d_ff, c.dropout)
        self.layers = nn.ModuleList(Layer(*sizes) for _ in range(c.num_layers))
        self.ln_f = nn.LayerNorm(c.d_model)
        self.ln_f.load_state_dict(model.decoder.final_norm.state_dict())
        for mine, layer in zip(self.layers, model.decoder.layers, strict=True):
            mine.load(layer)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (B, T) to logits (B, T, V)."""
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln_f(x))


class TorchEncoder(Around):
    """`nn.TransformerEncoder` made causal, with the weights of ours.

    Its dropout is on attention's weights and inside the feed-forward network, too.
    """

    def __init__(self, model: GPT) -> None:
        super().__init__(model)
        c = model.config
        layer = nn.TransformerEncoderLayer(
            c.d_model, c.num_heads, c.d_ff, c.dropout, batch_first=True, norm_first=True,
            activation=functools.partial(F.gelu, approximate="tanh"),
        )  # fmt: skip
        norm = nn.LayerNorm(c.d_model)
        self.core = nn.TransformerEncoder(layer, c.num_layers, norm, enable_nested_tensor=False)
        copy_twins(stack_twins(model.decoder, self.core))

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (B, T) to logits (B, T, V)."""
        length = ids.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=ids.device)
        return self.head(self.core(self.embed(ids), mask=mask, is_causal=True))
