"""Chapter 19: a text as batches, and the loop that pretrains on them."""

import itertools

import torch

from tinytf.data.corpus import END_OF_TEXT
from tinytf.gpt import GPT, GPTConfig
from tinytf.text.bpe import ByteBPE
from tinytf.training.config import TrainingConfig
from tinytf.training.losses import TextBatch
from tinytf_course.draws import often
from tinytf_course.expect import numbers
from tinytf_course.parts import Part, twin
from tinytf_course.parts.ch05 import dtypes

OTHER_SEEDS = "any seeds will do that differ"
ROUNDED = "float32 is exact enough to train in"
SIZES = {"vocab_size": 11, "d_model": 8, "num_heads": 2, "num_layers": 1, "max_len": 6}


def _tokenizer():
    return ByteBPE([(104, 101), (256, 108)], [END_OF_TEXT])  # he, hel


def _ids(count):
    return torch.arange(100, 100 + count)


def _rows(f, ids, length, size):
    """What three batches hold: each row goes on from where `starts` says, and so does its end."""
    blocks, found = f(ids, length, size), []
    for step in range(3):
        read, say = blocks(step)
        places = torch.tensor(blocks.starts(step))[:, None] + torch.arange(length)
        right = torch.equal(read, ids[places].long()), torch.equal(say, ids[places + 1].long())
        found.append({"shape": read.shape, **dtypes(read, say), "what is read, and said": right})
    return found


