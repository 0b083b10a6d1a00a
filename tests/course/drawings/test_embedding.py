"""Figures of tokens and of word maps."""

import numpy as np
import pytest
import torch

from tinytf.viz.spoken import spoken
from tinytf_course import drawings as viz


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_token_rows_shows_every_token():
    ax = viz.token_rows({"bytes": [b" the", b"\xe7\x8c", b"\n"], "words": ["a b", " "]})
    assert texts(ax) == ["bytes", "·the", "‹e7›‹8c›", "↵", "words", "a b", "·"]
    boxes = list(ax.patches)
    assert len(boxes) == 5
    assert boxes[0].get_facecolor() != boxes[1].get_facecolor()


def test_tokens_and_words_are_said_to_who_cannot_see_them():
    said = spoken(viz.token_rows({"two": [b" the", b"\xe7"]}))
    assert said == "Text cut into tokens. two: ·the | ‹e7›."
    said = spoken(viz.word_map({"pets": {"cat": (0, 1), "dog": (1, 0)}}, links=[((0, 1), (1, 0))]))
    assert said == "Words as points of a plane. pets: cat, dog. Lines join points: 1."


def test_token_rows_breaks_long_lines():
    ax = viz.token_rows({"many": ["word"] * 100})
    right = max(patch.get_x() + patch.get_width() for patch in ax.patches)
    assert right <= ax.get_xlim()[1]
    rows = {round(patch.get_y(), 3) for patch in ax.patches}
    assert len(rows) > 3
    assert max(rows) + 0.9 <= ax.get_ylim()[0]


def test_plane_keeps_the_two_widest_directions():
    points = torch.randn(50, 2) * torch.tensor([9.0, 3.0])
    turn, _ = torch.linalg.qr(torch.randn(6, 6))
    flat = viz.plane(torch.cat([points, torch.zeros(50, 4)], dim=1) @ turn + 5)
    np.testing.assert_allclose(torch.cdist(points, points), np.linalg.norm(
        flat[:, None] - flat[None], axis=-1), atol=1e-4)  # fmt: skip


def test_word_map():
    groups = {"one": {"cat": (0, 0), "dog": (1, 1)}, "two": {"猫": (0, 1)}}
    ax = viz.word_map(groups, links=[((0, 0), (0, 1))])
    assert texts(ax)[:2] == ["cat", "dog"]
    assert len(ax.lines) == 1
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["one", "two"]


def test_words_of_points_that_touch_are_apart():
    words = {f"word {i}": (i % 3 * 0.004, i // 3 * 0.004) for i in range(9)}
    ax = viz.word_map({"close": words, "far": {"other": (1, 1), "third": (0.2, 0.9)}})
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 11
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[i + 1 :])


def test_refuse_nothing():
    with pytest.raises(ValueError, match="rows needs at least one"):
        viz.token_rows({})
    with pytest.raises(ValueError, match="groups needs at least one"):
        viz.word_map({})


def test_nearest_words_are_those_of_the_chosen_word():
    words = ["cat", "dog", "on", "in"]
    angles = torch.tensor([0.0, 0.1, 1.5, 1.2])
    after = torch.stack([angles.cos(), angles.sin()], dim=1)
    tables = {"before": after.flip(0), "after": after}
    for word, nearest, cosine in (("cat", "dog", 0.1), ("on", "in", 0.3), ("in", "on", 0.3)):
        _, ax = viz.nearest_words(tables, words, word, count=2)
        assert ax.get_yticklabels()[0].get_text() == nearest
        assert ax.patches[0].get_width() == pytest.approx(np.cos(cosine))
        assert ax.get_xlabel() == f"cosine with {word}"
        said = spoken(ax.figure)
        assert f"after: {nearest} {np.cos(cosine):.2f}" in said
    with pytest.raises(ValueError, match=r"'cow' is none of the 4 words"):
        viz.nearest_words(tables, words, "cow")
