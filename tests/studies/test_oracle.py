"""PyTorch's Transformer as an oracle: it agrees with ours, and not with a broken one."""

import pytest
import torch

from tinytf.masks import padding_mask
from tinytf.studies.oracle import oracle_gap
from tinytf.transformer import Transformer, TransformerConfig


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
