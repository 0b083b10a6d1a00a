"""Chapters 14: BERT and Llama's block."""

import torch

from tinytf.attention import KeyValueCache
from tinytf.bert import BertConfig
from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch03 import learned, wide
from tinytf.llama import LlamaConfig
from tinytf.masks import causal_mask

IDS = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 0]])
BERT = BertConfig(12, d_model=6, num_heads=2, num_layers=2, max_len=8)
LLAMA = LlamaConfig(20, d_model=12, num_heads=6, num_kv_heads=2, num_layers=1, d_ff=10, max_len=8)


def _bert_gradients(model):
    module = twin(model, BERT)
    return arrived(module(IDS, SEGMENTS), module=module)


def _started(model):
    torch.manual_seed(0)
    module = model(BertConfig(200, d_model=64, num_heads=2, num_layers=1, max_len=50))
    return {name: p.std() for name, p in module.named_parameters() if p.dim() > 1}


def _grouped(layer, *heads, mask=None):
    return twin(layer, 12, *heads)(wide(2, 5, 12, seed=1), mask)


def _grouped_steps(layer):
    module, cache, x = twin(layer, 12, 6, 2), KeyValueCache(), wide(2, 5, 12, seed=1)
    first = module(x[:, :2], causal_mask(2), cache)
    steps = [module(x[:, t : t + 1], None, cache) for t in (2, 3, 4)]
    return [first, *steps, cache.k]


def _grouped_gradients(layer):
    module, x = twin(layer, 12, 6, 2), learned(2, 5, 12, seed=1)
    return arrived(module(x), x, module=module)


def _llama_steps(layer):
    module, cache, x = twin(layer, LLAMA), KeyValueCache(), wide(2, 4, 12, seed=1)
    return [module(x[:, :3], causal_mask(3), cache), module(x[:, 3:], None, cache)]


def _llama_gradients(layer):
    module, x = twin(layer, LLAMA), learned(2, 4, 12, seed=1)
    return arrived(module(x, causal_mask(4)), x, module=module)


PARTS = (
    Part(
        "tinytf.bert.Bert",
        {
            "its weights are counted": lambda model: shapes(model(BERT)),
            "it reads two texts, one padded": lambda model: twin(model, BERT)(IDS),
            "each has two segments": lambda model: twin(model, BERT)(IDS, SEGMENTS),
            "words, positions and segments are added": lambda model: twin(model, BERT).embed(
                IDS, SEGMENTS
            ),
            "it starts": lambda model: [v.round(decimals=2) for v in _started(model).values()],
            "gradients go back to every weight": _bert_gradients,
        },
    ),
    Part(
        "tinytf.grouped_query.GroupedQueryAttention",
        {
            "its weights are counted": lambda layer: shapes(layer(12, 6, 2)),
            "every head has keys of its own": lambda layer: _grouped(layer, 3, 3),
            "three heads share keys": lambda layer: _grouped(layer, 6, 2),
            "all share them, and nobody sees what comes later": lambda layer: _grouped(
                layer, 6, 1, mask=causal_mask(5)
            ),
            "words come in parts, with a cache": _grouped_steps,
            "gradients go back to the tokens and to every weight": _grouped_gradients,
        },
        tolerance=1e-5,
    ),
    Part(
        "tinytf.llama.LlamaLayer",
        {
            "its weights are counted": lambda layer: shapes(layer(LLAMA)),
            "it reads two texts": lambda layer: twin(layer, LLAMA)(wide(2, 4, 12, seed=1)),
            "nobody sees what comes later": lambda layer: twin(layer, LLAMA)(
                wide(2, 4, 12, seed=1), causal_mask(4)
            ),
            "words come in parts, with a cache": _llama_steps,
            "gradients go back to the tokens and to every weight": _llama_gradients,
        },
        tolerance=1e-5,
    ),
)
