"""Measures of collapse: against loops, at their ends, and blind to padding."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.interpret.similarity import layer_similarity, rank_one_residual, token_similarity
from tinytf.masks import padding_mask

ALL = [
    token_similarity,
    rank_one_residual,
    lambda x, mask=None: layer_similarity(x, x.flip(2), mask),
]


def lengths_mask(lengths, width):
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def cosine(a, b):
    return (a @ b / (a.norm() * b.norm())).item()


@bounded
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 9999))
def test_each_equals_its_loop(lengths, width, seed):
    torch.manual_seed(seed)
    a, b = torch.randn(2, len(lengths), 6, width, dtype=torch.float64) + 0.3
    mask = lengths_mask(lengths, 6)
    got = token_similarity(a, mask), layer_similarity(a, b, mask), rank_one_residual(a, mask)
    for row, n in enumerate(lengths):
        x, y = a[row, :n], b[row, :n]
        pairs = [cosine(s, t) for s, t in itertools.combinations(x, 2)]
        left = x - x.mean(dim=0)
        expected = (
            sum(pairs) / len(pairs),
            sum(cosine(s, t) for s, t in zip(x, y, strict=True)) / n,
            math.sqrt(left.square().sum() / x.square().sum()),
        )
        assert [g[row].item() for g in got] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ALL)
def test_what_stands_at_padding_does_not_matter(measure):
    x, lengths = torch.randn(3, 6, 4), [6, 2, 4]
    mask = lengths_mask(lengths, 6)
    plain = measure(x, mask)
    for filling in (0.0, 1e30, math.inf, math.nan):
        torch.testing.assert_close(measure(x.where(mask[..., None], filling), mask), plain)
    for row, n in enumerate(lengths):
        torch.testing.assert_close(measure(x[row : row + 1, :n])[0], plain[row])


@pytest.mark.parametrize("measure", ALL)
def test_the_mask_of_the_model_is_understood(measure):
    ids = torch.tensor([[3, 4, 5, 0], [3, 4, 5, 6]])
    x = torch.randn(2, 4, 8)
    assert torch.equal(measure(x, padding_mask(ids)), measure(x, ids != 0))
    assert torch.equal(measure(x), measure(x, torch.ones(2, 4, dtype=torch.bool)))


def test_ends_of_the_scales(exact):
    x = torch.randn(2, 1, 8, dtype=torch.float64, device=exact)
    same = x.expand(2, 5, 8)
    torch.testing.assert_close(token_similarity(same), torch.ones_like(x[:, 0, 0]))
    assert (rank_one_residual(same) < 1e-12).all()
    opposite = torch.stack([x[0], -x[0]], dim=1)
    assert token_similarity(opposite).item() == pytest.approx(-1)
    assert rank_one_residual(opposite).item() == pytest.approx(1)
    assert rank_one_residual(torch.zeros(1, 3, 2)).item() == 0


@pytest.mark.parametrize("measure", ALL)
def test_the_scale_of_the_whole_does_not_matter(measure):
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(measure(1000 * x), measure(x))
    large = (1000 * x).half()  # its squares pass what float16 can hold
    torch.testing.assert_close(measure(large), measure(x), atol=2e-3, rtol=0)


X = torch.randn(2, 4, 3)
MASK = torch.ones(2, 4, dtype=torch.bool)


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize(
    ("x", "mask", "error", "message"),
    [
        (X[0], None, ValueError, r"shape \(B, T, C\), got \(4, 3\)"),
        (X, MASK[:, :3], ValueError, r"mask of shape \(2, 3\) does not fit .* \(2, 4, 3\)"),
        (X, MASK[:, None], ValueError, r"needs \(2, 4\) or \(2, 1, 1, 4\)"),
        (X, MASK.float(), TypeError, r"boolean \(True = real\), got torch.float32"),
        (X, MASK & torch.tensor([[True], [False]]), ValueError, "sequence 1 has 0 real tokens"),
    ],
)
def test_bad_input_is_refused(measure, x, mask, error, message):
    if x.dim() == 2 and measure is ALL[2]:
        x = x[:, :, None].expand(4, 3, 2)[None]  # of rank 4: its flip needs three axes
        message = r"shape \(B, T, C\), got \(1, 4, 3, 2\)"
    with pytest.raises(error, match=message):
        measure(x, mask)


def test_a_pair_needs_two_tokens():
    with pytest.raises(ValueError, match="sequence 1 has 1 real tokens, needed are 2"):
        token_similarity(X, lengths_mask([4, 1], 4))
    assert rank_one_residual(X, lengths_mask([4, 1], 4))[1] == 0


def test_states_of_two_shapes_are_refused():
    with pytest.raises(ValueError, match=r"a is of shape \(2, 4, 3\), b of \(2, 3, 3\)"):
        layer_similarity(X, X[:, :3])
