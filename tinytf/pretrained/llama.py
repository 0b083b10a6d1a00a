"""Llama weights to and from Hugging Face's format: config.json and model.safetensors.

Names differ, and the order of the rows of each head's query and key maps: RoPE turns neighbouring
numbers here (Su et al. 2021, equation 34), numbers half a head apart there.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from tinytf.llama import Llama, LlamaConfig
from tinytf.pretrained.huggingface import Family, check_settings, layers, read_number
from tinytf.relative import half_split_order
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save", "to_config", "to_state"]

HEAD, TABLE = "lm_head.weight", "model.embed_tokens.weight"
SIZES = {"vocab_size": "vocab_size", "d_model": "hidden_size",
         "num_heads": "num_attention_heads", "num_kv_heads": "num_key_value_heads",
         "num_layers": "num_hidden_layers", "d_ff": "intermediate_size",
         "max_len": "max_position_embeddings"}  # fmt: skip
FIXED = {
    "model_type": ("llama",),
    "hidden_act": ("silu", "swish"),
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "attention_dropout": (0.0, 0, None),
    "rope_scaling": (None,),
}
NAMES = {
    "model.embed_tokens": "embedding",
    **layers("model.layers", "decoder.layers", {
        "input_layernorm": "residual_1.norm",
        "self_attn.q_proj": "self_attention.w_q",
        "self_attn.k_proj": "self_attention.w_k",
        "self_attn.v_proj": "self_attention.w_v",
        "self_attn.o_proj": "self_attention.w_o",
        "post_attention_layernorm": "residual_2.norm",
        "mlp.gate_proj": "feed_forward.w_1",
        "mlp.up_proj": "feed_forward.w_3",
        "mlp.down_proj": "feed_forward.w_2",
    }),
    "model.norm": "decoder.final_norm",
    "lm_head": "output",
}  # fmt: skip


class _Llama(Family):
    build, config, name = Llama, LlamaConfig, "Llama"
    sizes, fixed, names, twins = SIZES, FIXED, NAMES, {HEAD: TABLE}

    def from_config(self, config: Mapping[str, Any]) -> LlamaConfig:
        """Read our config, also of files that are older than the setting of key heads."""
        if isinstance(config, Mapping) and config.get("num_key_value_heads") is None:
            config = dict(config) | {"num_key_value_heads": config.get("num_attention_heads")}
        return super().from_config(config)

    def read(self, config: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
        """Read RoPE's base, `rope_theta`, which may stand in `rope_parameters`, and the rest.

        Scaled and interleaved positions are refused by the setting's name.
        """
        rope = config.get("rope_parameters") or {}
        check_settings(rope, {"rope_type": ("default",), "type": ("default",)}, self.name)
        check_settings(config, {"rope_interleaved": (False, None)}, self.name)
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
        return {
            "base": read_number(rope, "rope_theta", read_number(config, "rope_theta", 10000.0)),
            "eps": read_number(config, "rms_norm_eps", 1e-6),
            "tie_output": tied,
        }

    def say(self, model: Llama) -> dict[str, Any]:
        """Say the rest."""
        config = model.config
        return {
            "architectures": ["LlamaForCausalLM"],
            "head_dim": config.d_model // config.num_heads,
            "rope_theta": config.base,
            "rms_norm_eps": config.eps,
            "tie_word_embeddings": config.tie_output,
            "bos_token_id": None,  # a tokenizer's matter: no token here begins or ends a text
            "eos_token_id": None,
        }

    def turned(self, name: str, config: LlamaConfig) -> tuple[Callable[[Tensor], Tensor], ...]:
        """Reorder the rows of queries and keys."""
        if not name.endswith(("q_proj.weight", "k_proj.weight")):
            return ()
        order = half_split_order(config.d_model // config.num_heads)
        return tuple(functools.partial(_reorder, order=o) for o in (order, order.argsort()))

    def tidy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Leave out RoPE's frequencies, which old files hold."""
        return {n: t for n, t in state.items() if not n.endswith("rotary_emb.inv_freq")}


def _reorder(weight: Tensor, order: Tensor) -> Tensor:
    """Reorder the rows of each head's map, (H D, C)."""
    heads = weight.unflatten(0, (-1, len(order)))  # (H D, C) -> (H, D, C)
    return heads[:, order.to(weight.device)].flatten(0, 1)


family = _Llama()
from_config, to_config = family.from_config, family.to_config
from_state, to_state = family.from_state, family.to_state
load, save = family.load, family.save
