"""Chapter 12: the encoder, and the masking of words."""

import itertools

import torch
import torch.nn.functional as F
from torch import nn

from tinytf.attention import KeyValueCache
from tinytf.blocks import EncoderLayer
from tinytf.norm import LayerNorm
from tinytf.residual import PreNorm
from tinytf_course.draws import by_its_generator, calling, often, outcome
from tinytf_course.parts import Part, arrived, shapes, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide

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
        "half of what sublayers add is dropped": lambda layer: dropped(layer, dropout=0.5),
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


def _word_chances(share, masked, swapped):
    """What may become of word 5 of the words 3 to 7: {(read, chosen): chance}; the mask is 8."""
    chances = {(word, True): share * swapped / 5 for word in range(3, 8)}
    chances[5, True] += share * (1 - masked - swapped)
    chances |= {(8, True): share * masked, (5, False): 1 - share}
    return {found: chance for found, chance in chances.items() if chance > 0}


def _pairs(*shares, **named):
    """A script: what becomes of two words side by side, in 4000 sentences."""
    alone = _word_chances(*shares)
    both = itertools.product(alone.items(), repeat=2)
    chances = {(one, two): p * q for (one, p), (two, q) in both}

    def script(f):
        ids = torch.full((4000, 2), 5)
        read, chosen = f(ids, 8, torch.Generator().manual_seed(0), **named)
        return {"draws": often(outcome(torch.stack([read, chosen.long()], dim=-1)), {
            tuple((word, int(hit)) for word, hit in pair): p for pair, p in chances.items()
        })}  # fmt: skip

    return script


def _many_words(f):
    """What becomes of each of 200,000 words: whether it is chosen, and whether it is hidden."""
    ids = torch.full((400, 500), 5)
    read, chosen = f(ids, 60, torch.Generator().manual_seed(0))
    found = (2 * chosen + (read == 60)).flatten().tolist()
    return {"chosen, and hidden": often(found, {0: 0.85, 2: 0.03, 3: 0.12})}


def _all_or_none(f):
    """Shares of 0 and 1 leave nothing to chance."""
    found = []
    for shares in ((0.0, 0.8, 0.1), (1.0, 1.0, 0.0), (1.0, 0.0, 0.0)):
        ids = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7, 8, 59]])
        found += f(ids, 60, torch.Generator().manual_seed(0), *shares)
    return found


def _specials(f):
    """What is not a word is neither chosen nor drawn."""
    ids = torch.randint(0, 60, (40, 50), generator=torch.Generator().manual_seed(3))
    read, chosen = f(ids, 60, torch.Generator().manual_seed(0), 0.9, 0.1, 0.8)
    other = read != ids
    return {
        "specials stay": bool((read[ids < 3] == ids[ids < 3]).all()),
        "specials are chosen": bool(chosen[ids < 3].any()),
        "a special is drawn": bool((read[other] < 3).any()),
        "a word not chosen is changed": bool(other[~chosen].any()),
    }


def _large_words(f):
    """Drawn words are of the whole vocabulary, odd ones among the last of it too."""
    ids = torch.full((20, 100), 7)
    read, _ = f(ids, 5000, torch.Generator().manual_seed(0), 1.0, 0.0, 1.0)
    return {"odd words from 4001 on come": bool(((read > 4000) & (read % 2 == 1)).any())}


def _by_its_generator(f):
    ids = torch.full((4, 30), 7)
    return by_its_generator(calling(f, ids, 60), 4)


def _short_ids(f):
    ids = torch.full((2, 3), 7, dtype=torch.int32)
    return dtypes(*f(ids, 60, torch.Generator().manual_seed(0)))


NO_GPU = "wrong with a second device alone, and a test can't count on one"

PARTS = (
    Part(
        "tinytf.blocks.EncoderLayer",
        _layer("EncoderLayer"),
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
    ),
    Part(
        "tinytf.training.masked_lm.mask_tokens",
        {
            "sentences are read": _pairs(0.15, 0.8, 0.1),
            "they are many": _many_words,
            "its result's parts have names": lambda f: getattr(
                f(torch.tensor([[5]]), 8, torch.Generator().manual_seed(0)), "_fields", "no names"
            ),
            "half are chosen, and all of these hidden": _pairs(
                0.5, 1.0, 0.0, share=0.5, masked=1.0, swapped=0.0
            ),
            "chosen words are swapped or left, and none is hidden": _pairs(
                0.4, 0.0, 0.5, share=0.4, masked=0.0, swapped=0.5
            ),
            "all words are swapped": _pairs(1.0, 0.0, 1.0, share=1.0, masked=0.0, swapped=1.0),
            "nothing is left to chance": _all_or_none,
            "some are special tokens": _specials,
            "the vocabulary is large": _large_words,
            "two generators draw": _by_its_generator,
            "ids are of another whole-number type, which is kept": _short_ids,
        },
        equivalent={
            "… => chosen = (drawn <= share) & …": "a draw is hardly ever the share itself",
            "… => …(fate <= masked), mask_id)": "a draw is hardly ever the share itself",
            "… => …(fate > masked) & …": "a draw is hardly ever the share itself",
            "… => …(fate <= masked + swapped)": "a draw is hardly ever the share itself",
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
