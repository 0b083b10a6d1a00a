"""Study of three translators under one budget: one context vector, Bahdanau's attention, ours.

The GRU encoder-decoders of `tinytf.related.recurrent_seq2seq` and chapter 14's Transformer, about a
million parameters each, see the same batches in the same order for the same number of steps.
"""

import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tqdm import tqdm

from tinytf.apps.translator import Translator
from tinytf.cli.train import build
from tinytf.metrics.counting import count_parameters
from tinytf.metrics.translation import exact_match, exact_match_by_kind, is_exact
from tinytf.related.recurrent_seq2seq import RecurrentConfig, RecurrentSeq2Seq
from tinytf.support.device import choose_device
from tinytf.support.randomness import seeded
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf_course.phrasebook import Pair, Phrasebook
from tinytf_course.phrasebook.batches import PhrasebookBatches
from tinytf_course.studies.alignment import Rows, alignment_rows, grade_bahdanau, grade_rows
from tinytf_course.studies.threads import one_thread

__all__ = [
    "BINS",
    "Architecture",
    "Rows",
    "Run",
    "alignment_rows",
    "architectures",
    "build_recurrent",
    "exact_by_length",
    "grade_bahdanau",
    "grade_rows",
    "pairs_by_length",
    "phrasebook",
    "reached",
    "speed",
    "train_one",
]

SEEDS = range(5)
STEPS, BATCH, WARMUP = 800, 64, 100
LONGER, LONG_STEPS = range(2), 2400
# of source words: the phrasebook's sentences have 2 to about 20
BINS = ((2, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 14), (15, 24))


@dataclass(frozen=True)
class Architecture:
    """A model to compare: how to build it with its trainer, and its learning rate."""

    build: Callable[[TrainingConfig, int], tuple[Trainer, Translator]]
    lr: float


class Run(NamedTuple):
    """A trained model and what was measured on the way.

    `curve` has a row per evaluation: step, seconds and cpu_seconds of training so far (evaluation
    not counted), exact (share of the pairs translated word for word).
    """

    name: str
    trainer: Trainer
    translator: Translator
    curve: list[dict[str, float]]


def build_recurrent(
    config: TrainingConfig, batch_size: int = BATCH, device: object = None, **sizes: Any
) -> tuple[Trainer, Translator]:
    """Do for `RecurrentSeq2Seq` what `tinytf.cli.train.build` does for the Transformer.

    Batches depend on `config.seed` alone, so both see the same; `sizes` go to RecurrentConfig.
    """
    batches = PhrasebookBatches(Phrasebook(), batch_size, config.seed)
    with seeded(config.seed):
        model = RecurrentSeq2Seq(
            RecurrentConfig(len(batches.source), len(batches.target), **sizes)
        ).to(choose_device(device))
    return Trainer(model, batches, config), Translator(model, batches.source, batches.target)


def architectures() -> dict[str, Architecture]:
    """Name the models compared. Widths are chosen so that parameters differ by less than 3 %.

    Learning rates are the best of those tried on seed 11, 800 steps, by exact match on 300
    validation pairs, for 2e-3, 4e-3 (and 8e-3): one vector 0.71, 0.78 (0.56); Bahdanau 0.96, 0.99;
    Transformer 0.94, 0.95.
    """
    return {
        "one vector": Architecture(
            lambda config, size: build_recurrent(config, size, hidden=194, attention="none"), 4e-3
        ),
        "Bahdanau": Architecture(
            lambda config, size: build_recurrent(config, size, hidden=181, attention="additive"),
            4e-3,
        ),
        "Transformer": Architecture(lambda config, size: build(config, size), 4e-3),
    }


def train_one(
    name: str,
    steps: int = STEPS,
    seed: int = 0,
    batch_size: int = BATCH,
    every: int = 100,
    pairs: Sequence[Pair] | None = None,
    lr: float | None = None,
    bar: Any = None,
) -> Run:
    """Train one of `architectures()`; grade `pairs`, where given, every `every` steps.

    The schedule (warm-up, then cosine to 0 at `steps`) is the same for all; `lr` is its peak and
    defaults to the architecture's own. Raises KeyError for an unknown name.
    """
    architecture = architectures()[name]
    config = TrainingConfig(
        steps=steps, warmup=min(WARMUP, steps), lr=lr or architecture.lr, seed=seed
    )
    trainer, translator = architecture.build(config, batch_size)
    curve, cpu = [], 0.0
    while trainer.step < steps:
        started = time.process_time()
        trainer.run(until=min(steps, trainer.step + every), bar=bar)
        cpu += time.process_time() - started
        if pairs:
            row = {"step": trainer.step, "seconds": trainer.seconds, "cpu_seconds": cpu}
            curve.append(row | {"exact": exact_match(translator, pairs)})
    return Run(name, trainer, translator, curve)


def reached(curve: Sequence[dict[str, float]], level: float, what: str = "seconds") -> float | None:
    """Say when (`what`: "step", "seconds" or "cpu_seconds") a curve first reached a level.

    Between two evaluations the curve is taken as straight, from 0 at the start. None if never.
    """
    before = {what: 0.0, "exact": 0.0}
    for row in curve:
        if row["exact"] >= level:
            share = (level - before["exact"]) / (row["exact"] - before["exact"])
            return before[what] + share * (row[what] - before[what])
        before = row
    return None


