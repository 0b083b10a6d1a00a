"""Chapter 25: patches, and the encoder that reads them."""

import dataclasses

import torch

from tinytf.course.parts import Part, arrived, frozen, shapes, twin
from tinytf.related.vit import ImageConfig

IMAGES = torch.arange(2 * 2 * 4 * 6, dtype=torch.float64).reshape(2, 2, 4, 6)
SQUARES = IMAGES[..., :4] / 50
CONFIG = ImageConfig(4, 2, 2, 3, d_model=6, num_heads=2, num_layers=1, d_ff=10)
VISIBLE = torch.tensor([[True, False, True, True], [False, True, True, False]])


def _patches_gradients(f):
    images = IMAGES.clone().requires_grad_()
    return arrived(f(images, 2), images)


def _says(config, *given, **choices):
    made = config(*given, **choices)
    return dataclasses.asdict(made) | {"num_patches": made.num_patches}


def _started(model):
    torch.manual_seed(0)
    made = model(dataclasses.replace(CONFIG, image_size=40, d_model=32, d_ff=128))
    return {name: p.std().round(decimals=2) for name, p in made.named_parameters() if p.dim() > 1}


def _gradients(model):
    module = twin(model, CONFIG)
    return arrived(module(SQUARES, VISIBLE), module=module)


PARTS = (
    Part(
        "tinytf.related.vit.split_patches",
        {
            "patches have one pixel": lambda f: f(IMAGES[:1, :1], 1),
            "images are no squares, and have two channels": lambda f: f(IMAGES, 2),
            "gradients go back": _patches_gradients,
        },
    ),
    Part(
        "tinytf.related.vit.PatchEmbedding",
        {
            "its weights are counted": lambda layer: shapes(layer(5, 2, 2)),
            "two images are read": lambda layer: twin(layer, 5, 2, 2)(IMAGES),
        },
    ),
    Part(
        "tinytf.related.vit.ImageConfig",
        {
            "nothing is said": _says,
            "sizes are given in order": lambda f: _says(f, 12, 3, 2, 7, 16, 2, 3, 20, 0.1),
            "the width alone is given": lambda f: _says(f, d_model=8),
            "it is frozen": frozen,
        },
    ),
    Part(
        "tinytf.related.vit.ImageClassifier",
        {
            "its weights are counted": lambda model: shapes(model(CONFIG)),
            "it reads two images": lambda model: twin(model, CONFIG)(SQUARES),
            "some patches are hidden": lambda model: twin(model, CONFIG)(SQUARES, VISIBLE),
            "all states are asked for": lambda model: twin(model, CONFIG).encode(SQUARES),
            "it is new": _started,
            "gradients go back to every weight": _gradients,
        },
        tolerance=1e-5,
    ),
)
