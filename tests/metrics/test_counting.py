"""Counting parameters, operations and what is kept for the backward pass."""

import pytest
import torch
from torch import nn

from tinytf.attention import MultiHeadAttention, explicit_attention
from tinytf.metrics.counting import (
    count_flops,
    count_parameters,
    kept_bytes,
    largest_made,
    moved_bytes,
)
from tinytf.transformer import Transformer, TransformerConfig


def test_parameters_by_formula():
    assert count_parameters(nn.Linear(3, 5)) == 3 * 5 + 5
    assert count_parameters(MultiHeadAttention(512, 8)) == 4 * (512 * 512 + 512)


def test_a_shared_parameter_counts_once_and_a_frozen_one_not():
    tied = Transformer(TransformerConfig(20, 20, 8, 2, 1, 16))
    free = Transformer(TransformerConfig(20, 20, 8, 2, 1, 16, tie_output=False))
    assert count_parameters(free) - count_parameters(tied) == 20 * 8
    frozen = nn.Linear(3, 5)
    frozen.bias.requires_grad_(False)
    assert count_parameters(frozen) == 15


@pytest.mark.parametrize("num_heads", [1, 4])
def test_flops_by_formula(num_heads):
    layer = MultiHeadAttention(16, num_heads)
    layer.attention = explicit_attention
    x = torch.randn(2, 7, 16)
    projections, scores_and_mix = 4 * 2 * 14 * 16 * 16, 2 * 2 * 2 * 7 * 7 * 16
    assert count_flops(lambda: layer(x)) == projections + scores_and_mix


def test_flops_of_the_backward_pass_count_too():
    layer, x = nn.Linear(4, 6, bias=False), torch.randn(5, 4, requires_grad=True)
    forward = count_flops(lambda: layer(x))
    assert forward == 2 * 5 * 4 * 6
    assert count_flops(lambda: layer(x).sum().backward()) == 3 * forward


def test_kept_bytes():
    x = torch.randn(8, 16, requires_grad=True)
    assert kept_bytes(lambda: x.exp()) == 8 * 16 * 4  # its own output
    assert kept_bytes(lambda: x * x) == 8 * 16 * 4  # one storage, kept twice
    assert kept_bytes(lambda: x + 1) == 0
    with torch.no_grad():
        assert kept_bytes(lambda: x.exp()) == 0


def test_kept_bytes_add_up():
    x = torch.randn(8, 16, requires_grad=True)
    linear = nn.Linear(16, 4)
    assert kept_bytes(lambda: linear(x)) == (8 * 16 + 4 * 16) * 4  # what it read, and its weight

    def twenty():
        y = x
        for _ in range(20):
            y = y.sigmoid()  # each keeps its own output, also when Python has let go of it
        return y.sum()

    assert kept_bytes(twenty) == 20 * 8 * 16 * 4


def test_many_heads_keep_many_maps():
    x = torch.randn(1, 20, 16)
    one, four = MultiHeadAttention(16, 1), MultiHeadAttention(16, 4)
    one.attention = four.attention = explicit_attention
    assert kept_bytes(lambda: four(x)) - kept_bytes(lambda: one(x)) == 3 * 20 * 20 * 4


def test_the_largest_tensor_on_the_way():
    x = torch.randn(5, 3)
    assert largest_made(lambda: (x @ x.T).sum()) == 25
    assert largest_made(lambda: x[0] + 1) == 3


def test_moved_bytes_of_a_product_and_of_a_softmax():
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    assert moved_bytes(lambda: a @ b) == {"mm": 4 * (12 + 20 + 15)}
    assert moved_bytes(lambda: (a @ b).softmax(-1)) == {"mm": 4 * 47, "_softmax": 4 * 30}


def test_moved_bytes_count_each_call_and_no_view():
    x = torch.randn(6, 2, dtype=torch.float64)
    assert moved_bytes(lambda: x.T.unflatten(-1, (2, 3))[0]) == {}
    heads = torch.randn(2, 3, 4, 5)  # their product is one of matrices, viewed again
    assert list(moved_bytes(lambda: heads @ heads.mT)) == ["bmm"]
    assert moved_bytes(lambda: x.exp() + x.T.T.exp()) == {"exp": 4 * 96, "add": 3 * 96}


def test_moved_bytes_of_an_operation_in_place():
    x = torch.ones(8)
    assert moved_bytes(lambda: x.add_(1)) == {"add_": 2 * 32}
