"""Chapter 23: grouped queries, and Llama with its layer."""

import dataclasses

import torch

from tinytf.attention import KeyValueCache, explicit_attention
from tinytf.gpt import DecoderOnly
from tinytf.llama import LlamaConfig
from tinytf.masks import CAUSAL, causal_mask
from tinytf_course.parts import Part, arrived, shapes, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide

LLAMA = LlamaConfig(
    20, d_model=24, num_heads=6, num_kv_heads=2, num_layers=2, d_ff=10, max_len=8, base=50.0
)
IDS = torch.tensor([[3, 1, 4, 1, 5], [19, 2, 6, 5, 3]])


def _grouped(layer, *heads, mask=None, **choices):
    return twin(layer, 12, *heads)(wide(2, 5, 12, seed=1), mask, **choices)


def _grouped_steps(layer):
    module, cache, x = twin(layer, 12, 6, 2), KeyValueCache(), wide(2, 5, 12, seed=1)
    first = module(x[:, :2], causal_mask(2), cache)
    steps = [module(x[:, t : t + 1], None, cache) for t in (2, 3, 4)]
    return [first, *steps, cache.k, cache.v]


def _swapped(layer):
    """Another function attends: the explicit one, and what it says is doubled."""
    module = twin(layer, 12, 6, 2)
    module.attention = lambda *given: 2 * explicit_attention(*given)
    return module(wide(2, 5, 12, seed=1), CAUSAL)


def _grouped_gradients(layer):
    module, x = twin(layer, 12, 6, 2), learned(2, 5, 12, seed=1)
    return arrived(module(x), x, module=module)


def _cached_gradients(layer):
    """Gradients to the words that a cache has kept, and to those that come after them."""
    module, cache = twin(layer, 12, 6, 2), KeyValueCache()
    first, second = learned(2, 3, 12, seed=1), learned(2, 2, 12, seed=2)
    module(first, cache=cache)
    return arrived(module(second, cache=cache), first, second)


def _unturned_gradients(layer):
    module, x = twin(layer, 12, 6, 2, None), learned(2, 5, 12, seed=1)
    return arrived(module(x), x, module=module)


def _float32(module):
    return {name: str(p.dtype) for name, p in sorted(module.named_parameters())}


def _llama_steps(layer):
    module, cache, x = twin(layer, LLAMA), KeyValueCache(), wide(2, 4, 24, seed=1)
    return [module(x[:, :3], causal_mask(3), cache), module(x[:, 3:], None, cache)]


def _llama_gradients(layer):
    module, x = twin(layer, LLAMA), learned(2, 4, 24, seed=1)
    return arrived(module(x, causal_mask(4)), x, module=module)


def _model(llama, **choices):
    return llama(dataclasses.replace(LLAMA, **choices))


def _twin(llama, **choices):
    return twin(llama, dataclasses.replace(LLAMA, **choices))


def _ties(llama):
    models = (_model(llama), _model(llama, tie_output=True))
    return [
        [isinstance(m, DecoderOnly), m.output.weight is m.table, m.config.tie_output]
        for m in models
    ]


def _steps(llama, padded=False):
    """Three tokens, then one, then one; with a mask if padded, which is given once."""
    model = _twin(llama)
    cache, mask = model.decoder.new_cache(), None
    if padded:
        mask = torch.tensor([[True, True, True], [False, True, True]])[:, None, None]
    out = [model(IDS[:, :3], cache, mask)[:, -1]]
    return [*out, *(model(IDS[:, t : t + 1], cache) for t in (3, 4))]


def _model_gradients(llama):
    model = _twin(llama)
    return arrived(model(IDS), module=model)


def _start(llama, **choices):
    """The size of each weight's numbers, as a rule, in whatever order they were drawn."""
    torch.manual_seed(0)
    model = _model(llama, vocab_size=300, d_model=96, d_ff=90, **choices)
    return {name: _rule(p.detach()) for name, p in sorted(model.named_parameters())}


def _rule(p):
    if p.dim() == 1:
        return "ones" if bool((p == 1).all()) else "others"
    near = [std for std in (0.02, 0.01, 0.0141) if abs(p.std().item() / std - 1) < 0.1]
    return f"N(0, {near[0]}²)" if near else "another start"


