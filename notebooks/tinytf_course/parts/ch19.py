"""Chapter 19: a text as batches, and the loop that pretrains on them."""

import torch

from tinytf.data.corpus import END_OF_TEXT
from tinytf.gpt import GPT, GPTConfig
from tinytf.text.bpe import ByteBPE
from tinytf.training.config import TrainingConfig
from tinytf.training.losses import TextBatch
from tinytf_course.expect import numbers
from tinytf_course.parts import Part, twin

WHOLE = "ids and places carry no gradient"
ROUNDED = "float32 is exact enough to train in"
SIZES = {"vocab_size": 11, "d_model": 8, "num_heads": 2, "num_layers": 1, "max_len": 6}


def _tokenizer():
    return ByteBPE([(104, 101), (256, 108)], [END_OF_TEXT])  # he, hel


def _ids(count):
    return torch.arange(100, 100 + count)


def _drawn(f, *given, steps=3, **named):
    blocks = f(*given, **named)
    return [part for step in range(steps) for part in blocks(step)]


def _starts(f, *given, steps=range(8), **named):
    blocks = f(*given, **named)
    return [torch.tensor(blocks.starts(step)) for step in steps]


def _again(f):
    blocks = f(_ids(60), 5, 3)
    return [blocks.starts(step) == blocks.starts(step) for step in (0, 9, 2, 0)] + [
        torch.tensor(blocks.starts(step)) for step in (9, 0, 9)
    ]


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
        equivalent={"… => ….detach()": WHOLE},
    ),
    Part(
        "tinytf.data.blocks.TextBlocks",
        {
            "there is one block": lambda f: _drawn(f, _ids(6), 5, 1, steps=1),
            "batches are drawn": lambda f: _drawn(f, _ids(60), 5, 3),
            "epochs follow each other": lambda f: _starts(f, _ids(60), 5, 3),
            "a batch is larger than an epoch": lambda f: _starts(f, _ids(20), 5, 7),
            "the seed is another": lambda f: _starts(f, _ids(60), 5, 3, seed=4),
            "a step is asked for again": _again,
            "a step of a later epoch is asked for first": lambda f: [
                torch.tensor(f(_ids(60), 5, 3).starts(step)) for step in (4, 5, 8)
            ],
            "it says how many batches an epoch has": _per_epoch,
            "ids are small whole numbers": lambda f: _drawn(f, _ids(20).to(torch.uint8), 4, 2),
        },
        equivalent={
            "… => …detach()…": WHOLE,
            "… => …(ids.float(), length, size, seed)": "float32 has every id of a vocabulary",
            "… => …len(ids.float())…": "a dtype changes no length",
            "… => …order.float()[place])…": "a place is a whole number again",
            "… => …self.length * order[place])": "a number in a tensor is read as one",
            "… => offset = torch.randint(…": "a number in a tensor is read as one",
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
            "… => …norm.float().item()…": ROUNDED,
            "… => (loss.float() / tokens).backward()": ROUNDED,
        },
        changes=("model",),
    ),
)
