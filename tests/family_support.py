"""What the tests of published weights share: Hugging Face's models, small and drawn at random."""

import json
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import bert_support
import marian_support
import torch
from safetensors.torch import load_file, save_file
from support import randomise
from torch import nn

from tinytf.bert import BertConfig
from tinytf.gpt import GPT, GPTConfig
from tinytf.llama import Llama, LlamaConfig
from tinytf.pretrained import bert, gpt2, llama, marian
from tinytf.related.marian import Marian, MarianConfig

# ---- their models, with weights that hide nothing: no gain is 1, no bias 0


def their_gpt2(dtype=torch.float32, std=0.2, **changes):
    import transformers

    sizes = {"vocab_size": 53, "n_positions": 32, "n_embd": 24, "n_layer": 3, "n_head": 4}
    settings = sizes | {"bos_token_id": 52, "eos_token_id": 52} | changes
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings)).to(dtype).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=std)
            if name.endswith(("wpe.weight", "ln_f.weight")):
                p.mul_(5)  # so that no token wins everywhere, and texts differ
    return model


def their_llama(dtype=torch.float32, theta=10000.0, **changes):
    import transformers

    sizes = {"vocab_size": 53, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3,
             "num_attention_heads": 4, "num_key_value_heads": 2,
             "max_position_embeddings": 32}  # fmt: skip
    rope = {"rope_type": "default", "rope_theta": theta}
    settings = sizes | {"rope_parameters": rope, "bos_token_id": 51, "eos_token_id": 52} | changes
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings)).to(dtype).eval()
    randomise(model)
    return _in_double(model) if dtype == torch.float64 else model


def _in_double(theirs):
    """Let the two parts that are float32 whatever the weights compute the same in float64."""

    def norm(self, x):
        mean_square = x.square().mean(-1, keepdim=True)
        return self.weight * x * torch.rsqrt(mean_square + self.variance_epsilon)

    def angles(self, x, position_ids):
        width, theta = 2 * len(self.inv_freq), self.config.rope_parameters["rope_theta"]
        inverse = theta ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
        both = (position_ids[..., None].double() * inverse).repeat(1, 1, 2)
        return both.cos(), both.sin()

    for module in theirs.modules():
        if type(module).__name__ == "LlamaRMSNorm":
            module.forward = types.MethodType(norm, module)
        if type(module).__name__ == "LlamaRotaryEmbedding":
            module.forward = types.MethodType(angles, module)
    return theirs


def their_bert(dtype=torch.float32, kind="BertForPreTraining", **changes):
    return bert_support.their_model(kind, dtype, **changes)


# ---- what both say


def causal_outputs(theirs, ours):
    ids = torch.randint(theirs.config.vocab_size, (3, 20))
    return [(ours(ids), theirs(ids).logits)]


def bert_outputs(theirs, ours):
    """States or scores; where a pad stands they mean nothing."""
    ids, segments, real = bert_support.padded()
    found = ours(ids, segments)
    found = [found] if torch.is_tensor(found) else found
    expected = bert_support.their_outputs(theirs, ids, segments, real)
    return [(a[real], b[real]) if b.dim() == 3 else (a, b)
            for a, b in zip(found, expected, strict=True)]  # fmt: skip


def marian_outputs(theirs, ours):
    src, tgt = torch.tensor([[5, 9, 30, 2], [7, 2, 0, 0]]), torch.tensor([[1, 6, 30], [1, 8, 2]])
    order, places = ours.config.order, ours.config.places
    out = theirs(order[src], attention_mask=(src != 0).long(), decoder_input_ids=order[tgt])
    return [(ours(src, tgt)[..., places], out.logits)]


# ---- the families


@dataclass(frozen=True)
class Case:
    """One family in the tests, or one of its variants."""

    module: Any  # of tinytf.pretrained
    their_model: Callable  # (dtype, **changes)
    build: Callable  # ours, of our config
    outputs: Callable  # (theirs, ours) -> pairs that should be equal
    config: Any  # ours, of their small model
    other: Callable[[], nn.Module]  # a small model of ours with other sizes
    changes: dict = field(default_factory=dict)

    def theirs(self, dtype=torch.float32, **changes):
        return self.their_model(dtype, **self.changes | changes)

    def twin(self, theirs):
        """Ours with the same weights, in the same number format."""
        model = self.build(self.module.from_config(theirs.config.to_dict()))
        model = model.to(theirs.dtype).eval()
        # a tied tensor is there under one name
        model.load_state_dict(self.module.from_state(theirs.state_dict(), model), strict=False)
        return model


def other_marian():
    config = MarianConfig(31, 31, 16, 2, 2, 40, 0.25, 20, activation="relu", their_eos_id=7)
    model = randomise(Marian(config))
    with torch.no_grad():
        model.src_embedding.weight[1] = model.src_embedding.weight[0]  # the start is their <pad>
        model.output.bias[1] = model.output.bias[0]
    return model


BERTS = {
    "bert": "BertForPreTraining",
    "bert-bare": "BertModel",
    "bert-texts": "BertForSequenceClassification",
    "bert-tokens": "BertForTokenClassification",
    "bert-spans": "BertForQuestionAnswering",
}


def _bert(kind):
    build = bert_support.HEADS[kind]
    return Case(
        bert, their_bert, build, bert_outputs, BertConfig(41, 24, 4, 3, 56, 20, 2, 0.1),
        lambda: randomise(build(BertConfig(41, 16, 2, 2, 40, 18, 3, 0.25, 5))), {"kind": kind},
    )  # fmt: skip


def _llama(heads, tied=False, eps=1e-6, theta=10000.0):
    sizes = LlamaConfig(53, 24, 4, heads, 3, 40, 32, theta, eps, tie_output=tied)
    other = LlamaConfig(31, 16, 4, 2, 2, 40, 20, 300.0, 1e-3, tie_output=tied)
    changes = {"num_key_value_heads": heads, "tie_word_embeddings": tied, "rms_norm_eps": eps}
    return Case(llama, their_llama, Llama, causal_outputs, sizes, lambda: randomise(Llama(other)),
                changes | {"theta": theta})  # fmt: skip


VARIANTS = {
    "gpt2": Case(
        gpt2, their_gpt2, GPT, causal_outputs, GPTConfig(53, 24, 4, 3, 96, 32, 0.1),
        lambda: randomise(GPT(GPTConfig(31, 16, 2, 2, 40, 20, 0.25)), 0.2),
    ),
    "llama": _llama(2),
    "llama-1": _llama(1, tied=True, eps=1e-2, theta=40.0),
    "llama-4": _llama(4, eps=1e-2),
    **{name: _bert(kind) for name, kind in BERTS.items()},
    "marian": Case(
        marian, marian_support.their_model, Marian, marian_outputs,
        MarianConfig(54, 54, 24, 4, 3, 40, 0.1, 32), other_marian,
    ),
}  # fmt: skip
FAMILIES = {name: VARIANTS[name] for name in ("gpt2", "llama", "bert", "marian")}


# ---- folders, and what may be wrong in them


def edit_config(folder, changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    tensors = {name: t.contiguous() for name, t in change(tensors).items()}
    save_file(tensors, path, metadata={"format": "pt"})


def drop(name):
    return lambda tensors: {n: t for n, t in tensors.items() if n != name}
