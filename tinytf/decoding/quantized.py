"""Weights of fewer bits for decoding: int8 with scales, and bfloat16.

Only weights get fewer bits, and only in the copy that is read for each token: what is read then is
a quarter or a half, and so is the time where reading is what takes it. Both build on the sum of
weighted rows of `tinytf.decoding.matvec`, for which torch has kernels (FBGEMM's) that widen numbers
as they read them. Torch's other product by int8 weights, `torch._weight_int8pack_mm`, wants vectors
in bfloat16 to be fast, answers in bfloat16, and was not faster (AVX-512, torch 2.13).
"""

import math

import torch
from torch import Tensor

from tinytf.decoding.matvec import Columns

__all__ = ["BFloat16", "Int8"]

_PIECES, _WIDEST = 4, 4096  # outputs of one sum: threads share them, and the sum stays in the cache
_FEW = 16  # for more vectors than these, widening the matrix first costs less than reading it again
_SUMS = "embedding_bag_byte_rowwise_offsets"


class Int8:
    """The map x Wᵀ + b with W in 8 bits: a quarter of the bytes; x, b and sums are float32.

    Shapes as in `Columns`. What one input adds to up to 4,096 outputs has a scale and an offset of
    its own, so that an input with large weights (Dettmers et al. 2022 found such) spoils no other;
    a weight is off by at most 1/510 of the range of those. For up to 16 vectors rows are widened
    while they are summed, for more the matrix is widened a piece at a time. Raises ValueError for a
    weight that is not float32, not on the CPU or not finite, and RuntimeError where torch has no
    such sums, or, as it does, for an x of another width.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        _check_int8(weight)
        self._outputs, self._inputs = weight.shape
        self._pieces = max(_PIECES, math.ceil(self._outputs / _WIDEST))
        wide = math.ceil(self._outputs / self._pieces)
        filled = weight.new_zeros(self._pieces * wide, self._inputs)
        filled[: self._outputs] = weight.detach()
        rows = filled.view(self._pieces, wide, self._inputs).transpose(1, 2)  # (P, inputs, wide)
        pack = torch.ops.quantized.embedding_bag_byte_prepack
        self._table = pack(rows.reshape(-1, wide))  # (P * inputs, wide + 8), bytes
        self._rows = torch.arange(len(self._table), dtype=torch.int32)
        self.bias = None if bias is None else bias.detach()

    @property
    def nbytes(self) -> int:
        """How many bytes the matrix takes."""
        return self._table.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        if x.dim() != 2 or x.size(1) != self._inputs:
            shape = (self._inputs, self._outputs)
            raise RuntimeError(f"x {tuple(x.shape)} and matrix {shape} cannot be multiplied")
        y = self._sum_rows(x) if 0 < len(x) <= _FEW else self._widened(x)
        y = y.narrow(1, 0, self._outputs)
        return y.contiguous() if self.bias is None else y + self.bias

    def add_to(self, y: Tensor, x: Tensor) -> None:
        """Add the map of x (B, inputs) to y (B, outputs), in place."""
        y.add_(self(x))

    def _sum_rows(self, x: Tensor) -> Tensor:
        bags = torch.arange(0, len(x) * len(self._table) + 1, self._inputs, dtype=torch.int32)
        weights = x.unsqueeze(1).expand(-1, self._pieces, -1).flatten()  # (B, P, inputs)
        weights = weights.contiguous()  # the kernel takes it for granted
        sums = getattr(torch.ops.quantized, _SUMS)(
            self._table, self._rows.repeat(len(x)), bags,
            per_sample_weights=weights, include_last_offset=True,
        )  # fmt: skip
        return sums.view(len(x), -1)

    def _widened(self, x: Tensor) -> Tensor:
        unpack = torch.ops.quantized.embedding_bag_byte_unpack
        pieces = self._table.split(self._inputs)
        return torch.cat([torch.mm(x, unpack(piece)) for piece in pieces], dim=1)


def _check_int8(weight: Tensor) -> None:
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        raise ValueError(
            f"weights in int8 are made from float32 on the CPU, got {weight.dtype} "
            f"on {weight.device}"
        )
    if not bool(weight.detach().isfinite().all()):
        raise ValueError("a weight that is infinite or NaN has no place in int8's range")
    if not hasattr(torch.ops.quantized, _SUMS):
        raise RuntimeError(f"torch {torch.__version__} has no sums of rows in int8")


class BFloat16:
    """The map x Wᵀ + b with W rounded to bfloat16: half the bytes, and float32's range.

    Shapes as in `Columns`. x is rounded too, and so is what comes out, before b is added; sums
    within are float32. Rounding changes a number by at most 2⁻⁹ of itself: more than `Half` does,
    which has no place for large weights, though. On any device. Raises ValueError for a weight that
    is not float32: another has these bits already, or is meant to be exact.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        if weight.dtype != torch.float32:
            raise ValueError(f"weights in bfloat16 are made from float32, got {weight.dtype}")
        self._map = Columns(weight.detach().bfloat16())
        self.bias = None if bias is None else bias.detach()

    @property
    def nbytes(self) -> int:
        """How many bytes the matrix takes."""
        return self._map.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        y = self._map(x.bfloat16()).float()
        return y if self.bias is None else y.add_(self.bias)

    def add_to(self, y: Tensor, x: Tensor) -> None:
        """Add the map of x (B, inputs) to y (B, outputs), in place."""
        y.add_(self(x))
