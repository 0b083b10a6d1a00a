"""Blocks of a text: every one once an epoch, in another order."""

import itertools
import math

import pytest
import torch

from tinytf.data.blocks import TextBlocks


@pytest.mark.parametrize(("tokens", "length", "size"), [(1000, 7, 3), (50, 8, 4), (9, 8, 2)])
def test_an_epoch_shows_every_block_once(tokens, length, size):
    blocks = TextBlocks(torch.arange(tokens), length, size)
    steps = math.ceil(3 * blocks.per_epoch) + 1
    starts = [s for step in range(steps) for s in blocks.starts(step)]
    offsets = set()
    for epoch in range(3):
        seen = sorted(starts[epoch * blocks.count : (epoch + 1) * blocks.count])
        assert [b - a for a, b in itertools.pairwise(seen)] == [length] * (len(seen) - 1)
        assert seen[0] >= 0
        assert seen[-1] + length <= tokens - 1  # the token after the last is there
        assert seen[0] + (tokens - 1 - seen[-1] - length) < 2 * length  # hardly any is left out
        offsets.add(seen[0])
    if tokens == 1000:
        assert len(offsets) > 1
        assert starts[: blocks.count] != starts[blocks.count : 2 * blocks.count]


def test_blocks_stand_in_another_order_and_begin_elsewhere_each_epoch():
    blocks = TextBlocks(torch.arange(7 * 10 + 1), 7, 1)  # ten blocks would fit in one way only
    assert blocks.count == 9
    epochs = [[blocks.starts(9 * epoch + i)[0] for i in range(9)] for epoch in range(40)]
    assert {min(starts) for starts in epochs} == set(range(8))
    places = {tuple((start - min(starts)) // 7 for start in starts) for starts in epochs}
    assert len(places) > 30
    assert tuple(range(9)) not in places


def test_a_batch_is_text_and_the_same_moved_by_one():
    ids = torch.randint(50, (300,), dtype=torch.int32)
    blocks = TextBlocks(ids, 10, 4, seed=2)
    batch = blocks(5)
    assert batch.ids_in.dtype == batch.ids_out.dtype == torch.int64
    for row, start in enumerate(blocks.starts(5)):
        assert batch.ids_in[row].tolist() == ids[start : start + 10].tolist()
        assert batch.ids_out[row].tolist() == ids[start + 1 : start + 11].tolist()
    assert batch.num_tokens == 40


def test_blocks_depend_on_seed_and_step_alone():
    first, again, other = (TextBlocks(torch.arange(500), 7, 3, seed) for seed in (0, 0, 1))
    forwards = [first.starts(i) for i in range(60)]
    assert [again.starts(i) for i in (59, 3, 30, 0)] == [forwards[i] for i in (59, 3, 30, 0)]
    assert forwards != [other.starts(i) for i in range(60)]


def test_blocks_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match=r"has 8 tokens, too short .* length=8 .* at least 9"):
        TextBlocks(torch.arange(8), 8, 1)
    assert TextBlocks(torch.arange(9), 8, 1)(0).ids_out[0].tolist() == list(range(1, 9))
    with pytest.raises(ValueError, match="length=0 and size=1"):
        TextBlocks(torch.arange(8), 0, 1)
    with pytest.raises(ValueError, match="length=2 and size=0"):
        TextBlocks(torch.arange(8), 2, 0)
    with pytest.raises(ValueError, match=r"one long row \(N,\), got shape \(2, 4\)"):
        TextBlocks(torch.arange(8).view(2, 4), 2, 1)
    with pytest.raises(TypeError, match=r"integers, got torch\.float32"):
        TextBlocks(torch.ones(8), 2, 1)
    for kind in (torch.bool, torch.complex64):
        with pytest.raises(TypeError, match=f"integers, got {kind}"):
            TextBlocks(torch.ones(8, dtype=kind), 2, 1)


LONG = "It says in a sentence what it does, and in this one why it is good for you to know it."


assert len(LONG) >= 80