def pairs_by_length(
    each: int = 250, split: str = "test", seed: int = 7, without: Collection[str] = ()
) -> list[Pair]:
    """Draw up to `each` distinct held-out pairs for each range of source lengths in BINS.

    `without` names kinds to leave out: of the sentences with 11 words and more, most are of the
    kind "because", so that length and kind would be told apart by nothing.
    """
    by_length: dict[tuple[int, int], dict[tuple[str, ...], Pair]] = {span: {} for span in BINS}
    for pair in Phrasebook().sample(80 * each, split, seed):
        if pair.kind in without:
            continue
        for low, high in BINS:
            if low <= len(pair.source) <= high and len(by_length[low, high]) < each:
                by_length[low, high].setdefault(pair.source, pair)
    return [pair for rows in by_length.values() for pair in rows.values()]


def exact_by_length(
    translator: Translator, pairs: Sequence[Pair], bins: Sequence[tuple[int, int]] = BINS
) -> dict[str, tuple[float, int]]:
    """Give exact match and number of pairs by source length in words: {"2-4": (0.97, 250), ...}.

    <eos> is not counted; ranges without a pair are left out.
    """
    right = is_exact(translator, pairs)
    table = {}
    for low, high in bins:
        hits = [r for p, r in zip(pairs, right, strict=True) if low <= len(p.source) <= high]
        if hits:
            table[f"{low}-{high}"] = (sum(hits) / len(hits), len(hits))
    return table


def speed(rounds: int = 12, steps: int = 4, batch_size: int = BATCH, seed: int = 0) -> list[dict]:
    """Time a training step of each model in turns, so that all meet the same machine.

    Gives per model the median over rounds of wall and CPU seconds a step, the first round left out.
    """
    config = TrainingConfig(steps=(rounds + 1) * steps, warmup=steps, seed=seed)
    trainers = {n: a.build(config, batch_size)[0] for n, a in architectures().items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in trainers}
    for _ in range(rounds + 1):
        for name, trainer in trainers.items():
            wall, cpu = time.perf_counter(), time.process_time()
            trainer.run(until=trainer.step + steps)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            times[name].append((wall / steps, cpu / steps))
    return [
        {
            "part": "speed",
            "run": name,
            "batch": batch_size,
            "seconds_per_step": round(statistics.median(w for w, _ in pairs[1:]), 4),
            "cpu_seconds_per_step": round(statistics.median(c for _, c in pairs[1:]), 4),
        }
        for name, pairs in times.items()
    ]


def measure(name: str, seed: int, steps: int = STEPS, part: str = "run") -> dict:
    """Train one model and make its row of the study."""
    book = Phrasebook()
    test = book.sample(1000, "test", seed=8)
    with tqdm(total=steps, desc=f"{name}, seed {seed}", mininterval=1.0) as bar:
        every = max(100, steps // 12)
        validation = book.sample(300, "validation", seed=3)
        run = train_one(name, steps, seed, every=every, pairs=validation, bar=bar)
    row = {
        "part": part,
        "run": name,
        "seed": seed,
        "steps": steps,
        "batch": BATCH,
        "lr": run.trainer.config.lr,
        "parameters": count_parameters(run.translator.model),
        "loss": run.trainer.history[-1]["loss"],
        "seconds_per_step": run.trainer.seconds / steps,
        "cpu_seconds_per_step": run.curve[-1]["cpu_seconds"] / steps,
        "curve": run.curve,
        "reached": {
            f"{level}": {what: reached(run.curve, level, what) for what in ("step", "cpu_seconds")}
            for level in (0.5, 0.9)
        },
        "test": exact_match(run.translator, test),
        "by_kind": exact_match_by_kind(run.translator, test),
        "by_length": exact_by_length(run.translator, pairs_by_length()),
        "by_length_without_because": exact_by_length(
            run.translator, pairs_by_length(without=("because",))
        ),
    }
    if name != "one vector":
        head = grade_bahdanau(run.translator, book.sample(300, "validation", seed=3))["head"]
        row["alignment"] = grade_bahdanau(run.translator, test[:600], head)
    return rounded(row)


def rounded(value: Any) -> Any:
    """Round the floats in a row to four places."""
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return value


def phrasebook(seeds: Iterable[int] = SEEDS, longer: Iterable[int] = LONGER) -> list[dict]:
    """Train every model on every seed, one thread, float32; then go on where it looks unfinished.

    Rows by `part`: "run", the comparison; "longer", the same with three times the steps, for the
    seeds `longer`; "speed", seconds a step taken in turns. Curves hold exact match on 300
    validation pairs, `by_length` up to 250 test pairs for each range of lengths.
    """
    with one_thread():
        rows = [measure(name, seed) for seed in seeds for name in architectures()]
        rows += speed()
        rows += [
            measure(name, seed, LONG_STEPS, "longer") for seed in longer for name in architectures()
        ]
    return rows


STUDIES = {"recurrence_phrasebook": phrasebook}
