"""Tables that turn tensors both ways: which of theirs holds which of ours."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from tinytf.support.files import CheckpointError, shortened

__all__ = ["Row", "some", "to_ours", "to_theirs"]

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _same(tensor: Tensor) -> Tensor:
    return tensor


class Row(NamedTuple):
    """One of their tensors, and ours that stand one below the other in it.

    `forth` turns ours, joined along the first axis, into theirs; `back` undoes it. Both return a
    view or a copy, and change nothing.
    """

    theirs: str
    ours: tuple[str, ...]
    forth: Callable[[Tensor], Tensor] = _same
    back: Callable[[Tensor], Tensor] = _same


def to_theirs(rows: Iterable[Row], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy our parameters into their tensors, by name."""
    state = {}
    for row in rows:
        tensor = torch.cat([ours[name].detach() for name in row.ours])
        state[row.theirs] = row.forth(tensor).contiguous()
    return state


def to_ours(
    rows: Iterable[Row],
    theirs: Mapping[str, Tensor],
    parameters: Mapping[str, Tensor],
    words: str,
) -> dict[str, Tensor]:
    """Turn their tensors into ours, by name; they may be views of the tensors given.

    `parameters` are those of our model, looked at for their shapes alone; they and `theirs` may be
    on the meta device. `words` say which sizes the model has. Raises CheckpointError that names the
    tensors missing, unexpected, of another shape, or not of floats.
    """
    rows = list(rows)
    with torch.device("meta"):
        empty = {name: torch.empty(p.shape) for name, p in parameters.items()}
    shapes = {name: tuple(t.shape) for name, t in to_theirs(rows, empty).items()}
    faults = []
    if missing := [name for name in shapes if name not in theirs]:
        faults.append(f"missing {some(missing)}")
    if extra := [name for name in theirs if name not in shapes]:
        faults.append(f"unexpected {some(extra)}")
    for name in [name for name in shapes if name in theirs]:
        if tuple(theirs[name].shape) != shapes[name]:
            faults.append(
                f"{name} has shape {tuple(theirs[name].shape)}, the config asks for {shapes[name]}"
            )
        elif theirs[name].dtype not in FLOATS:
            faults.append(f"{name} holds {theirs[name].dtype}, not floats")
    if faults:
        more = f"; and {len(faults) - 5} more such" if len(faults) > 5 else ""
        raise CheckpointError(f"the weights do not fit {words}: {'; '.join(faults[:5])}{more}")
    ours = {}
    for row in rows:
        heights = [parameters[name].size(0) for name in row.ours]
        ours |= zip(row.ours, row.back(theirs[row.theirs]).split(heights), strict=True)
    return ours


def some(names: list[str]) -> str:
    """List the first five names, and how many more there are."""
    return ", ".join(map(shortened, names[:5])) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )
