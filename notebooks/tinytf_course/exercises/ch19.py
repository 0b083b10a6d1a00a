"""Chapter 19: cutting a text into blocks, bits per byte, what weight decay is for."""

import math
from collections.abc import Iterable

import torch
from torch import nn

from tinytf.gpt import GPT, GPTConfig
from tinytf_course.expect import agrees, expect, numbers, same, tensor
from tinytf_course.grading import Exercise
from tinytf_course.words import short

# 19.1 cut a text into blocks


def my_blocks(ids, length):
    """Cut a text into blocks that follow each other: ids (N,) -> two tensors (blocks, length).

    The first holds the inputs, the second the target of each input. As many whole blocks as the
    text has; what is left over at the end is not used.
    """
    raise NotImplementedError


_NINE = torch.tensor([4, 8, 15, 16, 23, 42, 7, 9, 1])
_ELEVEN = torch.tensor([4, 8, 15, 16, 23, 42, 7, 9, 1, 5, 2])
_WHERE = f"for ids={short(_ELEVEN)}, length=4"


def _pair(answer, ids, length, where):
    got = answer(ids, length)
    expect(
        isinstance(got, tuple | list) and len(got) == 2,
        f"{where}, you return {type(got).__name__}, expected two tensors",
    )
    return [tensor(part, where) for part in got]


def _shapes(answer):
    """there are as many whole blocks as can be followed by a token"""
    read, say = _pair(answer, _ELEVEN, 4, _WHERE)
    for name, part in (("the inputs", read), ("the targets", say)):
        expect(
            part.shape == (2, 4),
            f"{_WHERE}, {name} have shape {tuple(part.shape)}, expected (2, 4): blocks follow "
            "each other, each of 4 inputs",
        )
    where = f"for ids={short(_NINE[:8])}, length=4"
    read, _ = _pair(answer, _NINE[:8], 4, where)
    note = "nothing follows the eighth token, so the second block has no last target"
    expect(len(read) == 1, f"{where}, there are {len(read)} blocks, expected 1: {note}")
    where = f"for ids={short(_NINE)}, length=4"
    read, _ = _pair(answer, _NINE, 4, where)
    note = "the ninth token is the last target of the second block"
    expect(len(read) == 2, f"{where}, there are {len(read)} blocks, expected 2: {note}")


def _reads(answer):
    """the inputs are the text, in order"""
    read, _ = _pair(answer, _ELEVEN, 4, _WHERE)
    same(read, [[4, 8, 15, 16], [23, 42, 7, 9]], f"{_WHERE}, the inputs")


def _says(answer):
    """each target is the token after its input"""
    _, say = _pair(answer, _ELEVEN, 4, _WHERE)
    note = "After 4 comes 8; after the block's last token, 16, comes 23, the next block's first."
    same(say, [[8, 15, 16, 23], [42, 7, 9, 1]], f"{_WHERE}, the targets", note=note)


def _one_by_one(ids, length):
    """Block by block, as long as a token follows the block."""
    starts = [i for i in range(0, len(ids), length) if i + length < len(ids)]
    rows = [[ids[i + shift : i + shift + length].tolist() for i in starts] for shift in (0, 1)]
    return tuple(torch.tensor(part, dtype=ids.dtype).reshape(-1, length) for part in rows)


def _any_text(answer):
    """for any text and length, ids stay whole numbers"""
    agrees(answer, _one_by_one, torch.tensor([7, 5]), 1)
    agrees(answer, _one_by_one, torch.tensor([7, 5, 6, 50_256]), 1)
    agrees(answer, _one_by_one, torch.tensor([7, 5, 6]), 3, note="No block has a token after it.")
    agrees(answer, _one_by_one, torch.tensor([7, 5, 6, 2]), 3)
    text = numbers(50, seed=1).abs().mul(20_000).long()
    for length in (3, 7, 8, 49):
        agrees(answer, _one_by_one, text, length)
    agrees(answer, _one_by_one, text.int()[::2], 4, note="Every second token of a text, in int32.")


