"""Marian weights to and from Hugging Face's format: config.json and model.safetensors.

Nothing is turned but the order of the words (`MarianConfig`); names are the released code's. The
public models come as pickles. `transformers` makes a folder for us out of one: its
`MarianMTModel.from_pretrained(name).save_pretrained(folder)`, and `MarianTokenizer` likewise.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

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
from tinytf.related.marian import Marian, MarianConfig, half_and_half
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save_folder", "to_config", "to_state"]

SIZES = {"d_model": "d_model", "num_heads": "encoder_attention_heads",
         "num_layers": "encoder_layers", "d_ff": "encoder_ffn_dim",
         "max_len": "max_position_embeddings"}  # fmt: skip
# what a config may say that would need another model: its values that ours computes, best first
FIXED = {
    "model_type": ("marian",),
    "scale_embedding": (True,),
    "share_encoder_decoder_embeddings": (True,),
    "tie_word_embeddings": (True,),
    "static_position_embeddings": (True,),  # this and the next three: older files only
    "normalize_embedding": (False,),
    "normalize_before": (False,),
    "add_final_layer_norm": (False,),
}
# what a config means that does not say them
UNSAID = {"scale_embedding": False, "activation_function": "gelu", "decoder_attention_heads": 16,
          "decoder_layers": 12, "decoder_ffn_dim": 4096}  # fmt: skip
ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
TABLE, BIAS = "model.shared.weight", "final_logits_bias"
TIED = ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
POSITIONS = tuple(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))
ATTENTION = {"q_proj": "w_q", "k_proj": "w_k", "v_proj": "w_v", "out_proj": "w_o"}
SELF = {f"self_attn.{theirs}": f"self_attention.{ours}" for theirs, ours in ATTENTION.items()}
CROSS = {f"encoder_attn.{theirs}": f"cross_attention.{ours}" for theirs, ours in ATTENTION.items()}
FFN = {"fc1": "feed_forward.w_1", "fc2": "feed_forward.w_2"}
LAYERS = {
    "encoder": SELF | FFN | {"self_attn_layer_norm": "residual_1.norm",
                             "final_layer_norm": "residual_2.norm"},
    "decoder": SELF | CROSS | FFN | {"self_attn_layer_norm": "residual_1.norm",
                                     "encoder_attn_layer_norm": "residual_2.norm",
                                     "final_layer_norm": "residual_3.norm"},
}  # fmt: skip


def from_config(config: Mapping[str, Any]) -> MarianConfig:
    """Read the sizes from what Hugging Face's config.json says.

    Raises CheckpointError for a size that is missing or no whole number, sizes that disagree, and
    settings that need another model than `Marian`.
    """
    if isinstance(config, Mapping):
        config = UNSAID | dict(config)
    check_settings(config, FIXED, "Marian")
    sizes = read_sizes(config, SIZES)
    ids = read_sizes(config, {"size": "vocab_size", "pad": "pad_token_id", "eos": "eos_token_id"})
    same = {theirs: theirs.replace("encoder", "decoder") for theirs in SIZES.values()}
    same |= {"pad_token_id": "decoder_start_token_id", "vocab_size": "decoder_vocab_size"}
    for one, other in same.items():
        if config.get(other) not in (None, config[one]):
            raise CheckpointError(
                f"the config says {one}={config[one]} and {other}={config[other]}, "
                "but Marian has one number for both"
            )
    activation = config["activation_function"]
    if activation not in ACTIVATIONS:
        raise CheckpointError(
            f"the config says activation_function={activation!r}, which is none of "
            f"{', '.join(ACTIVATIONS)}"
        )
    try:
        return MarianConfig(
            ids["size"] + 1,
            ids["size"] + 1,
            **sizes,
            dropout=config.get("dropout", 0.1),
            activation=ACTIVATIONS[activation],
            their_pad_id=ids["pad"],
            their_eos_id=ids["eos"],
        )
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the config can't be used: {error}") from error


def to_config(config: MarianConfig) -> dict[str, Any]:
    """Say our sizes in the words of Hugging Face's config.json."""
    said = {name: values[0] for name, values in FIXED.items()}
    for ours, theirs in SIZES.items():
        said[theirs] = said[theirs.replace("encoder", "decoder")] = getattr(config, ours)
    size, pad, eos = config.src_vocab_size - 1, config.their_pad_id, config.their_eos_id
    return said | {
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "num_hidden_layers": config.num_layers,
        "activation_function": "swish" if config.activation == "silu" else config.activation,
        "dropout": config.dropout,
        "attention_dropout": 0.0,  # attention weights are never dropped here, nor is d_ff
        "activation_dropout": 0.0,
        "vocab_size": size,
        "decoder_vocab_size": size,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": eos,
        "forced_eos_token_id": eos,
    }


