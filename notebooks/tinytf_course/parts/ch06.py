"""Chapter 07: several heads, and the fused path."""

import inspect

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tinytf.attention import KeyValueCache, explicit_attention, fused_attention
from tinytf.masks import CAUSAL
from tinytf.metrics.counting import kept_bytes
from tinytf_course.parts import Part, arrived, shapes, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide


def _causal(layer):
    mask = torch.ones(1, 1, 5, 5).tril().bool()
    return twin(layer, 12, 3)(wide(2, 5, 12, seed=1), mask=mask)


def _memory_cached(layer):
    module, cache = twin(layer, 12, 3), KeyValueCache()
    memory = wide(2, 6, 12, seed=2)
    first = module(wide(2, 1, 12, seed=1), memory, cache=cache)
    second = module(wide(2, 1, 12, seed=3), memory, cache=cache)
    kept = torch.tensor(len(cache))
    return {"the first word": first, "the second word": second, "len(cache) afterwards": kept}


def _step_by_step(layer):
    module, cache, x = twin(layer, 12, 3), KeyValueCache(), wide(2, 4, 12, seed=1)
    return torch.cat([module(x[:, t : t + 1], cache=cache) for t in range(4)], dim=1)


def _gradients(layer):
    module = twin(layer, 12, 3)
    x, memory = learned(2, 4, 12, seed=1), learned(2, 6, 12, seed=2)
    return arrived(module(x, memory), x, memory, module=module)


def _alone_gradients(layer):
    module, x = twin(layer, 12, 3), learned(2, 4, 12, seed=1)
    return arrived(module(x), x)


def _cached_gradients(layer):
    """To words of earlier calls, by the keys and values that the cache has kept."""
    module, cache, x = twin(layer, 12, 3), KeyValueCache(), learned(2, 3, 12, seed=1)
    module(x[:, :2], cache=cache)
    return arrived(module(x[:, 2:], cache=cache), x)


def _memory_cached_gradients(layer):
    module, cache, memory = twin(layer, 12, 3), KeyValueCache(), learned(2, 6, 12, seed=2)
    module(wide(2, 1, 12, seed=1), memory, cache=cache)
    return arrived(module(wide(2, 1, 12, seed=3), memory, cache=cache), memory)


def _projected(layer):
    """How often the map that makes a memory's keys is applied for three words."""
    module, cache, calls = twin(layer, 12, 3), KeyValueCache(), []
    module.w_k.register_forward_hook(lambda module, inputs, out: calls.append(out))
    for seed in (1, 2, 3):
        module(wide(2, 1, 12, seed=seed), wide(2, 6, 12, seed=4), cache=cache)
    return {"`w_k` reads the memory again": len(calls) > 1}


def _words_after_words(layer):
    """Two words, then three more at once, each of which sees no later one."""
    module, cache, x = twin(layer, 12, 3), KeyValueCache(), wide(2, 5, 12, seed=1)
    return torch.cat([module(part, mask=CAUSAL, cache=cache) for part in (x[:, :2], x[:, 2:])], 1)


def _swapped(layer, **named):
    module = twin(layer, 12, 3)
    module.attention = explicit_attention
    return module(wide(2, 4, 12, seed=1), **named)


def _dropped(layer):
    """Which dropout the attention function is given while the layer trains; what it then mixes."""
    module, given = twin(layer, 12, 3, dropout=0.5, mode="train"), []

    def spy(q, k, v, mask=None, dropout=0.0):
        given.append(dropout)
        return explicit_attention(q, k, v, mask)

    module.attention = spy
    return {"mixed": module(wide(2, 4, 12, seed=1)), "dropout": given}


def _keeps_weights(call, heads, words):
    """Whether a call keeps a table of float32 weights for every head."""
    return {"it keeps a number for each pair of words": kept_bytes(call) >= 4 * heads * words**2}


