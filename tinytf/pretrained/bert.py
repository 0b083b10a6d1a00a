"""BERT weights to and from Hugging Face's format: config.json and model.safetensors.

Only names differ: linear maps are stored as ours are. Older files call a norm's gain and shift
gamma and beta, and hold the tied output twice; both are read. Source: Devlin et al. 2019, its
released code, as Hugging Face carries it on.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from tinytf.bert import Bert, BertConfig
from tinytf.pretrained.huggingface import Family, layers, read_number, read_sizes, renamed
from tinytf.related.bert_heads import (
    BertForPretraining,
    SentenceClassifier,
    SpanFinder,
    TokenTagger,
)
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save", "to_config", "to_state"]

POOLER = "bert.pooler.dense"
HEADS: dict[type, tuple[str, dict[str, str]]] = {  # their class, their modules and ours
    Bert: ("BertModel", {}),
    BertForPretraining: (
        "BertForPreTraining",
        {
            "cls.predictions.transform.dense": "words.dense",
            "cls.predictions.transform.LayerNorm": "words.norm",
            "cls.predictions.bias": "words.output.bias",
            POOLER: "next_sentence.pooler.dense",
            "cls.seq_relationship": "next_sentence.output",
        },
    ),
    SentenceClassifier: (
        "BertForSequenceClassification",
        {POOLER: "pooler.dense", "classifier": "output"},
    ),
    TokenTagger: ("BertForTokenClassification", {"classifier": "output"}),
    SpanFinder: ("BertForQuestionAnswering", {"qa_outputs": "output"}),
}
OTHER_HEADS = ("cls.", "classifier.", "qa_outputs.", "bert.pooler.")  # passed over for a bare Bert
TWINS = {  # the output of words is the table of words; its bias has two names
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
SIZES = {"vocab_size": "vocab_size", "d_model": "hidden_size",
         "num_heads": "num_attention_heads", "num_layers": "num_hidden_layers",
         "d_ff": "intermediate_size", "max_len": "max_position_embeddings",
         "num_segments": "type_vocab_size"}  # fmt: skip
FIXED = {
    "model_type": ("bert",),
    "hidden_act": ("gelu",),
    "layer_norm_eps": (1e-12,),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
}
NAMES = {  # of a bare Bert; theirs as in a model with a head
    "bert.embeddings.word_embeddings": "embedding",
    "bert.embeddings.position_embeddings.weight": "positions.table",
    "bert.embeddings.token_type_embeddings": "segments",
    "bert.embeddings.LayerNorm": "norm",
    **layers("bert.encoder.layer", "encoder.layers", {
        "attention.self.query": "self_attention.w_q",
        "attention.self.key": "self_attention.w_k",
        "attention.self.value": "self_attention.w_v",
        "attention.output.dense": "self_attention.w_o",
        "attention.output.LayerNorm": "residual_1.norm",
        "intermediate.dense": "feed_forward.w_1",
        "output.dense": "feed_forward.w_2",
        "output.LayerNorm": "residual_2.norm",
    }),
}  # fmt: skip


class _Bert(Family):
    """`Bert` and those with a head: `load(folder, lambda c: TokenTagger(Bert(c), 5))`."""

    build, config, name = BertForPretraining, BertConfig, "Bert"
    sizes, fixed, names, twins = SIZES, FIXED, NAMES, TWINS

    def read(self, config: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
        """Read dropout, their `hidden_dropout_prob`, and the id of <pad>."""
        said = config.get("pad_token_id") is not None
        pad = read_sizes(config, {"pad_id": "pad_token_id"}) if said else {"pad_id": 0}
        return pad | {"dropout": read_number(config, "hidden_dropout_prob", 0.1)}

    def say(self, model: nn.Module) -> dict[str, Any]:
        """Say which head there is, and the rest."""
        config, labels = self.config_of(model), {}
        if isinstance(model, SentenceClassifier | TokenTagger):
            numbers = range(model.output.out_features)
            labels = {
                "id2label": {str(i): f"LABEL_{i}" for i in numbers},
                "label2id": {f"LABEL_{i}": i for i in numbers},
            }
        return labels | {
            "architectures": [_head(model)[0]],
            "hidden_dropout_prob": config.dropout,
            "attention_probs_dropout_prob": 0.0,  # attention weights are never dropped here
            "pad_token_id": config.pad_id,
        }

    def to_state(self, model: nn.Module) -> dict[str, Tensor]:
        """Copy our parameters into their tensors, named as in their class with the same head.

        A bare `Bert` has the names of their `BertModel`, and no pooler.
        """
        state = super().to_state(model)
        if isinstance(model, Bert):
            return {name.removeprefix("bert."): tensor for name, tensor in state.items()}
        return state

    def names_of(self, model: nn.Module) -> dict[str, str]:
        """Give the names of a `Bert` and its head."""
        _, head = _head(model)
        prefix = "" if isinstance(model, Bert) else "bert."
        return {theirs: prefix + ours for theirs, ours in self.names.items()} | head

    def config_of(self, model: nn.Module) -> BertConfig:
        """Give the config of the `Bert` that a model is or has. Raises CheckpointError."""
        _head(model)
        return model.config if isinstance(model, Bert) else model.bert.config

    def tidy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Call tensors as today's files do, with the prefix of a model with a head."""
        kept = {n: tensor for n, tensor in state.items() if not n.endswith("position_ids")}
        return renamed(kept, _modern)

    def from_state(self, state: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
        """Turn their tensors into ours; for a bare `Bert` the file may have any head.

        Errors as `Family.from_state`.
        """
        tensors = self.tidy(state)
        if isinstance(model, Bert):
            tensors = {n: t for n, t in tensors.items() if not n.startswith(OTHER_HEADS)}
        return super().from_state(tensors, model)


def _head(model: nn.Module) -> tuple[str, dict[str, str]]:
    """Find the name of their class with a model's head, and the head's modules, theirs and ours."""
    for kind, head in HEADS.items():
        if isinstance(model, kind):
            return head
    known = ", ".join(kind.__name__ for kind in HEADS)
    raise CheckpointError(f"no names are known for {type(model).__name__}: there are {known}")


def _modern(name: str) -> str:
    """Say a tensor's name as today's files do, with the prefix of a model with a head."""
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
        if name.endswith(f"LayerNorm{old}"):
            name = name.removesuffix(old) + new
    bare = name.startswith(("embeddings.", "encoder.", "pooler."))
    return f"bert.{name}" if bare else name


family = _Bert()
from_config, to_config = family.from_config, family.to_config
from_state, to_state = family.from_state, family.to_state
load, save = family.load, family.save
