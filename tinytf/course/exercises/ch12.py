"""Chapter 12: counting parameters, cutting text, weight decay, bits per byte, and GPT's mask."""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import nn

from tinytf.course.grading import Exercise, WrongAnswer, calls, expect, same, short, tensor
from tinytf.gpt import GPT, GPTConfig

# 12.1 parameters


def my_gpt_parameters(vocab_size, d_model, num_layers, max_len, d_ff):
    """How many numbers a GPT learns: an integer.

    The output's matrix is the embedding table and has no bias; every other linear map has one.
    Each norm has a gain and a shift per channel; a last norm ends the stack.
    """
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norms = 2 * (2 * d_model)
    tables = vocab_size * d_model + max_len * d_model
    return tables + num_layers * (attention + feed_forward + norms) + 2 * d_model


def _counter(**off):
    """A `my_gpt_parameters` with one part counted otherwise."""

    def count(vocab_size, d_model, num_layers, max_len, d_ff):
        v, d, layers, t = vocab_size, d_model, num_layers, max_len
        f = off.get("d_ff", lambda d, f: f)(d, d_ff)
        biases = off.get("biases", 1)
        attention = off.get("maps", 4) * (d * d + biases * d)
        layer = attention + 2 * d * f + biases * (f + d) + off.get("norms", 2) * 2 * d
        tables = v * d + off.get("positions", 1) * t * d
        end = off.get("last", 1) * 2 * d + off.get("head", lambda v, d: 0)(v, d)
        return tables + layers * layer + end

    return count


_PARTS = (
    "d_model=3, num_layers=2, d_ff=5 has in each layer 48 for attention, 38 for the feed-forward "
    "network, 12 for two norms"
)


def _a_layer(answer):
    """a layer has four maps, two maps, and two norms"""
    two, one = (tensor(answer(7, 3, n, 4, 5), "the answer") for n in (2, 1))
    same(two - one, 98, "for one layer more at d_model=3, d_ff=5", note=f"A model of {_PARTS}.")


def _tables(answer):
    """outside the layers there are two tables and a norm"""
    got = tensor(answer(7, 3, 0, 4, 5), "the answer")
    note = "7 · 3 for tokens, 4 · 3 for positions, 6 for the last norm; the head is tied, no bias."
    same(got, 39, "for no layers, vocab_size=7, d_model=3, max_len=4", note=note)


def _gpt2(answer):
    """GPT-2's smallest size comes out to the last parameter"""
    same(answer(50257, 768, 12, 1024, 3072), 124_439_808, "for GPT-2", tolerance=0)


