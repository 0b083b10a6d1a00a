"""02.1 how far is it to the one vector? (★☆☆, 8 minutes)

The one vector of section 1 consists of the two states at which *each reader has finished*, so what
a reader has learned at a word must survive every word that it reads afterwards. Write
`my_steps_to_go(mask)`, which returns for each word how many words those are: `(B, S)` to
`(B, S, 2)`, the left-to-right reader first. In a sentence of five words the second word has `3, 1`.

<details><summary>The rule in detail</summary>

The results are whole numbers on the mask's device. `mask` is True at words; padding is at the end,
is not read, and gets `0, 0`.

</details>

Hint: Write down the numbers for a sentence of five words, one line for each reader.
`mask.cumsum(dim=1)` counts the words up to each position, `mask.sum(dim=1)` all of them.
"""

import torch

from tinytf_course.expect import agrees, travels


def my_steps_to_go(mask):
    """How many words each reader still reads after a word, before it stops: (B, S) -> (B, S, 2).

    mask (B, S) is True at words; padding stands at the end, is not read, and gets 0. Of the two
    whole numbers (int64) the first is of the reader that goes left to right, the second of the one
    that goes right to left. Every sentence has at least one word.
    """
    nth = mask.cumsum(dim=1)  # (B, S): 1 at the first word, 2 at the second
    from_left = mask.sum(dim=1, keepdim=True) - nth
    from_right = nth - 1
    return torch.stack([from_left, from_right], dim=-1) * mask[..., None]


def _counted_steps(mask):
    """Reader by reader, word by word: what is still to be read."""
    steps = torch.zeros(*mask.shape, 2, dtype=torch.long)
    for b, shown in enumerate(mask.tolist()):
        words = [i for i, word in enumerate(shown) if word]
        for reader, order in enumerate((words, words[::-1])):
            for read, place in enumerate(order, start=1):
                steps[b, place, reader] = len(order) - read
    return steps


def _words(*lengths, width):
    return torch.tensor([[i < length for i in range(width)] for length in lengths])


def test_steps_ends(answer):
    """one sentence without padding: each reader stops at another end"""
    note = "The reader from the right stops at the first word, the other at the last."
    agrees(answer, _counted_steps, _words(2, width=2), note=note)
    agrees(answer, _counted_steps, _words(5, width=5), note=note)


def test_steps_one_word(answer):
    """after a sentence's only word nothing is left to read"""
    agrees(answer, torch.tensor([[[0, 0]]]), _words(1, width=1), note="Both stop where they began.")


def test_steps_padding(answer):
    """nobody reads padding, and it gets 0 itself"""
    note = "Word 1 is the last word, where the reader from the left stops; 2 is padding."
    agrees(answer, _counted_steps, _words(2, width=3), note=note)
    agrees(answer, _counted_steps, _words(1, width=4), note="There is one word.")


def test_steps_batch(answer):
    """every sentence of a batch has a length of its own"""
    note = "Each sentence has a length of its own."
    agrees(answer, _counted_steps, _words(1, 3, width=3), note=note)
    agrees(answer, _counted_steps, _words(2, 5, 3, width=5), note=note)
    agrees(answer, _counted_steps, _words(7, 1, width=9), note=note)


def test_steps_elsewhere(answer):
    """the numbers are made where the mask is"""
    travels(answer, _words(2, 4, 1, width=4))


MISTAKES = r"""
both stop at the last word
    nth - 1 => from_left
    says: stops at the first word
    The second reader goes right to left: at the last word it has just begun, and all the others
    are still to come.
read already, not still to read
    [from_left, from_right] => [from_right, from_left]
    says: stops at the first word
    These are the words that each reader has behind it, or the two readers exchanged. What
    counts is what it still reads: at the first word the reader from the left has all the others
    before it.
its own word counted
    dim=-1) => dim=-1).add(1)
    says: Both stop where they began
    A state knows its own word already. Count those that are read after it.
on to the end of the padding
    mask.sum(dim=1, keepdim=True) - nth => mask.size(1) - torch.ones_like(mask).cumsum(dim=1)
    says: where the reader from the left stops
    The last place of a batch is the last word of its longest sentence only. Padding is not
    read: `mask.sum(dim=1)` gives the place where a sentence ends.
numbers at padding
     * mask[..., None] =>
    says: where the reader from the left stops
    Padding is no word, and gets 0 from both readers: multiply by the mask.
the longest sentence's length for all
    mask.sum(dim=1, keepdim=True) => mask.sum(dim=1).max()
    says: Each sentence has a length of its own
    The reader of a short sentence stops sooner. Sum over the words of each sentence.
the first sentence's length for all
    mask.sum(dim=1, keepdim=True) => mask[0].sum()
    says: Each sentence has a length of its own
    Sum over the words of each sentence, and keep the axis: `keepdim=True`.
the shorter way for both
    [from_left, from_right] => [torch.minimum(from_left, from_right)] * 2
    says: stops at the first word
    A word comes into the vector on the shorter way too, but here both are asked for.
counted on the CPU
    nth - 1 => nth - torch.ones(mask.shape, dtype=torch.long)
    says: on another device
    A tensor that you make has to be where the mask is: `device=mask.device`.
"""
