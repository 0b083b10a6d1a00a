"""tinytf: the Transformer, built part by part; the package behind the notebooks."""

import importlib

__version__ = "0.1.0"


_HOMES = {  # module: the names it offers here, each loaded when it is first used
    "apps.translator": "Translation Translator",
    "apps.writer": "Writer",
    "attention": "MultiHeadAttention attention_weights explicit_attention fused_attention",
    "bert": "Bert BertConfig",
    "blocks": "Decoder DecoderLayer Encoder EncoderLayer PostNorm PreNorm",
    "decoding.generate": "generate",
    "decoding.sampling": "Sampling",
    "decoding.search": "beam_search greedy",
    "embedding": "TokenEmbedding",
    "feedforward": "FeedForward SwiGLU",
    "gpt": "GPT GPTConfig",
    "inspect": "ablate_heads record replace",
    "llama": "Llama LlamaConfig",
    "masks": "causal_mask padding_mask",
    "metrics.bleu": "corpus_bleu",
    "norm": "LayerNorm RMSNorm layer_norm rms_norm",
    "positional": "LearnedPositionalEncoding PositionalEncoding sinusoidal_encoding",
    "related.recurrent_seq2seq": "RecurrentConfig RecurrentSeq2Seq",
    "relative": "AlibiAttention RotaryAttention",
    "support.device": "choose_device",
    "text.bpe": "ByteBPE train_bpe",
    "text.words": "UnknownWordError WordTokenizer",
    "training.checkpointing": "CheckpointError",
    "training.denoising": "corrupt_spans",
    "training.masked_lm": "mask_tokens",
    "training.trainer": "Trainer TrainingConfig",
    "transformer": "Transformer TransformerConfig",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Return a public name, loaded with the module that defines it."""
    if name == "studies":  # old copies of four chapters ask for it before they ask for the course
        importlib.import_module(f"{__name__}.course")  # which says what to do
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return what Tab completes."""
    return sorted({*globals(), *__all__})
