"""The Transformer of Vaswani et al. 2017: embeddings, encoder, decoder, output."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from tinytf.blocks import Decoder, DecoderLayer, Encoder, EncoderLayer, LayerCache
from tinytf.checks import check_dropout, check_heads, check_one_of, check_sizes
from tinytf.embedding import TiedOutput, TokenEmbedding
from tinytf.feedforward import ACTIVATIONS
from tinytf.initialisation import normal, xavier
from tinytf.masks import padding_mask
from tinytf.positional import PositionalEncoding
from tinytf.residual import RESIDUALS
from tinytf.service import Movable, target_mask

__all__ = ["EncoderDecoder", "Memory", "Transformer", "TransformerConfig"]

INITS = {"xavier": xavier, "normal": normal}


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes and choices of a `Transformer`; the defaults are the paper's base model."""

    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int = 512
    num_heads: int = 8  # of width d_model / num_heads = 64
    num_layers: int = 6  # in the encoder, and again in the decoder
    d_ff: int = 2048  # four times d_model
    dropout: float = 0.1  # on embeddings and on each sublayer's output (section 5.4)
    max_len: int = 512  # positions tabulated; longer input is refused
    norm: str = "post"  # "post" as in the paper; "pre" trains without warm-up when deep
    activation: str = "relu"
    share_embeddings: bool = False  # one table for both languages; needs one vocabulary
    tie_output: bool = True  # the output matrix is the target embedding (section 3.4)
    init: str = "xavier"  # keeps variance through linear maps; "normal" is GPT-2's N(0, 0.02)
    pad_id: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "src_vocab_size", "tgt_vocab_size", "d_model", "num_heads", "num_layers",
                    "d_ff", "max_len")  # fmt: skip
        check_heads(self.d_model, self.num_heads)
        check_dropout(self.dropout)
        check_one_of(self, norm=RESIDUALS, activation=ACTIVATIONS, init=INITS)
        if self.share_embeddings and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                f"share_embeddings needs one vocabulary, got src_vocab_size={self.src_vocab_size} "
                f"and tgt_vocab_size={self.tgt_vocab_size}"
            )


class Memory(NamedTuple):
    """What the encoder hands to the decoder; the mask travels with it so it can't be forgotten."""

    states: Tensor  # (B, S, C)
    mask: Tensor  # (B, 1, 1, S), True at real source tokens


class EncoderDecoder(
    TiedOutput,
    Movable,  # service
):
    """How the parts of a translator call each other; which parts, a subclass says.

    It has `src_embedding`, `tgt_embedding`, `positions`, `encoder`, `decoder`, `output` and a
    `config`, whose `pad_id` both masks go by.
    """

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Score the token after each target prefix: ids (B, S) and (B, T) -> logits (B, T, V).

        Raises ValueError for ids outside the vocabulary, empty batches, batches of different sizes
        and sequences longer than max_len.
        """
        return self.output(self.decode(tgt, self.encode(src)))

    def encode(self, src: Tensor) -> Memory:
        """Read source ids (B, S) once, into a `Memory` that serves every decoding step."""
        x = self.positions(self.src_embedding(src))  # (B, S) -> (B, S, C)
        mask = padding_mask(src, self.config.pad_id)
        return Memory(self.encoder(x, mask), mask)

    def decode(
        self,
        tgt: Tensor,
        memory: Memory,
        cache: list[LayerCache] | None = None,  # service
    ) -> Tensor:
        """Represent each target prefix: ids (B, T) -> hidden states (B, T, C), before the output.

        With a `cache` (from `decoder.new_cache()`), `tgt` holds only the tokens that are new.
        """
        _check_batches(tgt, memory)
        start = len(cache[0].self_attention) if cache else 0  # service
        x = self.positions(self.tgt_embedding(tgt), start)  # (B, T) -> (B, T, C)
        mask = target_mask(tgt, self.config.pad_id, cache)
        return self.decoder(x, memory.states, mask, memory.mask, cache)

    @property
    def table(self) -> nn.Parameter:
        """The target's embedding table, which the output may share."""
        return self.tgt_embedding.weight


def _check_batches(tgt: Tensor, memory: Memory) -> None:
    if tgt.size(0) != memory.states.size(0):
        raise ValueError(
            f"target batch of {tgt.size(0)} does not match source batch of {memory.states.size(0)}"
        )


class Transformer(EncoderDecoder):
    """An encoder-decoder that reads source ids and scores the next target token.

    Source: Vaswani et al. 2017, figure 1.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        c = self.config = config
        residual, activation = RESIDUALS[c.norm], ACTIVATIONS[c.activation]
        sizes = (c.d_model, c.num_heads, c.d_ff, c.dropout, residual, activation)
        self.src_embedding = TokenEmbedding(c.src_vocab_size, c.d_model)
        self.tgt_embedding = self.src_embedding
        if not c.share_embeddings:
            self.tgt_embedding = TokenEmbedding(c.tgt_vocab_size, c.d_model)
        self.positions = PositionalEncoding(c.d_model, c.max_len, c.dropout)
        encoder = [EncoderLayer(*sizes) for _ in range(c.num_layers)]
        decoder = [DecoderLayer(*sizes) for _ in range(c.num_layers)]
        self.encoder = Encoder(encoder, residual.final_norm(c.d_model))
        self.decoder = Decoder(decoder, residual.final_norm(c.d_model))
        self.output = nn.Linear(c.d_model, c.tgt_vocab_size, bias=False)
        INITS[c.init](self)
        if c.tie_output:
            self.tie()
