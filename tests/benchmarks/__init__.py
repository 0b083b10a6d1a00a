"""Benchmarks, run by hand: `python tests/benchmarks` lists them. No test asserts their numbers."""

BENCHMARKS = {
    "training_step": "a step of the encoder-decoder beside nn.Transformer, Marian, BART",
    "gpt_training_step": "a step of GPT beside nanoGPT's shape, GPT-2, nn.TransformerEncoder",
    "decoding": "greedy decoding of the encoder-decoder, with and without the cache",
    "gpt_decoding": "greedy decoding of GPT beside Hugging Face's generate",
    "attention": "explicit, fused and nn.MultiheadAttention, n = 64 to 4096: time and memory",
    "causal_memory": "memory of causal attention, n = 2,048 to 16,384, in fresh processes",
    "phrasebook": "sentence pairs drawn a second",
    "tokenizing": "training, encoding and decoding of byte-level BPE",
    "exact_match": "seconds to 99 % exact match on the phrasebook, beside nn.Transformer",
    "gpu": "all that a GPU owes the course: tests, costs, training, writing (not among `all`)",
}
