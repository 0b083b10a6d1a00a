"""Linear maps for decoding: a weight laid out for few vectors, or kept in fewer bits.

A token that is decoded alone uses every weight once, in two operations: what takes the time is to
read them. Each class here is called as `nn.Linear` is, with x (B, inputs), and gives (B, outputs);
`nbytes` is what its matrix takes. `python tests/benchmarks gpt_decoding` times them.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["BFloat16", "Columns", "Half", "Int8"]

_LARGEST = torch.finfo(torch.float16).max  # 65504
_PIECES, _WIDEST = 4, 4096  # outputs of one sum: threads share them, and the sum stays in the cache
_FBGEMM = "fbgemm" in torch.backends.quantized.supported_engines
_FEW = 16  # for more vectors than these, widening the matrix first costs less than reading it again


class Columns:
    """The map x Wᵀ + b, its matrix kept as (inputs, outputs) where that is faster.

    weight is (outputs, inputs), bias (outputs,) or None; neither gets gradients. On a CPU, in
    float32 and float64, a copy turned on its side is read up to 1.8 times as fast; elsewhere the
    weight itself is used. Raises RuntimeError, as torch does, for an x of another width.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.matrix = weight.detach().t()
        if weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.float64):
            self.matrix = self.matrix.contiguous()
        self.bias = None if bias is None else bias.detach()
        self.nbytes = self.matrix.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        if self.bias is None:
            return torch.mm(x, self.matrix)
        return torch.addmm(self.bias, x, self.matrix)


class Half:
    """The map x Wᵀ + b with W rounded to float16: half the bytes; x, b and sums are float32.

    Shapes as in `Columns`. Rounding changes a weight by at most 2⁻¹¹ of itself, above 6e-5. Raises
    ValueError for a weight that is not float32, not on the CPU, or has no place in float16's range,
    and RuntimeError where torch was built without FBGEMM, whose kernel this is.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        _check_float32("float16", weight, on_cpu=True)
        largest = float(weight.detach().abs().max())
        if not largest <= _LARGEST:
            raise ValueError(f"a weight of size {largest:g} is beyond float16's {_LARGEST:g}")
        if not _FBGEMM:
            raise RuntimeError("weights in float16 need a torch with FBGEMM; this one has none")
        self.nbytes = 2 * weight.numel()
        bias = None if bias is None else bias.detach()
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight.detach(), bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        return torch.ops.quantized.linear_dynamic_fp16(x, self._packed)


class BFloat16:
    """The map x Wᵀ + b with W rounded to bfloat16: half the bytes, and float32's range.

    Shapes as in `Columns`. x is rounded too, and so is what comes out, before b is added; sums
    within are float32. Rounding changes a number by at most 2⁻⁹ of itself: more than `Half` does,
    which has no place for large weights, though. On any device. Raises ValueError for a weight that
    is not float32: another has these bits already, or is meant to be exact.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        _check_float32("bfloat16", weight)
        self._weight = weight.detach().bfloat16()
        self.bias = None if bias is None else bias.detach()
        self.nbytes = self._weight.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        y = F.linear(x.bfloat16(), self._weight).float()
        return y if self.bias is None else y.add_(self.bias)


class Int8:
    """The map x Wᵀ + b with W in 8 bits: a quarter of the bytes; x, b and sums are float32.

    Shapes as in `Columns`. x W is the sum of W's rows, weighted by x, and torch has a kernel that
    widens rows of 8 bits while it sums them. What one input adds to up to 4,096 outputs has a scale
    and an offset of its own, so that an input with large weights (Dettmers et al. 2022 found such)
    spoils no other; a weight is off by at most 1/510 of the range of those. For more than 16
    vectors the matrix is widened a piece at a time. Raises ValueError for a weight that is not
    float32, not on the CPU or not finite, and RuntimeError for an x of another width.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        _check_float32("int8", weight, on_cpu=True)
        if not bool(weight.detach().isfinite().all()):
            raise ValueError("a weight that is infinite or NaN has no place in int8's range")
        self._outputs, self._inputs = weight.shape
        self._pieces = max(_PIECES, math.ceil(self._outputs / _WIDEST))
        wide = math.ceil(self._outputs / self._pieces)
        filled = F.pad(weight.detach(), (0, 0, 0, self._pieces * wide - self._outputs))
        rows = filled.view(self._pieces, wide, self._inputs).transpose(1, 2)  # (P, inputs, wide)
        pack = torch.ops.quantized.embedding_bag_byte_prepack
        self._table = pack(rows.reshape(-1, wide))  # (P * inputs, wide + 8), bytes
        self._rows = torch.arange(len(self._table), dtype=torch.int32)
        self.bias = None if bias is None else bias.detach()
        self.nbytes = self._table.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """Map x (B, inputs) to (B, outputs)."""
        if x.dim() != 2 or x.size(1) != self._inputs:
            shape = (self._inputs, self._outputs)
            raise RuntimeError(f"x {tuple(x.shape)} and matrix {shape} cannot be multiplied")
        y = self._sum_rows(x) if 0 < len(x) <= _FEW else self._widened(x)
        y = y.narrow(1, 0, self._outputs)
        return y.contiguous() if self.bias is None else y + self.bias

    def _sum_rows(self, x: Tensor) -> Tensor:
        bags = torch.arange(0, len(x) * len(self._table) + 1, self._inputs, dtype=torch.int32)
        weights = x.unsqueeze(1).expand(-1, self._pieces, -1).flatten()  # (B, P, inputs)
        sums = torch.ops.quantized.embedding_bag_byte_rowwise_offsets(
            self._table, self._rows.repeat(len(x)), bags, per_sample_weights=weights.contiguous(),
            include_last_offset=True,
        )  # fmt: skip
        return sums.view(len(x), -1)

    def _widened(self, x: Tensor) -> Tensor:
        unpack = torch.ops.quantized.embedding_bag_byte_unpack
        return torch.cat([torch.mm(x, unpack(p)) for p in self._table.split(self._inputs)], dim=1)


def _check_float32(name: str, weight: Tensor, on_cpu: bool = False) -> None:
    if weight.dtype != torch.float32 or (on_cpu and weight.device.type != "cpu"):
        raise ValueError(
            f"weights in {name} are made from float32{' on the CPU' if on_cpu else ''}, "
            f"got {weight.dtype} on {weight.device}"
        )
