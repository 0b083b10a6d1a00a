"""The table of translators that ships is complete, and the rival is as broken as it should be."""

import torch

from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.studies.translator import Rival


def test_the_rival_sees_the_words_it_must_say():
    torch.manual_seed(0)
    src, tgt = torch.randint(3, 12, (2, 1, 6))
    for model, reaches in ((Rival, True), (Transformer, False)):
        made = model(TransformerConfig(12, 12, 16, 2, 1, 32, dropout=0.0)).eval()
        states = made.positions(made.tgt_embedding(tgt)).detach().requires_grad_()
        memory = made.encode(src)
        made.positions.forward = lambda x, start=0, states=states: states
        made.decode(tgt, memory)[0, 2, 0].backward()
        assert bool(states.grad[0, 3:].any()) is reaches
