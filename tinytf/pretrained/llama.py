"""Llama weights to and from Hugging Face's format: config.json and model.safetensors.

Names differ, and the order of the rows of each head's query and key maps: RoPE turns neighbouring
numbers here (Su et al. 2021, equation 34), numbers half a head apart there.
"""

import functools
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from tinytf.llama import Llama, LlamaConfig
from tinytf.pretrained.huggingface import Family, check_settings, read_number, read_sizes
from tinytf.pretrained.rows import Row
from tinytf.relative import half_split_order
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save", "to_config", "to_state"]

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


class _Llama(Family):
    build, sizes = Llama, SIZES

    def from_config(self, config: Mapping[str, Any]) -> LlamaConfig:
        """Read the sizes. RoPE's base is `rope_theta`, which may stand in `rope_parameters`.

        Errors as `Family.from_config`: scaled positions are one, by the setting's name.
        """
        check_settings(config, FIXED, "Llama")
        config = dict(config)
        if config.get("num_key_value_heads") is None:  # as files older than the setting mean it
            config["num_key_value_heads"] = config.get("num_attention_heads")
        rope = config.get("rope_parameters") or {}
        check_settings(rope, {"rope_type": ("default",), "type": ("default",)}, "Llama")
        sizes = read_sizes(config, SIZES)
        width = config.get("head_dim")
        if width is not None and (
            type(width) is not int or width * sizes["num_heads"] != sizes["d_model"]
        ):
            raise CheckpointError(
                f"the config says head_dim={width!r:.60}, but Llama's heads share "
                f"hidden_size={sizes['d_model']} equally among {sizes['num_heads']}"
            )
        tied = config.get("tie_word_embeddings", False)
        if not isinstance(tied, bool):
            raise CheckpointError(
                f"the config must say tie_word_embeddings true or false, got {tied!r:.60}"
            )
        base = read_number(rope, "rope_theta", read_number(config, "rope_theta", 10000.0))
        eps = read_number(config, "rms_norm_eps", 1e-6)
        try:
            return LlamaConfig(**sizes, base=base, eps=eps, tie_output=tied)
        except ValueError as error:
            raise CheckpointError(f"the config can't be used: {error}") from error

    def to_config(self, model: Llama) -> dict[str, Any]:
        """Say the sizes in the words of Hugging Face's config.json."""
        config = model.config
        said = {name: values[0] for name, values in FIXED.items() if name != "rope_interleaved"}
        return (
            said
            | self.say_sizes(config)
            | {
                "architectures": ["LlamaForCausalLM"],
                "head_dim": config.d_model // config.num_heads,
                "rope_theta": config.base,
                "rms_norm_eps": config.eps,
                "tie_word_embeddings": config.tie_output,
                "bos_token_id": None,  # a tokenizer's matter: no token here begins or ends a text
                "eos_token_id": None,
            }
        )

    def rows(self, config: LlamaConfig) -> list[Row]:
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
                names = (f"{here}{ours}.weight",)
                rows.append(Row(f"{there}{theirs}.weight", names, split, join))
        rows.append(Row("model.norm.weight", ("decoder.final_norm.weight",)))
        if not config.tie_output:
            rows.append(Row(HEAD, ("output.weight",)))
        return rows

    def tidy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Leave out RoPE's frequencies, which old files hold."""
        return {n: t for n, t in state.items() if not n.endswith("rotary_emb.inv_freq")}

    def twins(self, model: Llama) -> dict[str, str]:
        """A tied output's matrix is the embedding."""
        return {HEAD: TABLE} if model.config.tie_output else {}


def _reorder(weight: Tensor, order: Tensor) -> Tensor:
    """Reorder the rows of each head's map, (H D, C)."""
    heads = weight.unflatten(0, (-1, len(order)))  # (H D, C) -> (H, D, C)
    return heads[:, order.to(weight.device)].flatten(0, 1)


family = _Llama()
from_config, to_config = family.from_config, family.to_config
from_state, to_state = family.from_state, family.to_state
load, save = family.load, family.save
