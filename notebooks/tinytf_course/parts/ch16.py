"""Chapter 16: search."""

import torch

from tinytf.decoding.search import Hypothesis
from tinytf.text.words import EOS
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.expect import numbers
from tinytf_course.parts import Part, twin
from tinytf_course.parts.ch05 import dtypes, wide

SOURCES = torch.tensor([[5, 6, 7, EOS], [8, EOS, 0, 0], [4, 9, EOS, 0]])


def _model(seed=1):
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 2, "d_ff": 12, "max_len": 12}
    torch.manual_seed(seed)
    model = twin(Transformer, TransformerConfig(12, 10, dropout=0.0, norm="pre", **sizes))
    with torch.no_grad():  # sure of itself, so that no two words tie
        model.output.weight *= 1 + seed
    return model


def _ending(seed):
    """A model whose sentences end, each after another number of words."""
    model = _model()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            scale = 0.7 if p.dim() > 1 else 0.5
            p.copy_(numbers(*p.shape, seed=100 * seed + i, scale=scale, dtype=p.dtype))
    return model


def _scores(f, cached=False):
    model = _model()
    memory, ids = model.encode(SOURCES), torch.tensor([[1, 4, 5], [1, 3, 3], [1, 6, 7]])
    if not cached:
        return f(model, ids, memory)
    cache = model.decoder.new_cache()
    steps = [f(model, ids[:, : t + 1], memory, cache) for t in range(3)]
    return {
        "scores": steps,
        "positions in the cache": [len(layer.self_attention) for layer in cache],
    }


def _half(f):
    model = _model().bfloat16()
    scores = f(model, torch.tensor([[1, 4, 5]]), model.encode(SOURCES[:1]))
    return str(scores.dtype)


def _read(f, **named):
    """Whether a step reads more than one word: with the cache it must not, without it must."""
    model, lengths = _model(1), []
    model.decoder.register_forward_hook(lambda module, given, out: lengths.append(out.size(1)))
    f(model, SOURCES, max_len=4, **named)
    return max(lengths) > 1


def _work(f):
    return {
        "words that were read are read again": _read(f),
        "they are, without a cache": _read(f, use_cache=False),
    }


READ_ALIKE = "a number in a tensor is read as one"
SEARCHED = "a search asks for no gradient"
ONE_DEVICE = "all is on one device here"
TWO_AXES = "of two axes the last is 1"


def _both(ending):
    return (_ending(10), _ending(73)) if ending else (_model(1), _model(2))


def _written(f, ending=False, **named):
    return [f(model, SOURCES, **named) for model in _both(ending)]


def _training(f):
    """What is written by a model that is left in training mode, with dropout; and its mode then."""
    model = _ending(10).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    return f(model), torch.tensor(model.training)


def _steps(f, **named):
    """How often a search asks the model for scores."""
    model, asked = _ending(73), []
    model.output.register_forward_hook(lambda *_: asked.append(1))
    f(model, SOURCES, **named)
    return torch.tensor(len(asked))


def _words_while_training(f):
    return list(_training(lambda model: f(model, SOURCES)))


def _beams_while_training(f):
    found, mode = _training(lambda model: f(model, SOURCES))
    return {"words": [[list(h.ids) for h in row] for row in found], "training": mode}


def _beams(f, ending=False, **named):
    found = [f(model, SOURCES, **named) for model in _both(ending)]
    rows = [h for sentences in found for hypotheses in sentences for h in hypotheses]
    return {
        "how many": [len(hypotheses) for sentences in found for hypotheses in sentences],
        "words": [list(h.ids) for h in rows],
        "log-probabilities": torch.tensor([h.log_prob for h in rows]),
        "scores": torch.tensor([h.score for h in rows]),
    }


def _kinds(f):
    """What a hypothesis is made of: of those that end, and of those that are cut."""
    rows = [h for model in _both(True) for row in f(model, SOURCES, max_len=3) for h in row]
    ids = {f"{type(h.ids).__name__} of {type(word).__name__}" for h in rows for word in h.ids}
    numbers = {type(number).__name__ for h in rows for number in (h.log_prob, h.score)}
    return {"ids": sorted(ids), "log-probabilities and scores": sorted(numbers)}


def _finished(f, beam=2):
    done = []
    for ids, log_prob in (([5, 2], -1.0), ([5, 6, 7, 2], -1.1), ([2], -3.0), ([8, 2], -0.5)):
        f(done, ids, log_prob, 0.6, beam)
    return {
        "words": [list(h.ids) for h in done],
        "log-probabilities": torch.tensor([h.log_prob for h in done]),
        "scores": torch.tensor([h.score for h in done]),
    }


ONE = Hypothesis([2], -1.0, -1.0)
LONG = Hypothesis([5, 6, 7, 5, 6, 7, 2], -3.0, -1.5)  # with alpha = 1, divided by 2


def _settled(f, finished, alive, alpha=1.0):
    """Whether two beams are settled; a sentence may have 7 tokens, which divides by 2."""
    now = torch.tensor([[best, -9.0] for best in alive])
    return bool(f(finished, now, 2, alpha, 7))


def _could_win(f):
    return [_settled(f, [[ONE, LONG]], [alive]) for alive in (-3.2, -2.5, -1.9, -1.0)]


def _for_nothing(f):
    short = Hypothesis([5, 2], -1.2, -1.2)
    return [_settled(f, [[ONE, short]], [alive], alpha=0.0) for alive in (-1.3, -1.1, -0.5)]


