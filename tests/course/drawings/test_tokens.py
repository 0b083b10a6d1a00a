"""Drawings of tokens: what they show is what was given, and nothing runs out of the picture."""

import pytest
import torch
import torch.nn.functional as F

from tinytf.text.merges import apply_merges, learn_merges
from tinytf.viz.spoken import spoken
from tinytf_course.drawings.tokens import draw_cbow, draw_lookup, draw_merges, draw_text_to_vectors

CORPUS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def texts(ax):
    return [text.get_text() for text in ax.texts]


def inside(ax):
    """Whether every text lies within the picture."""
    renderer = ax.figure.canvas.get_renderer()
    page = ax.figure.bbox
    boxes = [text.get_window_extent(renderer) for text in ax.texts]
    return all(page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
               for box in boxes)  # fmt: skip


def test_text_to_vectors_shows_every_token_id_and_number():
    ax = draw_text_to_vectors("a cat", ["a", "cat"], [7, 9], torch.tensor([[0.5, -1.0], [2, 3]]))
    shown = texts(ax)
    for part in ("a cat", "a", "cat", "7", "9", "0.5", "−1", "2", "3", "(2, 2)  is  (T, C)"):
        assert part in shown
    assert inside(ax)
    assert "7, 9" in spoken(ax)
    with pytest.raises(ValueError, match="1 tokens, 2 ids and 2 vectors"):
        draw_text_to_vectors("a", ["a"], [7, 9], torch.zeros(2, 2))


@pytest.mark.parametrize("word", ["newest", "lowest", "猫", "xyz"])
def test_merges_end_where_encoding_ends(word):
    learned = learn_merges({tuple(w.encode()): n for w, n in CORPUS.items()}, 8)
    merges = {pair: 256 + i for i, pair in enumerate(learned)}
    tokens = [bytes([byte]) for byte in range(256)]
    for a, b in learned:
        tokens.append(tokens[a] + tokens[b])
    ax = draw_merges(word, merges, tokens)
    ids = apply_merges(word.encode(), merges)
    cut = texts(ax)[-1].removeprefix("result:\n").split(" | ")
    assert len(cut) == len(ids)
    if word.isascii():
        assert cut == [tokens[i].decode() for i in ids]
    assert inside(ax)
    assert len(texts(ax)) >= 2 * len(word.encode()) - len(ids)


def test_a_lookup_shows_three_matrices():
    ids = [2, 0, 2]
    table = torch.arange(8.0).reshape(4, 2)
    ax = draw_lookup(F.one_hot(torch.tensor(ids), 4), table, ids)
    shown = texts(ax)
    assert {"one-hot (3, 4)", "table (4, 2)", "vectors (3, 2)"} <= set(shown)
    assert shown[-8:] == ["0", "1", "4", "5", "2", "0", "2", "vectors (3, 2)"]
    assert inside(ax)


def test_cbow_shows_the_window_and_the_sizes():
    ax = draw_cbow(["the", "cat"], "sat", ["on", "the"], 604, 32)
    shown = texts(ax)
    assert shown.count("the") == 2
    assert {"?", "mean", "(32,)", "(604,)", "loss:\n−ln p(sat)"} <= set(shown)
    assert inside(ax)
