"""One choice of device for the whole course."""

import os

import torch

__all__ = ["choose_device"]


def choose_device(name: str | None = None) -> torch.device:
    """Return the device to compute on: `name`, else `TINYTF_DEVICE`, else the best one present.

    Raises ValueError if the device asked for is unknown or is not on this machine.
    """
    present = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    wanted = name or os.environ.get("TINYTF_DEVICE")
    if not wanted:
        return torch.device(next(kind for kind, here in present.items() if here))
    kind = wanted.split(":")[0]
    if kind not in present:
        raise ValueError(f"device {wanted!r} is not one of {', '.join(present)}")
    if not present[kind]:
        raise ValueError(f"device {wanted!r} was asked for, but torch sees none on this machine")
    return torch.device(wanted)
