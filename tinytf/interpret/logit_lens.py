"""The logit lens: what a model would say if it stopped after an earlier layer.

Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from torch import Tensor, nn

__all__ = ["decided_after", "logit_lens"]


def logit_lens(model: nn.Module, states: Tensor) -> Tensor:
    """Read states (..., C) of the decoder's residual stream as the last layer's are read.

    That is through the decoder's final norm and the output matrix: (..., C) -> (..., V).
    """
    return model.output(model.decoder.final_norm(states))


def decided_after(logits: Tensor) -> Tensor:
    """Find the layer from which on the likeliest token is the final one: (L, ..., V) -> (...).

    Layers are counted as in `logits`, 0 the first; a token that was likeliest, was not, and is
    again counts from its return.
    """
    likeliest = logits.argmax(dim=-1)  # (L, ..., V) -> (L, ...)
    differs = (likeliest != likeliest[-1]).int()
    return differs.flip(0).cumsum(dim=0).gt(0).sum(dim=0)
