"""Batches of the phrasebook: the same for a seed and step, with little padding."""

import itertools

import pytest

from tinytf.cli import train
from tinytf.training.trainer import TrainingConfig
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.phrasebook.batches import PhrasebookBatches


@pytest.fixture(autouse=True)
def graded(monkeypatch):
    """Stand in for the long grading of 2,000 sentences; collects what would be graded."""
    calls = []
    monkeypatch.setattr(Phrasebook, "sample", lambda _, n, split, seed: [split] * n)
    monkeypatch.setattr(train, "exact_match", lambda _, pairs: calls.append(pairs) or 0.5)
    return calls


def test_batches_depend_on_seed_and_step_alone():
    book = Phrasebook()
    first, again, other = (PhrasebookBatches(book, 8, seed, pool=4) for seed in (0, 0, 1))
    forwards = [first.pairs(i) for i in range(9)]
    assert [again.pairs(i) for i in (8, 2, 5, 0)] == [forwards[i] for i in (8, 2, 5, 0)]
    assert forwards != [other.pairs(i) for i in range(9)]
    assert [len(pairs) for pairs in forwards] == [8] * 9
    assert len({p.english for pairs in forwards for p in pairs}) > 50
    assert all(book.split_of(p.source) == "train" for pairs in forwards for p in pairs)


def test_each_pool_is_shuffled_in_its_own_way():
    """Batches come sorted by length out of a pool, and leave it in an order that is only its."""
    batches, orders = PhrasebookBatches(Phrasebook(), 4, pool=12), []
    for number in range(6):
        pool = [batches.pairs(12 * number + i) for i in range(12)]
        drawn = itertools.islice(batches.book.pairs("train", seed=number), 48)
        drawn = sorted(drawn, key=lambda p: (len(p.target), len(p.source)))
        cut = [drawn[i : i + 4] for i in range(0, 48, 4)]
        orders.append(tuple(cut.index(batch) for batch in pool))
    assert all(sorted(order) == list(range(12)) for order in orders)
    assert len(set(orders)) == 6
    assert tuple(range(12)) not in orders


def test_a_batch_holds_its_pairs_ids():
    batches = PhrasebookBatches(Phrasebook(), 5)
    batch, pairs = batches(3), batches.pairs(3)
    for row, p in enumerate(pairs):
        assert batches.source.decode(batch.src[row].tolist()) == list(p.source)
        assert batches.target.decode(batch.tgt_out[row].tolist()) == list(p.target)
        assert batches.target.decode(batch.tgt_in[row].tolist()) == list(p.target)


def test_little_of_a_batch_is_padding():
    batches = PhrasebookBatches(Phrasebook(), 64)
    ids = [batches(i).tgt_out for i in range(20)]
    padding = sum(int((b == 0).sum()) for b in ids) / sum(b.numel() for b in ids)
    assert padding < 0.05
    assert len({b.size(1) for b in ids[:8]}) > 3  # and the lengths come in no order
    with pytest.raises(ValueError, match="at least one pair, got size=0"):
        PhrasebookBatches(Phrasebook(), 0)
    with pytest.raises(ValueError, match="a pool holds at least one batch, got pool=0"):
        PhrasebookBatches(Phrasebook(), 5, pool=0)


def test_batches_come_from_pools_as_large_as_asked_for():
    trainer, _ = train.build(TrainingConfig(), 4, "cpu", pool=3)
    assert trainer.batches.pool == 3
    assert train.build(TrainingConfig(), 4, "cpu")[0].batches.pool == 50