def from_state(state: Mapping[str, Tensor], config: MarianConfig) -> dict[str, Tensor]:
    """Turn Hugging Face's tensors into ours, by name.

    The table may stand under any of the names it is tied to, or all; the bias may be missing, which
    means zeros; positions may be there if they are the ones we compute. Raises CheckpointError that
    names what does not fit, as `huggingface.to_ours`.
    """
    tensors = dict(state)
    tied = {name: tensors.pop(name) for name in TIED if name in tensors}
    if tied:
        tensors.setdefault(TABLE, next(iter(tied.values())))
    tensors.setdefault(BIAS, torch.zeros(1, config.tgt_vocab_size - 1))
    stored = {name: tensors.pop(name) for name in POSITIONS if name in tensors}
    with torch.device("meta"):
        parameters = dict(Marian(config).named_parameters())
    ours = to_ours(_rows(config), tensors, parameters, _words(config))
    for name, tensor in tied.items():
        if not torch.equal(tensor, tensors[TABLE]):
            raise CheckpointError(f"{name} is not {TABLE}, but Marian has one table")
    table = half_and_half(config.max_len, config.d_model)
    for name, tensor in stored.items():
        if tensor.shape != table.shape or (tensor.cpu() - table).abs().max() > 1e-2:  # half floats
            raise CheckpointError(f"{name} does not hold sines and then cosines, as Marian has it")
    return ours


def to_state(model: Marian) -> dict[str, Tensor]:
    """Copy our parameters into Hugging Face's tensors, by name, each tied one once.

    What `MarianMTModel(config).load_state_dict(state, strict=False)` takes, after `tie_weights`.
    """
    return to_theirs(_rows(model.config), dict(model.named_parameters()))


def load(folder: str | Path) -> Marian:
    """Make a `Marian` of a folder with config.json and model.safetensors.

    Returns the model in float32, on the CPU, in evaluation mode. Raises CheckpointError that says
    what is missing or does not fit.
    """
    said, tensors = read_folder(folder)
    config = from_config(said)
    ours = from_state(tensors, config)
    with torch.device("meta"):  # nothing is drawn that would be overwritten
        model = Marian(config)
    model.positions.table = half_and_half(config.max_len, config.d_model)  # computed, not stored
    return fill(model, ours)


def save_folder(model: Marian, folder: str | Path) -> None:
    """Write config.json and model.safetensors that Hugging Face's `from_pretrained` reads.

    Raises CheckpointError if they could not be written; a file is written whole or not at all.
    """
    write_folder(folder, to_config(model.config), to_state(model))


def _rows(config: MarianConfig) -> list[Row]:
    """List all tensors, theirs and ours."""
    order, places = config.order, config.places

    def back(tensor: Tensor) -> Tensor:
        return tensor[order.to(tensor.device)]

    def forth(tensor: Tensor) -> Tensor:
        return tensor[places.to(tensor.device)]

    rows = [
        Row(TABLE, ("src_embedding.weight",), forth, back),
        Row(BIAS, ("output.bias",), lambda t: forth(t)[None], lambda t: back(t[0])),
    ]
    for side, names in LAYERS.items():
        for i in range(config.num_layers):
            for theirs, ours in names.items():
                for kind in ("weight", "bias"):
                    their_name = f"model.{side}.layers.{i}.{theirs}.{kind}"
                    rows.append(Row(their_name, (f"{side}.layers.{i}.{ours}.{kind}",)))
    return rows


def _words(config: MarianConfig) -> str:
    sizes = {"vocab_size": config.src_vocab_size - 1}
    sizes |= {theirs: getattr(config, ours) for ours, theirs in SIZES.items()}
    return ", ".join(f"{name}={value}" for name, value in sizes.items())
