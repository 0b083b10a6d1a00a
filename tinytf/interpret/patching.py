"""Activation patching: put what a model computed in one run into another, and see what it says.

Source: Vig et al. 2020; Meng et al. 2022, section 2, where it is called causal tracing.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from tinytf.inspect import replace

__all__ = ["patch_map", "recovered", "transplant"]


def transplant(values: Tensor, at: Tensor) -> Callable[[Tensor], Tensor]:
    """Make a `change` for `replace`: one position a row is taken from `values`, the rest stays.

    `values` (B, T, C) is what the module computed in the other run, `at` (B,) the position in each
    row. What the module computed is not changed in place, and the result has its dtype; gradients
    pass to both. Raises ValueError, when the model runs, if the shapes differ.
    """

    def change(x: Tensor) -> Tensor:
        if x.shape != values.shape:
            raise ValueError(
                f"values of shape {tuple(values.shape)} can't stand for {tuple(x.shape)}"
            )
        rows = torch.arange(len(x), device=x.device)
        patched = x.clone()
        patched[rows, at] = values[rows, at].to(x)
        return patched

    return change


def recovered(patched: Tensor, clean: Tensor, corrupted: Tensor) -> float:
    """Say how far a patch led from the corrupted answers (0) to the clean ones (1).

    Each is a number a sentence, (B,). The distances are summed before they are divided, so a
    sentence in which the two answers lie near each other can't blow up the score. Returns a Python
    float. Raises ValueError if on the whole they do not differ.
    """
    whole = (clean - corrupted).sum().item()
    if abs(whole) < 1e-6 * len(clean):
        raise ValueError(
            f"the clean answers, {clean.mean().item():.3g} in the mean, and the corrupted ones, "
            f"{corrupted.mean().item():.3g}, do not differ: there is nothing to recover"
        )
    return (patched - corrupted).sum().item() / whole


@torch.no_grad()
def patch_map(
    model: nn.Module,
    run: Callable[[], Tensor],
    stored: Mapping[str, Tensor],
    places: Mapping[str, Tensor],
) -> dict[str, dict[str, Tensor]]:
    """Run once for every module and place, with that one activation from another run.

    `run` asks the model and gives a number a sentence, (B,); `stored` is a `record` of the other
    run; `places` has the position in each row, (B,), by what stands there. Returns the answers by
    module and place.
    """
    answers: dict[str, dict[str, Tensor]] = {}
    for name, values in stored.items():
        answers[name] = {}
        for place, at in places.items():
            with replace(model, name, transplant(values, at)):
                answers[name][place] = run()
    return answers
