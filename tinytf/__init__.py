"""tinytf: the Transformer, built part by part; the package behind the notebooks."""

__version__ = "0.1.0"

# first, so that Ctrl-C is quiet while torch is imported
from tinytf.support.start import ready as _ready  # noqa: F401  # isort: skip

from tinytf.apps.translator import Translation, Translator
from tinytf.apps.writer import Writer
from tinytf.attention import (
    MultiHeadAttention,
    attention_weights,
    explicit_attention,
    fused_attention,
)
from tinytf.bert import Bert, BertConfig
from tinytf.blocks import Decoder, DecoderLayer, Encoder, EncoderLayer, PostNorm, PreNorm
from tinytf.decoding.generate import generate
from tinytf.decoding.sampling import Sampling
from tinytf.decoding.search import beam_search, greedy
from tinytf.embedding import TokenEmbedding
from tinytf.feedforward import FeedForward, SwiGLU
from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import ablate_heads, record, replace
from tinytf.llama import Llama, LlamaConfig
from tinytf.masks import causal_mask, padding_mask
from tinytf.metrics.bleu import corpus_bleu
from tinytf.norm import LayerNorm, RMSNorm, layer_norm, rms_norm
from tinytf.positional import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    sinusoidal_encoding,
)
from tinytf.related.recurrent_seq2seq import RecurrentConfig, RecurrentSeq2Seq
from tinytf.relative import AlibiAttention, RotaryAttention
from tinytf.support.device import choose_device
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.words import UnknownWordError, WordTokenizer
from tinytf.training.checkpointing import CheckpointError
from tinytf.training.denoising import corrupt_spans
from tinytf.training.masked_lm import mask_tokens
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer, TransformerConfig

__all__ = [
    "GPT",
    "AlibiAttention",
    "Bert",
    "BertConfig",
    "ByteBPE",
    "CheckpointError",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GPTConfig",
    "LayerNorm",
    "LearnedPositionalEncoding",
    "Llama",
    "LlamaConfig",
    "MultiHeadAttention",
    "PositionalEncoding",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "RecurrentConfig",
    "RecurrentSeq2Seq",
    "RotaryAttention",
    "Sampling",
    "SwiGLU",
    "TokenEmbedding",
    "Trainer",
    "TrainingConfig",
    "Transformer",
    "TransformerConfig",
    "Translation",
    "Translator",
    "UnknownWordError",
    "WordTokenizer",
    "Writer",
    "ablate_heads",
    "attention_weights",
    "beam_search",
    "causal_mask",
    "choose_device",
    "corpus_bleu",
    "corrupt_spans",
    "explicit_attention",
    "fused_attention",
    "generate",
    "greedy",
    "layer_norm",
    "mask_tokens",
    "padding_mask",
    "record",
    "replace",
    "rms_norm",
    "sinusoidal_encoding",
    "train_bpe",
]