PARTS = (
    Part(
        "tinytf.grouped_query.GroupedQueryAttention",
        {
            "its weights are counted": lambda layer: shapes(layer(12, 6, 2)),
            "every head has keys of its own": lambda layer: _grouped(layer, 3, 3),
            "three heads share keys": lambda layer: _grouped(layer, 6, 2),
            "two heads share keys": lambda layer: _grouped(layer, 6, 3),
            "positions are far apart": lambda layer: _grouped(
                layer, 3, 3, positions=torch.tensor([0, 3000, 10, 20000, 7])
            ),
            "all share them, and nobody sees what comes later": lambda layer: _grouped(
                layer, 6, 1, mask=causal_mask(5)
            ),
            "positions are given": lambda layer: _grouped(
                layer, 6, 2, positions=torch.tensor([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]])
            ),
            "heads are four wide, and no base is given": lambda layer: _grouped(layer, 3, 1),
            "the base is 100": lambda layer: _grouped(layer, 3, 1, 100.0),
            "another function attends": _swapped,
            "numbers are in float32": lambda layer: dtypes(
                layer(12, 6, 2)(wide(2, 5, 12, seed=1).float())
            ),
            "nothing is turned": lambda layer: twin(layer, 12, 6, 2, None)(wide(2, 5, 12, seed=1)),
            "words come in parts, with a cache": _grouped_steps,
            "gradients go back to the tokens and to every weight": _grouped_gradients,
            "they do, where nothing is turned": _unturned_gradients,
            "they go back to words that a cache has kept": _cached_gradients,
        },
        tolerance=1e-5,
        equivalent={
            "… => if group >= 1:": "once each is as they are",
            "… => if group > 0:": "once each is as they are",
            "… => self.d_model, self.num_heads, self.num_kv_heads = …": (
                "`d_model` is read by a check alone"
            ),
            "… => start = 1 if cache is None else len(cache)": "only the distance of two counts",
            "… => start = -1 if cache is None else len(cache)": "only the distance of two counts",
        },
    ),
    Part(
        "tinytf.llama.LlamaLayer",
        {
            "its weights are counted": lambda layer: shapes(layer(LLAMA)),
            "they are in float32": lambda layer: _float32(layer(LLAMA)),
            "it reads two texts": lambda layer: twin(layer, LLAMA)(wide(2, 4, 24, seed=1)),
            "it is in training: nothing is dropped": lambda layer: twin(layer, LLAMA, mode="train")(
                wide(2, 4, 24, seed=1)
            ),
            "its norms have an eps of their own": lambda layer: twin(
                layer, dataclasses.replace(LLAMA, eps=0.5)
            )(wide(2, 4, 24, seed=1)),
            "numbers are in float32": lambda layer: dtypes(
                layer(LLAMA)(wide(2, 4, 24, seed=1).float())
            ),
            "nobody sees what comes later": lambda layer: twin(layer, LLAMA)(
                wide(2, 4, 24, seed=1), causal_mask(4)
            ),
            "words come in parts, with a cache": _llama_steps,
            "gradients go back to the tokens and to every weight": _llama_gradients,
        },
        tolerance=1e-5,
        equivalent={
            "… => …config.…": "`c` is another name of it",
        },
    ),
    Part(
        "tinytf.llama.Llama",
        {
            "its weights are counted": lambda f: shapes(_model(f)),
            "they are in float32": lambda f: _float32(_model(f)),
            "it has two matrices, or one": _ties,
            "it reads two rows": lambda f: _twin(f)(IDS),
            "hidden states are asked for": lambda f: _twin(f, eps=0.1).decode(IDS),
            "tokens come in parts, with a cache": _steps,
            "a padded prompt goes on, with a cache": lambda f: _steps(f, padded=True),
            "each weight starts by its rule": _start,
            "it starts tied, in one layer": lambda f: _start(f, tie_output=True, num_layers=1),
            "numbers are in float32": lambda f: dtypes(_model(f)(IDS), _model(f).decode(IDS)),
            "gradients go back to every weight": _model_gradients,
        },
        tolerance=1e-5,
        equivalent={
            "… => normal(self)": "0.02 is what `normal` takes by default",
            "… => …cache[1] if cache…": "all layers' caches hold the same tokens",
            "… => …cache[-1] if cache…": "all layers' caches hold the same tokens",
        },
    ),
)
