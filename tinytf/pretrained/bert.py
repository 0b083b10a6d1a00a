"""BERT weights to and from Hugging Face's format: config.json and model.safetensors.

Only names differ: linear maps are stored as ours are. Older files call a norm's gain and shift
gamma and beta, and hold the tied output twice; both are read. Source: Devlin et al. 2019, its
released code, as Hugging Face carries it on.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from tinytf.bert import Bert, BertConfig
from tinytf.pretrained.huggingface import (
    Family,
    check_settings,
    read_number,
    read_sizes,
    renamed,
)
from tinytf.pretrained.rows import Row
from tinytf.related.bert_heads import (
    BertForPretraining,
    SentenceClassifier,
    SpanFinder,
    TokenTagger,
)
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save", "to_config", "to_state"]

SIZES = {"vocab_size": "vocab_size", "d_model": "hidden_size", "num_heads": "num_attention_heads",
         "num_layers": "num_hidden_layers", "d_ff": "intermediate_size",
         "max_len": "max_position_embeddings", "num_segments": "type_vocab_size"}  # fmt: skip
FIXED = {  # what a config may say that would need another model
    "model_type": ("bert",),
    "hidden_act": ("gelu",),
    "layer_norm_eps": (1e-12,),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
}
TABLES = {
    "word": "embedding.weight",
    "position": "positions.table",
    "token_type": "segments.weight",
}
LAYER = {
    "attention.self.query": "self_attention.w_q",
    "attention.self.key": "self_attention.w_k",
    "attention.self.value": "self_attention.w_v",
    "attention.output.dense": "self_attention.w_o",
    "attention.output.LayerNorm": "residual_1.norm",
    "intermediate.dense": "feed_forward.w_1",
    "output.dense": "feed_forward.w_2",
    "output.LayerNorm": "residual_2.norm",
}
POOLER = "bert.pooler.dense"
HEADS: dict[type, tuple[str, dict[str, str]]] = {  # their class, their modules and ours
    Bert: ("BertModel", {}),
    BertForPretraining: (
        "BertForPreTraining",
        {
            "cls.predictions.transform.dense": "words.dense",
            "cls.predictions.transform.LayerNorm": "words.norm",
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
DECODER = "cls.predictions.decoder."  # the tied output's second name


class _Bert(Family):
    """`Bert` and those with a head: `load(folder, lambda c: TokenTagger(Bert(c), 5))`."""

    build, sizes = BertForPretraining, SIZES

    def from_config(self, config: Mapping[str, Any]) -> BertConfig:
        """Read the sizes; dropout is their `hidden_dropout_prob`. Errors as `Family`'s."""
        check_settings(config, FIXED, "Bert")
        config = dict(config)
        if config.get("pad_token_id") is None:
            config["pad_token_id"] = 0
        sizes = read_sizes(config, SIZES | {"pad_id": "pad_token_id"})
        try:
            return BertConfig(**sizes, dropout=read_number(config, "hidden_dropout_prob", 0.1))
        except ValueError as error:
            raise CheckpointError(f"the config can't be used: {error}") from error

    def to_config(self, model: nn.Module) -> dict[str, Any]:
        """Say the sizes, and which head there is, in the words of Hugging Face's config.json."""
        config = self.config_of(model)
        said = {name: values[0] for name, values in FIXED.items()} | self.say_sizes(config)
        if isinstance(model, SentenceClassifier | TokenTagger):
            said["id2label"] = {str(i): f"LABEL_{i}" for i in range(model.output.out_features)}
            said["label2id"] = {label: int(i) for i, label in said["id2label"].items()}
        return said | {
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

    def rows(self, config: BertConfig) -> list[Row]:
        """List the tensors of a bare `Bert`, theirs as in a model with a head."""
        rows = [Row(f"bert.embeddings.{theirs}_embeddings.weight", (ours,))
                for theirs, ours in TABLES.items()]  # fmt: skip
        modules = {"bert.embeddings.LayerNorm": "norm"}
        for i in range(config.num_layers):
            for theirs, ours in LAYER.items():
                modules[f"bert.encoder.layer.{i}.{theirs}"] = f"encoder.layers.{i}.{ours}"
        return rows + _module_rows(modules)

    def rows_of(self, model: nn.Module) -> list[Row]:
        """List the tensors of a `Bert` and its head."""
        _, head = _head(model)
        rows = self.rows(self.config_of(model))
        if not isinstance(model, Bert):
            rows = [Row(row.theirs, tuple(f"bert.{name}" for name in row.ours)) for row in rows]
        rows += _module_rows(head)
        if isinstance(model, BertForPretraining):
            rows.append(Row("cls.predictions.bias", ("words.output.bias",)))
        return rows

    def config_of(self, model: nn.Module) -> BertConfig:
        """Give the config of the `Bert` that a model is or has. Raises CheckpointError."""
        _head(model)
        return model.config if isinstance(model, Bert) else model.bert.config

    def tidy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Call tensors as today's files do, with the prefix of a model with a head."""
        kept = {n: tensor for n, tensor in state.items() if not n.endswith("position_ids")}
        return renamed(kept, _modern)

    def passed_over(self, model: nn.Module) -> tuple[str, ...]:
        """For a bare `Bert` the file may have any head."""
        return OTHER_HEADS if isinstance(model, Bert) else ()

    def twins(self, model: nn.Module) -> dict[str, str]:
        """The output of words is the table of words; its bias has two names."""
        table = {f"{DECODER}weight": "bert.embeddings.word_embeddings.weight"}
        bias = {f"{DECODER}bias": "cls.predictions.bias"}
        return table | bias if isinstance(model, BertForPretraining) else table


def _head(model: nn.Module) -> tuple[str, dict[str, str]]:
    """Find the name of their class with a model's head, and the head's modules, theirs and ours."""
    for kind, head in HEADS.items():
        if isinstance(model, kind):
            return head
    known = ", ".join(kind.__name__ for kind in HEADS)
    raise CheckpointError(f"no names are known for {type(model).__name__}: there are {known}")


def _module_rows(modules: Mapping[str, str]) -> list[Row]:
    return [Row(f"{theirs}.{kind}", (f"{ours}.{kind}",))
            for theirs, ours in modules.items() for kind in ("weight", "bias")]  # fmt: skip


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