PARAMETERS = Exercise(
    id="12.1",
    title="count a GPT",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_gpt_parameters(vocab_size, d_model, num_layers, max_len, d_ff)`: how many "
        "numbers a GPT learns, by a formula, without building it."
    ),
    hint=(
        "A linear map from n to m numbers has n·m weights and m biases. Attention has four of "
        "d to d, the feed-forward network d to d_ff and back. A norm has 2·d."
    ),
    reference=my_gpt_parameters,
    wrong=(
        WrongAnswer(
            "untied head",
            _counter(head=lambda v, d: v * d),
            "the head is tied",
            "The output's matrix is the embedding table: it counts once. Untied, GPT-2 would have "
            "163 million.",
        ),
        WrongAnswer(
            "head with a bias",
            _counter(head=lambda v, d: v * d + v),
            "the head is tied",
            "This is one tutorial's model: 163,087,441 parameters where GPT-2 has 124,439,808.",
        ),
        WrongAnswer(
            "the head's bias",
            _counter(head=lambda v, d: v),
            "the head is tied, no bias",
            "GPT-2's output is the embedding table and nothing else: no number per token is added.",
        ),
        WrongAnswer(
            "no biases",
            _counter(biases=0),
            "has in each layer 48 for attention",
            "GPT-2's linear maps have biases. (Many of today's models leave them out.)",
        ),
        WrongAnswer(
            "positions forgotten",
            _counter(positions=0),
            "4 · 3 for positions",
            "The positions are learned: a row of d_model numbers for each of max_len places.",
        ),
        WrongAnswer(
            "last norm forgotten",
            _counter(last=0),
            "6 for the last norm",
            "A pre-norm stack ends in a norm of its own.",
        ),
        WrongAnswer(
            "one norm a layer",
            _counter(norms=1),
            "12 for two norms",
            "Each of the two sublayers has its own norm.",
        ),
        WrongAnswer(
            "three maps in attention",
            _counter(maps=3),
            "has in each layer 48 for attention",
            "Queries, keys, values, and the output map w_o that joins the heads.",
        ),
        WrongAnswer(
            "d_ff taken to be 4 d_model",
            _counter(d_ff=lambda d, f: 4 * d),
            "38 for the feed-forward network",
            "That is GPT-2's choice, not a law: use the argument.",
        ),
    ),
    tests=(_a_layer, _tables, _gpt2),
    probes=(calls(7, 3, 2, 4, 5), calls(11, 4, 3, 2, 6)),
)


# 12.2 blocks


def my_blocks(ids, length):
    """Cut a text into blocks that follow each other: ids (N,) -> two tensors (blocks, length).

    The first holds what the model reads, the second what it must say after each token. As many
    whole blocks as the text has; what is left over at the end is not used.
    """
    count = (len(ids) - 1) // length
    ids_in = ids[: count * length].view(count, length)
    ids_out = ids[1 : count * length + 1].view(count, length)
    return ids_in, ids_out


def _blocks(out, count=lambda n, length: (n - 1) // length):
    def blocks(ids, length):
        n = count(len(ids), length)
        ids_in = ids[: n * length].view(n, length)
        return ids_in, out(ids, ids_in, n, length)

    return blocks


def _inner(ids, length):
    count = len(ids) // length
    block = ids[: count * length].view(count, length)
    return block[:, :-1], block[:, 1:]


def _windows(ids, length):
    rows = ids.unfold(0, length + 1, 1)
    return rows[:, :-1], rows[:, 1:]


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
    for name, part in (("what is read", read), ("what is said", say)):
        expect(
            part.shape == (2, 4),
            f"{_WHERE}, {name} has shape {tuple(part.shape)}, expected (2, 4): blocks follow "
            "each other, each of 4 tokens to read",
        )
    where = f"for ids={short(_NINE[:8])}, length=4"
    read, _ = _pair(answer, _NINE[:8], 4, where)
    note = "nothing follows the eighth token, so the second block can't say its last"
    expect(len(read) == 1, f"{where}, there are {len(read)} blocks, expected 1: {note}")
    where = f"for ids={short(_NINE)}, length=4"
    read, _ = _pair(answer, _NINE, 4, where)
    note = "the ninth token is what the second block says last"
    expect(len(read) == 2, f"{where}, there are {len(read)} blocks, expected 2: {note}")


def _reads(answer):
    """what is read is the text, in order"""
    read, _ = _pair(answer, _ELEVEN, 4, _WHERE)
    same(read, [[4, 8, 15, 16], [23, 42, 7, 9]], f"{_WHERE}, what is read")


def _says(answer):
    """what is said is the token that follows"""
    _, say = _pair(answer, _ELEVEN, 4, _WHERE)
    note = "After 4 comes 8; after the block's last token, 16, comes 23, the next block's first."
    same(say, [[8, 15, 16, 23], [42, 7, 9, 1]], f"{_WHERE}, what is said", note=note)


BLOCKS = Exercise(
    id="12.2",
    title="cut a text into blocks",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_blocks(ids, length)`: cut one long row of ids into blocks of `length` tokens "
        "that follow each other, and return what the model reads and what it must say, two tensors "
        "`(blocks, length)`. What is left over at the end is not used."
    ),
    hint="The last token of a block has a target too: the first token of the next block.",
    reference=my_blocks,
    wrong=(
        WrongAnswer(
            "not shifted",
            _blocks(lambda ids, read, n, length: read.clone()),
            "After 4 comes 8",
            "Each position sees its own token, so the loss falls to 0 and nothing is learned.",
        ),
        WrongAnswer(
            "shifted the wrong way",
            _blocks(lambda ids, read, n, length: ids.roll(1)[: n * length].view(n, length)),
            "After 4 comes 8",
            "This asks for the token before, which the model has just read.",
        ),
        WrongAnswer(
            "what is said comes first",
            lambda ids, length: my_blocks(ids, length)[::-1],
            "what is read",
            "You return the targets first. Return what is read, then what is said.",
        ),
        WrongAnswer(
            "rolled within the block",
            _blocks(lambda ids, read, n, length: read.roll(-1, 1)),
            "the next block's first",
            "`roll` brings the block's first token round to the end: the last place of every block "
            "learns a wrong answer.",
        ),
        WrongAnswer(
            "one token lost a block",
            _inner,
            "what is read has shape (2, 3)",
            "Cutting first and shifting inside costs each block a token that is never predicted.",
        ),
        WrongAnswer(
            "overlapping windows",
            _windows,
            "blocks follow each other",
            "A window at every place shows each token `length` times an epoch, in copies that are "
            "nearly the same.",
        ),
        WrongAnswer(
            "the last whole block lost",
            _blocks(
                lambda ids, read, n, length: ids[1 : n * length + 1].view(n, length),
                lambda n, length: n // length - 1,
            ),
            "has shape (1, 4), expected (2, 4)",
            "The text needs only one token after the last block, not another block.",
        ),
        WrongAnswer(
            "a block with nothing to say",
            _blocks(
                lambda ids, read, n, length: F.pad(ids, (0, 1))[1 : n * length + 1].view(n, length),
                lambda n, length: n // length,
            ),
            "nothing follows the eighth token",
            "The last target was made up. Leave the block out instead.",
        ),
    ),
    tests=(_shapes, _reads, _says),
    probes=(calls(_ELEVEN, 4), calls(_NINE[:8], 4), calls(_ELEVEN, 3)),
)


