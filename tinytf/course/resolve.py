"""What a target of `graduate` names: an object of the package."""

import importlib


def resolve(target, name):
    """The object that `graduate(object_called_name, target)` compares with.

    `target` is a module, which has an object of that name, or the full dotted name of an object.
    """
    try:
        return getattr(importlib.import_module(target), name)
    except ModuleNotFoundError:
        module, _, attribute = target.rpartition(".")
        return getattr(importlib.import_module(module), attribute)
