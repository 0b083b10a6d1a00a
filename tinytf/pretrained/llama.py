"""Llama weights to and from Hugging Face's format: config.json and model.safetensors.

Names differ, and the order of the rows of each head's query and key maps: RoPE turns neighbouring
numbers here (Su et al. 2021, equation 34), numbers half a head apart there. Nothing is unpickled.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tinytf.llama import Llama, LlamaConfig
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
from tinytf.relative import half_split_order
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save_folder", "to_config", "to_state"]

SIZES = {"vocab_size": "vocab_size", "d_model": "hidden_size", "num_heads": "num_attention_heads",
         "num_kv_heads": "num_key_value_heads", "num_layers": "num_hidden_layers",
         "d_ff": "intermediate_size", "max_len": "max_position_embeddings"}  # fmt: skip
# what a config may say that would need another model: its values that ours computes, usual first
FIXED = {
    "model_type": ("llama",),
    "hidden_act": ("silu", "swish"),
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "attention_dropout": (0.0, 0, None),
    "rope_scaling": (None,),
    "rope_interleaved": (False, None),
}
LAYER = {
    "input_layernorm": "residual_1.norm",
    "self_attn.v_proj": "self_attention.w_v",
    "self_attn.o_proj": "self_attention.w_o",
    "post_attention_layernorm": "residual_2.norm",
    "mlp.gate_proj": "feed_forward.w_1",
    "mlp.up_proj": "feed_forward.w_3",
    "mlp.down_proj": "feed_forward.w_2",
}
TURNED = {"self_attn.q_proj": "self_attention.w_q", "self_attn.k_proj": "self_attention.w_k"}
HEAD, TABLE = "lm_head.weight", "model.embed_tokens.weight"


def from_state(state: Mapping[str, Tensor], config: LlamaConfig) -> dict[str, Tensor]:
    """Turn Hugging Face's tensors into ours, by name.

    RoPE's frequencies, kept in old files, are passed over; where the output is tied, its matrix may
    be there if it is the embedding. Raises CheckpointError that names the tensors missing,
    unexpected, of another shape than `config` asks for, or not of floats.
    """
    tensors = {n: t for n, t in state.items() if not n.endswith("rotary_emb.inv_freq")}
    if config.tie_output and HEAD in tensors:
        head = tensors.pop(HEAD)
        if TABLE in tensors and not torch.equal(head, tensors[TABLE]):
            raise CheckpointError(
                f"the weights do not fit {_words(config)}: {HEAD} is not {TABLE}, "
                "but the output is tied to the embedding"
            )
    with torch.device("meta"):
        parameters = dict(Llama(config).named_parameters())
    return to_ours(_layout(config), tensors, parameters, _words(config))


def to_state(model: Llama) -> dict[str, Tensor]:
    """Copy our parameters into Hugging Face's tensors, by name; a tied output's matrix stays out.

    What `LlamaForCausalLM(config).load_state_dict(state, strict=False)` takes.
    """
    return to_theirs(_layout(model.config), dict(model.named_parameters()))


def from_config(config: Mapping[str, Any]) -> LlamaConfig:
    """Read the sizes from what Hugging Face's config.json says.

    RoPE's base is `rope_theta`, which may stand in `rope_parameters`. Raises CheckpointError for a
    size that is missing or no whole number, and for settings that need another model than `Llama`,
    such as scaled positions, by the setting's name.
    """
    check_settings(config, FIXED, "Llama")
    config = {"num_key_value_heads": config.get("num_attention_heads")} | dict(config)
    if config["num_key_value_heads"] is None:  # as files older than the setting mean it
        config["num_key_value_heads"] = config.get("num_attention_heads")
    rope = config.get("rope_parameters") or {}
    check_settings(rope, {"rope_type": ("default",), "type": ("default",)}, "Llama")
    sizes = read_sizes(config, SIZES)
    width = config.get("head_dim")
    if width is not None and width * sizes["num_heads"] != sizes["d_model"]:
        raise CheckpointError(
            f"the config says head_dim={width}, but Llama's heads share "
            f"hidden_size={sizes['d_model']} equally among {sizes['num_heads']}"
        )
    try:
        return LlamaConfig(
            **sizes,
            base=float(rope.get("rope_theta", config.get("rope_theta", 10000.0))),
            eps=float(config.get("rms_norm_eps", 1e-6)),
            tie_output=bool(config.get("tie_word_embeddings", False)),
        )
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the config can't be used: {error}") from error


def to_config(config: LlamaConfig) -> dict[str, Any]:
    """Say our sizes in the words of Hugging Face's config.json."""
    said = {name: values[0] for name, values in FIXED.items() if name != "rope_interleaved"}
    said |= {theirs: getattr(config, ours) for ours, theirs in SIZES.items()}
    return said | {
        "architectures": ["LlamaForCausalLM"],
        "head_dim": config.d_model // config.num_heads,
        "rope_theta": config.base,
        "rms_norm_eps": config.eps,
        "tie_word_embeddings": config.tie_output,
        "bos_token_id": None,  # a tokenizer's matter: no token here begins or ends a text
        "eos_token_id": None,
    }


def load(folder: str | Path) -> Llama:
    """Make a `Llama` of a folder with config.json and model.safetensors, whole or in shards.

    Returns it in float32, on the CPU, in evaluation mode. Raises CheckpointError that says what is
    missing or does not fit.
    """
    said, tensors = read_folder(folder)
    config = from_config(said)
    ours = from_state(tensors, config)
    with torch.device("meta"):  # nothing is drawn that would be overwritten
        model = Llama(config)
    return fill(model, ours)


def save_folder(model: Llama, folder: str | Path) -> None:
    """Write config.json and model.safetensors that Hugging Face's `from_pretrained` reads.

    Raises CheckpointError if they could not be written; a file is written whole or not at all.
    """
    write_folder(folder, to_config(model.config), to_state(model))


def _layout(config: LlamaConfig) -> list[Row]:
    """List all tensors, theirs and ours."""
    order = half_split_order(config.d_model // config.num_heads)
    split = functools.partial(_reorder, order=order)
    join = functools.partial(_reorder, order=order.argsort())
    rows = [Row(TABLE, ("embedding.weight",))]
    for i in range(config.num_layers):
        here, there = f"decoder.layers.{i}.", f"model.layers.{i}."
        for theirs, ours in LAYER.items():
            rows.append(Row(f"{there}{theirs}.weight", (f"{here}{ours}.weight",)))
        for theirs, ours in TURNED.items():
            rows.append(Row(f"{there}{theirs}.weight", (f"{here}{ours}.weight",), split, join))
    rows.append(Row("model.norm.weight", ("decoder.final_norm.weight",)))
    if not config.tie_output:
        rows.append(Row(HEAD, ("output.weight",)))
    return rows


def _reorder(weight: Tensor, order: Tensor) -> Tensor:
    """Reorder the rows of each head's map, (H D, C)."""
    heads = weight.unflatten(0, (-1, len(order)))  # (H D, C) -> (H, D, C)
    return heads[:, order.to(weight.device)].flatten(0, 1)


def _words(config: LlamaConfig) -> str:
    return ", ".join(f"{theirs}={getattr(config, ours)}" for ours, theirs in SIZES.items())
