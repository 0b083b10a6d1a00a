"""Chapter 04: several heads, and the cache of keys and values."""

import torch
from torch import nn

from tinytf.attention import KeyValueCache, explicit_attention
from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch03 import learned, wide


def _filled(cache):
    first = cache.append(wide(2, 3, 1, 4, seed=1), wide(2, 3, 1, 4, seed=2))
    second = cache.append(wide(2, 3, 2, 4, seed=3), wide(2, 3, 2, 4, seed=4))
    return [*first, *second]


def _selected(cache):
    mine = cache()
    _filled(mine)
    mine.select(torch.tensor([1, 1, 0]))
    return [mine.k, mine.v, torch.tensor(len(mine))]


def _empty(cache):
    mine = cache()
    mine.select(torch.tensor([0]))
    return [torch.tensor(len(mine)), torch.tensor(mine.k is None)]


def _causal(layer):
    mask = torch.ones(1, 1, 5, 5).tril().bool()
    return twin(layer, 12, 3)(wide(2, 5, 12, seed=1), mask=mask)


def _memory_cached(layer):
    module, cache = twin(layer, 12, 3), KeyValueCache()
    memory = wide(2, 6, 12, seed=2)
    first = module(wide(2, 1, 12, seed=1), memory, cache=cache)
    return [first, module(wide(2, 1, 12, seed=3), memory, cache=cache), torch.tensor(len(cache))]


def _step_by_step(layer):
    module, cache, x = twin(layer, 12, 3), KeyValueCache(), wide(2, 4, 12, seed=1)
    return torch.cat([module(x[:, t : t + 1], cache=cache) for t in range(4)], dim=1)


def _gradients(layer):
    module = twin(layer, 12, 3)
    x, memory = learned(2, 4, 12, seed=1), learned(2, 6, 12, seed=2)
    return arrived(module(x, memory), x, memory, module=module)


def _swapped(layer):
    module = twin(layer, 12, 3)
    module.attention = explicit_attention
    return module(wide(2, 4, 12, seed=1))


def _dropped(layer):
    module = twin(layer, 12, 3, dropout=0.5, mode="train")
    torch.manual_seed(0)
    module.attention = explicit_attention
    return module(wide(2, 4, 12, seed=1))


def _maps(*sizes, bias=True):
    return [twin(nn.Linear, 3, size, bias) for size in sizes]


class _Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def _hooked(f):
    maps = _maps(4, 4)
    maps[1].register_forward_hook(lambda module, inputs, out: out + 1)
    return f(wide(2, 5, 3, seed=1), *maps)


def _together_gradients(f):
    x, maps = learned(2, 5, 3, seed=1), nn.ModuleList(_maps(4, 2))
    return arrived(torch.cat(f(x, *maps), dim=-1), x, module=maps)


PARTS = (
    Part(
        "tinytf.attention.apply_together",
        {
            "there is one map": lambda f: f(wide(2, 5, 3, seed=1), *_maps(4)),
            "there are three, of other sizes": lambda f: f(wide(2, 5, 3, seed=1), *_maps(4, 2, 7)),
            "there are no biases": lambda f: f(wide(2, 5, 3, seed=1), *_maps(4, 2, bias=False)),
            "one has a hook": _hooked,
            "one is of another class": lambda f: f(
                wide(2, 5, 3, seed=1), *_maps(4), twin(_Doubled, 3, 4)
            ),
            "gradients go back to x and to every map": _together_gradients,
        },
    ),
    Part(
        "tinytf.attention.KeyValueCache",
        {
            "it is new": lambda cache: torch.tensor(len(cache())),
            "positions are added one after another": lambda cache: _filled(cache()),
            "rows of the batch are kept": _selected,
            "rows are kept before anything is there": _empty,
        },
    ),
    Part(
        "tinytf.attention.MultiHeadAttention",
        {
            "its weights are counted": lambda layer: shapes(layer(12, 3)),
            "there is one head": lambda layer: twin(layer, 4, 1)(wide(1, 2, 4, seed=1)),
            "there are three heads, and two sentences": lambda layer: twin(layer, 12, 3)(
                wide(2, 5, 12, seed=1)
            ),
            "nobody sees what comes later": _causal,
            "it reads another sentence": lambda layer: twin(layer, 12, 3)(
                wide(2, 5, 12, seed=1), wide(2, 7, 12, seed=2)
            ),
            "some of that sentence is padding": lambda layer: twin(layer, 12, 3)(
                wide(2, 5, 12, seed=1),
                wide(2, 3, 12, seed=2),
                torch.tensor([[True, False, False], [True, True, False]])[:, None, None],
            ),
            "words come one by one, with a cache": _step_by_step,
            "another sentence is kept in a cache": _memory_cached,
            "the function that attends is put in": _swapped,
            "half of the weights are dropped while it trains": _dropped,
            "gradients go back to both sentences and to every weight": _gradients,
        },
    ),
)
