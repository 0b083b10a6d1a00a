"""PyTorch's Transformer as an oracle: it agrees with ours, and not with a broken one."""

import pytest
import torch

from tinytf.blocks import Decoder, DecoderLayer
from tinytf.masks import padding_mask
from tinytf.residual import RESIDUALS
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.studies.oracle import decoder_gap, oracle_gap


class NoCausalMask(Transformer):
    def decode(self, tgt, memory, cache=None):
        x = self.positions(self.tgt_embedding(tgt))
        return self.decoder(x, memory.states, padding_mask(tgt), memory.mask)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_it_agrees_with_ours_and_sees_a_missing_mask(norm):
    torch.manual_seed(0)
    config = TransformerConfig(20, 15, 16, 2, 2, 32, dropout=0.0, norm=norm)
    assert oracle_gap(Transformer(config)) < 1e-4
    assert oracle_gap(NoCausalMask(config)) > 0.05


class NoMemoryMask(Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None, cache=None):
        return super().forward(x, memory, mask, None, cache)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_decoder_agrees_and_a_forgotten_memory_mask_is_seen(norm):
    torch.manual_seed(0)
    residual = RESIDUALS[norm]
    for stack, agrees in ((Decoder, True), (NoMemoryMask, False)):
        layers = [DecoderLayer(16, 2, 24, 0.0, residual) for _ in range(2)]
        gap = decoder_gap(stack(layers, residual.final_norm(16)))
        assert gap < 1e-10 if agrees else gap > 0.01
