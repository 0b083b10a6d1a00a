"""The matrix products of a run, written down and made again without anything else.

Of a training step these are the linear maps forward and backward and attention's kernels: no model
is faster than that in this arithmetic.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Call", "Shape", "recorded", "replay", "shapes"]

PRODUCTS = {"mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_"}
KERNELS = ("_scaled_dot_product", "_flash_attention", "_efficient_attention")
Shape = tuple[int, int, int]  # (m, k) times (k, n)


class _Like(NamedTuple):
    """A tensor without its numbers."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, x: Tensor) -> "_Like":
        """Look at one."""
        return cls(tuple(x.shape), x.stride(), x.dtype, x.device)

    def make(self) -> Tensor:
        """Make another, small numbers laid out in memory as in the first."""
        room = 1 + sum((n - 1) * s for n, s in zip(self.size, self.stride, strict=True))
        fill = torch.zeros if self.dtype == torch.uint64 else torch.ones  # kernels' random states
        numbers = fill(max(room, 1), dtype=self.dtype, device=self.device)
        if self.dtype.is_floating_point:
            numbers.normal_(std=0.02)
        return numbers.as_strided(self.size, self.stride)


class Call(NamedTuple):
    """One matrix product, or one call of an attention kernel: what is called, and with what."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = function.overloadpacket.__name__
        if name in PRODUCTS or name.startswith(KERNELS):
            seen = tuple(_Like.of(a) if isinstance(a, Tensor) else a for a in arguments)
            words = {k: _Like.of(a) if isinstance(a, Tensor) else a for k, a in named.items()}
            self.calls.append(Call(function, seen, words))
        return function(*arguments, **(named or {}))


def recorded(run: Callable[[], object]) -> list[Call]:
    """Write down the matrix products that one call of `run` makes, backward ones included."""
    with _Recorder() as recorder:
        run()
    return recorder.calls


def replay(calls: Sequence[Call]) -> Callable[[], None]:
    """Make a run of these products alone.

    Tensors of one layout share their memory, so that they are found in the cache more often than
    the step finds them: the floor is a little too low.
    """
    made: dict[tuple[object, _Like], Tensor] = {}

    def real(place: object, a: Any) -> Any:
        if not isinstance(a, _Like):
            return a
        if (place, a) not in made:
            made[place, a] = a.make()
        return made[place, a]

    ready = [
        (
            call.function,
            [real(i, a) for i, a in enumerate(call.arguments)],
            {key: real(key, a) for key, a in call.named.items()},
        )
        for call in calls
    ]

    @torch.no_grad()
    def run() -> None:
        for function, arguments, named in ready:
            function(*arguments, **named)

    return run


def shapes(calls: Sequence[Call]) -> Counter[Shape]:
    """Count the products by shape (m, k, n); one of a batch of products counts as one."""
    count: Counter[Shape] = Counter()
    for call in calls:
        if call.function.overloadpacket.__name__ not in PRODUCTS:
            continue
        a, b = [x for x in call.arguments if isinstance(x, _Like)][-2:]
        times = a.size[0] if len(a.size) == 3 else 1
        count[a.size[-2], a.size[-1], b.size[-1]] += times
    return count
