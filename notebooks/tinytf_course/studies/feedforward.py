"""A study of the feed-forward network: what stands in its place."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.apps.translator import Translator
from tinytf.cli.train import build
from tinytf.feedforward import FeedForward, SwiGLU, gated_width
from tinytf.initialisation import xavier
from tinytf.metrics.counting import count_parameters
from tinytf.metrics.translation import batch_of, teacher_forced
from tinytf.support.randomness import seeded
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.studies.threads import one_thread

SEEDS = range(5)
WIDTH, STEPS, BATCH = 64, 800, 64


class Nothing(nn.Module):
    """A sublayer that adds nothing to the stream."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, C) to zeros of the same shape."""
        return torch.zeros_like(x)


def _with(activation: Callable[[Tensor], Tensor]) -> Callable[[int, int], nn.Module]:
    return lambda d_model, d_ff: FeedForward(d_model, d_ff, activation=activation)


def same(x: Tensor) -> Tensor:
    """The identity: a feed-forward network with it is one matrix, written as two."""
    return x


VARIANTS: dict[str, Callable[[int, int], nn.Module]] = {
    "ReLU": _with(F.relu),
    "GELU": _with(F.gelu),
    "GELU, tanh": _with(partial(F.gelu, approximate="tanh")),
    "SwiGLU": lambda d_model, d_ff: SwiGLU(d_model, gated_width(d_ff)),
    "linear": _with(same),
    "attention only": lambda d_model, d_ff: Nothing(),
    "attention only, 5 layers": lambda d_model, d_ff: Nothing(),
}


def untrained(
    variant: str, seed: int = 0, steps: int = STEPS, device: str | torch.device | None = None
) -> tuple[Trainer, Translator]:
    """Make a small translator with this in place of its feed-forward networks, and its trainer.

    Attention and embeddings start from the same weights for the same seed and number of layers.
    Raises KeyError for an unknown variant.
    """
    make = VARIANTS[variant]
    layers = 5 if variant.endswith("5 layers") else 2  # 5: as many parameters without FFN
    config = TrainingConfig(steps=steps, lr=3e-3, warmup=min(100, steps), seed=seed)
    trainer, translator = build(
        config, BATCH, device, d_model=WIDTH, num_heads=4, num_layers=layers, d_ff=4 * WIDTH
    )
    with seeded(seed):
        model = translator.model
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.feed_forward = make(WIDTH, 4 * WIDTH).to(model.device)
            xavier(layer.feed_forward)
    return Trainer(model, trainer.batches, config), translator


def score(translator: Translator, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Give the share of pairs right in every word, and the loss in nats per token."""
    right, loss = teacher_forced(translator.model, batch_of(translator, pairs))
    return right.float().mean().item(), loss


def variants(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train each variant over seeds, with the same data and steps; grade on held-out sentences."""
    test, rows = Phrasebook().sample(2000, "test", seed=7), []
    with one_thread():
        for seed in seeds:
            for variant in VARIANTS:
                trainer, translator = untrained(variant, seed)
                trainer.run(log_every=50)
                exact, loss = score(translator, test)
                layers = [*translator.model.encoder.layers, *translator.model.decoder.layers]
                rows.append(
                    {
                        "variant": variant,
                        "seed": seed,
                        "parameters": sum(
                            count_parameters(part)
                            for layer in layers
                            for name, part in layer.named_children()
                            if "residual" not in name
                        ),
                        "exact": round(exact, 4),
                        "loss": round(loss, 5),
                        "training": [round(row["loss"], 4) for row in trainer.history],
                    }
                )
    return rows


STUDIES = {"feedforward_variants": variants}
