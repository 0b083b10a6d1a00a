"""GPT-2 weights to and from Hugging Face's format: config.json and model.safetensors.

Three things differ there: linear maps are stored as (inputs, outputs), the transpose of
`nn.Linear`'s; queries, keys and values are one map, `c_attn`; and names are the released code's.
Nothing is unpickled. Source: Radford et al. 2019, its released code, as Hugging Face carries it on.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from tinytf.download import download_model
from tinytf.files import CheckpointError, read_json, write_atomically
from tinytf.gpt import GPT, PRESETS, GPTConfig

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


class _Row(NamedTuple):
    """One of their tensors, and ours that stand one below the other in it."""

    theirs: str
    ours: tuple[str, ...]
    transposed: bool


def from_state(state: Mapping[str, Tensor], config: GPTConfig) -> dict[str, Tensor]:
    """Turn Hugging Face's tensors into ours, by name; they are views of the tensors given.

    Names may stand with or without their prefix "transformer."; masks kept in old files are passed
    over; the output's matrix may be there if it is the embedding. Raises CheckpointError that names
    the tensors missing, unexpected, of another shape than `config` asks for, or not of floats.
    """
    tensors = {name.removeprefix(PREFIX): tensor for name, tensor in state.items()}
    tensors = {name: tensor for name, tensor in tensors.items() if not MASKS.fullmatch(name)}
    head = tensors.pop(HEAD, None)
    shapes = _shapes(config)
    faults = []
    if missing := [name for name in shapes if name not in tensors]:
        faults.append(f"missing {_some(missing)}")
    if extra := [name for name in tensors if name not in shapes]:
        faults.append(f"unexpected {_some(extra)}")
    for name in shapes.keys() & tensors.keys():
        if tuple(tensors[name].shape) != shapes[name]:
            faults.append(
                f"{name} has shape {tuple(tensors[name].shape)}, the config asks for {shapes[name]}"
            )
        elif not tensors[name].is_floating_point():
            faults.append(f"{name} holds {tensors[name].dtype}, not floats")
    if head is not None and not faults and not torch.equal(head, tensors["wte.weight"]):
        faults.append(f"{HEAD} is not wte.weight, but the output is tied to the embedding")
    if faults:
        raise CheckpointError(f"the weights do not fit {_words(config)}: {'; '.join(faults)}")
    ours = {}
    for row in _layout(config.num_layers):
        tensor = tensors[row.theirs].t() if row.transposed else tensors[row.theirs]
        ours |= zip(row.ours, tensor.chunk(len(row.ours)), strict=True)
    return ours


def to_state(model: GPT) -> dict[str, Tensor]:
    """Copy our parameters into Hugging Face's tensors, by name, without the tied output's matrix.

    What `GPT2LMHeadModel(config).load_state_dict(state, strict=False)` takes.
    """
    ours = dict(model.named_parameters())
    state = {}
    for row in _layout(model.config.num_layers):
        tensor = torch.cat([ours[name].detach() for name in row.ours])
        state[PREFIX + row.theirs] = (tensor.t() if row.transposed else tensor).contiguous()
    return state


def from_config(config: Mapping[str, Any]) -> GPTConfig:
    """Read the sizes from what Hugging Face's config.json says; dropout is its `resid_pdrop`.

    Raises CheckpointError for a size that is missing or no whole number, sizes that disagree, and
    settings that need another model than `GPT`.
    """
    if not isinstance(config, Mapping):
        raise CheckpointError(f"the config must name sizes and settings, got {config!r:.60}")
    for name, good in FIXED.items():
        if config.get(name, good[0]) not in good:
            raise CheckpointError(
                f"the config says {name}={config[name]!r}, but GPT computes {name}={good[0]!r} only"
            )
    sizes = {}
    for ours, theirs in (*SIZES.items(), ("d_ff", "n_inner")):
        value = config.get(theirs)
        if ours == "d_ff" and value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise CheckpointError(f"the config must give {theirs} a whole number, got {value!r}")
        sizes[ours] = value
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
    (`tinytf.download`). Returns the model in float32, on the CPU, in evaluation mode. Raises
    CheckpointError that says what is missing or does not fit, and what to do without a network.
    """
    folder = Path(source)
    if not folder.is_dir():
        if str(source) not in PRESETS:
            raise CheckpointError(
                f"there is no folder {str(source)!r}, and the published weights are called "
                f"{', '.join(PRESETS)}"
            )
        folder = download_model(str(source))
    config = from_config(read_json(folder / "config.json"))
    tensors = from_state(_read(folder), config)
    with torch.device("meta"):  # nothing is drawn that would be overwritten
        model = GPT(config)
    copies = {
        name: t.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
        for name, t in tensors.items()
    }
    model.load_state_dict(copies, strict=False, assign=True)
    model.tie()
    return model.eval()


def save_folder(model: GPT, folder: str | Path) -> None:
    """Write config.json and model.safetensors that Hugging Face's `from_pretrained` reads.

    Raises CheckpointError if they could not be written; a file is written whole or not at all.
    """
    folder = Path(folder)
    state = {name: tensor.cpu() for name, tensor in to_state(model).items()}
    write_atomically(folder / "model.safetensors", save(state, metadata={"format": "pt"}))
    text = json.dumps(to_config(model.config), indent=2) + "\n"
    write_atomically(folder / "config.json", text.encode())


def _layout(num_layers: int) -> list[_Row]:
    """List all tensors, theirs and ours."""
    rows = [_Row("wte.weight", ("embedding.weight",), False)]
    rows.append(_Row("wpe.weight", ("positions.table",), False))
    for i in range(num_layers):
        for theirs, ours in LAYER:
            for kind in ("weight", "bias"):
                names = tuple(f"decoder.layers.{i}.{name}.{kind}" for name in ours)
                matrix = kind == "weight" and "ln_" not in theirs
                rows.append(_Row(f"h.{i}.{theirs}.{kind}", names, matrix))
    rows += [_Row(f"ln_f.{x}", (f"decoder.final_norm.{x}",), False) for x in ("weight", "bias")]
    return rows


def _shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Say what shape each of their tensors must have: that of ours, put together."""
    with torch.device("meta"):
        state = to_state(GPT(config))
    return {name.removeprefix(PREFIX): tuple(tensor.shape) for name, tensor in state.items()}


def _read(folder: Path) -> dict[str, Tensor]:
    path = folder / "model.safetensors"
    if not path.is_file():
        pickle = " (pytorch_model.bin is a pickle, which could run code, and is not opened)"
        there = pickle if (folder / "pytorch_model.bin").exists() else ""
        raise CheckpointError(f"there is no model.safetensors in {folder}{there}")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or not a safetensors file: "
            f"{error}"
        ) from error


def _words(config: GPTConfig) -> str:
    return ", ".join(f"{theirs}={getattr(config, ours)}" for ours, theirs in SIZES.items())


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
