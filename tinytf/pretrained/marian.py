"""Marian weights to and from Hugging Face's format: config.json and model.safetensors.

Nothing is turned but the order of the words (`MarianConfig`); names are the released code's. The
public models come as pickles. `transformers` makes a folder for us out of one: its
`MarianMTModel.from_pretrained(name).save_pretrained(folder)`, and `MarianTokenizer` likewise.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tinytf.pretrained.huggingface import Family, check_settings, read_number, read_sizes
from tinytf.pretrained.rows import Row
from tinytf.related.marian import Marian, MarianConfig, half_and_half
from tinytf.support.files import CheckpointError

__all__ = ["from_config", "from_state", "load", "save", "to_config", "to_state"]

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


class _Marian(Family):
    build, sizes = Marian, SIZES

    def from_config(self, config: Mapping[str, Any]) -> MarianConfig:
        """Read the sizes, which must be the same on both sides. Errors as `Family.from_config`."""
        if isinstance(config, Mapping):
            config = UNSAID | dict(config)
        check_settings(config, FIXED, "Marian")
        sizes = read_sizes(config, SIZES)
        ids = read_sizes(
            config, {"size": "vocab_size", "pad": "pad_token_id", "eos": "eos_token_id"}
        )
        same = {theirs: theirs.replace("encoder", "decoder") for theirs in SIZES.values()}
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
        try:
            return MarianConfig(
                ids["size"] + 1,
                ids["size"] + 1,
                **sizes,
                dropout=read_number(config, "dropout", 0.1),
                activation=ACTIVATIONS[activation],
                their_pad_id=ids["pad"],
                their_eos_id=ids["eos"],
            )
        except ValueError as error:
            raise CheckpointError(f"the config can't be used: {error}") from error

    def to_config(self, model: Marian) -> dict[str, Any]:
        """Say the sizes in the words of Hugging Face's config.json."""
        config = model.config
        said = {name: values[0] for name, values in FIXED.items()} | self.say_sizes(config)
        said |= {theirs.replace("encoder", "decoder"): said[theirs] for theirs in SIZES.values()}
        pad, eos = config.their_pad_id, config.their_eos_id
        return said | {
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

    def say_sizes(self, config: MarianConfig) -> dict[str, int]:
        """Give the sizes by their names; our vocabulary is larger by 1."""
        return {"vocab_size": config.src_vocab_size - 1} | super().say_sizes(config)

    def rows(self, config: MarianConfig) -> list[Row]:
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

    def twins(self, model: Marian) -> dict[str, str]:
        """There is one table of words."""
        return dict.fromkeys(TIED, TABLE)

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
