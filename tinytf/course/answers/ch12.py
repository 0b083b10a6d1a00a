"""Answers to chapter 12: references and mistakes."""

import math

import torch
import torch.nn.functional as F

from tinytf.course.grading import Answers, WrongAnswer

# 12.1 count a GPT


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


PARAMETERS = Answers(
    reference=my_gpt_parameters,
    equivalent={},
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
        WrongAnswer(
            "a float",
            lambda *sizes: float(my_gpt_parameters(*sizes)),
            "a float, expected an integer",
            "`/` makes a float. Parameters are counted: stay with `+`, `*` and `//`.",
        ),
    ),
)


# 12.2 cut a text into blocks


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
        WrongAnswer(
            "ids as floats",
            _from_floats,
            "the dtype is float32, expected int64",
            "An embedding looks rows up by whole numbers.",
        ),
    ),
)


# 12.3 what decays


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
        WrongAnswer(
            "exactly two axes",
            _grouped(lambda name, p: p.dim() == 2),
            "for filters, images.weight (4, 3, 2, 2) is in the wrong list",
            "A filter for images has four axes, and is as much a matrix: more than one is enough.",
        ),
    ),
)


# 12.4 bits per byte


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


MASKS = Answers(
    reference=my_gpt_mask,
    equivalent={
        "… => ….detach()…": "a mask carries no gradient",
        "return … => …attention_mask.float().bool()…": "as a boolean 0 stays 0",
    },
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
        WrongAnswer(
            "only padding on the right",
            _mask(
                lambda c, m: c & (torch.arange(m.size(1)) < m.sum(1, keepdim=True))[:, None, None]
            ),
            "Padding on the left",
            "Counting the real tokens says how many there are, not where: prompts are padded on "
            "the left.",
        ),
    ),
)

ANSWERS = {
    "12.1": PARAMETERS,
    "12.2": BLOCKS,
    "12.3": DECAY,
    "12.4": BITS,
    "12.5": MASKS,
}
