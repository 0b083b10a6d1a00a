"""Chapter 10: batches, and the loss."""

import torch

from tinytf.course.parts import Part, arrived, twin
from tinytf.training.losses import make_batch
from tinytf.transformer import Transformer, TransformerConfig

SENTENCES = ([[5, 6, 7], [8], [9, 9, 9, 4]], [[3, 4], [5, 6, 7, 8, 3], [6]])


def _model():
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 1, "d_ff": 12, "max_len": 16}
    return twin(Transformer, TransformerConfig(12, 10, dropout=0.0, **sizes))


def _loss(f, smoothing=0.0):
    loss, tokens = f(_model(), make_batch(*SENTENCES), smoothing)
    return [loss, torch.tensor(tokens)]


def _gradients(f):
    model = _model()
    loss, _ = f(model, make_batch(*SENTENCES), 0.1)
    return arrived(loss, module=model)


PARTS = (
    Part(
        "tinytf.training.losses.make_batch",
        {
            "there is one pair": lambda f: list(f([[5]], [[3]])),
            "three pairs differ in length on both sides": lambda f: list(f(*SENTENCES)),
        },
    ),
    Part(
        "tinytf.training.losses.sequence_loss",
        {
            "targets are padded": _loss,
            "labels are smoothed": lambda f: _loss(f, 0.1),
            "gradients go back to every weight": _gradients,
        },
        tolerance=1e-5,
    ),
)
