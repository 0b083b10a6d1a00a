"""Models of other makes with the weights of ours: plain ones, torch's, Hugging Face's."""

import functools
import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from support import copy_twins, stack_twins
from torch import nn

from tinytf.pretrained import gpt2
from tinytf.pretrained.marian import NAMES
from tinytf.related.marian import half_and_half
from tinytf.transformer import Memory, Transformer

GELU = functools.partial(F.gelu, approximate="tanh")


def joined(*maps):
    """The weights of several maps one below the other, as one map's state."""
    states = [m.state_dict() for m in maps]
    return {name: torch.cat([state[name] for state in states]) for name in states[0]}


class PlainLayer(nn.Module):
    """A pre-norm layer as a good engineer writes it: joined projections, the fused kernel."""

    def __init__(self, ours, config, causal, activation):
        super().__init__()
        width, crosses = config.d_model, hasattr(ours, "cross_attention")
        self.heads, self.causal, self.activation = config.num_heads, causal, activation
        self.dropout = nn.Dropout(config.dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 + crosses))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, config.d_ff), nn.Linear(config.d_ff, width)
        a, f = ours.self_attention, ours.feed_forward
        states = [(self.qkv, joined(a.w_q, a.w_k, a.w_v)), (self.out, joined(a.w_o)),
                  (self.up, joined(f.w_1)), (self.down, joined(f.w_2))]  # fmt: skip
        if crosses:
            c = ours.cross_attention
            self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
            self.cross_out = nn.Linear(width, width)
            states += [(self.q, joined(c.w_q)), (self.kv, joined(c.w_k, c.w_v)),
                       (self.cross_out, joined(c.w_o))]  # fmt: skip
        for i, norm in enumerate(self.norms, 1):
            states.append((norm, joined(getattr(ours, f"residual_{i}").norm)))
        for mine, state in states:
            mine.load_state_dict(state)

    def split(self, x, parts):
        """(B, T, parts * C) to `parts` of (B, H, T, D)."""
        return [p.unflatten(2, (self.heads, -1)).transpose(1, 2) for p in x.chunk(parts, dim=2)]

    def forward(self, x, mask=None, memory=None):
        """(B, T, C) to (B, T, C); the mask is the source's, True at words."""
        q, k, v = self.split(self.qkv(self.norms[0](x)), 3)
        hidden = None if self.causal else mask
        y = F.scaled_dot_product_attention(q, k, v, hidden, is_causal=self.causal)
        x = x + self.dropout(self.out(y.transpose(1, 2).flatten(2)))
        if memory is not None:
            (q,), (k, v) = self.split(self.q(self.norms[1](x)), 1), self.split(self.kv(memory), 2)
            y = F.scaled_dot_product_attention(q, k, v, mask)
            x = x + self.dropout(self.cross_out(y.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.down(self.activation(self.up(self.norms[-1](x)))))


def plain_stack(stack, config, causal, activation):
    """The layers of one of our stacks written plainly, and its norm."""
    layers = (PlainLayer(layer, config, causal, activation) for layer in stack.layers)
    norm = nn.LayerNorm(config.d_model)
    norm.load_state_dict(stack.final_norm.state_dict())
    return nn.ModuleList(layers), norm


class Translating(nn.Module):
    """What stands around the stacks of an encoder-decoder; used as ours is (`Seq2Seq`)."""

    def __init__(self, model):
        super().__init__()
        c = self.config = model.config
        self.source = nn.Embedding(c.src_vocab_size, c.d_model)
        self.target = nn.Embedding(c.tgt_vocab_size, c.d_model)
        self.register_buffer("positions", model.positions.table.clone(), persistent=False)
        self.dropout = nn.Dropout(c.dropout)
        self.output = nn.Linear(c.d_model, c.tgt_vocab_size, bias=False)
        self.output.weight = self.target.weight
        copy_twins([([model.src_embedding.weight], self.source.weight),
                    ([model.tgt_embedding.weight], self.target.weight)])  # fmt: skip

    def embed(self, table, ids):
        """Ids (B, T) to (B, T, C)."""
        scale = math.sqrt(self.config.d_model)
        return self.dropout(table(ids) * scale + self.positions[: ids.size(1)])

    def forward(self, src, tgt):
        """Ids (B, S) and (B, T) to logits (B, T, V)."""
        return self.output(self.decode(tgt, self.encode(src)))

    @property
    def device(self):
        """The device the parameters are on."""
        return self.output.weight.device


class PlainTransformer(Translating):
    """An encoder-decoder of plain layers, with the weights of a pre-norm one of ours."""

    def __init__(self, model):
        super().__init__(model)
        self.encoder, self.norm = plain_stack(model.encoder, model.config, False, F.relu)
        self.layers, self.final_norm = plain_stack(model.decoder, model.config, True, F.relu)

    def encode(self, src):
        """Read source ids (B, S)."""
        x, mask = self.embed(self.source, src), (src != 0)[:, None, None, :]
        for layer in self.encoder:
            x = layer(x, mask)
        return Memory(self.norm(x), mask)

    def decode(self, tgt, memory):
        """Represent target prefixes, padded at the end if at all."""
        y = self.embed(self.target, tgt)
        for layer in self.layers:
            y = layer(y, memory.mask, memory.states)
        return self.final_norm(y)


class TorchTransformer(Translating):
    """`nn.Transformer` with what it lacks to translate; its dropout is in more places."""

    def __init__(self, model):
        super().__init__(model)
        c = self.config
        self.core = nn.Transformer(
            c.d_model, c.num_heads, c.num_layers, c.num_layers, c.d_ff, c.dropout,
            batch_first=True, norm_first=c.norm == "pre",
        )  # fmt: skip
        copy_twins(stack_twins(model.encoder, self.core.encoder))
        copy_twins(stack_twins(model.decoder, self.core.decoder))

    def encode(self, src):
        """Read source ids (B, S)."""
        x = self.embed(self.source, src)
        return Memory(self.core.encoder(x, src_key_padding_mask=src == 0), src != 0)

    def decode(self, tgt, memory):
        """Represent target prefixes; torch's masks are True = hide."""
        future = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device).triu(1)
        return self.core.decoder(
            self.embed(self.target, tgt), memory.states, tgt_mask=future,
            tgt_key_padding_mask=tgt == 0, memory_key_padding_mask=~memory.mask,
        )  # fmt: skip


