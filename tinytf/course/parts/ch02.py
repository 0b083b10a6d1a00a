"""Chapter 02: word vectors from their neighbours, and byte-level BPE."""

from collections import Counter

import torch

from tinytf.course.parts import Part, arrived, shapes, twin

CONTEXT = torch.tensor([[3, 4, 5, 0], [6, 3, 3, 9], [0, 0, 0, 7]])


def _cbow_gradients(model):
    module = twin(model, 10, 5)
    return arrived(module(CONTEXT), module=module)


MERGES = {(1, 2): 7, (7, 3): 8, (3, 3): 9, (2, 1): 10}

PARTS = (
    Part(
        "tinytf.related.word2vec.CBOW",
        {
            "its weights are counted": lambda model: shapes(model(10, 5)),
            "it starts": lambda model: model(10, 5).output.detach(),
            "it reads contexts with padding": lambda model: twin(model, 10, 5)(CONTEXT),
            "it adds instead of averaging": lambda model: twin(model, 10, 5, "sum")(CONTEXT),
            "a context is empty": lambda model: twin(model, 10, 5)(CONTEXT[:1] * 0),
            "gradients go back to both tables": _cbow_gradients,
        },
    ),
    Part(
        "tinytf.text.merges.count_pairs",
        {
            "there is one word": lambda f: dict(f({(1, 2): 1})),
            "a word has one letter": lambda f: dict(f({(1,): 5, (1, 2, 1): 2})),
            "a pair repeats inside a word": lambda f: dict(f({(1, 1, 1): 3, (2, 1, 1): 4})),
        },
    ),
    Part(
        "tinytf.text.merges.merge_pair",
        {
            "the pair stands once": lambda f: list(f([1, 2, 3], (1, 2), 9)),
            "the pair stands at the end, and twice": lambda f: list(f([1, 2, 3, 1, 2], (1, 2), 9)),
            "pairs overlap": lambda f: list(f([1, 1, 1, 2, 1, 1], (1, 1), 9)),
            "the other way round is no pair": lambda f: list(f([2, 1, 2], (1, 2), 9)),
            "there is nothing": lambda f: list(f([], (1, 2), 9)),
        },
    ),
    Part(
        "tinytf.text.merges.apply_merges",
        {
            "nothing is known": lambda f: list(f([5, 6], MERGES)),
            "the merge learned first goes first": lambda f: list(f([2, 1, 2, 3], MERGES)),
            "merges build on merges": lambda f: list(f([1, 2, 3, 3, 3], MERGES)),
            "a text is given as a tuple": lambda f: list(f((1, 2, 1, 2), MERGES)),
            "it is done all over a text": lambda f: Counter(f([1, 2, 3] * 3 + [3, 3], MERGES)),
        },
    ),
)
