"""Answers to chapter 19: references and mistakes."""

import math

import torch.nn.functional as F

from tinytf_course.grading import Answers, WrongAnswer

# 19.1 cut a text into blocks


def my_blocks(ids, length):
    """Cut a text into blocks that follow each other: ids (N,) -> two tensors (blocks, length).

    The first holds the inputs, the second the target of each input. As many whole blocks as the
    text has; what is left over at the end is not used.
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


def _from_floats(ids, length):
    return tuple(part.float() for part in my_blocks(ids, length))


def _windows(ids, length):
    rows = ids.unfold(0, length + 1, 1)
    return rows[:, :-1], rows[:, 1:]


BLOCKS = Answers(
    reference=my_blocks,
    equivalent={
        "… => ….detach()…": "ids carry no gradient",
        "return … => …detach()…": "ids carry no gradient",
        "ids_… => ….reshape(…": "as good as `view`, and more patient",
        "count = … => count = (len(ids.float()) …": "only the length is taken",
    },
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
            "the targets come first",
            lambda ids, length: my_blocks(ids, length)[::-1],
            "the inputs",
            "You return the targets first. Return the inputs, then the targets.",
        ),
        WrongAnswer(
            "rolled within the block",
            _blocks(lambda ids, read, n, length: read.roll(-1, 1)),
            "the next block's first",
            "`roll` brings the block's first token round to the end: the last position of every "
            "block gets a wrong target.",
        ),
        WrongAnswer(
            "one token lost a block",
            _inner,
            "the inputs have shape (2, 3)",
            "Cutting first and shifting inside costs each block a token that is never predicted.",
        ),
        WrongAnswer(
            "overlapping windows",
            _windows,
            "blocks follow each other",
            "A window at every position shows each token `length` times an epoch, in copies that "
            "are nearly the same.",
        ),
        WrongAnswer(
            "the last whole block lost",
            _blocks(
                lambda ids, read, n, length: ids[1 : n * length + 1].view(n, length),
                lambda n, length: n // length - 1,
            ),
            "have shape (1, 4), expected (2, 4)",
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
        WrongAnswer(
            "ids as floats",
            _from_floats,
            "the dtype is float32, expected int64",
            "An embedding looks rows up by whole numbers.",
        ),
    ),
)


# 19.2 bits per byte


def my_bits_per_byte(losses, text):
    """How many bits a model needs for each byte of a text, a float.

    losses (N,) is the cross-entropy of each of the text's N tokens, in nats; text is the string.
    """
    return losses.sum().item() / math.log(2) / len(text.encode())


BITS = Answers(
    reference=my_bits_per_byte,
    equivalent={
        "return … => return losses.sum() / …": "a tensor of one is a number, too",
        "return … => return losses.detach()…": "a number has no gradient",
    },
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
        WrongAnswer(
            "rounded",
            lambda losses, text: round(my_bits_per_byte(losses, text), 4),
            "for 100 losses",
            "Round where a number is printed, not where it is computed.",
        ),
    ),
)


# 19.3 what decays


def my_decay_groups(model):
    """Which parameters to decay, and which not: two lists of tensors.

    Matrices decay, embedding tables among them; biases and the norms' gains and shifts do not. A
    parameter used in two places is in one list, once.
    """
    parameters = list(model.parameters())
    return [p for p in parameters if p.dim() > 1], [p for p in parameters if p.dim() <= 1]


def _grouped(chosen, others=True, all_of=lambda model: list(model.named_parameters())):
    def groups(model):
        named = all_of(model)
        decayed = [p for name, p in named if chosen(name, p)]
        return decayed, [p for name, p in named if not chosen(name, p)] if others else []

    return groups


def _as_given(model):
    named = list(model.named_parameters())
    return tuple([p for name, p in named if name.endswith(end)] for end in ("weight", "bias"))


def _of_modules(model):
    modules = model.named_modules()
    return [
        (f"{name}.{kind}", p) for name, m in modules for kind, p in m.named_parameters("", False)
    ]


DECAY = Answers(
    reference=my_decay_groups,
    equivalent={},
    wrong=(
        WrongAnswer(
            "everything decays",
            _grouped(lambda name, p: True),
            "w_q.bias (4,) must not decay",
            "Biases and norms are few and have nothing to do with large weights: a gain pulled "
            "towards 0 only takes away what the norm is there for.",
        ),
        WrongAnswer(
            "the code as given",
            _as_given,
            "positions.table (5, 4) must decay",
            "A norm's gain is called `weight`, too, and decays; and what is called neither, as the "
            "table of positions, is in no list and would never be trained.",
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
            "is in the lists 0 times",
            "What is in neither list is never updated: the optimiser only knows what it is given.",
        ),
        WrongAnswer(
            "tied matrix twice",
            _grouped(lambda name, p: p.dim() > 1, all_of=_of_modules),
            "embedding.weight is in the lists 2 times",
            "Walking through modules meets the tied matrix twice; an optimiser refuses or updates "
            "it twice. `model.parameters()` gives it once.",
        ),
        WrongAnswer(
            "a matrix of one row taken for a vector",
            _grouped(lambda name, p: p.squeeze().dim() > 1),
            "verdict.weight (1, 4) is in the wrong list",
            "Count axes, not the long ones: a map to a single number is a matrix of one row.",
        ),
        WrongAnswer(
            "frozen ones left out",
            lambda model: tuple(
                [p for p in part if p.requires_grad] for part in my_decay_groups(model)
            ),
            "frozen.weight (2, 2) is in the wrong list, or in none",
            "Each parameter stands in one of the two; one that is frozen today may learn tomorrow.",
        ),
        WrongAnswer(
            "buffers as well",
            lambda model: (
                my_decay_groups(model)[0],
                [*my_decay_groups(model)[1], *(b for b in model.buffers() if b.dim() <= 1)],
            ),
            "that is no parameter of the model",
            "Buffers, as the statistics of a batch norm, are stored and not learned.",
        ),
        WrongAnswer(
            "exactly two axes",
            _grouped(lambda name, p: p.dim() == 2),
            "for filters, images.weight (4, 3, 2, 2) is in the wrong list",
            "A filter for images has four axes, and is as much a matrix: more than one is enough.",
        ),
    ),
)


ANSWERS = {
    "19.1": BLOCKS,
    "19.2": BITS,
    "19.3": DECAY,
}
