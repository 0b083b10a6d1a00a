"""Hugging Face's encoder-decoders at the sizes of ours, and a model of ours that is Marian's."""

from dataclasses import replace

from torch import Tensor, nn
from transformers import BartConfig, BartForConditionalGeneration, MarianConfig, MarianMTModel

from tinytf.pretrained.marian import LAYERS
from tinytf.related.marian import half_and_half
from tinytf.transformer import Transformer, TransformerConfig

__all__ = ["Logits", "bart", "like_marian", "marian"]


class Logits(nn.Module):
    """One of their models, called as ours is."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Ids (B, S) and (B, T) to logits (B, T, V)."""
        mask = (src != 0).long()
        return self.model(input_ids=src, attention_mask=mask, decoder_input_ids=tgt).logits


def like_marian(config: TransformerConfig) -> Transformer:
    """Make one of ours in Marian's shape: post-norm, one table for both sides, its positions."""
    model = Transformer(replace(config, norm="post", share_embeddings=True))
    model.positions.table = half_and_half(config.max_len, config.d_model)
    return model


def _said(c: TransformerConfig) -> dict:
    """Say our sizes in their words. One id is <pad> and none is special otherwise."""
    return {
        "vocab_size": c.src_vocab_size, "d_model": c.d_model, "encoder_layers": c.num_layers,
        "decoder_layers": c.num_layers, "encoder_attention_heads": c.num_heads,
        "decoder_attention_heads": c.num_heads, "encoder_ffn_dim": c.d_ff,
        "decoder_ffn_dim": c.d_ff, "dropout": c.dropout, "attention_dropout": 0.0,
        "activation_dropout": 0.0, "max_position_embeddings": c.max_len, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
        "forced_eos_token_id": None, "scale_embedding": True, "activation_function": c.activation,
        "use_cache": False, "attn_implementation": "sdpa",
    }  # fmt: skip


def marian(model: Transformer) -> Logits:
    """Make a Marian with the weights of a model by `like_marian`."""
    theirs = MarianMTModel(MarianConfig(**_said(model.config)))
    ours = model.state_dict()
    state = {"model.shared.weight": ours["src_embedding.weight"]}
    for side, names in LAYERS.items():
        for i in range(model.config.num_layers):
            for their_name, our_name in names.items():
                for kind in ("weight", "bias"):
                    place = f"{side}.layers.{i}"
                    state[f"model.{place}.{their_name}.{kind}"] = ours[f"{place}.{our_name}.{kind}"]
    known = theirs.load_state_dict(state, strict=False)
    if known.unexpected_keys:
        raise ValueError(f"Marian has no {known.unexpected_keys[0]}")
    theirs.tie_weights()
    return Logits(theirs)


def bart(config: TransformerConfig) -> Logits:
    """Make a BART of these sizes, with weights of its own: no model of ours computes the same."""
    return Logits(BartForConditionalGeneration(BartConfig(**_said(config))))