# 12.3 weight decay


def my_decay_groups(model):
    """Which parameters to decay, and which not: two lists of tensors.

    Matrices decay, embedding tables among them; biases and the norms' gains and shifts do not. A
    parameter used in two places stands in one list, once.
    """
    parameters = list(model.parameters())
    return [p for p in parameters if p.dim() > 1], [p for p in parameters if p.dim() <= 1]


def _grouped(chosen, others=True, all_of=lambda model: list(model.named_parameters())):
    def groups(model):
        named = all_of(model)
        decayed = [p for name, p in named if chosen(name, p)]
        return decayed, [p for name, p in named if not chosen(name, p)] if others else []

    return groups


def _of_modules(model):
    modules = model.named_modules()
    return [
        (f"{name}.{kind}", p) for name, m in modules for kind, p in m.named_parameters("", False)
    ]


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
    """each parameter stands in the two lists once"""
    model, (decayed, others) = _listed(answer)
    both = decayed + others
    for name, _ in model.named_parameters():
        times = both.count(name)
        message = f"for a GPT of one layer, {name} stands in the lists {times} times, expected once"
        expect(times == 1, message)


def _other_names(answer):
    """names decide nothing"""
    where = "for a model with GPT-2's own names"
    model, (decayed, _) = _listed(answer, _foreign, where)
    for name, p in model.named_parameters():
        must = "must" if p.dim() > 1 else "must not"
        expect((name in decayed) == (p.dim() > 1), f"{where}, {name} {tuple(p.shape)} {must} decay")


def _group_probe(answer):
    if (found := answer(_small())) is None or found is ...:
        return None
    _, lists = _listed(answer)
    names = [name for name, _ in _small().named_parameters()]
    return [[part.count(name) for name in names] for part in lists]


