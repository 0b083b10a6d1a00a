"""Chapter 04: words and their ids, byte-level BPE, the embedding, vectors from neighbours."""

from collections import Counter
from types import SimpleNamespace

import torch
from torch import nn

from tinytf_course.expect import numbers
from tinytf_course.parts import Part, arrived, shapes, twin
from tinytf_course.parts.ch05 import dtypes

CONTEXT = torch.tensor([[3, 4, 5, 0], [6, 3, 3, 9], [0, 0, 0, 7]])


def _cbow_gradients(model):
    module = twin(model, 10, 5)
    return arrived(module(CONTEXT), module=module)


MERGES = {(1, 2): 7, (7, 3): 8, (3, 3): 9, (2, 1): 10}

WORDS = ("the", "cat", "sat", "on", "mat")
CORPUS = {tuple(b"low"): 5, tuple(b"lower"): 2, tuple(b"newest"): 6, tuple(b"widest"): 3}
PLAIN = [(101, 115), (256, 116), (108, 111), (258, 119)]  # es, est, lo, low
IDS = torch.tensor([[3, 0, 3, 6], [1, 3, 2, 2]])


def _embedded_gradients(embedding):
    module = twin(embedding, 7, 5)
    return arrived(module(IDS), module=module)


def _drawn(embedding):
    torch.manual_seed(0)
    return embedding(400, 64).weight.detach().std()


def _echo(tied):
    """A model of a table and an output, both (7, 5), that keeps to one matrix by `tied`."""
    model = tied()
    model.config = SimpleNamespace(tie_output=True)
    model.table = nn.Parameter(numbers(7, 5, seed=1))
    model.output = nn.Linear(5, 7, bias=False)
    return model


def _tied(tied):
    model = _echo(tied)
    model.tie()
    return model


def _one(model):
    return [model.output.weight is model.table, len(list(model.parameters())), model.table]


def _loaded(tied, assign):
    model = _tied(tied)
    other = numbers(7, 5, seed=2)
    model.load_state_dict({"table": other, "output.weight": other.clone()}, assign=assign)
    return _one(model)


def _where(model):
    return {"table": str(model.table.device), "output": str(model.output.weight.device)}


def _moved(model):
    model.to("meta")
    return {**_where(model), "are one": model.output.weight is model.table}


def _emptied(model, recurse=True):
    """Make every tensor anew, from a model without storage: on its own device it stays the same."""
    back = model.to("meta").to_empty(device="cpu", recurse=recurse)
    one, count, _ = _one(model)
    return {**_where(model), "are one": one, "parameters": count, "it is returned": back is model}


def _cbow_start(model):
    torch.manual_seed(0)
    return f"{model(400, 64).vectors.std().item():.3f}"