def _epochs(f, count, length, size, epochs=8, **named):
    """Where each epoch begins, and the order of its blocks, as they follow from `starts`."""
    blocks = f(_ids(count), length, size, **named)
    whole = max(1, (count - 1) // length - 1)
    starts = [s for step in range(-(-epochs * whole // size)) for s in blocks.starts(step)]
    found = []
    for at in range(0, epochs * whole, whole):
        offset = min(starts[at : at + whole])
        found.append((offset, tuple((s - offset) / length for s in starts[at : at + whole])))
    return found


def _whole(f, count, length, size):
    """Whether an epoch has each block once."""
    found = [sorted(order) for _, order in _epochs(f, count, length, size)]
    return {"the blocks of each epoch": found}


def _spread(f, count, length, size):
    """How often each offset comes with each order, in 2000 epochs."""
    blocks = max(1, (count - 1) // length - 1)
    orders = list(itertools.permutations(map(float, range(blocks))))
    pairs = list(itertools.product(range(count - blocks * length), orders))
    drawn = _epochs(f, count, length, size, epochs=2000)
    return {"offsets and orders": often(drawn, dict.fromkeys(pairs, 1 / len(pairs)))}


def _seeds(f):
    """What depends on the seed, and on nothing else."""
    torch.manual_seed(1)
    first, other = (_epochs(f, 60, 5, 3, seed=seed) for seed in (0, 1))
    torch.manual_seed(2)
    return {
        "the same seed draws the same": first == _epochs(f, 60, 5, 3, seed=0),
        "no seed is seed 0": first == _epochs(f, 60, 5, 3),
        "no epoch of another seed is alike": not set(first) & set(other),
    }


def _again(f):
    """Steps in any order are those of the row."""
    row = f(_ids(60), 5, 3)
    right = [row.starts(step) for step in range(10)]
    blocks, steps = f(_ids(60), 5, 3), [0, 9, 2, 0, 9]
    first = [f(_ids(60), 5, 3).starts(step) for step in range(10)]
    return {
        "steps that are asked for again": [blocks.starts(n) for n in steps]
        == [right[n] for n in steps],
        "any step that is asked for first": first == right,
        "they are whole numbers": type(right[0][0]).__name__,
    }


def _per_epoch(f):
    cases = ((60, 5, 3), (7, 5, 2), (33, 4, 16), (11, 5, 1))
    return [torch.tensor(f(_ids(n), length, size).per_epoch) for n, length, size in cases]


def _batches(number):
    """Batches of 1, 2 or 3 rows, so that they differ in tokens."""
    draws = numbers(number % 3 + 1, 6, seed=number + 1, scale=100.0)
    rows = draws.abs().long() % SIZES["vocab_size"]
    return TextBatch(rows[:, :-1], rows[:, 1:])


def _trained(f, **settings):
    model = twin(GPT, GPTConfig(**SIZES), mode="train")
    plain = {"steps": 4, "warmup": 2, "lr": 0.02, "label_smoothing": 0.0}
    history = f(model, _batches, TrainingConfig(**plain | settings))
    rows = [torch.tensor([row["step"], row["loss"], row["grad_norm"]]) for row in history]
    return [*rows, *(p.detach() for p in model.parameters())]


def _kinds(f):
    history = f(GPT(GPTConfig(**SIZES)), _batches, TrainingConfig(steps=1, warmup=1))
    return {name: type(number).__name__ for name, number in history[0].items()}


PARTS = (
    Part(
        "tinytf.data.corpus.encode_documents",
        {
            "there is one text": lambda f: f(_tokenizer(), ["hello"]),
            "there are three, one of them empty": lambda f: f(_tokenizer(), ["he", "", "a\nhel"]),
            "texts come one by one": lambda f: f(_tokenizer(), iter(["hi", "\u4f60\u597d"])),
            "it is to be a tensor": lambda f: {
                "a tensor": isinstance(f(_tokenizer(), ["he"]), torch.Tensor)
            },
        },
    ),
    Part(
        "tinytf.data.blocks.TextBlocks",
        {
            "there is one block": lambda f: _rows(f, _ids(6), 5, 1),
            "three batches are read": lambda f: _rows(f, _ids(60), 5, 3),
            "an epoch has ten blocks": lambda f: _whole(f, 60, 5, 3),
            "a batch is larger than an epoch": lambda f: _whole(f, 20, 5, 7),
            "many epochs of two blocks are drawn": lambda f: _spread(f, 12, 3, 2),
            "many epochs of three blocks are drawn, in batches of two": lambda f: _spread(
                f, 13, 3, 2
            ),
            "the seed is another": _seeds,
            "steps are asked for in any order": _again,
            "it says how many batches an epoch has": _per_epoch,
            "ids are small whole numbers": lambda f: _rows(f, _ids(20).to(torch.uint8), 4, 2),
        },
        equivalent={
            "… => …order[place - 1]))": "a random order is as random from its last place on",
            "… => generator = torch.Generator().manual_seed(self.seed * 1000…": OTHER_SEEDS,
            "… => self._drawn: … = (-…": "no epoch has that number, and nothing of it is read",
            "… => if self._drawn != epoch:": "what is drawn anew comes out the same",
        },
    ),
    Part(
        "tinytf.training.loop.pretrain",
        {
            "it takes one step": lambda f: _trained(f, steps=1, warmup=1),
            "it takes four steps": _trained,
            "a step takes three batches of different sizes": lambda f: _trained(f, accumulate=3),
            "gradients are clipped hard": lambda f: _trained(f, clip=0.01, accumulate=2),
            "the rate has a floor, and decay is strong": lambda f: _trained(
                f, min_lr=0.01, weight_decay=2.0
            ),
            "labels are smoothed": lambda f: _trained(f, label_smoothing=0.2),
            "its optimiser has other settings": lambda f: _trained(f, betas=(0.5, 0.7), eps=0.01),
            "rows are to hold plain numbers": _kinds,
        },
        tolerance=1e-5,
        equivalent={
            "… => micro = [batches(first + i) for i in range(…": "all is on one device here",
            "… => …detach().item()…": "a number carries no gradient",
            "… => total += loss.float().item()": ROUNDED,
            "… => (loss.float() / tokens).backward()": ROUNDED,
        },
        changes=("model",),
    ),
)
