"""Chapters 14: BERT, Marian's positions, patches."""

import torch

from tinytf.bert import BertConfig
from tinytf.course.parts import Part, arrived, shapes, twin

IDS = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 0]])
BERT = BertConfig(12, d_model=6, num_heads=2, num_layers=2, max_len=8)
IMAGES = torch.arange(2 * 2 * 4 * 6, dtype=torch.float64).reshape(2, 2, 4, 6)


def _bert_gradients(model):
    module = twin(model, BERT)
    return arrived(module(IDS, SEGMENTS), module=module)


def _started(model):
    torch.manual_seed(0)
    module = model(BertConfig(200, d_model=64, num_heads=2, num_layers=1, max_len=50))
    return {name: p.std() for name, p in module.named_parameters() if p.dim() > 1}


def _patches_gradients(f):
    images = IMAGES.clone().requires_grad_()
    return arrived(f(images, 2), images)


PARTS = (
    Part(
        "tinytf.bert.Bert",
        {
            "its weights are counted": lambda model: shapes(model(BERT)),
            "it reads two texts, one padded": lambda model: twin(model, BERT)(IDS),
            "each has two segments": lambda model: twin(model, BERT)(IDS, SEGMENTS),
            "words, positions and segments are added": lambda model: twin(model, BERT).embed(
                IDS, SEGMENTS
            ),
            "it starts": lambda model: [v.round(decimals=2) for v in _started(model).values()],
            "gradients go back to every weight": _bert_gradients,
        },
    ),
    Part(
        "tinytf.related.marian.halves",
        {"the width is 6": lambda f: f(6), "it is odd": lambda f: f(7)},
    ),
    Part("tinytf.related.marian.half_and_half", {"there are 5 positions": lambda f: f(5, 6)}),
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
)
