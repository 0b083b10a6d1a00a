"""Models that `torch.compile` has compiled: what of them runs compiled."""

from collections.abc import Callable
from typing import Any

from torch import nn

__all__ = ["compiled_method", "is_compiled"]


def is_compiled(model: nn.Module) -> bool:
    """Say whether a call of the model runs compiled code: `torch.compile(m)`, or `m.compile()`."""
    return hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None


def compiled_method(model: nn.Module, name: str) -> Callable[..., Any]:
    """Return a method of a model; of what `torch.compile(model)` gave, compiled in the same way.

    Torch compiles `forward` alone: `torch.compile(model).decode` is the plain method. Code compiled
    in an earlier call is found again.
    """
    compile_as_model = vars(model).get("dynamo_ctx")  # of torch's OptimizedModule
    method = getattr(model, name)
    return method if compile_as_model is None else compile_as_model(method)
