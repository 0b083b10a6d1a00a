"""What training aims at: batches shifted for teacher forcing, and the loss on their tokens."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.checks import is_plain_linear
from tinytf.support.protocols import LanguageModel, Seq2Seq
from tinytf.text.words import BOS, EOS, PAD, pad_batch
from tinytf.training.loss_in_parts import cross_entropy_in_parts

__all__ = [
    "Batch",
    "TextBatch",
    "cross_entropy",
    "for_compiled",
    "make_batch",
    "next_token_loss",
    "sequence_loss",
]


Objective = Callable[..., tuple[Tensor, int]]
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


def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
) -> tuple[Tensor, int]:
    """Sum the cross-entropy of logits (..., V) and target ids (...), in nats, and count the ids.

    The mean is the one divided by the other. Targets equal to `ignore_index`, padding say, are left
    out of both. The label-smoothed loss mixes in the mean over the vocabulary (Szegedy et al. 2016,
    section 7). Raises ValueError if the shapes do not fit.
    """
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} score {tuple(logits.shape[:-1])} tokens, "
            f"but the targets have shape {tuple(targets.shape)}"
        )
    if ignore_index is not None:
        real = targets != ignore_index
        logits, targets = logits[real], targets[real]
    rows, ids = logits.flatten(0, -2), targets.flatten()
    if _gains_in_parts(rows):
        return cross_entropy_in_parts(rows, ids, label_smoothing), len(ids)
    loss = F.cross_entropy(rows.float(), ids, label_smoothing=label_smoothing, reduction="sum")
    return loss, len(ids)


def sequence_loss(model: Seq2Seq, batch: Batch, label_smoothing: float = 0.0) -> tuple[Tensor, int]:
    """Sum the cross-entropy over the real target tokens, in nats, and count those tokens.

    Padding is left out before the output map: no logits are computed for it. The loss is in
    float32, whatever the model computes in. The label-smoothed loss mixes in the mean over the
    vocabulary (Szegedy et al. 2016, section 7).
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
        return loss, len(targets)
    return cross_entropy(model.output(hidden), targets, label_smoothing)  # (B*T, C) -> (B*T, V)


def for_compiled(objective: Objective) -> Objective:
    """Give the form of an objective that calls the model as a whole, which is what torch compiles.

    The two above have one; any other objective is returned as it is.
    """
    return _AS_A_WHOLE.get(objective, objective)


def _whole_sequence_loss(
    model: Seq2Seq, batch: Batch, label_smoothing: float = 0.0
) -> tuple[Tensor, int]:
    logits = model(batch.src, batch.tgt_in)  # padding too: left out after the output map
    return cross_entropy(logits, batch.tgt_out, label_smoothing, ignore_index=PAD)


def _whole_next_token_loss(
    model: LanguageModel, batch: TextBatch, label_smoothing: float = 0.0
) -> tuple[Tensor, int]:
    return cross_entropy(model(batch.ids_in), batch.ids_out, label_smoothing)


_AS_A_WHOLE = {sequence_loss: _whole_sequence_loss, next_token_loss: _whole_next_token_loss}


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


def _gains_in_parts(logits: Tensor) -> bool:
    """Say whether to take the loss of bfloat16 logits some rows at a time.

    Unlike `_gains_by_parts` after the output map: autocast has no such kernel for both. All in
    float32, they would take twice their own memory, several times over.
    """
    return (
        logits.dtype == torch.bfloat16
        and logits.requires_grad
        and logits.device.type == "cpu"
        and logits.numel() >= 2 * PART
        and not torch.compiler.is_compiling()  # which fuses the whole of it
    )
