"""Initialisation: weights drawn for every linear layer of a model at once.

Each function takes a whole module (a single `nn.Linear` counts as one) and changes its weights in
place; call it on the model, not through `model.apply`. Biases become 0; embeddings and norms are
left as they are, so call it before an output layer is tied to an embedding's table: afterwards it
would draw the table too. GPT-2's order is `normal(model)`, then
`scale_residual(model, 2 * L)` for a stack of L layers.
"""

import math

import torch
from torch import nn

__all__ = ["normal", "scale_residual", "xavier"]

WRITERS = ("w_o", "w_2")  # names in tinytf of the layers that write to the residual stream


def xavier(module: nn.Module) -> None:
    """Draw linear weights uniformly between ±sqrt(6 / (inputs + outputs)).

    This keeps variance where inputs and outputs agree. Biases become 0. Source: Glorot and
    Bengio 2010, equation 16.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def normal(module: nn.Module, std: float = 0.02) -> None:
    """Draw linear weights from N(0, std²), whatever the width.

    Biases become 0. Source: Radford et al. 2018, section 4.1.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, std=std)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


@torch.no_grad()
def scale_residual(module: nn.Module, num_sublayers: int) -> None:
    """Divide the weights that write to the residual stream, w_o and w_2, by sqrt(num_sublayers).

    `num_sublayers` is how many of them add to one stream: 2 for each encoder layer, 3 for each
    decoder layer. Calling it twice divides twice. Raises ValueError where nothing writes, or
    num_sublayers is below 1. Source: Radford et al. 2019, section 2.3.
    """
    if num_sublayers < 1:
        raise ValueError(f"num_sublayers must be at least 1, got {num_sublayers}")
    writers = [part for name, part in module.named_modules() if name.split(".")[-1] in WRITERS]
    if not writers:
        raise ValueError(
            f"no {' or '.join(WRITERS)} in this {type(module).__name__}: nothing to scale"
        )
    for linear in writers:
        linear.weight /= math.sqrt(num_sublayers)
