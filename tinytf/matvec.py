"""A matrix times few vectors: weights laid out so that a processor reads them fast.

A token that is decoded alone uses every weight once, in two operations: what takes the time is to
read them. `Columns` and `Half` are linear maps as `nn.Linear` is, in a layout and in a precision
that are read in less time.
"""

import torch
from torch import Tensor

__all__ = ["Columns", "Half"]

_LARGEST = torch.finfo(torch.float16).max  # 65504


class Columns:
    """The map x Wᵀ + b, its matrix kept as (inputs, outputs) where that is faster.

    weight is (outputs, inputs), bias (outputs,) or None. On a CPU, in float32 and float64, a copy
    turned on its side is read 1.3 to 2 times as fast; elsewhere the weight itself is used.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.matrix, self.bias = weight.t(), bias
        if weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.float64):
            self.matrix = self.matrix.contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        if self.bias is None:
            return torch.mm(x, self.matrix)
        return torch.addmm(self.bias, x, self.matrix)

    def add_to(self, y: Tensor, x: Tensor) -> None:
        """Add the map of x (B, inputs) to y (B, outputs), in place."""
        if self.bias is not None:
            y.add_(self.bias)
        y.addmm_(x, self.matrix)


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
