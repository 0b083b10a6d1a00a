"""What a chapter needs to teach: measured claims, predictions, graded exercises."""

import importlib
import sys
from types import ModuleType

from tinytf.support.handed_in import hand_in

_HOME = {  # name: the file that defines it, loaded when the name is first used
    "ClaimError": "claims",
    "GraduationError": "graduate",
    "built": "building",
    "check": "check",
    "claim": "claims",
    "graduate": "graduate",
    "predict": "predict",
    "progress": "progress",
    "setup": "setup",
    "yours": "yours",
}

__all__ = sorted(_HOME)

hand_in("sources", "tinytf_course:__path__")
hand_in("phrasebook", "tinytf_course.phrasebook")
hand_in("phrasebook's batches", "tinytf_course.phrasebook.batches:PhrasebookBatches")


class _Face(ModuleType):
    """The course as it is imported: `check` is the function, though a file is called so too."""

    def __getattr__(self, name):
        """A public name, loaded with the file that defines it."""
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name, value):
        """Keep the name for the function: importing a file would put the file in its place."""
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self):
        """What Tab completes."""
        return sorted({*vars(self), *__all__})


sys.modules[__name__].__class__ = _Face
