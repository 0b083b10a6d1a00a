"""`nn.Transformer` with what it lacks to translate: embeddings, positions, masks, an output."""

import math

import torch
from support import copy_twins, stack_twins
from torch import Tensor, nn

from tinytf.transformer import Memory, Transformer

__all__ = ["TorchTransformer"]


class TorchTransformer(nn.Module):
    """It has the sizes and the weights of one of ours, and is used as ours is (`Seq2Seq`).

    Its dropout is on attention's weights and inside the feed-forward network, too: torch gives it
    one number for all. It has no cache.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        c = self.config = model.config
        self.scale = math.sqrt(c.d_model)
        self.source = nn.Embedding(c.src_vocab_size, c.d_model)
        self.target = nn.Embedding(c.tgt_vocab_size, c.d_model)
        self.register_buffer("positions", model.positions.table.clone(), persistent=False)
        self.dropout = nn.Dropout(c.dropout)
        self.core = nn.Transformer(
            c.d_model, c.num_heads, c.num_layers, c.num_layers, c.d_ff, c.dropout,
            batch_first=True, norm_first=c.norm == "pre",
        )  # fmt: skip
        self.output = nn.Linear(c.d_model, c.tgt_vocab_size, bias=False)
        self.output.weight = self.target.weight
        copy_twins(
            [
                ([model.src_embedding.weight], self.source.weight),
                ([model.tgt_embedding.weight], self.target.weight),
                *stack_twins(model.encoder, self.core.encoder),
                *stack_twins(model.decoder, self.core.decoder),
            ]
        )

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Ids (B, S) and (B, T) to logits (B, T, V)."""
        return self.output(self.decode(tgt, self.encode(src)))

    def encode(self, src: Tensor) -> Memory:
        """Read source ids (B, S)."""
        x = self.dropout(self.source(src) * self.scale + self.positions[: src.size(1)])
        return Memory(self.core.encoder(x, src_key_padding_mask=src == 0), src != 0)

    def decode(self, tgt: Tensor, memory: Memory, cache: None = None) -> Tensor:
        """Represent target prefixes: ids (B, T) to (B, T, C). torch's masks are True = hide."""
        future = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device).triu(1)
        y = self.dropout(self.target(tgt) * self.scale + self.positions[: tgt.size(1)])
        return self.core.decoder(
            y,
            memory.states,
            tgt_mask=future,
            tgt_key_padding_mask=tgt == 0,
            memory_key_padding_mask=~memory.mask,
        )

    @property
    def decoder(self) -> "TorchTransformer":
        """What decoding asks for a cache."""
        return self

    def new_cache(self) -> None:
        """Say that there is none: every prefix is read anew."""

    @property
    def device(self) -> torch.device:
        """The device the parameters are on."""
        return self.output.weight.device
