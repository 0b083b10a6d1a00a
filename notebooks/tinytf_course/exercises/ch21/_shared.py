"""What exercises of chapters 21 and 22 share: lists of whole numbers."""

import torch

from tinytf_course.expect import expect
from tinytf_course.words import described, short


def whole_numbers(part, where):
    """A list, tuple or tensor of whole numbers as a list of them, or a Mismatch."""
    row = isinstance(part, list | tuple) or (isinstance(part, torch.Tensor) and part.dim() == 1)
    expect(row, f"{where} you return {described(part)}, expected a list of whole numbers")
    found = [x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else x for x in part]
    for x in found:
        whole = isinstance(x, int) and not isinstance(x, bool)
        expect(whole, f"{where} you return a list that holds {short(x)}, expected whole numbers")
    return found


def two_lists(got, names, where):
    """A pair of lists of whole numbers, or a Mismatch."""
    pair = isinstance(got, list | tuple | torch.Tensor) and len(got) == 2
    expect(pair, f"{where}, you return {described(got)}, expected two lists: {' and '.join(names)}")
    return [whole_numbers(part, f"{where}, for {name}") for part, name in zip(got, names)]
