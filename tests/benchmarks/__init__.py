"""Benchmarks, run by hand: `python tests/benchmarks` lists them. No test asserts their numbers."""

# name -> the module that has the function of this name, whose docstring's first line is its summary
BENCHMARKS = {
    "training_step": "training",
    "gpt_training_step": "training",
    "decoding": "writing",
    "gpt_decoding": "writing",
    "attention": "attending",
    "causal_memory": "attending",
    "phrasebook": "texts",
    "tokenizing": "texts",
    "exact_match": "training",
    "gpu": "gpu",
}
