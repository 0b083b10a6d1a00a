"""What training aims at: batches shifted for teacher forcing, and the loss on their words."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.protocols import Seq2Seq
from tinytf.tokenizer import BOS, EOS, PAD, pad_batch

__all__ = ["Batch", "make_batch", "sequence_loss"]


class Batch(NamedTuple):
    """Ids of a batch: what the encoder reads, what the decoder reads, what it must say."""

    src: Tensor  # (B, S), each row ending in <eos>
    tgt_in: Tensor  # (B, T), <bos> then the target
    tgt_out: Tensor  # (B, T), the target then <eos>: tgt_in moved one step left

    def to(self, device: torch.device) -> "Batch":
        """Move all three to a device."""
        return Batch(*(part.to(device) for part in self))


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
