"""Token embeddings against torch's, scaled."""

import math

import pytest
import torch
from support import TOLERANCE, assert_equal_with_gradients
from torch import nn

from tinytf.embedding import TokenEmbedding

DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)


@DTYPES
def test_embedding_equals_torch_scaled(dtype, exact):
    ours = TokenEmbedding(9, 5).to(exact, dtype)
    theirs = nn.Embedding(9, 5).to(exact, dtype)
    ids = torch.randint(9, (3, 4), device=exact)
    # a dummy input, for there is none with a gradient
    assert_equal_with_gradients(
        lambda x: x + ours(ids),
        lambda x: x + theirs(ids) * math.sqrt(5),
        [torch.randn(3, 4, 5, dtype=dtype, device=exact)],
        [([ours.weight], theirs.weight)],
    )


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([[3, 9]]), ValueError, r"id 9 is outside the vocabulary of 9 \(0..8\)"),
        (torch.tensor([[3, 2**40]]), ValueError, "id 1099511627776 is outside"),
        (torch.tensor([[3, -1]]), ValueError, "id -1 is outside the vocabulary of 9"),
        (torch.empty(0, 4, dtype=torch.long), ValueError, r"non-empty batch .* shape \(0, 4\)"),
        (torch.empty(2, 0, dtype=torch.long), ValueError, r"non-empty batch .* shape \(2, 0\)"),
        (torch.tensor([3, 4]), ValueError, r"got shape \(2,\)"),
        (torch.zeros(1, 2), TypeError, "must be int64 or int32, got torch.float32"),
    ],
)
def test_bad_ids_are_refused(ids, error, message, device):
    with pytest.raises(error, match=message):
        TokenEmbedding(9, 5).to(device)(ids.to(device))


def test_the_scale_can_be_chosen():
    torch.manual_seed(0)
    ours = TokenEmbedding(9, 4, scale=1.0)
    torch.manual_seed(0)
    usual = TokenEmbedding(9, 4)
    ids = torch.tensor([[3, 1, 8]])
    assert torch.equal(ours(ids), ours.weight[ids])
    assert torch.equal(usual.weight, ours.weight)
    assert torch.equal(usual(ids), 2 * ours(ids))
