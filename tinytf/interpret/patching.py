"""Activation patching: put what a model computed in one run into another run.

Source: Vig et al. 2020; Meng et al. 2022, section 2, where it is called causal tracing.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from tinytf.inspect import replace

__all__ = ["patch_map", "recovered", "transplant"]


def transplant(values: Tensor, at: Tensor) -> Callable[[Tensor], Tensor]:
    """Make a `change` for `replace`: one position per row is taken from `values`, the rest stays.

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
    """Measure how far a patch leads from the corrupted answers (0) to the clean ones (1).

    Each argument is (B,), a number per sentence. The distances are summed before the division, so a
    sentence whose two answers are close together can't blow up the score. Returns a Python
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
    """Run once for every module and position, with that one vector taken from another run.

    `run` runs the model and returns a number per sentence, (B,); `stored` is a `record` of the
    other run; `places` has the position in each row, (B,), by name. Returns the answers by
    module and name of the position.
    """
    answers: dict[str, dict[str, Tensor]] = {}
    for name, values in stored.items():
        answers[name] = {}
        for place, at in places.items():
            with replace(model, name, transplant(values, at)):
                answers[name][place] = run()
    return answers
