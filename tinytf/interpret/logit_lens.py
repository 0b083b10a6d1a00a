"""The logit lens: what a model would predict if it stopped after an earlier layer.

Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from torch import Tensor, nn

__all__ = ["decided_after", "logit_lens"]


def logit_lens(model: nn.Module, states: Tensor) -> Tensor:
    """Turn states (..., C) of the decoder's residual stream into logits, as at its end.

    They pass through the decoder's final norm and the output projection: (..., C) -> (..., V).
    """
    return model.output(model.decoder.final_norm(states))


def decided_after(logits: Tensor) -> Tensor:
    """Find the layer from which on the most likely token is the final one: (L, ..., V) -> (...).

    Layers are counted as in `logits`, 0 the first; a token that was most likely, was not, and
    is again, counts from its return.
    """
    likeliest = logits.argmax(dim=-1)  # (L, ..., V) -> (L, ...)
    differs = (likeliest != likeliest[-1]).int()
    return differs.flip(0).cumsum(dim=0).gt(0).sum(dim=0)
