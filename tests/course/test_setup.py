"""The first cell of a chapter seeds every generator."""

import torch


def test_setup_seeds_everything_and_returns_the_device(monkeypatch):
    import random

    import numpy

    from tinytf_course import setup

    monkeypatch.setenv("TINYTF_DEVICE", "cpu")
    draws = []
    for seed in (3, 3, 4):
        assert setup(seed).type == "cpu"
        draws.append((random.random(), numpy.random.rand(), torch.rand(()).item()))
    assert draws[0] == draws[1] != draws[2]


def test_convolutions_are_as_exact_as_matrix_products(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    from tinytf_course import setup

    setup()
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.matmul.allow_tf32
