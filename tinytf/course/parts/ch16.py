"""Chapter 16: search."""

import torch

from tinytf.course.parts import Part, twin
from tinytf.course.parts.ch05 import wide
from tinytf.text.words import EOS
from tinytf.transformer import Transformer, TransformerConfig

SOURCES = torch.tensor([[5, 6, 7, EOS], [8, EOS, 0, 0], [4, 9, EOS, 0]])


def _model(seed=1):
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 2, "d_ff": 12, "max_len": 12}
    torch.manual_seed(seed)
    model = twin(Transformer, TransformerConfig(12, 10, dropout=0.0, norm="pre", **sizes))
    with torch.no_grad():  # sure of itself, so that no two words tie
        model.output.weight *= 1 + seed
    return model


def _scores(f, cached=False):
    model = _model()
    memory, ids = model.encode(SOURCES), torch.tensor([[1, 4, 5], [1, 3, 3], [1, 6, 7]])
    if not cached:
        return f(model, ids, memory)
    cache = model.decoder.new_cache()
    return [f(model, ids[:, : t + 1], memory, cache) for t in range(3)]


def _written(f, **named):
    return [f(_model(seed), SOURCES, **named) for seed in (1, 2)]


def _in_evaluation(f):
    model = _model().train()
    f(model, SOURCES)
    return torch.tensor(model.training)


def _beams(f, **named):
    found = [f(_model(seed), SOURCES, **named) for seed in (1, 2)]
    rows = [h for sentences in found for hypotheses in sentences for h in hypotheses]
    return {
        "how many": [len(hypotheses) for sentences in found for hypotheses in sentences],
        "words": [list(h.ids) for h in rows],
        "log-probabilities": torch.tensor([h.log_prob for h in rows]),
        "scores": torch.tensor([h.score for h in rows]),
    }


def _finished(f, beam=2):
    done = []
    for ids, log_prob in (([5, 2], -1.0), ([5, 6, 7, 2], -1.2), ([2], -3.0), ([8, 2], -0.5)):
        f(done, ids, log_prob, 0.6, beam)
    return {"words": [list(h.ids) for h in done], "scores": torch.tensor([h.score for h in done])}


def _settled(f):
    from tinytf.decoding.search import finish

    told = []
    for alive, alpha in ((-0.1, 0.6), (-5.0, 0.6), (-1.3, 0.0), (-1.3, 2.0)):
        one, two = [], []
        for ids, log_prob in (([5, 2], -1.0), ([5, 6, 2], -1.2)):
            finish(one, ids, log_prob, alpha, 2)
            finish(two, ids, log_prob / 2, alpha, 2)
        now = torch.tensor([[alive, -9.0], [alive - 1, -9.0]])
        told += [f([one, two], now, 2, alpha, 10), f([one, two[:1]], now, 2, alpha, 10)]
    return [bool(x) for x in told]


PARTS = (
    Part(
        "tinytf.decoding.search.next_scores",
        {
            "whole prefixes are read": _scores,
            "a cache has read all but the last word": lambda f: _scores(f, cached=True),
        },
        tolerance=1e-4,
    ),
    Part(
        "tinytf.decoding.search.greedy",
        {
            "two models translate three sentences": _written,
            "three words must be enough": lambda f: _written(f, max_len=3),
            "nothing is cached": lambda f: _written(f, use_cache=False),
            "the model is left in the mode it was in": _in_evaluation,
        },
    ),
    Part(
        "tinytf.decoding.search.candidates",
        {
            "one sentence has two beams": lambda f: list(
                f(torch.tensor([[-1.0, -2.0]]), torch.log_softmax(wide(2, 3, seed=1), -1))
            ),
            "two sentences have three": lambda f: list(
                f(wide(2, 3, seed=1), torch.log_softmax(wide(6, 7, seed=2), -1))
            ),
            "there are fewer words than beams": lambda f: list(
                f(torch.tensor([[0.0, -torch.inf]]), torch.log_softmax(wide(2, 1, seed=1), -1))
            ),
        },
    ),
    Part(
        "tinytf.decoding.search.length_penalty",
        {
            "a sentence of one word is scored": lambda f: torch.tensor(f(1, 0.6)),
            "longer ones are": lambda f: torch.tensor(
                [f(n, a) for n in (2, 7, 30) for a in (0.0, 0.6, 1.0)]
            ),
        },
    ),
    Part(
        "tinytf.decoding.search.finish",
        {
            "four sentences end, and two are kept": _finished,
            "four are kept": lambda f: _finished(f, 4),
        },
        changes=("done",),
    ),
    Part("tinytf.decoding.search.settled", {"beams could still win, or not": _settled}),
    Part(
        "tinytf.decoding.search.beam_search",
        {
            "one beam searches": lambda f: _beams(f, beam=1),
            "four beams search": _beams,
            "length counts for nothing": lambda f: _beams(f, beam=3, alpha=0.0),
            "four words must be enough": lambda f: _beams(f, beam=2, max_len=4),
        },
        tolerance=1e-4,
    ),
)
