"""BERT weights to and from Hugging Face's format: config.json and model.safetensors.

Only names differ: linear maps are stored as ours are. Older files call a norm's gain and shift
gamma and beta, and hold the tied output twice; both are read. Source: Devlin et al. 2019, its
released code, as Hugging Face carries it on.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tinytf.bert import Bert, BertConfig
from tinytf.pretrained.huggingface import (
    Row,
    check_settings,
    fill,
    read_folder,
    read_sizes,
    to_ours,
    to_theirs,
    write_folder,
)
from tinytf.related.bert_heads import (
    BertForPretraining,
    SentenceClassifier,
    SpanFinder,
    TokenTagger,
)
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save_folder", "to_config", "to_state"]

Model = TypeVar("Model", bound=nn.Module)

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


def from_state(state: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Turn Hugging Face's tensors into those of `model`, by name; they may be views.

    `model`, a `Bert` or one with a head, says which tensors are asked for and of what shapes (it
    may be on the meta device). For a `Bert`, heads in the file are passed over. Raises
    CheckpointError that names the tensors missing, unexpected, misshapen or not of floats.
    """
    rows = _rows(model)
    tensors = {_modern(name): t for name, t in state.items() if not name.endswith("position_ids")}
    tied = {name: tensors.pop(name) for name in list(tensors) if name.startswith(DECODER)}
    if isinstance(model, Bert):
        tensors = {n: t for n, t in tensors.items() if not n.startswith(OTHER_HEADS)}
    ours = to_ours(rows, tensors, dict(model.named_parameters()), _words(_config(model)))
    twins = {f"{DECODER}weight": "bert.embeddings.word_embeddings.weight",
             f"{DECODER}bias": "cls.predictions.bias"}  # fmt: skip
    for name, tensor in tied.items():
        twin = twins.get(name)
        if twin in tensors and not torch.equal(tensor, tensors[twin]):
            raise CheckpointError(f"{name} is not {twin}, but the output is tied to it")
    return ours


def to_state(model: nn.Module) -> dict[str, Tensor]:
    """Copy our parameters into Hugging Face's tensors, by name, without the tied output's matrix.

    The names are those of their class with the same head; a bare `Bert` has the names of their
    `BertModel`, and no pooler.
    """
    state = to_theirs(_rows(model), dict(model.named_parameters()))
    if isinstance(model, Bert):
        return {name.removeprefix("bert."): tensor for name, tensor in state.items()}
    return state


def from_config(config: Mapping[str, Any]) -> BertConfig:
    """Read the sizes from what Hugging Face's config.json says.

    Dropout is its `hidden_dropout_prob`. Raises CheckpointError for a size that is missing or no
    whole number, sizes that disagree, and settings that need another model than `Bert`.
    """
    check_settings(config, FIXED, "Bert")
    sizes = read_sizes(config, SIZES)
    pad_id = config.get("pad_token_id", 0)
    try:
        dropout = config.get("hidden_dropout_prob", 0.1)
        return BertConfig(**sizes, dropout=dropout, pad_id=0 if pad_id is None else pad_id)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the config can't be used: {error}") from error


def to_config(model: nn.Module) -> dict[str, Any]:
    """Say our sizes, and which head there is, in the words of Hugging Face's config.json."""
    config = _config(model)
    said = {name: values[0] for name, values in FIXED.items()}
    said |= {theirs: getattr(config, ours) for ours, theirs in SIZES.items()}
    if isinstance(model, SentenceClassifier | TokenTagger):
        said["id2label"] = {str(i): f"LABEL_{i}" for i in range(model.output.out_features)}
        said["label2id"] = {label: int(i) for i, label in said["id2label"].items()}
    return said | {
        "architectures": [HEADS[type(model)][0]],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,  # attention weights are never dropped here
        "pad_token_id": config.pad_id,
    }


def load(folder: str | Path, make: Callable[[BertConfig], Model] = BertForPretraining) -> Model:
    """Make a model of a folder with config.json and model.safetensors.

    `make` builds it from the sizes: `Bert`, `BertForPretraining`, or a function that puts another
    head on, such as `lambda config: TokenTagger(Bert(config), 5)`. Returns the model in float32, on
    the CPU, in evaluation mode. Raises CheckpointError that says what is missing or does not fit.
    """
    said, tensors = read_folder(folder)
    with torch.device("meta"):  # nothing is drawn that would be overwritten
        model = make(from_config(said))
    return fill(model, from_state(tensors, model))


def save_folder(model: nn.Module, folder: str | Path) -> None:
    """Write config.json and model.safetensors that Hugging Face's `from_pretrained` reads.

    Raises CheckpointError if they could not be written; a file is written whole or not at all.
    """
    write_folder(folder, to_config(model), to_state(model))


def _rows(model: nn.Module) -> list[Row]:
    """List all tensors, theirs (as in a model with a head) and ours."""
    if type(model) not in HEADS:
        known = ", ".join(kind.__name__ for kind in HEADS)
        raise CheckpointError(f"no names are known for {type(model).__name__}: there are {known}")
    prefix = "" if isinstance(model, Bert) else "bert."
    tables = {"word": "embedding.weight", "position": "positions.table",
              "token_type": "segments.weight"}  # fmt: skip
    rows = [
        Row(f"bert.embeddings.{theirs}_embeddings.weight", (prefix + ours,))
        for theirs, ours in tables.items()
    ]
    modules = {"bert.embeddings.LayerNorm": f"{prefix}norm"}
    for i in range(_config(model).num_layers):
        for theirs, ours in LAYER.items():
            modules[f"bert.encoder.layer.{i}.{theirs}"] = f"{prefix}encoder.layers.{i}.{ours}"
    modules |= HEADS[type(model)][1]
    for theirs, ours in modules.items():
        rows += [Row(f"{theirs}.{kind}", (f"{ours}.{kind}",)) for kind in ("weight", "bias")]
    if isinstance(model, BertForPretraining):
        rows.append(Row("cls.predictions.bias", ("words.output.bias",)))
    return rows


def _config(model: nn.Module) -> BertConfig:
    return model.config if isinstance(model, Bert) else model.bert.config


def _modern(name: str) -> str:
    """Say a tensor's name as today's files do, with the prefix of a model with a head."""
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
        if name.endswith(f"LayerNorm{old}"):
            name = name.removesuffix(old) + new
    bare = name.startswith(("embeddings.", "encoder.", "pooler."))
    return f"bert.{name}" if bare else name


def _words(config: BertConfig) -> str:
    return ", ".join(f"{theirs}={getattr(config, ours)}" for ours, theirs in SIZES.items())
