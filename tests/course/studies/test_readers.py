"""Small readers: recurrent ones, pools, attention with relative positions."""

import pytest
import torch
import torch.nn.functional as F
from support import assert_equal_with_gradients

from tinytf_course.studies.readers import RelativeAttention, SmallEncoder, largest, last, recurrent


def test_forget_bias_moves_the_forget_gate_alone():
    torch.manual_seed(0)
    plain = recurrent("LSTM", 4)
    torch.manual_seed(0)
    biased = recurrent("LSTM", 4, 3.0)
    moved = biased.bias_ih_l0 - plain.bias_ih_l0
    assert torch.allclose(moved, torch.tensor([0.0] * 4 + [3.0] * 4 + [0.0] * 8), atol=1e-6)
    assert biased.weight_hh_l0.equal(plain.weight_hh_l0)
    assert biased.bias_hh_l0.equal(plain.bias_hh_l0)


def test_pools():
    x = torch.tensor([[[1.0, 5.0], [3.0, 2.0]]])
    assert last(x).tolist() == [[3.0, 2.0]]
    assert largest(x).tolist() == [[3.0, 5.0]]


def test_relative_attention_adds_a_number_per_offset():
    torch.manual_seed(0)
    attention = RelativeAttention(2, 6).double()
    torch.nn.init.normal_(attention.offsets)
    inputs = [torch.randn(3, 2, 5, 4, dtype=torch.double) for _ in range(3)]

    def by_hand(q, k, v):
        rows = []
        for t in range(5):
            bias = torch.stack([attention.offsets[:, s - t + 5] for s in range(5)], dim=-1)
            scores = (q[:, :, t, None] * k).sum(dim=-1) / 2 + bias  # D = 4
            rows.append((scores.softmax(dim=-1)[..., None] * v).sum(dim=-2))
        return torch.stack(rows, dim=-2)

    assert_equal_with_gradients(lambda q, k, v: attention(q, k, v, None, 0.0), by_hand, inputs)


def test_relative_attention_starts_as_plain_attention():
    q, k, v = (torch.randn(3, 2, 5, 4) for _ in range(3))
    plain = F.scaled_dot_product_attention(q, k, v)
    assert torch.allclose(RelativeAttention(2, 5)(q, k, v, None, 0.0), plain, atol=1e-6)
    with pytest.raises(ValueError, match="6 words, but there are offsets for 5"):
        RelativeAttention(2, 5)(*(torch.randn(1, 2, 6, 4) for _ in range(3)), None, 0.0)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative"])
def test_encoder_knows_the_order(positions):
    torch.manual_seed(0)
    encoder = SmallEncoder(8, 6, positions)
    if positions == "relative":  # at 0 the offsets say nothing yet
        for layer in encoder.encoder.layers:
            torch.nn.init.normal_(layer.self_attention.attention.offsets)
    x = torch.randn(1, 6, 8)
    swapped = encoder(x.flip(1)).flip(1)
    assert (swapped - encoder(x)).abs().max() > 1e-3
    assert all(p.requires_grad for p in encoder.parameters())
    encoder(x).square().sum().backward()
    # a key's bias adds one number to all scores of a query, which the softmax ignores
    idle = [n for n, p in encoder.named_parameters() if p.grad is None]
    assert not idle


def test_only_learned_positions_are_trained():
    names = {kind: dict(SmallEncoder(8, 6, kind).named_parameters()) for kind in memory_positions()}
    assert "table" in names["learned"]
    assert "table" not in names["sinusoidal"]
    assert sum("offsets" in name for name in names["relative"]) == 2
    with pytest.raises(ValueError, match="positions='rotary' is not one of"):
        SmallEncoder(8, 6, "rotary")


def memory_positions():
    return ("sinusoidal", "learned", "relative")
