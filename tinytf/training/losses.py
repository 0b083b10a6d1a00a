"""What training aims at: batches shifted for teacher forcing, and the loss on their tokens."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.checks import is_plain_linear
from tinytf.support.protocols import LanguageModel, Seq2Seq
from tinytf.text.words import BOS, EOS, PAD, pad_batch

__all__ = ["Batch", "TextBatch", "make_batch", "next_token_loss", "sequence_loss"]


PART = 1 << 22  # logits that exist at a time where they need not all: 16 MB


class Batch(NamedTuple):
    """Ids of a batch: what the encoder reads, what the decoder reads, what it must say."""

    src: Tensor  # (B, S), each row ending in <eos>
    tgt_in: Tensor  # (B, T), <bos> then the target
    tgt_out: Tensor  # (B, T), the target then <eos>: tgt_in moved one step left

    def to(self, device: torch.device) -> "Batch":
        """Move all three to a device."""
        return Batch(*(part.to(device) for part in self))

    @property
    def num_tokens(self) -> int:
        """How many tokens the loss is on: those that are not padding."""
        return int((self.tgt_out != PAD).sum())


class TextBatch(NamedTuple):
    """Ids of running text: what a decoder-only model reads, and what it must say after each."""

    ids_in: Tensor  # (B, T)
    ids_out: Tensor  # (B, T): ids_in moved one step left, with the token that follows

    def to(self, device: torch.device) -> "TextBatch":
        """Move both to a device."""
        return TextBatch(*(part.to(device) for part in self))

    @property
    def num_tokens(self) -> int:
        """How many tokens the loss is on: all of them, since blocks of text need no padding."""
        return self.ids_out.numel()


def make_batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Pad rows of ids and shift the targets right for teacher forcing.

    Raises ValueError if the batch is empty or the two sides differ in number.
    """
    if len(sources) != len(targets):
        raise ValueError(f"{len(sources)} sources do not match {len(targets)} targets")
    return Batch(
        pad_batch([[*s, EOS] for s in sources]),
        pad_batch([[BOS, *t] for t in targets]),
        pad_batch([[*t, EOS] for t in targets]),
    )


def sequence_loss(model: Seq2Seq, batch: Batch, label_smoothing: float = 0.0) -> tuple[Tensor, int]:
    """Sum the cross-entropy over the real target tokens, in nats, and count those tokens.

    Padding is left out before the output map, so no logits are computed for it. The label-smoothed
    loss mixes in the mean over the vocabulary (Szegedy et al. 2016, section 7).
    """
    real = batch.tgt_out != PAD
    hidden = model.decode(batch.tgt_in, model.encode(batch.src))
    logits = model.output(hidden[real])  # (B, T, C) -> (tokens, V)
    loss = F.cross_entropy(
        logits.float(), batch.tgt_out[real], label_smoothing=label_smoothing, reduction="sum"
    )
    return loss, logits.size(0)


def next_token_loss(
    model: LanguageModel, batch: TextBatch, label_smoothing: float = 0.0
) -> tuple[Tensor, int]:
    """Sum the cross-entropy of every next token, in nats, and count the tokens.

    The objective of a causal language model: Radford et al. 2018, equation 1. The model has
    `decode` and `output` as a GPT does.
    """
    hidden = model.decode(batch.ids_in).flatten(0, 1)  # (B, T, C) -> (B*T, C)
    targets = batch.ids_out.flatten()
    if is_plain_linear(model.output) and _gains_by_parts(hidden, model.output, label_smoothing):
        rows = max(PART // model.output.out_features, 1)
        options = nn.LinearCrossEntropyOptions(batch_chunk_size=rows)
        loss = F.linear_cross_entropy(
            hidden, model.output.weight, targets, reduction="sum", options=options
        )
    else:
        logits = model.output(hidden).float()  # (B*T, C) -> (B*T, V)
        loss = F.cross_entropy(logits, targets, label_smoothing=label_smoothing, reduction="sum")
    return loss, len(targets)


def _gains_by_parts(hidden: Tensor, output: nn.Linear, label_smoothing: float) -> bool:
    """Say whether to work out loss and gradient part by part, so that all logits never exist.

    Where there are many, a CPU spends longer to fetch fresh memory for them than to compute. torch
    has this for a plain output map, and did not always (2.13 does).
    """
    count, width = hidden.shape
    return (
        hasattr(F, "linear_cross_entropy")
        and torch.is_grad_enabled()
        and hidden.device.type == "cpu"
        and hidden.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and label_smoothing == 0
        and output.bias is None
        and count >= width
        and count * output.out_features >= 2 * PART
    )
