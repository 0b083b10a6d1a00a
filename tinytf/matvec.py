"""A matrix times few vectors: weights laid out so that a processor reads them fast.

A token that is decoded alone uses every weight once, in two operations: what takes the time is to
read them. `Columns` and `Half` are linear maps as `nn.Linear` is, in a layout, by a kernel and in a
precision that take less time.

Torch's products of a matrix and one vector do not read as fast as memory gives, by far on some
processors. A sum of weighted rows does: it is what `nn.EmbeddingBag` computes for bags of words,
with a kernel (FBGEMM's) that fetches rows ahead. x W *is* the sum of W's rows, weighted by x.
"""

import functools

import torch
from torch import Tensor

__all__ = ["Columns", "Half"]

_LARGEST = torch.finfo(torch.float16).max  # 65504
_PIECES = 4  # a row is added up in so many pieces, so that threads can share one vector's work
_ALIGNED = 16 * _PIECES  # outputs are filled up to a multiple: pieces begin at whole cache lines
_WORTH = 2**19  # matrices of at least so many elements are read by rows
_FEW = 4  # for at most so many vectors


class Columns:
    """The map x Wᵀ + b, its matrix kept as (inputs, outputs) where that is faster.

    weight is (outputs, inputs), bias (outputs,) or None. On a CPU, in float32 and float64, a copy
    turned on its side is read 1.3 to 2 times as fast; elsewhere the weight itself is used. A large
    matrix in float32 is, for up to four vectors, read as a sum of its weighted rows.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.matrix, self.bias = weight.t(), bias
        self._pieces: Tensor | None = None  # (inputs * _PIECES, outputs / _PIECES), the same memory
        if weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.float64):
            return
        if weight.dtype == torch.float64 or weight.numel() < _WORTH or not _has_fbgemm():
            self.matrix = self.matrix.contiguous()
            return
        outputs, inputs = weight.shape
        filled = weight.new_zeros(inputs, -(-outputs // _ALIGNED) * _ALIGNED)
        self.matrix = filled[:, :outputs].copy_(weight.detach().t())
        self._pieces = filled.view(inputs * _PIECES, -1)

    def _read_by_rows(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs), without the bias."""
        batch, inputs = x.shape
        rows, bags = _bags(inputs, batch)
        weights = x.unsqueeze(1).expand(batch, _PIECES, inputs).reshape(-1)
        sums = torch.embedding_bag(
            self._pieces, rows, bags, per_sample_weights=weights, include_last_offset=True
        )[0]
        return sums.view(batch, -1).narrow(1, 0, self.matrix.size(1))

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        if self._pieces is not None and len(x) <= _FEW:
            y = self._read_by_rows(x)
            return y if self.bias is None else y.add_(self.bias)
        if self.bias is None:
            return torch.mm(x, self.matrix)
        return torch.addmm(self.bias, x, self.matrix)

    def add_to(self, y: Tensor, x: Tensor) -> None:
        """Add the map of x (B, inputs) to y (B, outputs), in place."""
        if self.bias is not None:
            y.add_(self.bias)
        if self._pieces is not None and len(x) <= _FEW:
            y.add_(self._read_by_rows(x))
        else:
            y.addmm_(x, self.matrix)


@functools.lru_cache
def _bags(inputs: int, batch: int) -> tuple[Tensor, Tensor]:
    """Give the rows that make each piece of each output vector, and where each one's begin."""
    rows = torch.arange(inputs * _PIECES, dtype=torch.int32).view(inputs, _PIECES)
    begin = torch.arange(0, batch * _PIECES * inputs + 1, inputs, dtype=torch.int32)
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
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight.detach(), bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        return torch.ops.quantized.linear_dynamic_fp16(x, self._packed)

    def add_to(self, y: Tensor, x: Tensor) -> None:
        """Add the map of x (B, inputs) to y (B, outputs), in place."""
        y.add_(self(x))


def _has_fbgemm() -> bool:
    return "fbgemm" in torch.backends.quantized.supported_engines
