"""What tests of costs share: small models, and batches of random ids."""

import torch

from tinytf.attention import explicit_attention
from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import attention_layers
from tinytf.training.losses import Batch, TextBatch
from tinytf.transformer import Transformer, TransformerConfig


def gpt(**changes):
    shape = {"vocab_size": 13, "d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 20}
    return GPT(GPTConfig(**shape | {"max_len": 32} | changes))


def transformer(**changes):
    shape = {"d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 20, "dropout": 0.0}
    return Transformer(TransformerConfig(11, 13, **shape | {"max_len": 32} | changes))


def explicit(model):
    for layer in attention_layers(model).values():
        layer.attention = explicit_attention
    return model


def pairs(batch, source, target):
    src, tgt, out = (torch.randint(3, 11, (batch, n)) for n in (source, target, target))
    return Batch(src, tgt, out)


def text(batch, length):
    ids = torch.randint(13, (2, batch, length))
    return TextBatch(ids[0], ids[1])
