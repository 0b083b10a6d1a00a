"""Marian weights to and from Hugging Face's format: config.json and model.safetensors.

Nothing is turned but the order of the words (`MarianConfig`); names are the released code's. The
public models come as pickles. `transformers` makes a folder for us out of one: its
`MarianMTModel.from_pretrained(name).save_pretrained(folder)`, and `MarianTokenizer` likewise.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from tinytf.pretrained.huggingface import Family, layers, read_number, read_sizes
from tinytf.related.marian import Marian, MarianConfig, half_and_half
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save", "to_config", "to_state"]

# what a config means that does not say them
UNSAID = {"scale_embedding": False, "activation_function": "gelu", "decoder_attention_heads": 16,
          "decoder_layers": 12, "decoder_ffn_dim": 4096}  # fmt: skip
ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
TABLE, BIAS = "model.shared.weight", "final_logits_bias"
TIED = ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
POSITIONS = tuple(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))
ENCODER_LAYER = {
    "self_attn.q_proj": "self_attention.w_q",
    "self_attn.k_proj": "self_attention.w_k",
    "self_attn.v_proj": "self_attention.w_v",
    "self_attn.out_proj": "self_attention.w_o",
    "self_attn_layer_norm": "residual_1.norm",
    "fc1": "feed_forward.w_1",
    "fc2": "feed_forward.w_2",
    "final_layer_norm": "residual_2.norm",
}
DECODER_LAYER = ENCODER_LAYER | {
    "encoder_attn.q_proj": "cross_attention.w_q",
    "encoder_attn.k_proj": "cross_attention.w_k",
    "encoder_attn.v_proj": "cross_attention.w_v",
    "encoder_attn.out_proj": "cross_attention.w_o",
    "encoder_attn_layer_norm": "residual_2.norm",
    "final_layer_norm": "residual_3.norm",
}
SIZES = {"d_model": "d_model", "num_heads": "encoder_attention_heads",
         "num_layers": "encoder_layers", "d_ff": "encoder_ffn_dim",
         "max_len": "max_position_embeddings"}  # fmt: skip
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
NAMES = {
    "model.shared": "src_embedding",
    BIAS: "output.bias",
    **layers("model.encoder.layers", "encoder.layers", ENCODER_LAYER),
    **layers("model.decoder.layers", "decoder.layers", DECODER_LAYER),
}


class _Marian(Family):
    build, config, name = Marian, MarianConfig, "Marian"
    sizes, fixed, names, twins = SIZES, FIXED, NAMES, dict.fromkeys(TIED, TABLE)

    def from_config(self, config: Mapping[str, Any]) -> MarianConfig:
        """Read our config; what it does not say is what they take it to mean."""
        return super().from_config(UNSAID | config if isinstance(config, Mapping) else config)

    def read(self, config: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
        """Read words, ids and activation; sizes must be the same on both sides."""
        ids = {"size": "vocab_size", "their_pad_id": "pad_token_id", "their_eos_id": "eos_token_id"}
        more = read_sizes(config, ids)
        same = {theirs: theirs.replace("encoder", "decoder") for theirs in self.sizes.values()}
        same |= {"pad_token_id": "decoder_start_token_id", "vocab_size": "decoder_vocab_size"}
        for one, other in same.items():
            if config.get(other) not in (None, config[one]):
                raise CheckpointError(
                    f"the config says {one}={config[one]} and {other}={config[other]!r:.60}, "
                    "but Marian has one number for both"
                )
        activation = config["activation_function"]
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            raise CheckpointError(
                f"the config says activation_function={activation!r:.60}, which is none of "
                f"{', '.join(ACTIVATIONS)}"
            )
        words = more.pop("size") + 1
        return more | {
            "src_vocab_size": words,
            "tgt_vocab_size": words,
            "dropout": read_number(config, "dropout", 0.1),
            "activation": ACTIVATIONS[activation],
        }

    def say_sizes(self, config: MarianConfig) -> dict[str, int]:
        """Give the sizes by their names; our vocabulary is larger by 1."""
        return {"vocab_size": config.src_vocab_size - 1} | super().say_sizes(config)

    def say(self, model: Marian) -> dict[str, Any]:
        """Say the rest."""
        config = model.config
        sizes = {n.replace("encoder", "decoder"): n for n in ("vocab_size", *self.sizes.values())}
        said = self.say_sizes(config)
        pad, eos = config.their_pad_id, config.their_eos_id
        return {theirs: said[ours] for theirs, ours in sizes.items()} | {
            "architectures": ["MarianMTModel"],
            "is_encoder_decoder": True,
            "num_hidden_layers": config.num_layers,
            "activation_function": "swish" if config.activation == "silu" else config.activation,
            "dropout": config.dropout,
            "attention_dropout": 0.0,  # attention weights are never dropped here, nor is d_ff
            "activation_dropout": 0.0,
            "decoder_vocab_size": said["vocab_size"],
            "pad_token_id": pad,
            "decoder_start_token_id": pad,
            "eos_token_id": eos,
            "forced_eos_token_id": eos,
        }

    def turned(self, name: str, config: MarianConfig) -> tuple[Callable[[Tensor], Tensor], ...]:
        """Reorder the words, and lay their bias down."""
        order, places = config.order, config.places
        if name == TABLE:
            return lambda t: t[places.to(t.device)], lambda t: t[order.to(t.device)]
        if name == BIAS:
            return lambda t: t[places.to(t.device)][None], lambda t: t[0][order.to(t.device)]
        return ()

    def tidy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Say the table and the bias where they stand under other names, or not at all.

        The table may have any of the names it is tied to; a missing bias means zeros.
        """
        tensors = dict(state)
        tied = [name for name in TIED if name in tensors]
        if tied:
            tensors.setdefault(TABLE, tensors[tied[0]])
        if TABLE in tensors and tensors[TABLE].dim() == 2:
            table = tensors[TABLE]
            tensors.setdefault(BIAS, torch.zeros(1, len(table), device=table.device))
        return tensors

    def from_state(self, state: Mapping[str, Tensor], model: Marian) -> dict[str, Tensor]:
        """Turn their tensors into ours. Positions may be there if they are those we compute.

        Errors as `Family.from_state`.
        """
        tensors = dict(state)
        stored = {name: tensors.pop(name) for name in POSITIONS if name in tensors}
        ours = super().from_state(tensors, model)
        shape = (model.config.max_len, model.config.d_model)
        for name, tensor in stored.items():
            fits = tensor.shape == shape and tensor.is_floating_point()
            if fits and not tensor.is_meta:
                gap = (tensor.cpu().float() - half_and_half(*shape)).abs().max()
                fits = gap <= 1e-2  # as half floats have it
            if not fits:
                raise CheckpointError(
                    f"{name} does not hold sines and then cosines, as Marian has it"
                )
        return ours

    def computed(self, model: Marian) -> dict[str, Tensor]:
        """Give the table of positions."""
        return {"positions.table": half_and_half(model.config.max_len, model.config.d_model)}


family = _Marian()
from_config, to_config = family.from_config, family.to_config
from_state, to_state = family.from_state, family.to_state
load, save = family.load, family.save
