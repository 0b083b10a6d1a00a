"""Recurrent translators: one context vector (Cho et al. 2014), attention (Bahdanau et al. 2015).

The interface is that of `tinytf.transformer.Transformer`, so that the same loss, trainer and search
serve both.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tinytf.checks import check_dropout, check_sizes
from tinytf.embedding import TokenEmbedding
from tinytf.masks import padding_mask
from tinytf.related.contexts import AdditiveAttention, FixedContext, additive_weights
from tinytf.related.recurrent import GRUCell
from tinytf.transformer import Memory

__all__ = [
    "AdditiveAttention",
    "Alignment",
    "FixedContext",
    "RecurrentConfig",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RecurrentSeq2Seq",
    "additive_weights",
    "record_alignment",
]


Carried = tuple[Tensor, Tensor]  # the decoder's state (B, H), what its context prepared
CONTEXTS = {"none": FixedContext, "additive": AdditiveAttention}


@dataclass(frozen=True)
class RecurrentConfig:
    """The sizes and choices of a `RecurrentSeq2Seq`."""

    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int = 128  # of word vectors
    hidden: int = 192  # of each reading direction, of the decoder and of the attention
    attention: str = "additive"  # or "none": one context vector for the whole sentence
    dropout: float = 0.0  # on word vectors and before the output
    max_len: int = 64  # the longest output searched for; a recurrence has no limit of its own
    pad_id: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "src_vocab_size", "tgt_vocab_size", "d_model", "hidden", "max_len")
        check_dropout(self.dropout)
        if self.attention not in CONTEXTS:
            raise ValueError(f"attention={self.attention!r} is not one of {tuple(CONTEXTS)}")


class RecurrentEncoder(nn.Module):
    """A bidirectional GRU: each state depends on the words before it and the words after it.

    `gru` is an `nn.GRU` of width `hidden` in each direction, batch first: the fused form of
    unrolling `GRUCell` both ways. Padding is never read.
    """

    def __init__(self, d_model: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(d_model, hidden, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Read x (B, S, C), real where mask (B, S); return states (B, S, 2H), 0 at padding.

        Raises ValueError for a row without words or with padding before a word.
        """
        _check_padding(mask)
        lengths = mask.sum(dim=1).cpu()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.gru(packed)[0], batch_first=True, total_length=x.size(1)
        )
        return states


class RecurrentDecoder(nn.Module):
    """A GRU that reads the previous word and a context, and returns the next word's features.

    `context` is what it is given of the source: `FixedContext` or `AdditiveAttention`. `start`
    (H to H, then tanh) computes the first state from the one at which the right-to-left reader
    finished; `cell` is a `GRUCell` that reads word and context, in this order; `merge`, then tanh,
    maps the state that `cell` has just returned, the context and the word, in this order, to C
    numbers. Source: Bahdanau et al. 2015, appendix A.2.2, with a tanh layer instead of maxout.
    """

    def __init__(self, d_model: int, hidden: int, context: nn.Module) -> None:
        super().__init__()
        self.hidden, self.context = hidden, context
        self.start = nn.Linear(hidden, hidden)
        self.cell = GRUCell(d_model + 2 * hidden, hidden)
        self.merge = nn.Linear(hidden + 2 * hidden + d_model, d_model)

    def begin(self, states: Tensor, mask: Tensor) -> Carried:
        """Return what the first step needs: a state (B, H) and what the context prepares.

        states (B, S, 2H) and mask (B, S) are the encoder's.
        """
        first = torch.tanh(self.start(states[:, 0, self.hidden :]))
        return first, self.context.prepare(states, mask)

    def forward(
        self, x: Tensor, states: Tensor, mask: Tensor, carried: Carried | None = None
    ) -> tuple[Tensor, Carried]:
        """Map x (B, T, C) to (B, T, C), step by step; also return what is carried on.

        `carried` continues where an earlier call ended. The context of a step is computed from
        the state before it: x[:, t] has not been read yet.
        """
        state, kept = self.begin(states, mask) if carried is None else carried
        steps = []
        for word in x.unbind(dim=1):
            context = self.context(state, kept, states, mask)
            state = self.cell(torch.cat([word, context], dim=-1), state)
            steps.append(torch.cat([state, context, word], dim=-1))
        return torch.tanh(self.merge(torch.stack(steps, dim=1))), (state, kept)


