"""Attention drawn as four small matrices."""

import torch

from tinytf import attention_weights, causal_mask
from tinytf.viz.spoken import spoken
from tinytf_course.drawings import lookup

X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def words_of(ax):
    return [text.get_text() for text in ax.texts]


def test_every_number_is_shown():
    q, k, v = torch.randn(2, 4), torch.randn(2, 4), torch.randn(2, 1)
    found = words_of(lookup.draw_steps(q, k, v))
    weights = attention_weights(q, k)
    for n in [*weights.flatten().tolist(), *(weights @ v).flatten().tolist()]:
        assert f"{n:.2f}".replace("-", "−") in found


def test_hidden_cells_are_blank_and_rows_still_sum_to_1():
    found = words_of(lookup.draw_steps(X, X, X, causal_mask(3)[0, 0]))
    shown = words_of(lookup.draw_steps(X, X, X))
    assert len(shown) - len(found) == 6  # three scores and three weights
    weights = attention_weights(X, X, causal_mask(3)[0, 0])
    assert all(f"{n:.2f}" in found for n in weights[2].tolist())


def test_rows_can_have_names_and_the_drawing_is_described():
    ax = lookup.draw_steps(X[:2], X[:2], X[:2], words=["it", "was"])
    assert {"it", "was"} <= set(words_of(ax))
    assert "rows sum to 1" in spoken(ax.figure)


def test_rows_of_v_can_be_another_sentence():
    q, k, v = torch.randn(2, 2), torch.randn(3, 2), torch.randn(3, 1)
    found = words_of(lookup.draw_steps(q, k, v, words=["x", "y"], keys=["the", "cat", "sat"]))
    assert {"the", "cat", "sat"} <= set(found)
    assert f"{(attention_weights(q, k) @ v)[1, 0]:.2f}".replace("-", "−") in found


def test_maps_are_drawn_with_what_they_make():
    maps = {"Q": torch.eye(2), "K": torch.eye(2).flip(0), "V": torch.tensor([[1.0, 2], [3, 5]])}
    ax = lookup.draw_maps(X, maps, ["a", "b", "c"])
    found = words_of(ax)
    assert found.count("a") == 4  # X, Q, K and V
    assert {"W_V (2, 2)", "V (3, 2)", "7"} <= set(found)
    assert "is V, [[1.0, 2.0], [3.0, 5.0], [4.0, 7.0]]" in spoken(ax.figure)
