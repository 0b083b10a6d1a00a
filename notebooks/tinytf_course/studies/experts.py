"""A study of experts: in Llama's block, a mixture of experts beside the dense network."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from tinytf.apps.writer import Writer
from tinytf.cli.pretrain import RECIPE, evaluate
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import encode_documents
from tinytf.feedforward import SwiGLU
from tinytf.gpt import GPT
from tinytf.initialisation import normal, scale_residual
from tinytf.metrics.counting import count_parameters
from tinytf.support.protocols import LanguageModel
from tinytf.support.randomness import seeded
from tinytf.training.losses import TextBatch, next_token_loss
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf_course.studies.threads import one_thread
from tinytf_course.studies.todays_block import (
    CHANGES,
    LENGTH,
    RATES,
    ROWS,
    SIZES,
    assemble,
    equal_width,
    tokens,
)

__all__ = [
    "ALPHA",
    "EARLY",
    "EXPERTS",
    "RUNS",
    "MixtureOfExperts",
    "Run",
    "build",
    "layers_of_experts",
    "load_balance",
    "mixture_loss",
    "prepare",
    "shares",
]

EXPERTS, ALPHA = 8, 0.01  # ALPHA weights the balancing loss: Fedus et al. 2021, section 2.2
STEPS = 350
EARLY = 100  # steps after which a chapter's live run is compared with the study's
LONGER = 2 * STEPS  # what the dense model takes in the time of the experts' STEPS, on one core
SEEDS = range(5)


class MixtureOfExperts(nn.Module):
    """Send each token to the `top_k` experts that a router scores highest; add up what they return.

    The experts are `SwiGLU`s of width d_ff, weighted by the softmax of their top_k scores. The
    router's scores of the last forward pass are kept in `logits`, (B, T, E), for `load_balance`.
    Source: Jiang et al. 2024 (Mixtral), section 2.1; Shazeer et al. 2017, section 2.
    """

    def __init__(self, d_model: int, d_ff: int, num_experts: int, top_k: int = 2) -> None:
        super().__init__()
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(d_model, d_ff) for _ in range(num_experts))
        self.top_k = top_k

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, C), each position by itself."""
        self.logits = self.router(x)  # (B, T, C) -> (B, T, E)
        scores, chosen = self.logits.topk(self.top_k, dim=-1)  # (B, T, 2)
        gates = torch.zeros_like(self.logits).scatter(-1, chosen, scores.softmax(dim=-1))
        y = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            sent = gates[..., e] > 0  # (B, T)
            y[sent] += gates[sent][:, e : e + 1] * expert(x[sent])
        return y


def load_balance(logits: Tensor, top_k: int = 2) -> Tensor:
    """Multiply, over E experts, the share f of choices by the mean probability P: E Σ f P.

    logits (..., E) are a router's scores. The value is 1 if each expert is chosen equally often;
    only P carries a gradient. Source: Fedus et al. 2021 (Switch), equations 4 to 6, with f counted
    over all top_k choices, so that it sums to 1.
    """
    logits = logits.flatten(0, -2)  # (B, T, E) -> (tokens, E)
    chosen = logits.topk(top_k, dim=-1).indices
    f = F.one_hot(chosen, logits.size(-1)).float().mean(dim=(0, 1))  # (E,), sums to 1
    return logits.size(-1) * (f * logits.softmax(dim=-1).mean(dim=0)).sum()


def mixture_loss(
    model: LanguageModel, batch: TextBatch, label_smoothing: float = 0.0, alpha: float = ALPHA
) -> tuple[Tensor, int]:
    """Add `alpha` times every layer's `load_balance` to the next-token loss of each token."""
    loss, count = next_token_loss(model, batch, label_smoothing)
    balance = sum(load_balance(layer.logits, layer.top_k) for layer in layers_of_experts(model))
    return loss + alpha * count * balance, count


def layers_of_experts(model: nn.Module) -> list[MixtureOfExperts]:
    """List the layers of experts of a model, from the bottom up."""
    return [part for part in model.modules() if isinstance(part, MixtureOfExperts)]


@dataclass(frozen=True)
class Run:
    """What a run trains: experts or a dense network (0), for how long, balanced or not."""

    experts: int = 0
    steps: int = STEPS
    balanced: bool = True


RUNS = {
    "dense": Run(),
    "dense, equal time": Run(steps=LONGER),
    "mixture": Run(experts=EXPERTS),
    "mixture, unbalanced": Run(experts=EXPERTS, balanced=False),
}


def build(run: Run) -> GPT:
    """Make Llama's block with a dense network, or with experts of half its width each."""
    width = 2 * (equal_width(SIZES, CHANGES) // 2)
    model = assemble(replace(SIZES, d_ff=width), CHANGES)
    if run.experts:
        for layer in model.decoder.layers:
            mixture = MixtureOfExperts(SIZES.d_model, width // 2, run.experts)
            normal(mixture, std=0.02)
            scale_residual(mixture, 2 * SIZES.num_layers)
            layer.feed_forward = mixture
    return model


def prepare(ids: Tensor, run: Run, seed: int = 0, device: str | torch.device = "cpu") -> Trainer:
    """Make a run's untrained model, and its trainer."""
    recipe = RECIPE | {"lr": RATES[0], "warmup": 30, "steps": run.steps, "seed": seed}
    with seeded(seed):
        model = build(run).to(device)
    objective = mixture_loss if run.experts and run.balanced else next_token_loss
    return Trainer(model, TextBlocks(ids, LENGTH, ROWS, seed), TrainingConfig(**recipe), objective)


@torch.inference_mode()
def shares(model: LanguageModel, ids: Tensor, rows: int = 64) -> tuple[float, list[list[float]]]:
    """Read the first `rows` blocks of a text: nats per token, and each layer's choices by expert.

    A layer's shares sum to 1; a model without experts has none.
    """
    block = ids[: rows * LENGTH + 1].to(model.device)
    batch = TextBatch(block[:-1].view(rows, -1), block[1:].view(rows, -1))
    loss, count = next_token_loss(model, batch)
    found = []
    for layer in layers_of_experts(model):
        chosen = layer.logits.topk(layer.top_k, dim=-1).indices.flatten()
        found.append(chosen.bincount(minlength=layer.logits.size(-1)) / len(chosen))
    return loss.item() / count, [[round(x, 4) for x in row.tolist()] for row in found]


@one_thread()
def experts(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train each of RUNS with each seed; grade on held-out topics."""
    tokenizer, texts, ids = tokens()
    held_out = encode_documents(tokenizer, texts.validation)

    def row(name: str, seed: int) -> dict:
        trainer = prepare(ids, RUNS[name], seed)
        begun = time.process_time()
        trainer.run(until=EARLY)
        early, _ = shares(trainer.model, held_out)
        trainer.run()
        spent = time.process_time() - begun
        return {
            "run": name,
            "seed": seed,
            "parameters": count_parameters(trainer.model),
            "milliseconds": round(1000 * spent / RUNS[name].steps, 1),  # of a step
            "early": round(early, 4),
            "bits": round(evaluate(Writer(trainer.model, tokenizer), texts.validation), 4),
            "shares": shares(trainer.model, held_out)[1],
        }

    return [row(name, seed) for seed in tqdm(seeds) for name in RUNS]


STUDIES = {"experts": experts}
