"""Positions added to embeddings: sinusoids by the formula, learned rows from a table."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import assert_equal_with_gradients, bounded

from tinytf.positional import LearnedPositionalEncoding, PositionalEncoding, sinusoidal_encoding


@pytest.mark.parametrize("start", [0, 6])
def test_rows_are_added_from_start(start, exact):
    layer = LearnedPositionalEncoding(8, max_len=10, dropout=0.0).to(exact, torch.float64)
    table = torch.empty(10, 8, device=exact, dtype=torch.float64)
    x = torch.randn(3, 4, 8, device=exact, dtype=torch.float64)
    place = torch.arange(start, start + 4, device=exact)
    assert_equal_with_gradients(
        lambda x: layer(x, start),
        lambda x: x + F.embedding(place, table),
        [x],
        [([layer.table], table.requires_grad_())],
    )
    used = layer.table.grad.abs().sum(dim=-1) > 0
    assert used.nonzero()[:, 0].tolist() == place.tolist()  # the other rows learn nothing


def test_the_table_starts_small_and_is_saved():
    torch.manual_seed(1)
    layer = LearnedPositionalEncoding(64, 500)
    assert 0.019 < layer.table.std() < 0.021
    assert abs(layer.table.mean()) < 0.001
    assert list(layer.state_dict()) == ["table"]


def test_positions_are_dropped_out_in_training_only(device):
    layer = LearnedPositionalEncoding(64, 50, dropout=0.3).to(device)
    x = torch.full((8, 50, 64), 5.0, device=device)
    assert 0.27 < (layer(x) == 0).float().mean() < 0.33
    assert torch.equal(layer.eval()(x), x + layer.table)


@pytest.mark.parametrize(("length", "start"), [(11, 0), (1, 10), (4, 7)])
def test_positions_past_the_table_are_refused(length, start):
    message = f"sequence of length {start + length} is longer than max_len=10"
    with pytest.raises(ValueError, match=message):
        LearnedPositionalEncoding(4, max_len=10)(torch.zeros(1, length, 4), start)


@pytest.mark.parametrize("d_model", [1, 2, 7, 8])
def test_sinusoids_equal_the_formula(d_model):
    expected = [
        [
            (math.sin if j % 2 == 0 else math.cos)(pos / 10000 ** ((j - j % 2) / d_model))
            for j in range(d_model)
        ]
        for pos in range(60)
    ]
    table = sinusoidal_encoding(60, d_model)
    assert table.dtype == torch.get_default_dtype()
    torch.testing.assert_close(table, torch.tensor(expected), atol=1e-7, rtol=0)


@bounded
@given(st.integers(1, 30), st.integers(0, 400), st.integers(0, 400))
def test_dot_product_of_positions_depends_on_their_distance(half, first, second):
    table = sinusoidal_encoding(801, 2 * half).double()
    distance = abs(first - second)
    expected = table[0] @ table[distance]
    torch.testing.assert_close(table[first] @ table[second], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("d_model", [7, 8])
def test_positions_are_added_from_start(d_model, device):
    layer = PositionalEncoding(d_model, max_len=10, dropout=0.0).to(device)
    x = torch.randn(3, 4, d_model, device=device)
    table = sinusoidal_encoding(10, d_model).to(device)
    assert torch.equal(layer(x), x + table[:4])
    assert torch.equal(layer(x, start=6), x + table[6:])
    assert not layer.state_dict()  # the table can be computed, so it is not saved


def test_positions_of_sinusoids_are_dropped_out_in_training_only(device):
    layer, x = PositionalEncoding(64, 50, dropout=0.3).to(device), torch.full((8, 50, 64), 5.0)
    x = x.to(device)
    dropped = layer(x)
    assert 0.27 < (dropped == 0).float().mean() < 0.33
    layer.eval()
    kept = layer(x)
    assert (kept != 0).all()
    torch.testing.assert_close(dropped[dropped != 0], kept[dropped != 0] / 0.7)


@pytest.mark.parametrize(("length", "start"), [(11, 0), (1, 10), (4, 7)])
def test_positions_past_max_len_are_refused(length, start):
    message = f"sequence of length {start + length} is longer than max_len=10"
    with pytest.raises(ValueError, match=message):
        PositionalEncoding(4, max_len=10)(torch.zeros(1, length, 4), start)