class PlainGPT(nn.Module):
    """The shape of nanoGPT with the weights of ours, or with `torchs` nn.TransformerEncoder."""

    def __init__(self, model, torchs=False):
        super().__init__()
        c = model.config
        self.dropout, self.torchs = nn.Dropout(c.dropout), torchs
        self.words = nn.Embedding(c.vocab_size, c.d_model)
        self.places = nn.Embedding(c.max_len, c.d_model)
        self.head = nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.head.weight = self.words.weight
        copy_twins([([model.embedding.weight], self.words.weight),
                    ([model.positions.table], self.places.weight)])  # fmt: skip
        if not torchs:
            self.layers, self.norm = plain_stack(model.decoder, c, True, GELU)
            return
        layer = nn.TransformerEncoderLayer(
            c.d_model, c.num_heads, c.d_ff, c.dropout, GELU, batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(c.d_model)
        self.core = nn.TransformerEncoder(layer, c.num_layers, norm, enable_nested_tensor=False)
        copy_twins(stack_twins(model.decoder, self.core))

    def forward(self, ids):
        """Ids (B, T) to logits (B, T, V)."""
        places = torch.arange(ids.size(1), device=ids.device)
        x = self.dropout(self.words(ids) + self.places(places))
        if self.torchs:
            mask = nn.Transformer.generate_square_subsequent_mask(len(places), device=ids.device)
            return self.head(self.core(x, mask=mask, is_causal=True))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def like_marian(config):
    """One of ours in Marian's shape: post-norm, one table for both sides, its positions."""
    model = Transformer(replace(config, norm="post", share_embeddings=True))
    model.positions.table = half_and_half(config.max_len, config.d_model)
    return model


def marian(model):
    """Hugging Face's Marian with the weights of a model by `like_marian`; without it None."""
    try:
        from transformers import MarianConfig, MarianMTModel
    except ImportError:
        return None
    c = model.config
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=c.src_vocab_size, d_model=c.d_model, encoder_layers=c.num_layers,
            decoder_layers=c.num_layers, encoder_attention_heads=c.num_heads,
            decoder_attention_heads=c.num_heads, encoder_ffn_dim=c.d_ff, decoder_ffn_dim=c.d_ff,
            dropout=c.dropout, max_position_embeddings=c.max_len, pad_token_id=0, bos_token_id=1,
            eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None,
            scale_embedding=True, activation_function=c.activation, use_cache=False,
        )
    )  # fmt: skip
    ours = model.state_dict()
    state = {}
    for their_name, our_name in NAMES.items():
        for i in range(c.num_layers):
            for kind in (".weight", ".bias"):
                if (name := our_name.format(i) + kind) in ours:
                    state[their_name.format(i) + kind] = ours[name]
    if unknown := theirs.load_state_dict(state, strict=False).unexpected_keys:
        raise ValueError(f"Marian has no {unknown[0]}")
    theirs.tie_weights()
    return theirs


def hugging_face_gpt2(model):
    """Hugging Face's GPT-2 with the weights of ours; without it None."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return None
    drop = {"embd_pdrop": model.config.dropout, "resid_pdrop": model.config.dropout}
    said = gpt2.to_config(model) | drop | {"attn_pdrop": 0.0, "eos_token_id": None}
    theirs = GPT2LMHeadModel(GPT2Config(**said))
    theirs.load_state_dict(gpt2.to_state(model), strict=False)
    theirs.tie_weights()
    return theirs
