"""tinytf: the Transformer, built part by part; the package behind the notebooks."""

from tinytf.attention import (
    MultiHeadAttention,
    attention_weights,
    explicit_attention,
    fused_attention,
)
from tinytf.bert import Bert, BertConfig
from tinytf.bleu import corpus_bleu
from tinytf.blocks import Decoder, DecoderLayer, Encoder, EncoderLayer, PostNorm, PreNorm
from tinytf.bpe import ByteBPE, train_bpe
from tinytf.checkpoint import CheckpointError
from tinytf.decoding import beam_search, greedy
from tinytf.device import choose_device
from tinytf.embedding import TokenEmbedding
from tinytf.feedforward import FeedForward
from tinytf.gated import SwiGLU
from tinytf.generation import generate
from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import ablate_heads, record, replace
from tinytf.llama import Llama, LlamaConfig
from tinytf.masking import mask_tokens
from tinytf.masks import causal_mask, padding_mask
from tinytf.noising import corrupt_spans
from tinytf.norm import LayerNorm, RMSNorm, layer_norm, rms_norm
from tinytf.positional import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    sinusoidal_encoding,
)
from tinytf.recurrent_seq2seq import RecurrentConfig, RecurrentSeq2Seq
from tinytf.relative import AlibiAttention, RotaryAttention
from tinytf.sampling import Sampling
from tinytf.seq2seq import Transformer, TransformerConfig
from tinytf.tokenizer import UnknownWordError, WordTokenizer
from tinytf.training import Trainer, TrainingConfig
from tinytf.translator import Translation, Translator
from tinytf.writer import Writer

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
