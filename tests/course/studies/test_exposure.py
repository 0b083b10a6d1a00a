"""What follows a slip: one word changed, the writing that goes on from it."""

import pytest
import torch
from support import randomise, small_model

from tinytf.text.words import PAD
from tinytf.training.losses import make_batch
from tinytf_course.studies.exposure import edits, go_on, right_after, slip


@pytest.fixture
def model():
    return randomise(small_model(max_len=40, tgt_vocab_size=30)).eval()


@pytest.fixture
def batch():
    return make_batch(
        [[3, 4], [5], [6, 7]], [[3, 4, 5, 6, 7], [8, 9, 10, 11], [20, 21, 22, 23, 24]]
    )


@pytest.mark.parametrize("likely", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_a_slip_changes_one_word_that_is_followed_by_others(model, batch, likely, seed):
    slips = slip(model, batch, seed, likely)
    changed = slips.batch.tgt_in != batch.tgt_in
    assert changed.sum(dim=1).tolist() == [1, 1, 1]
    assert torch.equal(changed.long().argmax(1), slips.place)
    assert torch.equal(batch.tgt_in[changed], slips.missed)
    assert (slips.batch.tgt_in[changed] > 2).all()
    assert (slips.place >= 1).all()
    assert (slips.place <= (batch.tgt_out != PAD).sum(1) - 4).all()  # 3 words and <eos> follow
    assert torch.equal(slip(model, batch, seed, likely).place, slips.place)


def test_writing_on_agrees_with_writing_without_a_cache(model, batch):
    slips = slip(model, batch, 0)
    said = go_on(model, slips, longest=12)
    ids = slips.batch.tgt_in
    for b, place in enumerate(slips.place.tolist()):
        assert torch.equal(said[b, :place], ids[b, 1 : place + 1])
        prefix = ids[b : b + 1, : place + 1]
        memory = model.encode(batch.src[b : b + 1])
        while prefix.size(1) < 12 and prefix[0, -1] != 2:
            scores = model.output(model.decode(prefix, memory)[:, -1])
            scores[:, :2] = -torch.inf
            prefix = torch.cat([prefix, scores.argmax(-1, keepdim=True)], dim=1)
        own = [i for i in said[b].tolist() if i != PAD]
        assert own == prefix[0, 1:].tolist()


def test_no_gold_word_is_left_where_the_target_is_longer_than_what_is_written(model, batch):
    long = make_batch([[3, 4]], [[3 + i for i in range(20)]])
    slips = slip(model, long, 0)
    assert torch.equal(go_on(model, slips, longest=4), go_on(model, slips, longest=21))
    place = slips.place.item()
    said = go_on(model, slips, longest=4)[0]
    assert said[place:].tolist() != long.tgt_in[0, place + 1 :].tolist()


def test_right_after_counts_the_words_behind_the_slip(model, batch):
    slips = slip(model, batch, 1)
    right = model(batch.src, slips.batch.tgt_in).argmax(-1) == batch.tgt_out
    first = [right[b, p].item() for b, p in enumerate(slips.place.tolist())]
    assert right_after(model, slips, 1) == pytest.approx([sum(first) / 3])


def prefer(model, word):
    """Make a model that says this word wherever it may."""
    scores = torch.nn.functional.one_hot(torch.tensor(word), 30) * 100.0
    model.output.register_forward_hook(lambda _m, _i, out: out + scores)
    return model


def test_the_likeliest_wrong_word_is_not_the_gold_one(model):
    same = make_batch([[3, 4]], [[5, 5, 5, 5, 5, 5]])
    slips = slip(prefer(model, 5), same, 0, likely=True)
    assert slips.missed.tolist() == [5]
    assert slips.batch.tgt_in[0, slips.place] != 5


def test_right_after_begins_with_the_next_word(model):
    same = make_batch([[3, 4]], [[5, 9, 9, 9, 9, 9]])
    slips = slip(model, same, 0)
    out = same.tgt_out.clone()
    out[0, slips.place] = 7  # the word after the slip, and no other, is what the model says
    slips = slips._replace(batch=slips.batch._replace(tgt_out=out))
    assert right_after(prefer(model, 7), slips, 3) == [1, 0, 0]


def test_short_rows_are_refused(model):
    with pytest.raises(ValueError, match="at least 4 words, the shortest has 3"):
        slip(model, make_batch([[3]], [[3, 4, 5]]), 0)


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [("abc", "abc", 0), ("abc", "axbc", 1), ("abc", "abd", 1), ("abcd", "bcd", 1), ("", "ab", 2),
     ("kitten", "sitting", 3)],
)  # fmt: skip
def test_edits(one, other, count):
    assert edits(list(one), list(other)) == edits(list(other), list(one)) == count