BLOCKS = Exercise(
    id="19.1",
    title="cut a text into blocks",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_blocks(ids, length)`, which cuts one long row of ids into blocks of `length` "
        "tokens that follow each other. Return the inputs and the targets, two tensors of shape "
        "`(blocks, length)`; what is left over at the end is not used."
    ),
    hint="The last token of a block has a target too: the first token of the next block.",
    function=my_blocks,
    tests=(_shapes, _reads, _says, _any_text),
)


# 19.2 bits per byte


def my_bits_per_byte(losses, text):
    """How many bits a model needs for each byte of a text, a float.

    losses (N,) is the cross-entropy of each of the text's N tokens, in nats; text is the string.
    """
    raise NotImplementedError


_PLAIN, _CHINESE = "a mat and a cat", "\u732b\u5750\u5728\u57ab\u5b50\u4e0a"  # 6 characters
_LOSSES = torch.tensor([1.0, 2.0, 0.5, 4.0])
_PER_TEXT = f"for losses={short(_LOSSES)} nats"


def _in_bits(answer):
    """four tokens that cost 7.5 nats are 10.82 bits"""
    expected = 7.5 / math.log(2) / 15
    note = "All four tokens together, in bits, for the text's 15 bytes."
    same(answer(_LOSSES, _PLAIN), expected, f"{_PER_TEXT} and a text of 15 bytes", note=note)


def _in_bytes(answer):
    """a Chinese character is three bytes"""
    expected = 7.5 / math.log(2) / 18
    note = "Six characters are 18 bytes in UTF-8."
    same(answer(_LOSSES, _CHINESE), expected, f"{_PER_TEXT} and six Chinese characters", note=note)


def _cut_otherwise(answer):
    """a tokenizer with more tokens is measured by the same rule"""
    losses = torch.tensor([1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 2.0, 2.0])
    note = "The same nats for the same text are the same bits per byte, however it is cut."
    where = f"for losses={short(losses)} nats and a text of 15 bytes"
    same(answer(losses, _PLAIN), 7.5 / math.log(2) / 15, where, note=note)


def _in_float64(got):
    return torch.tensor(got, dtype=torch.float64) if isinstance(got, float) else got


def _any_losses(answer):
    """for one token, for many, and in float64"""
    one = torch.tensor([math.log(2)])
    same(answer(one, "a"), 1.0, f"for losses={short(one)} nats and the text `a`", note="1 bit.")
    text = "\u00e9\U0001f431 caf\u00e9\n"  # 1 to 4 bytes a character
    for dtype in (torch.float32, torch.float64):
        losses = numbers(100, seed=1, dtype=dtype).abs()
        expected = sum(losses.tolist()) / math.log(2) / 13
        where = f"for 100 losses ({str(dtype).removeprefix('torch.')}) and a text of 13 bytes"
        exact = 1e-12 if dtype == torch.float64 else 1e-5
        got = tensor(_in_float64(answer(losses, text)), where)
        same(got, torch.tensor(expected, dtype=torch.float64), where, exact)
    many = torch.full((1000,), 5.001, dtype=torch.float64)
    where = "for 1000 losses of 5.001 nats and a text of 4000 bytes"
    expected = torch.tensor(5.001 / math.log(2) / 4, dtype=torch.float64)
    same(_in_float64(answer(many, "text" * 1000)), expected, where, 1e-12)


BITS = Exercise(
    id="19.2",
    title="bits per byte",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_bits_per_byte(losses, text)`, which turns the losses of a text's tokens, in "
        "nats, into bits per byte, so that models with different tokenizers can be compared."
    ),
    hint="A bit is ln 2 nats. Add up the tokens; divide by the bytes of `text.encode()`.",
    function=my_bits_per_byte,
    tests=(_in_bits, _in_bytes, _cut_otherwise, _any_losses),
)


# 19.3 what decays


def my_decay_groups(model):
    """Which parameters to decay, and which not: two lists of tensors.

    Matrices decay, embedding tables among them; biases and the norms' gains and shifts do not. A
    parameter used in two places is in one list, once.
    """
    raise NotImplementedError


def _small():
    return GPT(GPTConfig(vocab_size=7, d_model=4, num_heads=2, num_layers=1, max_len=5))


def _foreign():
    """Parameters with GPT-2's own names: they do not say what is a norm."""
    parts = {"wte": nn.Embedding(7, 4), "ln_1": nn.LayerNorm(4), "c_attn": nn.Linear(4, 12)}
    return nn.ModuleDict(parts)


