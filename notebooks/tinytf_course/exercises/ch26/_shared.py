"""What exercises of chapters 26 and 27 share: how much memory an answer takes."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Held(TorchDispatchMode):
    """A block that counts the numbers that are in memory because of what is computed in it.

    `peak` is the most at one time; what was there before is not counted.
    """

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self._given, self._made = {}, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Compute, and count what is new."""
        for storage in _storages((args, kwargs)):
            if storage._cdata not in self._made:
                self._given[storage._cdata] = storage
        result = function(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            for storage in _storages(x):
                self._count(storage, storage.nbytes() // x.element_size())
        return result

    def _count(self, storage, size):
        key = storage._cdata
        if key not in self._given and key not in self._made:
            self._made[key] = size
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, key)

    def _drop(self, key):
        self.now -= self._made.pop(key)


def _storages(value):
    return [x.untyped_storage() for x in tree_leaves(value) if isinstance(x, torch.Tensor)]
