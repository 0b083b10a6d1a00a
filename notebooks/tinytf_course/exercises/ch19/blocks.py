"""19.1 cut a text into blocks (★★☆, 10 minutes)

Write `my_blocks(ids, length)`, which cuts one long row of ids into blocks of `length` tokens that
follow each other. Return the inputs and the targets, two tensors of shape `(blocks, length)`; what
is left over at the end is not used.

Hint: The last token of a block has a target too: the first token of the next block.
"""

import torch

from tinytf_course.expect import agrees, expect, numbers, same, tensor
from tinytf_course.words import short


def my_blocks(ids, length):
    """Cut a text into blocks that follow each other: ids (N,) -> two tensors (blocks, length).

    The first holds the inputs, the second the target of each input. As many whole blocks as the
    text has; what is left over at the end is not used.
    """
    count = (len(ids) - 1) // length
    ids_in = ids[: count * length].view(count, length)
    ids_out = ids[1 : count * length + 1].view(count, length)
    return ids_in, ids_out


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


def test_shapes(answer):
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


def test_reads(answer):
    """the inputs are the text, in order"""
    read, _ = _pair(answer, _ELEVEN, 4, _WHERE)
    same(read, [[4, 8, 15, 16], [23, 42, 7, 9]], f"{_WHERE}, the inputs")


def test_says(answer):
    """each target is the token after its input"""
    _, say = _pair(answer, _ELEVEN, 4, _WHERE)
    note = "After 4 comes 8; after the block's last token, 16, comes 23, the next block's first."
    same(say, [[8, 15, 16, 23], [42, 7, 9, 1]], f"{_WHERE}, the targets", note=note)


def _one_by_one(ids, length):
    """Block by block, as long as a token follows the block."""
    starts = [i for i in range(0, len(ids), length) if i + length < len(ids)]
    rows = [[ids[i + shift : i + shift + length].tolist() for i in starts] for shift in (0, 1)]
    return tuple(torch.tensor(part, dtype=ids.dtype).reshape(-1, length) for part in rows)


def test_any_text(answer):
    """for any text and length, ids stay whole numbers"""
    agrees(answer, _one_by_one, torch.tensor([7, 5]), 1)
    agrees(answer, _one_by_one, torch.tensor([7, 5, 6, 50_256]), 1)
    agrees(answer, _one_by_one, torch.tensor([7, 5, 6]), 3, note="No block has a token after it.")
    agrees(answer, _one_by_one, torch.tensor([7, 5, 6, 2]), 3)
    text = numbers(50, seed=1).abs().mul(20_000).long()
    for length in (3, 7, 8, 49):
        agrees(answer, _one_by_one, text, length)
    agrees(answer, _one_by_one, text.int()[::2], 4, note="Every second token of a text, in int32.")


MISTAKES = r"""
not shifted
    1 : count * length + 1 => : count * length
    says: After 4 comes 8
    Each position sees its own token, so the loss falls to 0 and nothing is learned.
shifted the wrong way
    ids[1 : count * length + 1] => ids.roll(1)[: count * length]
    says: After 4 comes 8
    This asks for the token before, which the model has just read.
the targets come first
    return ids_in, ids_out => return ids_out, ids_in
    says: the inputs
    You return the targets first. Return the inputs, then the targets.
rolled within the block
    ids[1 : count * length + 1].view(count, length) => ids_in.roll(-1, 1)
    says: the next block's first
    `roll` brings the block's first token round to the end: the last position of every block
    gets a wrong target.
one token lost a block
    (len(ids) - 1) => len(ids)
    ids[1 : count * length + 1].view(count, length) => ids_in[:, 1:]
    return ids_in => return ids_in[:, :-1]
    says: the inputs have shape (2, 3)
    Cutting first and shifting inside costs each block a token that is never predicted.
overlapping windows
    ids[: count * length].view(count, length) => ids[:-1].unfold(0, length, 1)
    ids[1 : count * length + 1].view(count, length) => ids[1:].unfold(0, length, 1)
    says: blocks follow each other
    A window at every position shows each token `length` times an epoch, in copies that are
    nearly the same.
the last whole block lost
    (len(ids) - 1) // length => len(ids) // length - 1
    says: have shape (1, 4), expected (2, 4)
    The text needs only one token after the last block, not another block.
a target made up for the last token
    (len(ids) - 1) => len(ids)
    ids[1 : count => torch.cat([ids, ids[:1]])[1 : count
    says: nothing follows the eighth token
    The last target was made up. Leave the block out instead.
ids as floats
    return ids_in, ids_out => return ids_in.float(), ids_out.float()
    says: the dtype is float32, expected int64
    An embedding looks rows up by whole numbers.
"""

HARMLESS = r"""
ids_… => ….reshape(…
    as good as `view`, and more patient
"""
