"""A study of speed: a ladder of changes to one training step.

Speeds are a machine's, and this one may be busy: runs take turns, ratios are taken turn by turn,
and a median stands between its quartiles.
"""

import shutil
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from tinytf.attention import explicit_attention, fused_attention
from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import attention_layers
from tinytf.metrics.cost import flops, gpt_products
from tinytf.support.randomness import seeded
from tinytf.training.losses import TextBatch, next_token_loss
from tinytf.training.trainer import InFloat32
from tinytf_course.studies.interleaved import Spread, interleave, spread

__all__ = [
    "ROWS",
    "RUNGS",
    "SIZES",
    "TrainingStep",
    "ladder",
    "shares",
    "whole_loss",
]


SIZES = GPTConfig(vocab_size=8192, d_model=192, num_heads=6, num_layers=6, max_len=256)
ROWS = 8  # sequences of 256 tokens a step: enough logits for the loss in parts


class Rung(NamedTuple):
    """How a training step is computed; what it computes is the same."""

    attention: Callable[..., Tensor] = fused_attention
    fused_adamw: bool = True
    by_parts: bool = True  # the loss, so that all logits never exist
    bfloat16: bool = False  # under autocast
    compiled: bool = False


# Changes one after another; the last three start from the fourth. Under autocast the loss is of all
# logits at once, and a CPU's attention stays in float32.
RUNGS = {
    "plain": Rung(explicit_attention, fused_adamw=False, by_parts=False),
    "fused attention": Rung(fused_adamw=False, by_parts=False),
    "fused AdamW": Rung(by_parts=False),
    "loss in parts": Rung(),
    "bfloat16": Rung(by_parts=False, bfloat16=True),
    "compiled": Rung(compiled=True),
    "bfloat16, compiled": Rung(by_parts=False, bfloat16=True, compiled=True),
}
LINEAR = ("aten::mm", "aten::addmm")
LOSS = ("log_softmax", "nll_loss", "cross_entropy")
ATTENTION = (
    "scaled_dot_product",
    "flash_attention",
    "bmm",
    "softmax",
    "masked_fill",
    "bitwise_not",
)
COMPILED = ("CompiledFunction", "Compiled", "inductor")


def whole_loss(model: GPT, batch: TextBatch) -> tuple[Tensor, int]:
    """Sum the loss as `next_token_loss` does where all logits exist at once."""
    logits = model.output(model.decode(batch.ids_in).flatten(0, 1)).float()
    targets = batch.ids_out.flatten()
    return F.cross_entropy(logits, targets, reduction="sum"), len(targets)


class TrainingStep:
    """Training steps of a GPT on one random batch, computed as a rung says.

    Calling it takes a step and returns the loss before it, in nats per token. Equal seeds give
    equal weights and an equal batch on every rung. `attention` takes the place of the rung's.
    """

    def __init__(
        self,
        rung: str,
        device: torch.device | str = "cpu",
        config: GPTConfig = SIZES,
        rows: int = ROWS,
        seed: int = 0,
        attention: Callable[..., Tensor] | None = None,
    ) -> None:
        r = RUNGS[rung]
        attention = attention or r.attention
        with seeded(seed):
            self.model = GPT(config)
            ids = torch.randint(config.vocab_size, (rows, config.max_len + 1))
        self.model.to(device)
        self.batch = TextBatch(ids[:, :-1], ids[:, 1:]).to(torch.device(device))
        self.tokens = self.batch.num_tokens
        kind = self.model.device.type
        slow_in_half = r.bfloat16 and kind == "cpu"  # attention's backward is, on a CPU
        for layer in attention_layers(self.model).values():
            layer.attention = InFloat32(attention) if slow_in_half else attention
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-4, fused=r.fused_adamw, foreach=False
        )
        objective = next_token_loss if r.by_parts else whole_loss
        self._autocast = torch.autocast(kind, torch.bfloat16, enabled=r.bfloat16)
        self._loss = torch.compile(objective) if r.compiled else objective

    def __call__(self) -> float:
        """Take a step; return the loss before it."""
        self.optimizer.zero_grad(set_to_none=True)
        with self._autocast:
            total, count = self._loss(self.model, self.batch)
            loss = total / count
        loss.backward()
        self.optimizer.step()
        return loss.item()


def shares(step: TrainingStep) -> dict[str, float]:
    """Say where a step's time goes: each kind of operation's share of three, by the profiler."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for _ in range(3):
            step()
    times = dict.fromkeys(("linear layers", "attention", "output and loss", "optimiser",
                           "compiled", "the rest"), 0.0)  # fmt: skip
    for event in profiler.events():
        times[_kind(event, step.model.config.vocab_size)] += event.self_cpu_time_total
    whole = sum(times.values())
    return {kind: round(spent / whole, 3) for kind, spent in times.items()}


def _kind(event: object, vocab_size: int) -> str:
    above = event
    while above is not None:
        if above.name.startswith("Optimizer."):
            return "optimiser"
        above = above.cpu_parent
    name = event.name
    if any(word in name for word in LOSS):
        return "output and loss"
    if name in LINEAR:
        over_words = any(vocab_size in shape for shape in event.input_shapes if shape)
        return "output and loss" if over_words else "linear layers"
    if any(word in name for word in ATTENTION):
        return "attention"
    return "compiled" if any(word in name for word in COMPILED) else "the rest"


def ladder(rounds: int = 7, threads: Iterable[int] = (1, 2)) -> list[dict]:
    """Measure every rung on the CPU, with one thread and with two.

    The compiled rungs, whose compiling takes longer than all the rest, come with the fewest threads
    only; without a C++ compiler they are left out.
    """
    before, rows, threads = torch.get_num_threads(), [], sorted(threads)
    has_compiler = any(shutil.which(name) for name in ("g++", "clang++", "cl"))
    tokens = ROWS * SIZES.max_len
    whole = sum(flops(gpt_products(SIZES, SIZES.max_len, ROWS), backward=True).values())
    try:
        for count in threads:
            torch.set_num_threads(count)
            compiling = has_compiler and count == threads[0]
            names = [name for name, rung in RUNGS.items() if compiling or not rung.compiled]
            steps = {name: TrainingStep(name) for name in names}
            losses = {name: step() for name, step in steps.items()}
            timings = interleave(steps, rounds)
            for name, step in steps.items():
                rates = spread([tokens / taken for taken in timings.seconds[name]])
                rows.append({
                    "threads": count, "rung": name, "tokens_per_second": _rounded(rates, 1),
                    "times_plain": _rounded(timings.ratio("plain", name), 3),
                    "first_loss": round(losses[name], 4),
                    "gflops": round(whole / timings.of(name).median / 1e9, 1),
                    "shares": shares(step),
                })  # fmt: skip
    finally:
        torch.set_num_threads(before)
    return rows


def _rounded(rates: Spread, digits: int) -> list[float]:
    """Quartile, median, quartile."""
    return [round(value, digits) for value in (rates.low, rates.median, rates.high)]


STUDIES = {"cost_ladder": ladder}
