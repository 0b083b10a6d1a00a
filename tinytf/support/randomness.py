"""Random states: read, put back, and seeded for a while, on whatever device draws from them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["random_state", "seed_all", "seeded", "set_random_state"]


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Read the state that dropout draws from, on the CPU and on the GPU given."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Put back what `random_state` read; a state saved on another device has no GPU part."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
    if device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"])


def seed_all(seed: int) -> None:
    """Seed the CPU and the GPUs that are there, to the states that `torch.manual_seed` gives them.

    That one also writes down the whole stack for each kind of device that is not there.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch inside the block only: what it draws does not depend on what came before."""
    # all GPUs by name: fork_rng() alone warns where there are several
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        seed_all(seed)
        yield
