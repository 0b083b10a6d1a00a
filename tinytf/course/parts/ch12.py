"""Chapter 12: the encoder, and the masking of words."""

import torch
import torch.nn.functional as F
from torch import nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import EncoderLayer
from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch05 import dtypes, learned, wide
from tinytf.norm import LayerNorm
from tinytf.residual import PreNorm

HIDDEN = torch.tensor([[True, True, False, False], [True, True, True, True]])[:, None, None]

FRONT = torch.tensor([[False, True, True, True, True], [False, False, False, True, True]])
FRONT = FRONT[:, None, None]


def _layer(f):
    def run(layer, mask=None, **named):
        return twin(layer, 6, 2, 10, **named)(wide(2, 4, 6, seed=1), mask)

    def gradients(layer):
        module, x = twin(layer, 6, 2, 10), learned(2, 4, 6, seed=1)
        return arrived(module(x), x, module=module)

    def dropped(layer, **dropout):
        module = twin(layer, 6, 2, 10, **dropout, mode="train")
        torch.manual_seed(0)
        return module(wide(2, 14, 6, seed=1))

    def stepped(layer):
        module, x, cache = twin(layer, 6, 2, 10), wide(2, 4, 6, seed=1), KeyValueCache()
        steps = [module(x[:, t : t + 1], cache=cache) for t in range(4)]
        return [*steps, torch.tensor(len(cache))]

    return {
        "its weights are counted": lambda layer: shapes(layer(6, 2, 10)),
        "it reads two sentences": run,
        "one of them is padded": lambda layer: run(layer, HIDDEN),
        "norms come first, and the activation is another": lambda layer: run(
            layer, residual=PreNorm, activation=F.gelu
        ),
        "half of what sublayers say is dropped": lambda layer: dropped(layer, dropout=0.5),
        "no dropout is named: a tenth is dropped": dropped,
        "numbers are in float32": lambda layer: dtypes(
            layer(6, 2, 10)(wide(2, 4, 6, seed=1).float())
        ),
        "words come one by one, with a cache": stepped,
        "gradients go back to the tokens and to every weight": gradients,
    }


def _stack(stack, norm=None):
    layers = [EncoderLayer(6, 2, 10) for _ in range(3)]
    return twin(stack, layers, norm or nn.Identity())


def _stack_steps(stack):
    module, x = _stack(stack), wide(2, 4, 6, seed=1)
    cache = [KeyValueCache() for _ in range(3)]
    steps = [module(x[:, t : t + 1], cache=cache) for t in range(4)]
    kept = torch.tensor([len(part) for part in cache])
    return [*steps, kept, cache[0].k, cache[2].v]


def _stack_gradients(stack):
    module, x = _stack(stack, LayerNorm(6)), learned(2, 4, 6, seed=1)
    return arrived(module(x), x, module=module)


def _stack_single(stack):
    module = stack([EncoderLayer(6, 2, 10)], LayerNorm(6))
    return dtypes(module(wide(2, 4, 6, seed=1).float()))


def _many(f):
    """A good share of 40000 random numbers lie near a bound."""
    ids = torch.randint(0, 5000, (100, 400), generator=torch.Generator().manual_seed(3))
    return list(f(ids, 5000, torch.Generator().manual_seed(0), share=0.5, swapped=0.2))


def _on_bounds(f):
    """A share is just the number that is drawn for a word: the number is not below it."""
    drawn, fate = torch.rand(2, 1, 6, generator=torch.Generator().manual_seed(0)).flatten(1)
    cases = {
        "share": (drawn[1].item(), 1.0, 0.0),
        "masked": (1.0, fate.min().item(), 0.0),
        "masked, and the rest swapped": (1.0, fate.min().item(), 0.1),
        "swapped": (1.0, 0.0, fate.min().item()),
    }
    found = {}
    for name, shares in cases.items():
        ids = torch.tensor([[3, 4, 5, 6, 7, 8]])
        read, chosen = f(ids, 60, torch.Generator().manual_seed(0), *shares)
        found[f"{name}: read"], found[f"{name}: chosen"] = read, chosen
    return found


def _short_ids(f):
    ids = torch.full((2, 3), 7, dtype=torch.int32)
    return dtypes(*f(ids, 60, torch.Generator().manual_seed(0)))


def _masked(f, seed=0, **named):
    ids = torch.randint(0, 60, (40, 12), generator=torch.Generator().manual_seed(3))
    read, chosen = f(ids, 60, torch.Generator().manual_seed(seed), **named)
    return [read, chosen]


NEW = "a new module is in float32 as it is"
IN_FLOAT32 = "they are drawn in float32, and compared as they are drawn"
NO_GPU = "wrong with a second device alone, and a test can't count on one"

PARTS = (
    Part(
        "tinytf.blocks.EncoderLayer",
        _layer("EncoderLayer"),
        equivalent={"… => self.… = ….float()": NEW},
    ),
    Part(
        "tinytf.blocks.Encoder",
        {
            "its weights are counted": lambda stack: shapes(_stack(stack)),
            "three layers read two sentences": lambda stack: _stack(stack)(wide(2, 4, 6, seed=1)),
            "one of them is padded": lambda stack: _stack(stack)(wide(2, 4, 6, seed=1), HIDDEN),
            "it ends in a norm": lambda stack: _stack(stack, LayerNorm(6))(wide(2, 4, 6, seed=1)),
            "words come one by one, with a cache for every layer": _stack_steps,
            "numbers are in float32": _stack_single,
            "gradients go back to the tokens and to every weight": _stack_gradients,
        },
        equivalent={"… => self.final_norm = final_norm.float()": NEW},
    ),
    Part(
        "tinytf.training.masked_lm.mask_tokens",
        {
            "480 words are read": _masked,
            "another seed draws": lambda f: _masked(f, 1),
            "half are chosen, and all of these hidden": lambda f: _masked(
                f, share=0.5, masked=1.0, swapped=0.0
            ),
            "chosen words are swapped or left, and none is hidden": lambda f: _masked(
                f, share=0.4, masked=0.0, swapped=0.5
            ),
            "40000 words are read, and half of them chosen": _many,
            "what is drawn for a word equals the share": _on_bounds,
            "ids are of another whole-number type, which is kept": _short_ids,
        },
        equivalent={
            "… => ….detach()…": "nothing here carries a gradient",
            "… => …drawn.float()…": IN_FLOAT32,
            "… => …fate.float()…": IN_FLOAT32,
            "… => drawn, fate = ….float()": IN_FLOAT32,
            "… => drawn, fate = ….double()": IN_FLOAT32,
            "… => …ids.float()…": "float32 holds the ids of sixteen million words exactly",
            "… => words = ….float()": "float32 holds the ids of sixteen million words exactly",
            "… => words = ….double()": "float64 holds every id exactly",
            "… => …words.float()…": "float32 holds the ids of sixteen million words exactly",
            "… => drawn, fate = torch.rand(2, *ids.shape, generator=generator).to(ids.device)": (
                NO_GPU
            ),
            "… => drawn, fate = torch.rand(2, *ids.shape, generator=generator, device=where)": (
                NO_GPU
            ),
            "… => drawn, fate = ….to()": NO_GPU,
            "… => drawn, fate = ….to(generator.device)": NO_GPU,
            "where = generator.device => where = ids.device": NO_GPU,
            "… => words = torch.randint(first, mask_id, ids.shape, generator=generator)": NO_GPU,
        },
    ),
)