def _fused_keeps(f):
    q, k, v = (wide(1, 2, 64, 4, seed=n).float().requires_grad_() for n in (1, 2, 3))
    return _keeps_weights(lambda: f(q, k, v), 2, 64)


def _layer_keeps(layer):
    module, x = layer(8, 2), wide(1, 64, 8, seed=1).float()
    return _keeps_weights(lambda: module(x), 2, 64)


def _dropped_no_more(layer):
    return twin(layer, 12, 3, dropout=0.5)(wide(2, 4, 12, seed=1))


def _hooked(layer):
    """A map may be followed by code of somebody's: a hook that changes what it gives."""
    module = twin(layer, 12, 3)
    module.w_k.register_forward_hook(lambda module, inputs, out: out * 2)
    return module(wide(2, 4, 12, seed=1))


class _Masks(TorchDispatchMode):
    """Sees whether a table of True and False is made."""

    seen = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        parts = made if isinstance(made, list | tuple) else [made]
        self.seen |= any(isinstance(x, torch.Tensor) and x.dtype == torch.bool for x in parts)
        return made


def _masks_made(call):
    """Whether a mask is made for five words that are told to be causal."""
    with _Masks() as masks:
        call(*(x.float() for x in _heads(5, 5)), CAUSAL)
    return {"a mask is made": masks.seen}


def _attend_masks(f):
    # The notebook's fused function may be the reader's: `f` knows it by name.
    fused = inspect.unwrap(f).__globals__.get("fused_attention", fused_attention)
    return _masks_made(lambda *heads: f(fused, *heads))


def _meta(*parts):
    return [x.to("meta") for x in parts]


def _heads(length, keys, width=4):
    return [wide(2, 3, n, width, seed=seed) for seed, n in enumerate((length, keys, keys))]


def _half_hidden():
    return (wide(2, 1, 5, 7, seed=9) > 0).index_fill(-1, torch.tensor(0), True)


def _half_dropped(f, keys, mask):
    """What a dropout of a half does to the weights, which values of ones and zeros show."""
    q, k = wide(20, 3, 5, 4, seed=0), wide(20, 3, keys, 4, seed=1)
    ones = torch.eye(keys).double().expand(20, 3, keys, keys)
    plain, found, again = (f(q, k, ones, mask, p) for p in (0.0, 0.5, 0.5))
    kept, mixed = found != 0, f(q, k, torch.ones_like(ones[..., :1]), mask, 0.5)
    return {
        "each is 0, or doubled": torch.allclose(found, 2 * plain * kept),
        "half of them are 0": bool(0.45 < kept[plain > 0].double().mean() < 0.55),
        "each sentence drops its own": not torch.equal(kept[0], kept[1]),
        "each head drops its own": not torch.equal(kept[:, 0], kept[:, 1]),
        "each query drops its own": not torch.equal(kept[:, :, -1], kept[:, :, -2]),
        "each time others are dropped": not torch.equal(kept, again != 0),
        "what is mixed is not dropped itself": bool((mixed == 0).double().mean() < 0.35),
    }


def _named_dropped(f):
    return _half_dropped(f, 5, CAUSAL)


def _hidden_dropped(f):
    return _half_dropped(f, 7, _half_hidden().repeat(10, 1, 1, 1))


def _fused_gradients(f, keys=7, mask=None):
    q, k, v = (learned(2, 3, n, 4, seed=n + i) for i, n in enumerate((5, keys, keys)))
    return arrived(f(q, k, v, _half_hidden() if mask is None else mask), q, k, v)


def _told(attend):
    """Which mask the attention function is given, and with what dropout."""
    given = []

    def spy(q, k, v, mask=None, dropout=0.0):
        given.append((mask, dropout))
        return q

    attend(spy, *_heads(2, 5), CAUSAL, 0.25)
    mask, dropout = given[0]
    return {"the mask it is given": mask, "the dropout it is given": torch.tensor(dropout)}