def _two_sentences(f):
    both = [[ONE, LONG], [ONE, LONG]]
    return [_settled(f, both, alive) for alive in ((-3.2, -3.4), (-3.2, -2.5), (-2.5, -3.2))]


def _too_few(f):
    return [
        _settled(f, finished, (-9.0, -9.0))
        for finished in ([[ONE, LONG], [ONE]], [[ONE], [ONE, LONG]], [[], []])
    ]


PARTS = (
    Part(
        "tinytf.decoding.search.next_scores",
        {
            "whole prefixes are read": _scores,
            "a cache has read all but the last word": lambda f: _scores(f, cached=True),
            "the model computes in half precision": _half,
        },
        tolerance=1e-4,
        equivalent={
            "… => …detach()…": SEARCHED,
            "… => ….float().float()": "they are in float32 already",
            "… => return scores.float()": "they are in float32 already",
            "… => scores.float()[:, [PAD, BOS]] = -torch.inf": "they are in float32 already",
            "… => scores[:, [BOS, PAD]] = -torch.inf": "the order of the two is nothing",
        },
    ),
    Part(
        "tinytf.decoding.search.greedy",
        {
            "two models translate three sentences": _written,
            "three words must be enough": lambda f: _written(f, max_len=3),
            "nothing is cached": lambda f: _written(f, use_cache=False),
            "rows end at different steps": lambda f: _written(f, ending=True),
            "the model is in training, with dropout": _words_while_training,
            "its work is counted": _work,
        },
        equivalent={
            "… => running &= token != EOS": "in place on what is the function's own",
            "… => … torch.ones(…, dtype=torch.bool)": ONE_DEVICE,
            "… => … torch.ones(…, device=model.device)": ONE_DEVICE,
            "… => …argmax(dim=1)": TWO_AXES,
        },
    ),
    Part(
        "tinytf.decoding.search.candidates",
        {
            "one sentence has two beams": lambda f: list(
                f(torch.tensor([[-1.0, -2.0]]), torch.log_softmax(wide(2, 3, seed=1), -1))
            ),
            "numbers are in float32": lambda f: dtypes(
                f(torch.tensor([[-1.0, -2.0]]), torch.log_softmax(torch.eye(2, 3), -1))[0]
            ),
            "two sentences have three": lambda f: list(
                f(wide(2, 3, seed=1), torch.log_softmax(wide(6, 7, seed=2), -1))
            ),
            "there are fewer words than beams": lambda f: list(
                f(torch.tensor([[0.0, -torch.inf]]), torch.log_softmax(wide(2, 1, seed=1), -1))
            ),
        },
        tolerance=1e-9,
        equivalent={
            "… => …topk(min(2 * beam, beam * vocab))": "the last axis is where it looks unasked",
            "… => …topk(…, dim=1)": TWO_AXES,
            "… => …log_probs.size(1)…": TWO_AXES,
            "… => …log_probs.reshape(-1, beam, vocab)…": "a copy is made if it must be",
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
    Part(
        "tinytf.decoding.search.settled",
        {
            "a beam could still win, or not": _could_win,
            "it could only tie": lambda f: _settled(f, [[ONE, LONG]], [-3.0]),
            "length counts for nothing": _for_nothing,
            "there are two sentences": _two_sentences,
            "there are not yet enough": _too_few,
            "there is one beam": lambda f: [
                bool(f([[LONG]], torch.tensor([[alive]]), 1, 1.0, 7)) for alive in (-3.2, -2.5)
            ],
        },
        equivalent={
            "… => bounds = alive[:, 0] / length_penalty(max_len, alpha)": (
                "tensors can be compared too"
            ),
            "… => …zip(finished, bounds)…": "there is a bound for each sentence",
            "… => …strict=False)…": "there is a bound for each sentence",
        },
    ),
    Part(
        "tinytf.decoding.search.beam_search",
        {
            "one beam searches": lambda f: _beams(f, beam=1),
            "four beams search": _beams,
            "length counts for nothing": lambda f: _beams(f, beam=3, alpha=0.0),
            "four words must be enough": lambda f: _beams(f, beam=2, max_len=4),
            "some end and some live on": lambda f: _beams(f, ending=True, alpha=1.0),
            "there are more beams than words": lambda f: _beams(f, ending=True, beam=12, max_len=1),
            "all is settled before the limit": lambda f: _steps(f, beam=2, alpha=0.0),
            "it is, and a long sentence is favoured": lambda f: [
                _steps(f, beam=2, alpha=alpha) for alpha in (0.6, 1.0)
            ],
            "the model is in training, with dropout": _beams_while_training,
            "its work is counted": lambda f: {"words that were read are read again": _read(f)},
            "ids are to be a list, scores plain numbers": _kinds,
        },
        tolerance=1e-4,
        equivalent={
            "… => alive = torch.full((src.size(0), beam), -torch.inf…)": ONE_DEVICE,
            "… => first = torch.arange(…)[:, None]": "all is on one device, and counted alike",
            "… => …isfinite().nonzero():": READ_ALIKE,
            "… => …isfinite()).nonzero():": READ_ALIKE,
            "… => prefix = ids[b * beam + beams[b, c], 1:].tolist()": READ_ALIKE,
            "… => log_probs = ….log_softmax(dim=1)": TWO_AXES,
            "… => alive[:, -1] = 0.0": "whichever of equal beams begins",
            "… => finished = [[] for _ in first]": "there is a row for each sentence",
            "… => ….topk(beam)": "the last axis is where it looks unasked",
            "… => ….topk(beam, dim=1)": TWO_AXES,
            "… => …reshape(-1, 1)…": "a copy is made if it must be",
        },
    ),
)