PARTS = (
    Part(
        "tinytf.text.words.WordTokenizer",
        {
            "its tokens are counted and listed": lambda t: [str(len(t(WORDS))), *t(WORDS).tokens],
            "a string is encoded": lambda t: t(WORDS).encode("the cat sat on the mat"),
            "a list of words is encoded": lambda t: t(WORDS).encode(["mat", "the"]),
            "ids are decoded": lambda t: t(WORDS).decode([3, 4, 5]),
            "<bos> and <pad> are among them": lambda t: t(WORDS).decode([1, 7, 0, 3, 0]),
            "words come as a list": lambda t: list(t(list(WORDS)).tokens),
            "something stands behind <eos>": lambda t: t(WORDS).decode([1, 3, 4, 2, 5, 2, 0]),
            "ids come as a tensor": lambda t: t(WORDS).decode(torch.tensor([4, 2, 0])),
            "there are no ids": lambda t: t(WORDS).decode([]),
        },
        equivalent={
            "… => words = text.split() if isinstance(text, str) else text": (
                "a list of words is read as it is"
            ),
            "… => if i not in (BOS, PAD):": "the order of the two is nothing",
        },
    ),
    Part(
        "tinytf.text.words.pad_batch",
        {
            "one row is the longest": lambda f: f([[5, 6, 7], [8]]),
            "rows come as tuples, one of them empty": lambda f: f([(4,), (), (9, 8)]),
            "there is one row": lambda f: f([[3, 4]]),
            "the ids are whole numbers": lambda f: str(f([[5], [6, 7]]).dtype),
            "all rows are empty": lambda f: f([(), ()]),
            "another device is asked for": lambda f: {
                "device": str(f([[5], [6, 7]], torch.device("meta")).device)
            },
        },
    ),
    Part(
        "tinytf.text.merges.learn_merges",
        {
            "one merge is learned": lambda f: list(f(CORPUS, 1)),
            "eight are": lambda f: list(f(CORPUS, 8)),
            "pairs are equally frequent": lambda f: list(f({(5, 9): 1, (7, 2): 1, (5, 8): 1}, 2)),
            "no pair is left": lambda f: list(f({(1, 2): 3}, 5)),
            "a row of equal ids is merged": lambda f: list(f({(1, 1, 1, 1, 1): 2, (1, 2): 1}, 3)),
        },
    ),
    Part(
        "tinytf.text.pretokenize.split",
        {
            "there are two words": lambda f: f("the cat"),
            "there are signs and numbers": lambda f: f("On 3 march, 2021: don't!  we'll?"),
            "white space comes in runs": lambda f: f("a  b\n\n  c \t"),
            "there are other scripts": lambda f: f("naïve 猫 坐在垫子上"),
            "there is nothing": lambda f: f(""),
        },
    ),
    Part(
        "tinytf.text.plain_bpe.PlainBPE",
        {
            "there are no merges": lambda t: t([]).encode("low"),
            "there are four": lambda t: t(PLAIN).encode("low"),
            "a merge would reach across pieces": lambda t: t([(101, 32)]).encode("the cat"),
            "a sentence is encoded": lambda t: t(PLAIN).encode("The lowest, slow estate"),
            "ids are decoded": lambda t: t(PLAIN).decode([259, 257, 33]),
            "a text comes back": lambda t: t(PLAIN).decode(t(PLAIN).encode("lowest 猫 \n é")),
            "a character is cut in two": lambda t: t(PLAIN).decode([97, 0xE7, 0x8C]),
            "its tokens are listed": lambda t: [token.hex() for token in t(PLAIN).tokens],
        },
    ),
    Part(
        "tinytf.embedding.TokenEmbedding",
        {
            "its weights are counted": lambda e: shapes(e(7, 5)),
            "two sentences are embedded": lambda e: twin(e, 7, 5)(IDS),
            "the scale is given": lambda e: twin(e, 7, 5, scale=0.5)(IDS),
            "it starts with small numbers": _drawn,
            "it is asked for its `vocab_size`": lambda e: {"vocab_size": e(7, 5).vocab_size},
            "numbers are in float32": lambda e: dtypes(e(7, 5)(IDS)),
            "gradients go back to the rows": _embedded_gradients,
        },
    ),
    Part(
        "tinytf.embedding.TiedOutput",
        {
            "it is tied": lambda tied: _one(_tied(tied)),
            "it is not": lambda tied: _one(_echo(tied)),
            "it moves to float64": lambda tied: _one(_tied(tied).double()),
            "it moves to another device": lambda tied: _moved(_tied(tied)),
            "it was not tied, and moves to another device": lambda tied: _moved(_echo(tied)),
            "every tensor is made anew": lambda tied: _emptied(_tied(tied)),
            "its own tensors are made anew, and not its parts'": lambda tied: [
                _emptied(tie(tied), recurse=False) for tie in (_tied, _echo)
            ],
            "it was not tied, and every tensor is made anew": lambda tied: _emptied(_echo(tied)),
            "a state is loaded": lambda tied: _loaded(tied, assign=False),
            "a state's own tensors are put in": lambda tied: _loaded(tied, assign=True),
        },
        equivalent={
            "… => tied = getattr(self.output, 'weight') is self.table": (
                "every output that is asked of here has a weight"
            ),
        },
    ),
    Part(
        "tinytf.related.word2vec.context_windows",
        {
            "there is one sentence": lambda f: list(f([[3, 4, 5]])),
            "a sentence has one word": lambda f: list(f([[3, 4], [9], [6, 7, 8, 9]])),
            "the window is one word wide": lambda f: list(f([[3, 4, 5, 6], [7, 8]], 1)),
            "it is three words wide": lambda f: list(f([[3, 4, 5, 6, 7]], window=3)),
            "both are tensors": lambda f: dtypes(*map(torch.clone, f([[3, 4, 5]]))),
        },
        equivalent={
            "… => padded = [PAD] * window + row + [PAD] * window": "rows are lists of ids here"
        },
    ),
    Part(
        "tinytf.related.word2vec.CBOW",
        {
            "its weights are counted": lambda model: shapes(model(10, 5)),
            "it starts": lambda model: model(10, 5).output.detach(),
            "its vectors start": lambda model: {"standard deviation": _cbow_start(model)},
            "it reads contexts with padding": lambda model: twin(model, 10, 5)(CONTEXT),
            "three neighbours are missing": lambda model: twin(model, 10, 5)(CONTEXT[2:]),
            "a context is empty": lambda model: twin(model, 10, 5)(CONTEXT[:1] * 0),
            "numbers are in float32": lambda model: dtypes(model(10, 5)(CONTEXT)),
            "gradients go back to both tables": _cbow_gradients,
        },
    ),
    Part(
        "tinytf.text.merges.count_pairs",
        {
            "there is one word": lambda f: dict(f({(1, 2): 1})),
            "a word has one letter": lambda f: dict(f({(1,): 5, (1, 2, 1): 2})),
            "it is to be a Counter": lambda f: {"a Counter": isinstance(f({(1, 2): 1}), Counter)},
            "a pair repeats inside a word": lambda f: dict(f({(1, 1, 1): 3, (2, 1, 1): 4})),
        },
    ),
    Part(
        "tinytf.text.merges.merge_pair",
        {
            "the pair stands once": lambda f: list(f([1, 2, 3], (1, 2), 9)),
            "the pair stands at the end, and twice": lambda f: list(f([1, 2, 3, 1, 2], (1, 2), 9)),
            "pairs overlap": lambda f: list(f([1, 1, 1, 2, 1, 1], (1, 1), 9)),
            "half of it stands at the end": lambda f: list(f([3, 1], (1, 2), 9)),
            "the other way round is no pair": lambda f: list(f([2, 1, 2], (1, 2), 9)),
            "there is nothing": lambda f: list(f([], (1, 2), 9)),
        },
    ),
    Part(
        "tinytf.text.merges.apply_merges",
        {
            "nothing is known": lambda f: list(f([5, 6], MERGES)),
            "the merge learned first goes first": lambda f: list(f([2, 1, 2, 3], MERGES)),
            "the merges stand in another order than they were learned in": lambda f: list(
                f([2, 1, 2, 3], dict(reversed(MERGES.items())))
            ),
            "merges build on merges": lambda f: list(f([1, 2, 3, 3, 3], MERGES)),
            "a text is given as a tuple": lambda f: list(f((1, 2, 1, 2), MERGES)),
            "it is done all over a text": lambda f: Counter(f([1, 2, 3] * 3 + [3, 3], MERGES)),
        },
        equivalent={
            "ids = list(ids) => …": "what is given is read, never changed: a merge makes a new list"
        },
    ),
)
