"""tinytf: the Transformer, built part by part; the package behind the notebooks."""

from tinytf.attention import (
    MultiHeadAttention,
    attention_weights,
    explicit_attention,
    fused_attention,
)
from tinytf.blocks import Decoder, DecoderLayer, Encoder, EncoderLayer, PostNorm, PreNorm
from tinytf.checkpoint import CheckpointError
from tinytf.decoding import beam_search, greedy
from tinytf.device import choose_device
from tinytf.embedding import TokenEmbedding
from tinytf.feedforward import FeedForward
from tinytf.inspect import ablate_heads, record, replace
from tinytf.masks import causal_mask, padding_mask
from tinytf.norm import LayerNorm, layer_norm
from tinytf.positional import PositionalEncoding, sinusoidal_encoding
from tinytf.seq2seq import Transformer, TransformerConfig
from tinytf.tokenizer import UnknownWordError, WordTokenizer
from tinytf.training import Trainer, TrainingConfig
from tinytf.translator import Translation, Translator

__all__ = [
    "CheckpointError",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "MultiHeadAttention",
    "PositionalEncoding",
    "PostNorm",
    "PreNorm",
    "TokenEmbedding",
    "Trainer",
    "TrainingConfig",
    "Transformer",
    "TransformerConfig",
    "Translation",
    "Translator",
    "UnknownWordError",
    "WordTokenizer",
    "ablate_heads",
    "attention_weights",
    "beam_search",
    "causal_mask",
    "choose_device",
    "explicit_attention",
    "fused_attention",
    "greedy",
    "layer_norm",
    "padding_mask",
    "record",
    "replace",
    "sinusoidal_encoding",
]
