"""The digits: fourteen forms, splits that share none, samples and shifts."""

import pytest
import torch
from support import needs_scikit_learn

from tinytf_course.lessons.digits import TEXT, digits, sample, shift, split

pytestmark = needs_scikit_learn


def test_all_digits_are_there_on_fourteen_forms():
    found = digits()
    assert found.images.shape == (1797, 1, 8, 8)
    assert (found.images.min(), found.images.max()) == (-1, 1)
    assert found.labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    sizes = found.forms.bincount()
    assert len(sizes) == 14
    assert sizes.min() == 122
    assert sizes.max() == 130


def test_each_form_is_the_text_with_some_digits_left_out():
    found, complete = digits(), 0
    for form in range(14):
        text = found.labels[found.forms == form].tolist()
        if form == 2:  # its last 8 is labelled a 3
            text = [*text[:-1], 8]
        rest = iter(map(int, TEXT))
        assert all(digit in rest for digit in text), f"form {form} is not in the text's order"
        assert text[-3:] == [8, 9, 8] or len(text) < 130
        complete += len(text) == 130
    assert complete == 9


def test_splits_share_no_form_and_cover_all():
    tested = set()
    for seed in range(5):
        train, test = split(seed)
        assert len(train.labels) + len(test.labels) == 1797
        assert not set(train.forms.tolist()) & set(test.forms.tolist())
        tested |= set(test.forms.tolist())
    assert tested == set(range(14))
    for bad in (0, 14):
        with pytest.raises(ValueError, match=rf"num_test must lie in 1..13, got {bad}"):
            split(0, bad)


def test_samples_have_as_many_of_each_digit():
    pool, _ = split(0)
    few, again, other = sample(pool, 50, 3), sample(pool, 50, 3), sample(pool, 50, 4)
    assert few.labels.bincount().tolist() == [5] * 10
    assert torch.equal(few.images, again.images)
    assert not torch.equal(few.images, other.images)
    assert len(few.images.flatten(1).unique(dim=0)) == 50
    with pytest.raises(ValueError, match="size=55 is not shared equally by 10 classes"):
        sample(pool, 55)
    with pytest.raises(ValueError, match=r"200 images of 0 wanted, there are 1\d\d"):
        sample(pool, 2000)


def test_shifts_move_whole_images_by_a_pixel():
    torch.manual_seed(0)
    images = torch.rand(2, 3, 4, 5)
    padded = torch.nn.functional.pad(images, (1, 1, 1, 1), value=-1.0)
    places = [padded[:, :, i : i + 4, j : j + 5] for i in range(3) for j in range(3)]
    draws, met = torch.Generator().manual_seed(0), [set(), set()]
    for _ in range(100):
        moved = shift(images, draws)
        for row, seen in enumerate(met):
            (at,) = [n for n, place in enumerate(places) if torch.equal(moved[row], place[row])]
            seen.add(at)
    assert met == [set(range(9))] * 2
    assert torch.equal(shift(images, most=0), images)
