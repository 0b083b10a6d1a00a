"""Methods of a compiled model, compiled as the model is."""

from collections.abc import Callable
from typing import Any

from torch import nn

__all__ = ["compiled_method"]


def compiled_method(model: nn.Module, name: str) -> Callable[..., Any]:
    """Return a method of a model; of what `torch.compile(model)` gave, compiled in the same way.

    Torch compiles `forward` alone: `torch.compile(model).decode` is the plain method. Code compiled
    in an earlier call is found again.
    """
    compile_as_model = vars(model).get("dynamo_ctx")  # of torch's OptimizedModule
    method = getattr(model, name)
    return method if compile_as_model is None else compile_as_model(method)
