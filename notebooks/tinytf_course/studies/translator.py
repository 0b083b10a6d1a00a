"""Studies of the phrasebook translator: five seeds at full length, and one ingredient removed."""

from collections.abc import Iterable

from torch import Tensor
from tqdm import tqdm

from tinytf.apps.translator import Translator
from tinytf.cli.train import build
from tinytf.masks import padding_mask
from tinytf.metrics.translation import exact_match, exact_match_by_kind, grade_alignment, is_exact
from tinytf.training.trainer import TrainingConfig
from tinytf.transformer import Memory, Transformer
from tinytf_course.phrasebook import Phrasebook

__all__ = ["Rival", "ablations", "seeds", "train"]

SEEDS = range(5)
ABLATIONS: dict[str, dict[str, object]] = {
    "all of it": {},
    "no warm-up": {"warmup": 1},
    "no label smoothing": {"label_smoothing": 0.0},
    "no clipping": {"clip": 1e9},
    "constant learning rate": {"schedule": "constant"},
    "post-norm, as in the paper": {"norm": "post"},
}


class Rival(Transformer):
    """A translator that predicts the next word nearly perfectly."""

    def decode(self, tgt: Tensor, memory: Memory, cache: None = None) -> Tensor:
        """Represent each target prefix: ids (B, T) -> hidden states (B, T, C)."""
        x = self.positions(self.tgt_embedding(tgt))
        return self.decoder(x, memory.states, padding_mask(tgt), memory.mask)


def train(
    seed: int, label: str, config: dict | None = None, sizes: dict | None = None
) -> tuple[Translator, list[dict], float]:
    """Train one translator and return it with its history and its seconds."""
    settings = TrainingConfig(seed=seed, precision="auto", **(config or {}))
    trainer, translator = build(settings, **(sizes or {}))
    with tqdm(total=settings.steps, desc=label, mininterval=1.0) as bar:
        trainer.run(bar=bar, log_every=50)
    return translator, trainer.history, trainer.seconds


def seeds(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train the shipped recipe over seeds; grade translations and attention on held-out pairs."""
    book = Phrasebook()
    test = book.sample(5000, "test", seed=7)
    compositional = book.sample(5000, "compositional", seed=7)
    rows = []
    for seed in seeds:
        translator, history, seconds = train(seed, f"seed {seed}")
        grades = grade_alignment(translator, test[:1000])
        rows.append(
            {
                "seed": seed,
                "seconds": round(seconds, 1),
                "test": exact_match(translator, test),
                "compositional": exact_match(translator, compositional),
                "test_by_kind": exact_match_by_kind(translator, test),
                "compositional_by_kind": exact_match_by_kind(translator, compositional),
                "alignment_accuracy": grades["accuracy"].tolist(),
                "alignment_error_rate": grades["aer"].tolist(),
                "history": [{k: round(v, 5) for k, v in row.items()} for row in history],
            }
        )
    return rows


def ablations(steps: int = 800, seeds: Iterable[int] = range(3)) -> list[dict]:
    """Train short runs with one ingredient removed at a time, over seeds."""
    test = Phrasebook().sample(1000, "test", seed=7)
    rows = []
    for name, change in ABLATIONS.items():
        config = {"steps": steps} | {k: v for k, v in change.items() if k != "norm"}
        sizes = {k: v for k, v in change.items() if k == "norm"}
        for seed in seeds:
            translator, history, seconds = train(seed, f"{name}, seed {seed}", config, sizes)
            rows.append(
                {
                    "run": name,
                    "seed": seed,
                    "seconds": round(seconds, 1),
                    "test": sum(is_exact(translator, test)) / len(test),
                    "history": [{k: round(v, 5) for k, v in row.items()} for row in history],
                }
            )
    return rows


STUDIES = {"translator_seeds": seeds, "translator_ablations": ablations}
