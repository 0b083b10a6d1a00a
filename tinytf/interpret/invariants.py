"""Properties that a right model has, each as a number: what shapes and losses can't tell.

Each check calls the model as a black box and returns a tensor or a float. Those called a *change*
are the largest absolute difference between outputs that should be equal: 0 up to rounding. Those
made of gradients are 0 to the last bit where there is no way from input to output.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytf.decoding.search import greedy
from tinytf.metrics.translation import teacher_forced
from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import Seq2Seq
from tinytf.text.words import BOS, PAD
from tinytf.training.losses import Batch
from tinytf.transformer import Transformer

__all__ = [
    "argument_change",
    "batch_change",
    "cache_change",
    "free_running",
    "free_running_gap",
    "future_change",
    "future_gradient",
    "influence",
    "pad_change",
    "prefix_change",
    "right_context",
    "shift_errors",
    "target_influence",
]

Function = Callable[[Tensor], Tensor]


def influence(function: Function, x: Tensor, probes: int = 4, seed: int = 0) -> Tensor:
    """Measure how far each output position depends on each input position: |d out_t / d in_s|.

    `function` maps x (B, S, C), embedded inputs, to (B, T, anything). Returns (T, S), the
    Frobenius norm of that block of the Jacobian, root mean square over the batch, estimated from
    `probes` random directions of the output; where no path leads from s to t it is exactly 0.
    Raises ValueError if x is not of rank 3, if the output is not (B, T, ...) or does not depend on
    x at all, and for probes below 1.
    """
    if probes < 1:
        raise ValueError(f"probes must be at least 1, got {probes}: none would find no leak")
    if x.dim() != 3:
        raise ValueError(f"x must be embedded inputs of shape (B, S, C), got {tuple(x.shape)}")
    leaf = x.detach().clone().requires_grad_()
    with torch.enable_grad():
        out = function(leaf)
        if out.dim() < 2 or out.size(0) != x.size(0):
            shape = tuple(out.shape)
            raise ValueError(f"outputs must be of shape (B, T, ...), got {shape} for B={x.size(0)}")
        if not out.requires_grad:
            raise ValueError("the output does not depend on x: does the function detach it?")
        draws = torch.Generator().manual_seed(seed)
        rows = []
        for t in range(out.size(1)):
            square = torch.zeros((), dtype=x.dtype, device=x.device)
            for _ in range(probes):
                direction = torch.randn(out[:, t].shape, generator=draws).to(out)
                grad = torch.autograd.grad(
                    out[:, t], leaf, direction, retain_graph=True, allow_unused=True
                )[0]
                if grad is not None:  # None: no path from any input
                    square = square + grad.square().sum(-1).mean(0) / probes  # (B, S, C) -> (S,)
            rows.append(square.sqrt().expand(x.size(1)))
    return torch.stack(rows)


def future_gradient(function: Function, x: Tensor) -> float:
    """Give the largest influence of a later input on an earlier output: 0 in a causal model.

    Takes what `influence` takes, with as many outputs as inputs (ValueError otherwise).
    """
    return _above_diagonal(influence(function, x)).max().item()


def right_context(function: Function, x: Tensor) -> float:
    """Give the smallest influence of a later input on an earlier output.

    Above 0 in an encoder, in which every position sees every other; exactly 0 in a causal one.
    """
    return _above_diagonal(influence(function, x)).min().item()


def target_influence(model: Transformer, src: Tensor, tgt: Tensor) -> Tensor:
    """Measure `influence` of each embedded target token on each of the decoder's outputs.

    src is (B, S), tgt (B, T); returns (T, T). The output of `model.tgt_embedding` is what is
    differentiated by, whatever the model does with it afterwards.
    """
    with evaluation_mode(model):
        with torch.no_grad():
            memory = model.encode(src)
            x = model.tgt_embedding(tgt)

        def decode(leaf: Tensor) -> Tensor:
            hook = model.tgt_embedding.register_forward_hook(lambda *_: leaf)
            try:
                return model.decode(tgt, memory)
            finally:
                hook.remove()

        return influence(decode, x)


def _above_diagonal(table: Tensor) -> Tensor:
    if table.size(0) != table.size(1) or table.size(0) < 2:
        raise ValueError(
            f"needs as many outputs as inputs, at least 2, got {table.size(0)} outputs "
            f"for {table.size(1)} inputs"
        )
    future = torch.ones_like(table, dtype=torch.bool).triu(1)
    return table[future]


@torch.no_grad()
def future_change(function: Function, ids: Tensor, others: Tensor) -> float:
    """Replace the ids after each position; give the largest change of an output up to there.

    `function` maps ids (B, T) to (B, T, anything); `others` (B, T) are the ids put in their place,
    different from `ids` everywhere (ValueError otherwise). Found without gradients, so it works on
    any model, and for `others` of one's choice only.
    """
    if ids.shape != others.shape or (ids == others).any():
        raise ValueError("others must have the shape of ids and differ from them everywhere")
    before, worst = _same_twice(function, ids), 0.0
    for t in range(ids.size(1) - 1):
        changed = torch.cat([ids[:, : t + 1], others[:, t + 1 :]], dim=1)
        after = function(changed)
        worst = max(worst, _apart(before[:, : t + 1], after[:, : t + 1]))
    return worst


@torch.no_grad()
def prefix_change(function: Function, ids: Tensor) -> float:
    """Compare one pass over all of ids with one pass for each prefix of them.

    `function` maps ids (B, T) to (B, T, anything): the last output for ids[:, : t + 1] should be
    output t of the whole. This is what makes training in parallel the same as writing in steps.
    """
    whole, worst = _same_twice(function, ids), 0.0
    for t in range(ids.size(1)):
        worst = max(worst, _apart(function(ids[:, : t + 1])[:, -1], whole[:, t]))
    return worst


@torch.no_grad()
def cache_change(model: Seq2Seq, src: Tensor, tgt: Tensor) -> float:
    """Compare one pass over tgt (B, T) with one cached step for each token, where it is real."""
    with evaluation_mode(model):
        memory, cache = model.encode(src), model.decoder.new_cache()
        whole = model.decode(tgt, memory)
        steps = [model.decode(tgt[:, t : t + 1], memory, cache) for t in range(tgt.size(1))]
    real = tgt != PAD  # a cached step does not hide the padding before it: nobody reads it
    return _apart(torch.cat(steps, dim=1)[real], whole[real])


@torch.no_grad()
def pad_change(
    function: Function, ids: Tensor, pads: int = 5, pad_id: int = PAD, real: Tensor | None = None
) -> float:
    """Append padding to ids (B, S); give the largest change of the outputs that were there before.

    `function` maps ids to (B, S, anything) as an encoder does, or to outputs of another length, as
    does a decoder when ids are its source. `real`, boolean of the outputs' first two axes, leaves
    out those that nobody reads. Changing the amount is the point: a model trained and graded with
    equal padding hides that it reads it. Raises ValueError if pads is below 1.
    """
    if pads < 1:
        raise ValueError(f"pads must be at least 1, got {pads}")
    before = _same_twice(function, ids)
    extra = ids.new_full((ids.size(0), pads), pad_id)
    after = function(torch.cat([ids, extra], dim=1))[:, : before.size(1)]
    if real is not None:
        before, after = before[real], after[real]
    return _apart(before, after)


@torch.no_grad()
def batch_change(function: Callable[..., Tensor], *inputs: Tensor) -> float:
    """Move each row through the batch, and out of it: its output should not change.

    `function` maps inputs, batch first, to a tensor with the batch first. Every row is computed in
    its place, one place further on, and alone. Raises ValueError for a batch of one.
    """
    if inputs[0].size(0) < 2:
        raise ValueError("needs a batch of at least 2 rows, got 1")
    before = _same_twice(function, *inputs)
    moved = function(*(x.roll(1, dims=0) for x in inputs)).roll(-1, dims=0)
    alone = [function(*(x[b : b + 1] for x in inputs)) for b in range(inputs[0].size(0))]
    return max(_apart(before, moved), _apart(before, torch.cat(alone)))


@torch.no_grad()
def argument_change(function: Callable[..., Tensor], one: Tensor, other: Tensor) -> float:
    """Give the largest change of the output when an argument changes from `one` to `other`.

    An argument that is accepted and not used changes nothing, whatever its value: exactly 0.
    """
    return _apart(_same_twice(function, one), function(other))


def shift_errors(batch: Batch) -> float:
    """Give the share of places that do not read the token said one place before, <bos> at first.

    0 for a target shifted right. One that is not shifted hands the answer to the position that has
    to give it, past any mask: the model is causal, and no check of the model finds it. Raises
    ValueError if nothing is to be said.
    """
    real = batch.tgt_out != PAD
    if not real.any():
        raise ValueError("the target is all padding: there is nothing to check")
    word_before = F.pad(batch.tgt_out[:, :-1], (1, 0), value=BOS)
    return (batch.tgt_in != word_before)[real].float().mean().item()


def free_running_gap(model: Transformer, batch: Batch) -> float:
    """Give the share of sentences right when teacher-forced or free-running, but not both.

    Until its first mistake a greedy model has written the gold words, so the two agree, up to
    ties between scores. Where they don't, the model is not asked in use what it learned in
    training. Decodes without a cache, so that masks are made as in training.
    """
    forced, _ = teacher_forced(model, batch)
    return (forced != free_running(model, batch)).float().mean().item()


def free_running(model: Seq2Seq, batch: Batch, use_cache: bool = False) -> Tensor:
    """Decode greedily; say which sentences are the gold target, word for word: booleans (B,)."""
    length = batch.tgt_out.size(1)
    written = greedy(model, batch.src, length, use_cache=use_cache)
    written = F.pad(written, (0, length - written.size(1)), value=PAD)
    return (written == batch.tgt_out).all(dim=1)


def _same_twice(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Return the output; refuse a function that gives another one the second time."""
    one, two = function(*inputs), function(*inputs)
    if not torch.allclose(one, two, 1e-4, 1e-5, equal_nan=True):
        raise ValueError(
            f"two calls with the same input differ by {_apart(one, two):.3g}: "
            "put the model in evaluation mode"
        )
    return one


def _apart(a: Tensor, b: Tensor) -> float:
    if a.shape != b.shape:
        raise ValueError(
            f"outputs of shapes {tuple(a.shape)} and {tuple(b.shape)} can't be compared"
        )
    if not (a.isfinite().all() and b.isfinite().all()):
        return float("inf")
    return (a - b).abs().max().item()
