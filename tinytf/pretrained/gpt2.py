"""GPT-2 weights to and from Hugging Face's format.

Three things differ there: linear maps are stored as (inputs, outputs), the transpose of
`nn.Linear`'s; queries, keys and values are one map, `c_attn`; and names are the released code's.
Source: Radford et al. 2019, its released code, as Hugging Face carries it on.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tinytf.gpt import GPT, PRESETS, GPTConfig
from tinytf.pretrained.download import download_model
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
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save_folder", "to_config", "to_state"]

SIZES = {"vocab_size": "vocab_size", "d_model": "n_embd", "num_heads": "n_head",
         "num_layers": "n_layer", "max_len": "n_positions"}  # fmt: skip
# what a config may say that would need another model: its values that ours computes, best first
FIXED = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),  # two names of the tanh form
    "layer_norm_epsilon": (1e-5,),
    "tie_word_embeddings": (True,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
}
LAYER = (
    ("ln_1", ("residual_1.norm",)),
    ("attn.c_attn", tuple(f"self_attention.w_{x}" for x in "qkv")),
    ("attn.c_proj", ("self_attention.w_o",)),
    ("ln_2", ("residual_2.norm",)),
    ("mlp.c_fc", ("feed_forward.w_1",)),
    ("mlp.c_proj", ("feed_forward.w_2",)),
)
MASKS = re.compile(r"h\.\d+\.attn\.(masked_)?bias")  # constants that old files hold besides weights
PREFIX, HEAD = "transformer.", "lm_head.weight"


def from_state(state: Mapping[str, Tensor], config: GPTConfig) -> dict[str, Tensor]:
    """Turn Hugging Face's tensors into ours, by name; they are views of the tensors given.

    Names may stand with or without their prefix "transformer."; masks kept in old files are passed
    over; the output's matrix may be there if it is the embedding. Raises CheckpointError that names
    the tensors missing, unexpected, of another shape than `config` asks for, or not of floats.
    """
    tensors = {name.removeprefix(PREFIX): tensor for name, tensor in state.items()}
    tensors = {name: tensor for name, tensor in tensors.items() if not MASKS.fullmatch(name)}
    head = tensors.pop(HEAD, None)
    with torch.device("meta"):
        parameters = dict(GPT(config).named_parameters())
    ours = to_ours(_layout(config.num_layers), tensors, parameters, _words(config))
    if head is not None and not torch.equal(head, tensors["wte.weight"]):
        raise CheckpointError(
            f"the weights do not fit {_words(config)}: {HEAD} is not wte.weight, but the output is "
            "tied to the embedding"
        )
    return ours


def to_state(model: GPT) -> dict[str, Tensor]:
    """Copy our parameters into Hugging Face's tensors, by name, without the tied output's matrix.

    What `GPT2LMHeadModel(config).load_state_dict(state, strict=False)` takes.
    """
    state = to_theirs(_layout(model.config.num_layers), dict(model.named_parameters()))
    return {PREFIX + name: tensor for name, tensor in state.items()}


def from_config(config: Mapping[str, Any]) -> GPTConfig:
    """Read the sizes from what Hugging Face's config.json says; dropout is its `resid_pdrop`.

    Raises CheckpointError for a size that is missing or no whole number, sizes that disagree, and
    settings that need another model than `GPT`.
    """
    check_settings(config, FIXED, "GPT")
    names = SIZES if config.get("n_inner") is None else SIZES | {"d_ff": "n_inner"}
    sizes = read_sizes(config, names)
    if config.get("n_ctx", sizes["max_len"]) != sizes["max_len"]:
        raise CheckpointError(
            f"the config contradicts itself: n_positions={sizes['max_len']} "
            f"and n_ctx={config['n_ctx']}"
        )
    try:
        return GPTConfig(**sizes, dropout=config.get("resid_pdrop", 0.1))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the config can't be used: {error}") from error


def to_config(config: GPTConfig) -> dict[str, Any]:
    """Say our sizes in the words of Hugging Face's config.json."""
    said = {name: values[0] for name, values in FIXED.items()}
    said |= {theirs: getattr(config, ours) for ours, theirs in SIZES.items()}
    end = 50256 if config.vocab_size == 50257 else None
    return said | {
        "architectures": ["GPT2LMHeadModel"],
        "n_inner": config.d_ff,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": 0.0,  # attention weights are never dropped here
        "bos_token_id": end,
        "eos_token_id": end,
    }


def load(source: str | Path) -> GPT:
    """Make a `GPT` of a folder with config.json and model.safetensors, or of a published name.

    The names are those of `GPTConfig.preset`; their files are downloaded once and checked
    (`tinytf.pretrained.download`). Returns the model in float32, on the CPU, in evaluation mode.
    Raises CheckpointError that says what is missing or does not fit, and what to do without a
    network.
    """
    folder = Path(source)
    if not folder.is_dir():
        if str(source) not in PRESETS:
            raise CheckpointError(
                f"there is no folder {str(source)!r}, and the published weights are called "
                f"{', '.join(PRESETS)}"
            )
        folder = download_model(str(source))
    said, state = read_folder(folder)
    config = from_config(said)
    tensors = from_state(state, config)
    with torch.device("meta"):  # nothing is drawn that would be overwritten
        model = GPT(config)
    return fill(model, tensors)


def save_folder(model: GPT, folder: str | Path) -> None:
    """Write config.json and model.safetensors that Hugging Face's `from_pretrained` reads.

    Raises CheckpointError if they could not be written; a file is written whole or not at all.
    """
    write_folder(folder, to_config(model.config), to_state(model))


def _layout(num_layers: int) -> list[Row]:
    """List all tensors, theirs and ours."""
    rows = [Row("wte.weight", ("embedding.weight",))]
    rows.append(Row("wpe.weight", ("positions.table",)))
    for i in range(num_layers):
        for theirs, ours in LAYER:
            for kind in ("weight", "bias"):
                names = tuple(f"decoder.layers.{i}.{name}.{kind}" for name in ours)
                turn = (torch.t, torch.t) if kind == "weight" and "ln_" not in theirs else ()
                rows.append(Row(f"h.{i}.{theirs}.{kind}", names, *turn))
    rows += [Row(f"ln_f.{x}", (f"decoder.final_norm.{x}",)) for x in ("weight", "bias")]
    return rows


def _words(config: GPTConfig) -> str:
    return ", ".join(f"{theirs}={getattr(config, ours)}" for ours, theirs in SIZES.items())
