"""The parts of the stream add up, and so do their logits."""

import pytest
import torch

from tinytf.inspect import record
from tinytf.interpret.attribution import direct_logits, head_parts, stream_parts
from tinytf.support.randomness import seeded
from tinytf.transformer import Transformer, TransformerConfig

SRC = torch.tensor([[3, 4, 5, 2], [6, 7, 2, 0]])
TGT = torch.tensor([[1, 5, 6], [1, 4, 4]])


@pytest.fixture
def model():
    with seeded(0):
        model = Transformer(
            TransformerConfig(9, 8, 12, 3, 2, d_ff=20, dropout=0.0, norm="pre", max_len=8)
        )
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    return model.double().eval().requires_grad_(False)


def test_parts_are_all_that_is_in_the_stream(model):
    parts = stream_parts(model, SRC, TGT)
    with record(model, "decoder.layers.1") as seen:
        model(SRC, TGT)
    torch.testing.assert_close(sum(parts.values()), seen["decoder.layers.1"])
    assert len(parts) == 1 + 4 * (3 + 1) + 2
    assert "layers.1.cross_attention.2" in parts


def test_heads_are_what_a_layer_writes_less_its_bias(model):
    name = "decoder.layers.0.cross_attention"
    layer = model.decoder.layers[0].cross_attention
    with record(model, name, f"{name}.w_v", f"{name}.w_o") as seen:
        model(SRC, TGT)
    heads = head_parts(layer, seen[name], seen[f"{name}.w_v"])
    assert heads.shape == (2, 3, 3, 12)
    torch.testing.assert_close(heads.sum(1) + layer.w_o.bias, seen[f"{name}.w_o"])
    v = seen[f"{name}.w_v"][..., 4:8]
    one = seen[name][:, 1] @ v @ layer.w_o.weight[:, 4:8].T
    torch.testing.assert_close(heads[:, 1], one)


def test_direct_logits_add_up_to_the_model_s(model):
    parts, logits = stream_parts(model, SRC, TGT), model(SRC, TGT)
    stream, norm = sum(parts.values()), model.decoder.final_norm
    direction = model.output.weight[5] - model.output.weight[3]
    added = sum(direct_logits(norm, part, stream, direction) for part in parts.values())
    torch.testing.assert_close(added + norm.bias @ direction, logits[..., 5] - logits[..., 3])
