"""Configs: their defaults, written down a second time, and that none can be changed."""

import dataclasses
import math

import pytest

from tinytf.bert import BertConfig
from tinytf.gpt import GPTConfig
from tinytf.llama import LlamaConfig
from tinytf.related.marian import MarianConfig
from tinytf.related.recurrent_seq2seq import RecurrentConfig
from tinytf.related.vit import ImageConfig
from tinytf.training.config import TrainingConfig
from tinytf.transformer import TransformerConfig

PAPER = {  # Vaswani et al. 2017, table 3 and section 5.4
    "d_model": 512, "num_heads": 8, "num_layers": 6, "d_ff": 2048, "dropout": 0.1, "max_len": 512,
    "norm": "post", "activation": "relu", "share_embeddings": False, "tie_output": True,
    "init": "xavier", "pad_id": 0,
}  # fmt: skip
WORDS = {"src_vocab_size": 9, "tgt_vocab_size": 9}  # what has no default
CONFIGS = {
    TransformerConfig: (WORDS, PAPER),
    MarianConfig: (WORDS, PAPER | {
        "activation": "silu", "share_embeddings": True, "their_pad_id": 7, "their_eos_id": 0,
    }),
    RecurrentConfig: (WORDS, {
        "d_model": 128, "hidden": 192, "attention": "additive", "dropout": 0.0, "max_len": 64,
        "pad_id": 0,
    }),
    GPTConfig: ({}, {
        "vocab_size": 50257, "d_model": 768, "num_heads": 12, "num_layers": 12, "d_ff": 3072,
        "max_len": 1024, "dropout": 0.0, "norm": "pre", "activation": "gelu_tanh",
        "tie_output": True,
    }),
    BertConfig: ({}, {
        "vocab_size": 30522, "d_model": 768, "num_heads": 12, "num_layers": 12, "d_ff": 3072,
        "max_len": 512, "num_segments": 2, "dropout": 0.1, "pad_id": 0,
    }),
    LlamaConfig: ({}, {
        "vocab_size": 32000, "d_model": 4096, "num_heads": 32, "num_kv_heads": 32,
        "num_layers": 32, "d_ff": 11008, "max_len": 4096, "base": 10000.0, "eps": 1e-5,
        "tie_output": False,
    }),
    ImageConfig: ({}, {
        "image_size": 8, "patch_size": 2, "channels": 1, "num_classes": 10, "d_model": 32,
        "num_heads": 4, "num_layers": 2, "d_ff": 128, "dropout": 0.0,
    }),
    TrainingConfig: ({}, {
        "steps": 3000, "lr": 2e-3, "warmup": 200, "schedule": "cosine", "min_lr": 0.0,
        "label_smoothing": 0.1, "weight_decay": 0.01, "betas": (0.9, 0.98), "eps": 1e-9,
        "clip": 1.0, "accumulate": 1, "precision": "float32", "attention": "fused",
        "parallel": "ddp", "recompute": False, "seed": 0,
    }),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONFIGS)
def test_defaults_are_these(kind):
    needed, defaults = CONFIGS[kind]
    assert dataclasses.asdict(kind(**needed)) == needed | defaults


@pytest.mark.parametrize("kind", CONFIGS)
def test_no_config_can_be_changed(kind):
    """One that a model was made of would no longer describe it."""
    config = kind(**CONFIGS[kind][0])
    for field in dataclasses.fields(config):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, field.name, math.nan)
