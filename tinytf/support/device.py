"""One choice of device, and of the precision that is fastest on it, for the whole course."""

import functools
import os
import time

import torch

__all__ = ["choose_device", "choose_precision"]


def choose_device(name: str | torch.device | None = None) -> torch.device:
    """Return the device to compute on: `name`, else `TINYTF_DEVICE`, else the best one present.

    Raises ValueError if the device asked for is unknown or is not on this machine.
    """
    present = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    variable = os.environ.get("TINYTF_DEVICE") or ""
    wanted = str(name or variable)
    if not wanted:
        return torch.device(next(kind for kind, here in present.items() if here))
    said = f"device {wanted!r}" if name else f"the variable TINYTF_DEVICE={wanted!r}"
    kind, _, number = wanted.partition(":")
    if kind not in present or (number and not number.isdecimal()):
        raise ValueError(f"{said} is not one of {', '.join(present)}")
    if not present[kind]:
        raise ValueError(f"{said} was asked for, but torch sees none on this machine")
    if kind == "cuda" and number and int(number) >= torch.cuda.device_count():
        raise ValueError(f"{said} was asked for, but there are {torch.cuda.device_count()}")
    return torch.device(wanted)


@functools.cache
def choose_precision(kind: str) -> str:
    """Return the faster of "float32" and "bfloat16" for training on a kind of device.

    A processor without bfloat16 instructions is many times slower in it than in float32, and one
    with them several times faster, so a CPU is measured: a few milliseconds of matmuls, once a
    process. A GPU is asked. `TINYTF_PRECISION` overrides; raises ValueError if it is neither.
    """
    if wanted := os.environ.get("TINYTF_PRECISION"):
        if wanted not in ("float32", "bfloat16"):
            raise ValueError(f"TINYTF_PRECISION={wanted!r} is not one of float32, bfloat16")
        return wanted
    if kind == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    if kind != "cpu":
        return "float32"
    seconds = {name: _matmul_seconds(getattr(torch, name)) for name in ("float32", "bfloat16")}
    return "bfloat16" if seconds["bfloat16"] < 0.5 * seconds["float32"] else "float32"


def _matmul_seconds(dtype: torch.dtype) -> float:
    """Time a matmul of the size training does: the best of several, after a warm-up."""
    a, b = torch.ones(1024, 128, dtype=dtype), torch.ones(128, 512, dtype=dtype)
    best = float("inf")
    for _ in range(8):
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return best