DECAY = Exercise(
    id="12.3",
    title="what decays",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_decay_groups(model)`: return two lists of the model's parameters, those that "
        "weight decay shall pull towards 0 (matrices, embedding tables among them) and those it "
        "shall leave alone (biases, and the gains and shifts of norms)."
    ),
    hint="`model.parameters()` names a shared parameter once. How many axes has a bias?",
    reference=my_decay_groups,
    wrong=(
        WrongAnswer(
            "everything decays",
            _grouped(lambda name, p: True),
            "w_q.bias (4,) must not decay",
            "Biases and norms are few and have nothing to do with large weights: a gain pulled "
            "towards 0 only takes away what the norm is there for.",
        ),
        WrongAnswer(
            "whatever is called weight",
            _grouped(lambda name, p: name.endswith("weight")),
            "must not decay",
            "A norm's gain is called `weight` too, and a table of positions may not be. Count "
            "axes, not letters.",
        ),
        WrongAnswer(
            "by our names",
            _grouped(lambda name, p: "norm" not in name and not name.endswith("bias")),
            "ln_1.weight (4,) must not decay",
            "Right for our GPT, whose norms are called so; GPT-2's own are `ln_1`. Count axes.",
        ),
        WrongAnswer(
            "groups swapped",
            _grouped(lambda name, p: p.dim() <= 1),
            "embedding.weight (7, 4) must decay",
            "The first list is the one that decays.",
        ),
        WrongAnswer(
            "tables left out",
            _grouped(lambda name, p: p.dim() > 1 and "embedding" not in name and "pos" not in name),
            "embedding.weight (7, 4) must decay",
            "Some recipes spare the embeddings; this one does not. The table is the output's "
            "matrix as well.",
        ),
        WrongAnswer(
            "biases belong to no group",
            _grouped(lambda name, p: p.dim() > 1, others=False),
            "stands in the lists 0 times",
            "What is in neither list is never updated: the optimiser only knows what it is given.",
        ),
        WrongAnswer(
            "tied matrix twice",
            _grouped(lambda name, p: p.dim() > 1, all_of=_of_modules),
            "embedding.weight stands in the lists 2 times",
            "Walking through modules meets the tied matrix twice; an optimiser refuses or updates "
            "it twice. `model.parameters()` gives it once.",
        ),
    ),
    tests=(_matrices, _vectors, _once, _other_names),
    probes=(_group_probe,),
)


# 12.4 bits per byte


def my_bits_per_byte(losses, text):
    """How many bits a model needs for each byte of a text, a float.

    losses (N,) is the cross-entropy of each of the text's N tokens, in nats; text is the string.
    """
    return losses.sum().item() / math.log(2) / len(text.encode())


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


BITS = Exercise(
    id="12.4",
    title="bits per byte",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_bits_per_byte(losses, text)`: from the loss of each of a text's tokens, in "
        "nats, to bits per byte, a number that models with different tokenizers can be compared by."
    ),
    hint="A bit is ln 2 nats. Add up the tokens; divide by the bytes of `text.encode()`.",
    reference=my_bits_per_byte,
    wrong=(
        WrongAnswer(
            "nats",
            lambda losses, text: losses.sum().item() / len(text.encode()),
            "in bits, for the text's 15 bytes",
            "These are nats per byte: one bit is ln 2, about 0.69, nats.",
        ),
        WrongAnswer(
            "multiplied by ln 2",
            lambda losses, text: losses.sum().item() * math.log(2) / len(text.encode()),
            "in bits, for the text's 15 bytes",
            "A nat is more than a bit, so the number must grow: divide by ln 2.",
        ),
        WrongAnswer(
            "bits per token",
            lambda losses, text: losses.mean().item() / math.log(2),
            "in bits, for the text's 15 bytes",
            "Longer tokens cost more each, and there are fewer: per token, a larger vocabulary "
            "looks worse than it is.",
        ),
        WrongAnswer(
            "bits per character",
            lambda losses, text: losses.sum().item() / math.log(2) / len(text),
            "Six characters are 18 bytes",
            "That is a number too, but compressors and byte models count bytes.",
        ),
        WrongAnswer(
            "the mean over tokens, by bytes",
            lambda losses, text: losses.mean().item() / math.log(2) / len(text.encode()),
            "in bits, for the text's 15 bytes",
            "The bits of the whole text are the sum over its tokens, not their mean.",
        ),
        WrongAnswer(
            "a byte taken for 8 bits of loss",
            lambda losses, text: losses.sum().item() / math.log(2) / (8 * len(text.encode())),
            "in bits, for the text's 15 bytes",
            "That is the share of the file's size, between 0 and 1: a compression ratio.",
        ),
    ),
    tests=(_in_bits, _in_bytes, _cut_otherwise),
    probes=(calls(_LOSSES, _PLAIN), calls(_LOSSES, _CHINESE)),
)


# 12.5 causal and padded


def my_gpt_mask(length, attention_mask=None):
    """Which keys each query may attend to: boolean, (1, 1, T, T), or (B, 1, T, T) with a mask.

    attention_mask is (B, T), 1 for a real token and 0 for padding, or None if all are real. True =
    may attend: the key is real and not later than the query.
    """
    causal = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
    if attention_mask is None:
        return causal
    return causal & attention_mask.bool()[:, None, None, :]


def _mask(join=lambda c, m: c & m[:, None, None, :], none=lambda c: c, diagonal=0):
    def mask(length, attention_mask=None):
        causal = torch.ones(length, length, dtype=torch.bool).tril(diagonal)[None, None]
        return none(causal) if attention_mask is None else join(causal, attention_mask.bool())

    return mask


_REAL = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1]])
_ONES = torch.ones(2, 4, dtype=torch.int64)
_SAID = f"for length=4, attention_mask={short(_REAL)}"


def _four_axes(got, where, shape):
    got = tensor(got, where)
    expect(got.dtype == torch.bool, f"{where}, the dtype is {got.dtype}, expected torch.bool")
    message = f"{where}, the shape is {tuple(got.shape)}, expected {shape}: it meets (B, H, T, T)"
    expect(got.shape == shape, message)
    return got