ONE_DEVICE = "queries, keys and values are on one device"
AS_MANY = "there are as many values as keys"
FOUR_AXES = "a mask written out has four axes, and so have q and k: the third is the last but one"

PARTS = (
    Part(
        "tinytf.masks.written_out",
        {
            "there is a mask": lambda f: f(torch.eye(3).bool(), 3, 3),
            "there is none": lambda f: {"mask": str(f(None, 3, 3))},
            "one word is the last of three": lambda f: {"mask": str(f(CAUSAL, 1, 3))},
            "there are three words": lambda f: f(CAUSAL, 3, 3),
            "two words are the last of five": lambda f: f(CAUSAL, 2, 5),
            "another device is asked for": lambda f: {
                "device": str(f(CAUSAL, 2, 5, torch.device("meta")).device)
            },
        },
        equivalent={"… => ….detach()": "a boolean mask carries no gradient"},
    ),
    Part(
        "tinytf.attention.fused_attention",
        {
            "one query meets two keys": lambda f: f(
                torch.tensor([[1.0, 0.0]]),
                torch.tensor([[2.0, 0.0], [0.0, 2.0]]),
                torch.tensor([[10.0], [20.0]]),
            ),
            "there are sentences and heads, and more keys than queries": lambda f: f(*_heads(5, 7)),
            "there are as many keys as queries, and no mask": lambda f: f(*_heads(5, 5)),
            "keys are hidden": lambda f: f(*_heads(5, 7), _half_hidden()),
            "the same keys are hidden from as many queries": lambda f: f(
                *_heads(7, 7), _half_hidden()[:, :, :1]
            ),
            "the mask is called causal": lambda f: f(*_heads(5, 5), CAUSAL),
            "it is called causal, and there are more keys": lambda f: f(*_heads(5, 7), CAUSAL),
            "it is called causal, and there are as many keys as numbers in each": lambda f: [
                f(*_heads(5, 7, width=7), CAUSAL),
                f(*_heads(5, 7, width=5), CAUSAL),
            ],
            "it is called causal, and there are as many keys as heads": lambda f: f(
                *_heads(2, 3), CAUSAL
            ),
            "it is called causal, and one word is the last": lambda f: f(*_heads(1, 7), CAUSAL),
            "it is called causal: no mask is made": lambda f: _masks_made(f),
            "it is called causal, and there are no heads, only sentences": lambda f: f(
                *(wide(2, 5, 4, seed=seed) for seed in (1, 2, 3)), CAUSAL
            ),
            "numbers are in float32": lambda f: dtypes(
                *(f(*(x.float() for x in _heads(5, n)), CAUSAL) for n in (5, 7))
            ),
            "it is called causal, on another device": lambda f: {
                "device": str(f(*_meta(*_heads(5, 7)), CAUSAL).device)
            },
            "half of the weights are dropped": _named_dropped,
            "keys are hidden, and half of the other weights dropped": _hidden_dropped,
            "64 words meet, and a gradient is to go back": _fused_keeps,
            "gradients go back to queries, keys and values": _fused_gradients,
            "gradients go back where the mask is called causal": lambda f: _fused_gradients(
                f, 5, CAUSAL
            ),
        },
        equivalent={
            "… => mask = written_out(mask, q.size(-2), k.size(-2), k.device)": ONE_DEVICE,
            "… => mask = written_out(mask, q.size(-2), k.size(-2), v.device)": ONE_DEVICE,
            "… => mask = written_out(mask, q.size(-2), v.size(-2), q.device)": AS_MANY,
            "… => if mask is CAUSAL and q.size(-2) == v.size(-2):": AS_MANY,
        },
    ),
    Part(
        "tinytf.attention.attend",
        {
            "there is no mask": lambda f: f(explicit_attention, *_heads(5, 7)),
            "keys are hidden": lambda f: f(explicit_attention, *_heads(5, 7), _half_hidden()),
            "the mask is called causal": lambda f: f(explicit_attention, *_heads(5, 7), CAUSAL),
            "the fused function is told so too": lambda f: f(
                fused_attention, *_heads(5, 5), CAUSAL
            ),
            "the fused function is called: no mask is made for it": _attend_masks,
            "a function of the reader's is given a mask and the dropout": _told,
            "numbers are in float32": lambda f: dtypes(
                f(explicit_attention, *(x.float() for x in _heads(5, 7)))
            ),
            "it is called causal, on another device": lambda f: {
                "device": str(f(explicit_attention, *_meta(*_heads(5, 7)), CAUSAL).device)
            },
            "gradients go back to queries, keys and values": lambda f: _fused_gradients(
                lambda *given: f(explicit_attention, *given)
            ),
        },
        equivalent={
            "… => mask = written_out(mask, q.size(-2), k.size(-2), k.device)": ONE_DEVICE,
            "… => mask = written_out(mask, q.size(-2), k.size(-2), v.device)": ONE_DEVICE,
            "… => mask = written_out(mask, q.size(-2), v.size(-2), q.device)": AS_MANY,
            "… => mask = written_out(mask, q.size(2), k.size(-2), q.device)": FOUR_AXES,
            "… => mask = written_out(mask, q.size(-2), k.size(2), q.device)": FOUR_AXES,
        },
    ),
    Part(
        "tinytf.attention.MultiHeadAttention",
        {
            "its weights are counted": lambda layer: shapes(layer(12, 3)),
            "it is asked for its width and its heads, d_model and num_heads": lambda layer: [
                torch.tensor([layer(12, 3).d_model, layer(12, 3).num_heads])
            ],
            "there is one head": lambda layer: twin(layer, 4, 1)(wide(1, 2, 4, seed=1)),
            "there are three heads, and two sentences": lambda layer: twin(layer, 12, 3)(
                wide(2, 5, 12, seed=1)
            ),
            "nobody sees what comes later": _causal,
            "a map has a hook, which is honoured": _hooked,
            "the mask is called causal": lambda layer: twin(layer, 12, 3)(
                wide(2, 5, 12, seed=1), mask=CAUSAL
            ),
            "each head has a mask of its own": lambda layer: twin(layer, 12, 3)(
                wide(2, 4, 12, seed=1), mask=(wide(1, 3, 4, 4, seed=8) > 0) | torch.eye(4).bool()
            ),
            "it reads another sentence": lambda layer: twin(layer, 12, 3)(
                wide(2, 5, 12, seed=1), wide(2, 7, 12, seed=2)
            ),
            "some of that sentence is padding": lambda layer: twin(layer, 12, 3)(
                wide(2, 5, 12, seed=1),
                wide(2, 3, 12, seed=2),
                torch.tensor([[True, False, False], [True, True, False]])[:, None, None],
            ),
            "words come one by one, with a cache": _step_by_step,
            "two words come, then three, with a cache and called causal": _words_after_words,
            "another sentence is kept in a cache": _memory_cached,
            "three words are asked about it": _projected,
            "the function that attends is put in": _swapped,
            "it is put in, and the mask called causal": lambda layer: _swapped(layer, mask=CAUSAL),
            "half of the weights are dropped while it trains": _dropped,
            "it has a dropout, and trains no more": _dropped_no_more,
            "biases are left out": lambda layer: shapes(layer(12, 3, bias=False)),
            "64 words meet, and nobody has put in another function": _layer_keeps,
            "numbers are in float32": lambda layer: dtypes(
                layer(12, 3)(wide(2, 5, 12, seed=1).float())
            ),
            "gradients go back to both sentences and to every weight": _gradients,
            "gradients go back to one sentence": _alone_gradients,
            "gradients go back to words that a cache has kept": _cached_gradients,
            "gradients go back to another sentence that is kept": _memory_cached_gradients,
        },
        equivalent={
            "… => return [part.transpose_(1, 2) for part in heads]": (
                "in place on a view that is the layer's own"
            )
        },
    ),
)
