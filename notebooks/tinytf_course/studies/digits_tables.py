"""The tables of images: everything at every size, over seeds, and the controls."""

from collections.abc import Iterable

import torch
from torch import Tensor

from tinytf.metrics.counting import count_parameters
from tinytf.related.vit import ImageClassifier
from tinytf_course.lessons.digits import Digits, sample, split
from tinytf_course.studies.digits import (
    LEARNING_RATE,
    SIZES,
    STEPS,
    Trained,
    logistic,
    nearest,
    nearness,
    occlusions,
    patch_order,
    position_similarity,
    train,
)
from tinytf_course.studies.threads import one_thread

SEEDS = range(5)
RATES = (2e-3, 4e-3, 8e-3)


def rates() -> list[dict]:
    """Try three learning rates for each network on forms that seed 0 trains on: 320 images.

    The three forms that judge are tested on by seeds 3 and 4 too, for all networks alike.
    """
    pool, _ = split(0)
    held_out = torch.isin(pool.forms, pool.forms.unique()[-3:])
    data, validation = sample(pool.select(~held_out), 320), pool.select(held_out)
    rows = []
    with one_thread():
        for name in ("encoder", "CNN", "MLP"):
            for shifts in (False, True):
                for lr in RATES:
                    trained = train(name, data, validation, shifts=shifts, lr=lr)
                    rows.append(_row(name, 320, shifts, 0, trained) | {"lr": lr})
    return rows


def study(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train and test everything at every size; each seed tests on forms of its own."""
    rows = []
    with one_thread():
        for seed in seeds:
            pool, test = split(seed)
            for size in SIZES:
                data = sample(pool, size, seed)
                rows += _classical(data, test, size, seed)
                for name in ("MLP", "CNN", "encoder"):
                    for shifts in (False, True):
                        trained = train(name, data, test, shifts=shifts, seed=seed)
                        rows.append(_row(name, size, shifts, seed, trained))
                        if name == "encoder" and shifts and size == SIZES[-1]:
                            rows[-1] |= _inside(trained.model, test)
            rows += _without_order(pool, test, seed)
    return rows


def longer(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train the encoder four times as long on all images with shifts: was it done?"""
    rows, size, steps = [], SIZES[-1], 4 * STEPS[True]
    with one_thread():
        for seed in seeds:
            pool, test = split(seed)
            data = sample(pool, size, seed)
            trained = train("encoder", data, test, shifts=True, seed=seed, steps=steps)
            rows.append(_row("encoder", size, True, seed, trained) | {"steps": steps})
    return rows


def controls(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train the encoder without shifts, for as many steps as with them.

    On shuffled patches, at the rate used with shifts: does it still find neighbours? On few images:
    was it merely not done?
    """
    rows, steps, lr = [], STEPS[True], LEARNING_RATE["encoder"][True]
    with one_thread():
        for seed in seeds:
            pool, test = split(seed)
            data, order = sample(pool, SIZES[-1], seed), patch_order(seed)
            trained = train("encoder", data, test, seed=seed, order=order, lr=lr, steps=steps)
            rows.append(_row("encoder, shuffled", SIZES[-1], False, seed, trained))
            rows[-1] |= _places(trained.model.model, order) | {"steps": steps}
            for size in SIZES[:-1]:
                data = sample(pool, size, seed)
                trained = train("encoder", data, test, seed=seed, steps=steps)
                rows.append(_row("encoder", size, False, seed, trained) | {"steps": steps})
    return rows


def _places(model: ImageClassifier, order: Tensor) -> dict:
    """How near its positions put patches that were neighbours, and those that became it."""
    similar, place = position_similarity(model), order.argsort()  # where each patch went
    true = nearness(similar[place][:, place])
    return {"near": round(true, 4), "near_as_shuffled": round(nearness(similar), 4)}


def _classical(data: Digits, test: Digits, size: int, seed: int) -> list[dict]:
    common = {"size": size, "seed": seed}
    near = [{"shifts": s, "accuracy": round(nearest(data, test, s), 4)} for s in (False, True)]
    rows = [{"model": "nearest", **common, **row} for row in near]
    score = round(logistic(data, test), 4)
    return [*rows, {"model": "logistic", **common, "shifts": False, "accuracy": score}]


def _without_order(pool: Digits, test: Digits, seed: int) -> list[dict]:
    """All images, with shifts: their patches shuffled in one way, and no positions."""
    rows, size, order = [], SIZES[-1], patch_order(seed)
    data = sample(pool, size, seed)
    for name in ("CNN", "encoder"):
        trained = train(name, data, test, shifts=True, seed=seed, order=order)
        rows.append(_row(f"{name}, shuffled", size, True, seed, trained))
    rows[-1] |= _places(trained.model.model, order)
    trained = train("encoder, no positions", data, test, shifts=True, seed=seed)
    return [*rows, _row("encoder, no positions", size, True, seed, trained)]


def _inside(model: ImageClassifier, test: Digits) -> dict:
    similar = position_similarity(model)
    hidden = {name: round(score, 4) for name, score in occlusions(model, test).items()}
    return {
        "near": round(nearness(similar), 4),
        "similarity": [[round(x, 2) for x in row] for row in similar.tolist()],
        "hidden": hidden,
    }


def _row(name: str, size: int, shifts: bool, seed: int, trained: Trained) -> dict:
    return {
        "model": name,
        "size": size,
        "shifts": shifts,
        "seed": seed,
        "accuracy": round(trained.accuracy, 4),
        "loss": round(trained.loss, 4),
        "parameters": count_parameters(trained.model),
    }


STUDIES = {
    "digits": study,
    "digits_longer": longer,
    "digits_controls": controls,
    "digits_rates": rates,
}