def _none(answer):
    """without an attention mask it is the causal mask"""
    where = "for length=3, no attention mask"
    got = _four_axes(answer(3), where, (1, 1, 3, 3))
    expect(not got.triu(1).any(), f"{where}, some query may attend to a later key")
    note = "a query may attend to itself and to every key before it"
    expect(bool(got.tril().sum() == 6), f"{where}, {int(got.sum())} of 9 are True: {note}")


def _ones(answer):
    """a mask of ones changes nothing"""
    where = "for length=4, attention_mask all ones"
    got = _four_axes(answer(4, _ONES), where, (2, 1, 4, 4))
    leaks = int(got.triu(1).sum())
    message = f"{where}, {leaks} pairs see the future: what is real may still lie ahead"
    expect(leaks == 0, message)
    expect(bool(got.tril().sum() == 20), f"{where}, {int(got.sum())} of 32 are True, expected 20")


def _padded(answer):
    """padding is hidden as a key, for every query"""
    got = _four_axes(answer(4, _REAL), _SAID, (2, 1, 4, 4))
    for b, t, s in ((1, 1, 0), (1, 3, 0), (0, 3, 3)):
        message = f"{_SAID}, row {b}, query {t}, key {s}: True, but that key is padding"
        expect(not got[b, 0, t, s], message)
    for b, t, s in ((0, 3, 0), (1, 3, 1), (0, 2, 2)):
        message = f"{_SAID}, row {b}, query {t}, key {s}: False, but that key is real and not later"
        expect(bool(got[b, 0, t, s]), message)


MASKS = Exercise(
    id="12.5",
    title="causal and padded",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_gpt_mask(length, attention_mask=None)`: the boolean mask, `True` = may attend, "
        "that a GPT needs for a batch in which some tokens are padding. `attention_mask` is "
        "`(B, T)` with 1 for real tokens, as Hugging Face's tokenizers return it, or None. A "
        "padded query may be left with nothing to attend to."
    ),
    hint="Both must hold: `causal & real`, with axes for the heads and the queries.",
    reference=my_gpt_mask,
    wrong=(
        WrongAnswer(
            "the mask given replaces the causal one",
            _mask(lambda c, m: m[:, None, None, :].expand(-1, 1, m.size(1), -1)),
            "12 pairs see the future",
            "`if attention_mask is None: mask = causal` stands in a tutorial: whoever passes a "
            "mask of ones, as Hugging Face's tokenizers do, trains a model that reads ahead.",
        ),
        WrongAnswer(
            "either will do",
            _mask(lambda c, m: c | m[:, None, None, :]),
            "pairs see the future",
            "A key must be real and not later: `&`, not `|`.",
        ),
        WrongAnswer(
            "padding hides queries",
            _mask(lambda c, m: c & m[:, None, :, None]),
            "but that key is padding",
            "Padding has to be hidden as a key, along the last axis.",
        ),
        WrongAnswer(
            "padding hidden as a query too",
            _mask(lambda c, m: c & m[:, None, None, :] & m[:, None, :, None]),
            "query 3, key 0: False, but that key is real and not later",
            "What a padded position says is not used; there is no need to hide its query, and a "
            "row without any key gives 0 / 0 in many implementations.",
        ),
        WrongAnswer(
            "True = blocked",
            lambda length, attention_mask=None: ~my_gpt_mask(length, attention_mask),
            "some query may attend to a later key",
            "`masked_fill` wants it so; here, as everywhere in tinytf, True = may attend.",
        ),
        WrongAnswer(
            "padding ignored",
            _mask(lambda c, m: c.expand(len(m), 1, -1, -1)),
            "but that key is padding",
            "Padding on the right happens to lie in the future; padding on the left does not, and "
            "prompts of different length are padded on the left.",
        ),
        WrongAnswer(
            "no mask where none is given",
            _mask(none=lambda c: torch.ones_like(c)),
            "some query may attend to a later key",
            "No attention mask means that all tokens are real, not that all may be seen.",
        ),
        WrongAnswer(
            "no axis for the heads",
            _mask(lambda c, m: c[0] & m[:, None, :]),
            "the shape is (2, 4, 4)",
            "(B, T, T) meets the scores (B, H, T, T) as (1, B, T, T): the batch lines up with the "
            "heads.",
        ),
        WrongAnswer(
            "a token does not see itself",
            _mask(diagonal=-1),
            "3 of 9 are True",
            "The targets are moved by one, so a position may see its own token: it has to say the "
            "next.",
        ),
    ),
    tests=(_none, _ones, _padded),
    probes=(calls(3), calls(4, _ONES), calls(4, _REAL)),
)

EXERCISES = (PARAMETERS, BLOCKS, DECAY, BITS, MASKS)
