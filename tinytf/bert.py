"""BERT: an encoder whose positions attend to both sides of a text (Devlin et al. 2019)."""

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.blocks import Encoder, EncoderLayer
from tinytf.checks import check_dropout, check_heads, check_sizes
from tinytf.embedding import check_ids
from tinytf.initialisation import normal
from tinytf.masks import padding_mask
from tinytf.norm import LayerNorm
from tinytf.positional import LearnedPositionalEncoding
from tinytf.residual import PostNorm

__all__ = ["Bert", "BertConfig"]

NORM = partial(LayerNorm, eps=1e-12)  # BERT's, in every norm


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a `Bert`; the defaults are those of BERT-base, uncased."""

    vocab_size: int = 30522  # word pieces
    d_model: int = 768
    num_heads: int = 12
    num_layers: int = 12
    d_ff: int | None = None  # None: four times d_model
    max_len: int = 512  # positions learned; longer input is refused
    num_segments: int = 2  # which of two sentences a token belongs to
    dropout: float = 0.1  # on embeddings, sublayers' outputs and heads
    pad_id: int = 0

    def __post_init__(self) -> None:
        if self.d_ff is None:
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        check_sizes(
            self, "vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_len",
            "num_segments",
        )  # fmt: skip
        check_heads(self.d_model, self.num_heads)
        check_dropout(self.dropout)
        if not 0 <= self.pad_id < self.vocab_size:
            raise ValueError(
                f"pad_id={self.pad_id} is outside the vocabulary of {self.vocab_size} "
                f"(0..{self.vocab_size - 1})"
            )


class Bert(nn.Module):
    """BERT's encoder: post-norm, learned positions and segments, exact GELU.

    Every position attends to the whole text, left and right. The parts are `embedding`,
    `positions`, `segments`, `norm`, `dropout` and `encoder`; every norm is a `NORM`. Linear layers
    and tables are initialised from N(0, 0.02²). Heads are in `tinytf.related.bert_heads`. Source:
    Devlin et al. 2019, section 3, and its released code, which cuts that normal off at two standard
    deviations; Hugging Face's does not.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        c = self.config = config
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)  # not scaled by √d_model
        self.positions = LearnedPositionalEncoding(c.d_model, c.max_len, dropout=0.0)
        self.segments = nn.Embedding(c.num_segments, c.d_model)
        self.norm = NORM(c.d_model)
        self.dropout = nn.Dropout(c.dropout)
        residual = partial(PostNorm, norm=NORM)
        sizes = (c.d_model, c.num_heads, c.d_ff, c.dropout, residual, F.gelu)
        layers = [EncoderLayer(*sizes) for _ in range(c.num_layers)]
        self.encoder = Encoder(layers, PostNorm.final_norm())
        normal(self, std=0.02)
        for table in (self.embedding, self.segments):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Return a state for each token: ids (B, S) -> states (B, S, C).

        `segments` (B, S) holds the sentence of each token, by default 0 everywhere. No position
        attends to padding, and the states at padding are meaningless. Raises ValueError for an
        empty batch, ids or segments out of range or of different shapes, and texts longer than
        max_len; TypeError for ids that are not integers.
        """
        return self.encoder(self.embed(ids, segments), padding_mask(ids, self.config.pad_id))

    def embed(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Add the rows of id, position and segment, and normalise: (B, S) -> (B, S, C).

        Dropout follows the norm. Without `segments`, all of them are 0.
        """
        check_ids(ids, self.config.vocab_size)
        if segments is None:
            segments = torch.zeros_like(ids)
        self._check_segments(ids, segments)
        x = self.positions(self.embedding(ids)) + self.segments(segments)
        return self.dropout(self.norm(x))

    def _check_segments(self, ids: Tensor, segments: Tensor) -> None:
        if segments.shape != ids.shape:
            raise ValueError(
                f"segments must be of the shape of ids {tuple(ids.shape)}, "
                f"got {tuple(segments.shape)}"
            )
        try:
            check_ids(segments, self.config.num_segments)
        except (TypeError, ValueError) as error:
            raise type(error)(f"segments: {error}") from None

    @property
    def device(self) -> torch.device:
        """The device the parameters are on."""
        return self.embedding.weight.device
