"""Small models of each family, in float64, for the tests of what holds for all of them."""

from tinytf.bert import Bert, BertConfig
from tinytf.gpt import GPT, GPTConfig
from tinytf.llama import Llama, LlamaConfig
from tinytf.transformer import Transformer, TransformerConfig

SIZES = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "num_layers": 2, "max_len": 24}


def transformer(**changes):
    sizes = {n: SIZES[n] for n in ("d_model", "num_heads", "num_layers", "max_len")}
    config = TransformerConfig(11, 11, **sizes | {"d_ff": 20, "dropout": 0.0} | changes)
    return Transformer(config).double()


def gpt(**changes):
    return GPT(GPTConfig(**SIZES | changes)).double()


def llama(**changes):
    return Llama(LlamaConfig(**SIZES | {"num_kv_heads": 1, "d_ff": 20} | changes)).double()


def bert(**changes):
    return Bert(BertConfig(**SIZES | {"dropout": 0.0} | changes)).double()


MODELS = {"Transformer": transformer, "GPT": gpt, "Llama": llama, "Bert": bert}
