"""Chapter 25: patches, and the encoder that reads them."""

import dataclasses
import math

import torch

from tinytf.related.vit import ImageConfig
from tinytf_course.parts import Part, arrived, frozen, shapes, twin
from tinytf_course.parts.ch05 import dtypes, wide

IMAGES = torch.arange(2 * 2 * 4 * 6, dtype=torch.float64).reshape(2, 2, 4, 6)
SQUARES = wide(2, 3, 4, 4, seed=1)
CONFIG = ImageConfig(4, 2, 3, 5, d_model=6, num_heads=2, num_layers=1, d_ff=10)
VISIBLE = torch.tensor([[True, False, True, True], [False, True, True, False]])


def _patches_gradients(f):
    images = IMAGES.clone().requires_grad_()
    return arrived(f(images, 2), images)


def _embedding_gradients(layer):
    module, images = twin(layer, 5, 2, 2), IMAGES.clone().requires_grad_()
    return arrived(module(images), images, module=module)


def _says(config, *given, **choices):
    made = config(*given, **choices)
    return dataclasses.asdict(made) | {"num_patches": str(made.num_patches)}


def _started(model):
    """The rule by which each weight starts, in whatever order they were drawn."""
    torch.manual_seed(0)
    made = model(dataclasses.replace(CONFIG, image_size=40, d_model=32, d_ff=128))
    return {name: _rule(p.detach()) for name, p in sorted(made.named_parameters())}


def _rule(p):
    if bool((p == p.flatten()[0]).all()):
        return f"all {p.flatten()[0]:g}"
    bound, largest = math.sqrt(6 / sum(p.shape)), p.abs().max().item()
    if 0.95 * bound < largest <= bound and abs(p.std() / bound * math.sqrt(3) - 1) < 0.1:
        return "Xavier's"
    near = largest > 0.5 and abs(p.std() / 0.2 - 1) < 0.05
    return "N(0, 0.2²)" if near else "another start"


def _dropped(model):
    module = twin(model, dataclasses.replace(CONFIG, dropout=0.5), mode="train")
    torch.manual_seed(0)
    return module(SQUARES)


def _gradients(model):
    module, images = twin(model, CONFIG), SQUARES.clone().requires_grad_()
    return arrived(module(images, VISIBLE), images, module=module)


PARTS = (
    Part(
        "tinytf.related.vit.split_patches",
        {
            "patches have one pixel": lambda f: f(IMAGES[:1, :1], 1),
            "images are no squares, and have two channels": lambda f: f(IMAGES, 2),
            "numbers are in float32": lambda f: dtypes(f(IMAGES.float(), 2)),
            "gradients go back": _patches_gradients,
        },
    ),
    Part(
        "tinytf.related.vit.PatchEmbedding",
        {
            "its weights are counted": lambda layer: shapes(layer(5, 2, 2)),
            "they are, for patches of one pixel": lambda layer: shapes(layer(5, 1, 2)),
            "two images are read": lambda layer: twin(layer, 5, 2, 2)(IMAGES),
            "they have one channel, as nobody says": lambda layer: twin(layer, 5, 2)(IMAGES[:, :1]),
            "its sizes are kept": lambda layer: {
                "size": layer(5, 2, 3).size,
                "channels": layer(5, 2, 3).channels,
            },
            "numbers are in float32": lambda layer: dtypes(layer(5, 2, 2)(IMAGES.float())),
            "gradients go back to the images and to every weight": _embedding_gradients,
        },
    ),
    Part(
        "tinytf.related.vit.ImageConfig",
        {
            "nothing is said": _says,
            "sizes are given in order": lambda f: _says(f, 12, 3, 2, 7, 16, 2, 3, 20, 0.1),
            "the width alone is given": lambda f: _says(f, d_model=8),
            "there are nine patches": lambda f: _says(f, 6),
            "it is frozen": frozen,
        },
    ),
    Part(
        "tinytf.related.vit.ImageClassifier",
        {
            "its weights are counted": lambda model: shapes(model(CONFIG)),
            "they are in float32": lambda model: {
                name: str(p.dtype) for name, p in sorted(model(CONFIG).named_parameters())
            },
            "it reads two images": lambda model: twin(model, CONFIG)(SQUARES),
            "some patches are hidden": lambda model: twin(model, CONFIG)(SQUARES, VISIBLE),
            "all states are asked for": lambda model: twin(model, CONFIG).encode(SQUARES),
            "each weight starts by its rule": _started,
            "half of what is said is dropped": _dropped,
            "no dropout is named: nothing is dropped": lambda model: twin(
                model, CONFIG, mode="train"
            )(SQUARES),
            "numbers are in float32": lambda model: dtypes(model(CONFIG)(SQUARES.float(), VISIBLE)),
            "gradients go back to the images and to every weight": _gradients,
        },
        tolerance=1e-9,
        equivalent={
            "… => …expand(len(…), 1, -1)": "there are as many of both",
            "… => …self._mask(visible, …": "a check alone reads the second",
        },
    ),
)
