"""GPT-2 weights to and from Hugging Face's format.

Three things differ there: linear maps are stored as (inputs, outputs), the transpose of
`nn.Linear`'s; queries, keys and values are one map, `c_attn`; and names are the released code's.
Source: Radford et al. 2019, its released code, as Hugging Face carries it on.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tinytf.gpt import GPT, PRESETS, GPTConfig
from tinytf.pretrained.download import download_model
from tinytf.pretrained.huggingface import Family, layers, read_number, read_sizes, renamed
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save", "to_config", "to_state"]

KINDS = {"norm": "pre", "activation": "gelu_tanh", "tie_output": True}  # what makes a GPT a GPT-2
MASKS = re.compile(r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias")  # constants of old files
PREFIX, TABLE, HEAD = "transformer.", "transformer.wte.weight", "lm_head.weight"
SIZES = {"vocab_size": "vocab_size", "d_model": "n_embd", "num_heads": "n_head",
         "num_layers": "n_layer", "max_len": "n_positions"}  # fmt: skip
FIXED = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),  # two names of the tanh form
    "layer_norm_epsilon": (1e-5,),
    "tie_word_embeddings": (True,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
}
NAMES = {
    "transformer.wte": "embedding",
    "transformer.wpe.weight": "positions.table",
    **layers("transformer.h", "decoder.layers", {
        "ln_1": "residual_1.norm",
        "attn.c_attn": "self_attention.w_q self_attention.w_k self_attention.w_v",
        "attn.c_proj": "self_attention.w_o",
        "ln_2": "residual_2.norm",
        "mlp.c_fc": "feed_forward.w_1",
        "mlp.c_proj": "feed_forward.w_2",
    }),
    "transformer.ln_f": "decoder.final_norm",
}  # fmt: skip


class _GPT2(Family):
    build, config, name = GPT, GPTConfig, "GPT"
    sizes, fixed, names, twins = SIZES, FIXED, NAMES, {HEAD: TABLE}

    def read(self, config: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
        """Read d_ff where it is said, and dropout, their `resid_pdrop`."""
        if config.get("n_ctx", sizes["max_len"]) != sizes["max_len"]:
            raise CheckpointError(
                f"the config contradicts itself: n_positions={sizes['max_len']} "
                f"and n_ctx={config['n_ctx']!r:.60}"
            )
        said = config.get("n_inner") is not None
        width = read_sizes(config, {"d_ff": "n_inner"}) if said else {}
        return width | {"dropout": read_number(config, "resid_pdrop", 0.1)}

    def say(self, model: GPT) -> dict[str, Any]:
        """Say the rest. Raises ValueError for a norm, activation or output that GPT-2 has not."""
        config = model.config
        kinds = {name: getattr(config, name) for name in KINDS}
        if kinds != KINDS:
            raise ValueError(f"GPT-2's format holds a model of {KINDS}; this one is of {kinds}")
        end = 50256 if config.vocab_size == 50257 else None
        return {
            "architectures": ["GPT2LMHeadModel"],
            "n_inner": config.d_ff,
            "resid_pdrop": config.dropout,
            "embd_pdrop": config.dropout,
            "attn_pdrop": 0.0,  # attention weights are never dropped here
            "bos_token_id": end,
            "eos_token_id": end,
        }

    def turned(self, name: str, config: GPTConfig) -> tuple[Callable[[Tensor], Tensor], ...]:
        """Transpose linear maps."""
        return (torch.t, torch.t) if re.search(r"\.c_\w+\.weight$", name) else ()

    def tidy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Give old files' names their prefix, and leave out the masks among their tensors."""
        kept = {name: tensor for name, tensor in state.items() if not MASKS.fullmatch(name)}
        return renamed(kept, lambda n: n if n == HEAD or n.startswith(PREFIX) else PREFIX + n)

    def load(self, source: str | Path, build: Callable[[GPTConfig], GPT] | None = None) -> GPT:
        """Make a `GPT` of a folder with config.json and model.safetensors, or a published name.

        The names are those of `GPTConfig.preset`; their files are downloaded once and checked
        (`tinytf.pretrained.download`). Otherwise as `Family.load`.
        """
        folder = Path(source)
        if not os.path.isdir(folder):
            if str(source) not in PRESETS:
                raise CheckpointError(
                    f"there is no folder {str(source)!r}, and the published weights are called "
                    f"{', '.join(PRESETS)}"
                )
            folder = download_model(str(source))
        return super().load(folder, build)


family = _GPT2()
from_config, to_config = family.from_config, family.to_config
from_state, to_state = family.from_state, family.to_state
load, save = family.load, family.save
