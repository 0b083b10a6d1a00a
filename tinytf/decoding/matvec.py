"""A matrix times few vectors: weights laid out so that a processor reads them fast.

A token that is decoded alone uses every weight once, in two operations: what takes the time is to
read them. `Columns` and `Half` are linear maps as `nn.Linear` is, in a layout, by a kernel and in a
precision that take less time.

Torch's products of a matrix and one vector do not read as fast as memory gives, by far on some
processors. A sum of weighted rows does: it is what `nn.EmbeddingBag` computes for bags of words,
with a kernel (FBGEMM's) that fetches rows ahead. x W *is* the sum of W's rows, weighted by x.
"""

import functools
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Columns", "Half", "Map"]

_LARGEST = torch.finfo(torch.float16).max  # 65504
_PIECES = 4  # a row is added up in so many pieces, so that threads can share one vector's work
_ALIGNED = 16 * _PIECES  # outputs are filled up to a multiple: pieces begin at whole cache lines
_WORTH, _WIDE = 2**19, 256  # matrices of at least so many elements and outputs are read by rows
_FEW = 4  # for at most so many vectors


class Map(Protocol):
    """A linear map laid out: called with x (B, inputs) it gives (B, outputs)."""

    nbytes: int  # of its matrix

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""

    def add_to(self, y: Tensor, x: Tensor) -> None:
        """Add the map of x (B, inputs) to y (B, outputs), in place."""


class Columns:
    """The map x Wᵀ + b, its matrix kept as (inputs, outputs) where that is faster.

    weight is (outputs, inputs), bias (outputs,) or None; neither gets gradients. On a CPU, in
    float32 and float64, a copy turned on its side is read 1.3 to 2 times as fast; elsewhere the
    weight itself is used. A large matrix in float32 or bfloat16 is, for up to four vectors, read as
    a sum of its weighted rows. Raises RuntimeError, as torch does, for an x of another width.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._outputs, self._inputs = weight.shape
        self._table = weight.detach().t()  # (inputs, outputs), or more to fill the last piece
        self.bias = None if bias is None else bias.detach()
        self._by_rows = False
        if weight.device.type != "cpu":
            return
        large = weight.numel() >= _WORTH and self._outputs >= _WIDE
        summed = weight.dtype in (torch.float32, torch.bfloat16) and _has_fbgemm()
        self._by_rows = large and summed
        if self._by_rows:
            filled = weight.new_zeros(self._inputs, -(-self._outputs // _ALIGNED) * _ALIGNED)
            filled[:, : self._outputs] = self._table
            self._table = filled
        elif weight.dtype in (torch.float32, torch.float64):
            self._table = self._table.contiguous()

    @property
    def nbytes(self) -> int:
        """How many bytes the matrix takes."""
        return self._table.nbytes

    @property
    def matrix(self) -> Tensor:
        """The matrix, (inputs, outputs)."""
        return self._table[:, : self._outputs] if self._by_rows else self._table

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        if self._reads_by_rows(x):
            y = self._sum_rows(x)
            return y if self.bias is None else y.add_(self.bias)
        if self.bias is None:
            return torch.mm(x, self.matrix)
        return torch.addmm(self.bias, x, self.matrix)

    def add_to(self, y: Tensor, x: Tensor) -> None:
        """Add the map of x (B, inputs) to y (B, outputs), in place."""
        if self._reads_by_rows(x) and len(x) == len(y):
            y.add_(self._sum_rows(x))
        else:
            y.addmm_(x, self.matrix)
        if self.bias is not None:
            y.add_(self.bias)

    def _reads_by_rows(self, x: Tensor) -> bool:
        """Say whether x is as it must be, and short enough; what does not fit is torch's to say."""
        return self._by_rows and 0 < len(x) <= _FEW and x.shape[1:] == (self._inputs,)

    def _sum_rows(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs), without the bias."""
        rows, bags = _bags(self._inputs, len(x))
        weights = x.unsqueeze(1).expand(-1, _PIECES, -1).reshape(-1)  # (B, P, inputs), flat
        pieces = self._table.view(len(self._table) * _PIECES, -1)  # (inputs * P, outputs / P)
        sums = torch.embedding_bag(
            pieces, rows, bags, per_sample_weights=weights, include_last_offset=True
        )[0]
        return sums.view(len(x), -1).narrow(1, 0, self._outputs).contiguous()


@functools.lru_cache
@torch.inference_mode(False)
def _bags(inputs: int, batch: int) -> tuple[Tensor, Tensor]:
    """Give the rows that make each piece of each output vector, and where each one's begin."""
    whole = {"dtype": torch.int32, "device": "cpu"}
    rows = torch.arange(inputs * _PIECES, **whole).view(inputs, _PIECES)
    begin = torch.arange(0, batch * _PIECES * inputs + 1, inputs, **whole)
    return rows.t().reshape(-1).repeat(batch), begin


class Half:
    """The map x Wᵀ + b with W rounded to float16: half the bytes; x, b and sums are float32.

    Shapes as in `Columns`. Rounding changes a weight by at most 2⁻¹¹ of itself, above 6e-5. Raises
    ValueError for a weight that is not float32, not on the CPU, or has no place in float16's range,
    and RuntimeError where torch was built without FBGEMM, whose kernel this is.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        if weight.device.type != "cpu" or weight.dtype != torch.float32:
            raise ValueError(
                f"weights in float16 are made from float32 on the CPU, got {weight.dtype} "
                f"on {weight.device}"
            )
        largest = float(weight.detach().abs().max())
        if not largest <= _LARGEST:
            raise ValueError(f"a weight of size {largest:g} is beyond float16's {_LARGEST:g}")
        if not _has_fbgemm():
            raise RuntimeError("weights in float16 need a torch with FBGEMM; this one has none")
        bias = None if bias is None else bias.detach()
        self.nbytes = 2 * weight.numel()
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight.detach(), bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        return torch.ops.quantized.linear_dynamic_fp16(x, self._packed)

    def add_to(self, y: Tensor, x: Tensor) -> None:
        """Add the map of x (B, inputs) to y (B, outputs), in place."""
        y.add_(self(x))


def _has_fbgemm() -> bool:
    return "fbgemm" in torch.backends.quantized.supported_engines