class RecurrentCache:
    """What a search keeps between steps: what the decoder returned to be carried on."""

    def __init__(self) -> None:
        self.carried: Carried | None = None

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; rows may only move within a sentence."""
        if self.carried is not None:
            self.carried = self.carried[0][rows], self.carried[1]


class SearchedDecoder(RecurrentDecoder):
    """The decoder with a cache, so that a search can continue from step to step."""

    def new_cache(self) -> list[RecurrentCache]:
        """Return an empty cache, for the one layer there is."""
        return [RecurrentCache()]


class RecurrentSeq2Seq(nn.Module):
    """An encoder-decoder of GRUs, with or without attention, in the Transformer's interface."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        c = self.config = config
        self.src_embedding = TokenEmbedding(c.src_vocab_size, c.d_model)
        self.tgt_embedding = TokenEmbedding(c.tgt_vocab_size, c.d_model)
        self.dropout = nn.Dropout(c.dropout)
        self.encoder = RecurrentEncoder(c.d_model, c.hidden)
        self.decoder = SearchedDecoder(c.d_model, c.hidden, CONTEXTS[c.attention](c.hidden))
        self.output = nn.Linear(c.d_model, c.tgt_vocab_size, bias=False)
        self.output.weight = self.tgt_embedding.weight  # tied, as the Transformer's

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Score the token after each target prefix: ids (B, S) and (B, T) -> logits (B, T, V).

        Raises ValueError for ids outside the vocabulary, empty batches, batches of different sizes,
        source rows without a word and padding before a word.
        """
        return self.output(self.decode(tgt, self.encode(src)))

    def encode(self, src: Tensor) -> Memory:
        """Read source ids (B, S) once, both ways: states (B, S, 2H) and their mask."""
        x = self.dropout(self.src_embedding(src))  # (B, S) -> (B, S, C)
        mask = padding_mask(src, self.config.pad_id)
        return Memory(self.encoder(x, mask[:, 0, 0]), mask)

    def decode(
        self, tgt: Tensor, memory: Memory, cache: list[RecurrentCache] | None = None
    ) -> Tensor:
        """Represent each target prefix: ids (B, T) -> hidden states (B, T, C), before the output.

        With a `cache` (from `decoder.new_cache()`), `tgt` holds only the tokens that are new.
        """
        if tgt.size(0) != memory.states.size(0):
            raise ValueError(
                f"target batch of {tgt.size(0)} does not match source batch of "
                f"{memory.states.size(0)}"
            )
        x = self.dropout(self.tgt_embedding(tgt))
        kept = cache[0] if cache else RecurrentCache()
        states, mask = memory.states, memory.mask[:, 0, 0]
        features, kept.carried = self.decoder(x, states, mask, kept.carried)
        return self.dropout(features)

    @property
    def device(self) -> torch.device:
        """The device the parameters are on."""
        return self.output.weight.device


class Alignment:
    """The attention weights of the latest decode, as `record_alignment` yields them."""

    def __init__(self) -> None:
        self.steps: list[Tensor] = []

    @property
    def weights(self) -> Tensor:
        """The weights (B, T, S): row t is where the model looked to write target word t.

        Raises ValueError if nothing was decoded yet.
        """
        if not self.steps:
            raise ValueError("nothing was decoded inside the record_alignment block")
        return torch.stack(self.steps, dim=1)


@contextmanager
def record_alignment(model: RecurrentSeq2Seq) -> Iterator[Alignment]:
    """Record the attention weights of each step while the block runs.

    Each decode starts anew, unless it goes on from a cache. Raises ValueError for a model that has
    one context vector.
    """
    attention = model.decoder.context
    if not isinstance(attention, AdditiveAttention):
        raise ValueError(
            f"a decoder with {type(attention).__name__} has no attention to record: "
            'build the model with attention="additive"'
        )
    seen, before = Alignment(), attention.weights

    def recording(*inputs: Tensor) -> Tensor:
        weights = before(*inputs)
        seen.steps.append(weights.detach())
        return weights

    hook = attention.u.register_forward_hook(lambda *_: seen.steps.clear())
    attention.weights = recording
    try:
        yield seen
    finally:
        attention.weights = before
        hook.remove()


def _check_padding(mask: Tensor) -> None:
    if not mask[:, 0].all():
        row = int((~mask[:, 0]).nonzero()[0])
        raise ValueError(f"source row {row} has no word, or padding before its first word")
    if (mask[:, 1:] & ~mask[:, :-1]).any():
        row = int((mask[:, 1:] & ~mask[:, :-1]).any(dim=1).nonzero()[0])
        raise ValueError(f"source row {row} has padding between its words: pad at the end")
