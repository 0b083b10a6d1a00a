"""What exercises of chapter 11 share."""

import torch

from tinytf_course.expect import expect
from tinytf_course.words import described, dtype_name


def weights_of(got, names, where):
    """The weights that an answer returned, in float64; a Mismatch says what else it is."""
    wanted = f"{where}, you return {described(got)}, expected ({', '.join(names)})"
    expect(isinstance(got, tuple | list) and len(got) == len(names), wanted)
    for name, w in zip(names, got, strict=True):
        kind = f"{where}, `{name}` is {described(w)}, expected a tensor"
        expect(isinstance(w, torch.Tensor), kind)
        kind = f"{where}, `{name}` is in {dtype_name(w)}, expected float32 or float64"
        expect(w.dtype in (torch.float32, torch.float64), kind)
    return [w.detach().cpu().double() for w in got]


def shaped(weights, names, shapes, where, note=""):
    """Expect weights of these shapes."""
    for name, w, shape in zip(names, weights, shapes, strict=True):
        message = f"{where}, `{name}` has shape {tuple(w.shape)}, expected {shape}{note}"
        expect(tuple(w.shape) == shape, message)