def _listed(answer, make=_small, where="for a GPT of one layer"):
    """The model, and the two lists as names."""
    model = make()
    names = {id(p): name for name, p in model.named_parameters()}
    got = answer(model)
    pair = isinstance(got, tuple | list) and len(got) == 2
    expect(pair, f"{where}, you return {type(got).__name__}, expected two lists of parameters")
    lists = []
    for part in got:
        kind = type(part).__name__
        expect(
            isinstance(part, Iterable), f"{where}, you return {kind}, expected lists of parameters"
        )
        part = list(part)  # an iterator is read once
        for p in part:
            message = f"{where}, a list holds {type(p).__name__} that is no parameter of the model"
            expect(id(p) in names, message)
        lists.append([names[id(p)] for p in part])
    return model, lists


def _matrices(answer):
    """matrices decay"""
    model, (decayed, _) = _listed(answer)
    for name, p in model.named_parameters():
        if p.dim() > 1:
            expect(name in decayed, f"for a GPT of one layer, {name} {tuple(p.shape)} must decay")


def _vectors(answer):
    """biases and norms do not"""
    model, (decayed, _) = _listed(answer)
    for name, p in model.named_parameters():
        if p.dim() <= 1:
            message = f"for a GPT of one layer, {name} {tuple(p.shape)} must not decay"
            expect(name not in decayed, message)


def _once(answer):
    """each parameter is in the two lists once"""
    model, (decayed, others) = _listed(answer)
    both = decayed + others
    for name, _ in model.named_parameters():
        times = both.count(name)
        message = f"for a GPT of one layer, {name} is in the lists {times} times, expected once"
        expect(times == 1, message)


def _other_names(answer):
    """names decide nothing"""
    where = "for a model with GPT-2's own names"
    model, (decayed, _) = _listed(answer, _foreign, where)
    for name, p in model.named_parameters():
        must = "must" if p.dim() > 1 else "must not"
        expect((name in decayed) == (p.dim() > 1), f"{where}, {name} {tuple(p.shape)} {must} decay")


def _double():
    """Two layers in float64: what is listed has to be the parameter itself."""
    config = GPTConfig(vocab_size=9, d_model=6, num_heads=3, num_layers=2, max_len=4)
    return GPT(config).double()


def _filters():
    """Parameters with more than two axes, or one alone."""
    parts = {"images": nn.Conv2d(3, 4, 2), "steps": nn.Conv1d(2, 3, 2, bias=False)}
    model = nn.ModuleDict(parts)
    model.register_parameter("temperature", nn.Parameter(torch.tensor(1.0)))
    model["verdict"] = nn.Linear(4, 1)  # a matrix of one row is a matrix
    model["frozen"] = nn.Linear(2, 2).requires_grad_(False)  # listed, too
    model["running"] = nn.BatchNorm1d(2)  # with buffers, which are no parameters
    return model


def _itself(answer):
    """the lists hold every model's own parameters, whatever their dtype and number of axes"""
    for make, where in ((_double, "for a GPT in float64"), (_filters, "for filters")):
        kinds = {p.dtype for p in make().parameters()}
        model, (decayed, others) = _listed(answer, make, where)
        cast = {p.dtype for p in model.parameters()} != kinds
        expect(not cast, f"{where}, the model's parameters have another dtype after your call")
        for name, p in model.named_parameters():
            right, wrong = (decayed, others) if p.dim() > 1 else (others, decayed)
            message = f"{where}, {name} {tuple(p.shape)} is in the wrong list, or in none or twice"
            expect(right.count(name) == 1 and name not in wrong, message)


DECAY = Exercise(
    id="19.3",
    title="what decays",
    difficulty=2,
    minutes=10,
    statement=(
        "This function sorts a model's parameters for the optimiser by their names:\n\n```python\n"
        "def my_decay_groups(model):\n"
        "    named = list(model.named_parameters())\n"
        '    decayed = [p for name, p in named if name.endswith("weight")]\n'
        '    others = [p for name, p in named if name.endswith("bias")]\n'
        "    return decayed, others\n```\n\n"
        "On our GPT two things go wrong, although nothing crashes. Repair "
        "`my_decay_groups(model)`, so "
        "that it returns two lists of the model's own parameters: those that weight decay pulls "
        "towards 0 (all with more than one axis, embedding tables among them) and those that it "
        "leaves alone (biases, the gains and shifts of norms, single numbers). Each parameter is "
        "in one of the two lists, once, even if it is used in two places, and the names of a "
        "model's parameters must not matter."
    ),
    hint="`model.parameters()` names a shared parameter once. How many axes has a bias?",
    function=my_decay_groups,
    tests=(_matrices, _vectors, _once, _other_names, _itself),
)


EXERCISES = (BLOCKS, BITS, DECAY)
