"""Models that `torch.compile` has compiled: only their call runs compiled."""

from torch import nn

__all__ = ["is_compiled"]


def is_compiled(model: nn.Module) -> bool:
    """Say whether a call of the model runs compiled code: `torch.compile(m)`, or `m.compile()`.

    Its methods do not: who wants what the compiler gives must call the model.
    """
    return hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None
