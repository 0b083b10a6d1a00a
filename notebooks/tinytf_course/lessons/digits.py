"""Handwritten digits: the 1,797 images of 8 × 8 pixels that come with scikit-learn.

They are the test part of a collection to which 13 people contributed (Alpaydin and Kaynak 1998).
Who wrote what is not recorded, but the labels give much of it away: the same text of 130 digits
(`TEXT`) comes 14 times over, so 14 forms were copied out one after the other. To learn from some
forms and be tested on others is to be tested on handwriting not seen before; all but one form, that
is, since 13 people filled 14, and nothing says who filled two.
"""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["Digits", "digits", "sample", "shift", "split"]

PAPER = -1.0
# Where the copies of the text begin: row numbers of scikit-learn's digits.
STARTS = (0, 130, 256, 386, 516, 646, 776, 906, 1029, 1157, 1287, 1415, 1545, 1667)
# What all of them copy out; up to eight digits are missing, and one is called a 3.
TEXT = (
    "0123456789012345678901234567890955650989841773510022782012633733466649150952820017632174631391"
    "768431405369617544728225795488490898"
)


class Digits(NamedTuple):
    """Images with their labels and forms."""

    images: Tensor  # (N, 1, 8, 8), float, -1 (paper) to 1 (ink)
    labels: Tensor  # (N,), 0 to 9
    forms: Tensor  # (N,), 0 to 13: which sheet it was written on

    def select(self, rows: Tensor) -> "Digits":
        """Keep these rows, given by number or by a boolean mask."""
        return Digits(*(part[rows] for part in self))


@cache
def digits() -> Digits:
    """Load all of them. Raises ImportError where scikit-learn is not installed."""
    from sklearn.datasets import load_digits  # optional: only images need it

    found = load_digits()
    labels = torch.from_numpy(found.target).long()
    forms = torch.bucketize(torch.arange(len(labels)), torch.tensor(STARTS), right=True) - 1
    images = torch.from_numpy(found.images).float()[:, None] / 8 - 1  # counted 0 to 16
    return Digits(images, labels, forms)


def split(seed: int = 0, num_test: int = 3) -> tuple[Digits, Digits]:
    """Part the forms: `num_test` of them for testing, the others for training.

    Seed 0 tests on the first forms, seed 1 on those that follow, and so on around. Raises
    ValueError unless forms are left on both sides.
    """
    if not 1 <= num_test < len(STARTS):
        raise ValueError(f"num_test must lie in 1..{len(STARTS) - 1}, got {num_test}")
    everything = digits()
    test = torch.tensor([(seed * num_test + i) % len(STARTS) for i in range(num_test)])
    tested = torch.isin(everything.forms, test)
    return everything.select(~tested), everything.select(tested)


def sample(source: Digits, size: int, seed: int = 0, classes: Iterable[int] = range(10)) -> Digits:
    """Draw `size` images, as many of each class, in random order.

    Raises ValueError if size is no multiple of the number of classes, or a class has too few.
    """
    classes = list(classes)
    each, rest = divmod(size, len(classes))
    if rest or each < 1:
        raise ValueError(f"size={size} is not shared equally by {len(classes)} classes")
    draws, rows = torch.Generator().manual_seed(seed), []
    for digit in classes:
        where = (source.labels == digit).nonzero()[:, 0]
        if len(where) < each:
            raise ValueError(f"{each} images of {digit} wanted, there are {len(where)}")
        rows.append(where[torch.randperm(len(where), generator=draws)[:each]])
    rows = torch.cat(rows)
    return source.select(rows[torch.randperm(len(rows), generator=draws)])


def shift(images: Tensor, generator: torch.Generator | None = None, most: int = 1) -> Tensor:
    """Move each image by up to `most` pixels down and across, all moves being as likely.

    Images are (B, channels, height, width); what moves in from outside is paper. The generator
    is one for the CPU.
    """
    b, _, height, width = images.shape
    padded = F.pad(images, (most, most, most, most), value=PAPER)
    moves = torch.randint(2 * most + 1, (2, b, 1), generator=generator).to(images.device)
    rows = moves[0] + torch.arange(height, device=images.device)  # (B, height)
    columns = moves[1] + torch.arange(width, device=images.device)  # (B, width)
    each = torch.arange(b, device=images.device)[:, None, None]
    return padded[each, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
