"""Chapter 20: how a text repeats itself, and the rules of sampling."""

import itertools
import math

import torch

from tinytf.decoding.generate import pad_left
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.support.randomness import seeded
from tinytf_course.draws import by_its_generator, calling, often, outcome
from tinytf_course.parts import Part
from tinytf_course.parts.ch05 import dtypes, wide

TEXT = torch.tensor([[1, 2, 3, 1, 2, 3, 1, 2], [4, 4, 4, 4, 4, 5, 6, 7]])
FEW = torch.tensor([[2.0, 1.0, 0.5, -1.0]])
TIES = torch.tensor(
    [[1.0, 3.0, 1.0, 1.0, 0.0], [2.0, 2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 0.0, 3.0, 4.0]]
)
HALF = math.log(0.5)
RULED_OUT = torch.tensor([[1.0, -math.inf, 0.5, -math.inf]])


def _rule(*settings):
    scripts = {}
    for setting in settings:
        scripts |= {
            f"four tokens are left to choose from, with {setting}": lambda f, s=setting: f(FEW, s),
            f"tokens tie, with {setting}": lambda f, s=setting: f(TIES, s),
            f"some are ruled out already, with {setting}": lambda f, s=setting: f(RULED_OUT, s),
            f"there are 3 rows of 20, with {setting}": lambda f, s=setting: f(
                wide(3, 20, seed=1) * 3, s
            ),
            f"there are 2 texts of 3 rows, with {setting}": lambda f, s=setting: f(
                torch.cat([wide(2, 3, 5, seed=1), torch.zeros(2, 3, 2)], dim=-1), s
            ),
            f"there is one row and no batch, with {setting}": lambda f, s=setting: f(TIES[0], s),
        }
    return scripts | {
        f"numbers are in half precision, with {settings[0]}": lambda f: dtypes(
            f(FEW.half(), settings[0])
        ),
        f"the logits that it is given stay as they are, with {settings[0]}": lambda f: _left(
            f, settings[0]
        ),
    }


def _left(f, *given):
    """The logits that were given, after the call."""
    logits = TIES.clone()
    f(logits, *given)
    return logits


ONE_DEVICE = "all is on one device here"
TWO_AXES = "of two axes the last is 1"
CLOSE = torch.tensor(
    [[0.5, 1.0, 1.0 + 1e-12]], dtype=torch.float64
)  # one, for who reads it in float32


PAIR = torch.tensor([[1.0, 0.0, -1.0, -math.inf], [0.5, 0.5, 2.0, -2.0]])
LARGE = torch.tensor([[100.0, 99.0, 0.0], [-1000.0, -1001.0, -1002.0]])
STEEP = torch.tensor([[math.log(n) for n in (1, 2, 3, 4, 90)]])


def _joint(logits):
    """The chance of each row of tokens, one for each row of logits."""
    rows = [dict(enumerate(row)) for row in logits.double().softmax(dim=-1).tolist()]
    chances = {}
    for tokens in itertools.product(*rows):
        chance = math.prod(row[token] for row, token in zip(rows, tokens, strict=True))
        if chance > 0:
            chances[tokens] = chance
    return chances


def _in_pairs(f, logits, *given):
    """What two rows of logits give together, in 2000 such pairs of one batch."""
    ids = f(logits.repeat(2000, 1), *given, torch.Generator().manual_seed(5))
    return outcome(ids.reshape(-1, 2))


def _sampled(logits):
    return lambda f: {"draws": often(_in_pairs(f, logits), _joint(logits))}


def _in_one_batch(f):
    rows = f(STEEP.expand(4000, 5), torch.Generator().manual_seed(5))
    return {"draws": often([(n,) for n in rows.tolist()], _joint(STEEP))}


def _sampled_unasked(f):
    torch.manual_seed(3)
    rows = f(STEEP.expand(4000, 5))
    torch.manual_seed(4)
    return {
        "draws": often([(n,) for n in rows.tolist()], _joint(STEEP)),
        "torch's seed is what it depends on": not torch.equal(rows, f(STEEP.expand(4000, 5))),
    }


def _penalised(*settings):
    said = torch.tensor([[1, 1, 3], [0, 2, 2]])
    return {
        "numbers are in half precision": lambda f: dtypes(
            f(wide(2, 5, seed=1).half(), said, settings[0])
        ),
        "numbers are in float32": lambda f: dtypes(
            f(wide(2, 5, seed=1).float(), said, settings[0])
        ),
        "the logits that it is given stay as they are": lambda f: _left(
            f, torch.tensor([[1], [0], [2]]), settings[1]
        ),
    } | {
        f"tokens were said before, with {setting}": lambda f, s=setting: f(
            wide(2, 5, seed=1), said, s
        )
        for setting in settings
    }


SAID = torch.tensor([[1, 1, 3], [0, 2, 2]])
PROMPTS = torch.tensor([[1, 5, 2], [7, 3, 3]])


def _set_to_0(rules):
    """Whether a share of 0 reaches its function: that refuses it, or keeps the likeliest token."""
    logits = wide(2, 5, seed=1)
    try:
        return {"it is applied": not torch.equal(rules(top_p=0.0)(logits, SAID.clone()), logits)}
    except ValueError:
        return {"it is applied": True}


def _left_by(rule):
    """The logits and the ids that were given, after the call."""
    logits, ids = wide(2, 5, seed=1), SAID.clone()
    rule(logits, ids)
    return {"logits": logits, "ids": ids}


def _settings():
    def run(rules, rows=1, **settings):
        logits = wide(2 * rows, 5, seed=1) * 3
        return rules(**settings)(logits, SAID.repeat(rows, 1))

    alone = [
        ("repetition_penalty", 1.5), ("presence_penalty", 0.7), ("temperature", 0.5), ("top_k", 2),
        ("top_p", 0.6), ("min_p", 0.3),
    ]  # fmt: skip
    all_of_them = dict(alone) | {"temperature": 0.9, "top_k": 4, "top_p": 0.97, "min_p": 0.01}
    return {
        "nothing is set": lambda rules: run(rules),
        **{f"{name} is set": lambda rules, s={name: v}: run(rules, **s) for name, v in alone},
        "all are set": lambda rules: run(rules, **all_of_them),
        **{
            f"{' and '.join(dict(two))} are set": lambda rules, s=dict(two): run(rules, 40, **s)
            for two in itertools.combinations(alone, 2)
        },
        "what it is given stays as it is": lambda rules: _left_by(rules(**all_of_them)),
        "penalty, temperature and top-p are set": lambda rules: run(
            rules, repetition_penalty=3.0, temperature=0.4, top_p=0.9
        ),
        "all are set, in float32": lambda rules: dtypes(
            rules(**all_of_them)(wide(2, 5, seed=1).float(), SAID)
        ),
        "0 is set, which is not None": _set_to_0,
        "what was set is read": lambda rules: [rules(top_k=3).top_k, rules(min_p=0.1).min_p],
    }


def _chosen(rule):
    logits = wide(2, 5, seed=1)
    chances = _joint(rule(logits, SAID))
    return lambda choose: {
        "draws": often(_in_pairs(choose, logits, SAID.repeat(2000, 1), rule), chances)
    }


def _by_rule(choose):
    """`choose` as a function of the logits and a generator."""
    rule = Sampling(temperature=3.0)
    return lambda logits, generator: choose(logits, SAID, rule, generator)


def _chosen_unasked(choose):
    logits, rule = wide(2, 5, seed=1), Sampling(temperature=2.0)
    torch.manual_seed(2)
    rows = choose(logits.repeat(2000, 1), SAID.repeat(2000, 1), rule).reshape(-1, 2)
    return {"draws": often(outcome(rows), _joint(rule(logits, SAID)))}


def _model(vocab_size=11, **choices):
    """A small model of 8 positions, sure of itself, in training mode."""
    with seeded(0):
        model = GPT(
            GPTConfig(vocab_size, d_model=8, num_heads=2, num_layers=2, max_len=8, **choices)
        )
    for table in model.parameters():
        table.data.mul_(3)
    return model.train()


def _continued(tokens=4, keep=None, padded=False, **settings):
    """Continue prompts with a small model of 8 positions, by a rule if there are settings."""

    def run(generate):
        model = _model()
        rule = Sampling(**settings) if settings else None
        ids, mask = pad_left([[1, 5, 2], [7]]) if padded else (PROMPTS, None)

        def text(use_cache):
            more = {"generator": torch.Generator().manual_seed(3), "use_cache": use_cache}
            return generate(model, ids, tokens, rule, mask=mask, end_id=4, keep=keep, **more)

        return {"cached": text(True), "read anew": text(False), "in training mode": model.training}

    return run


def _text_chances(rule):
    """The chance of each two tokens that the small model says after a prompt."""
    model = _model(tie_output=False).eval()
    chances = {}
    with torch.no_grad():
        first = _joint(rule(model(PROMPTS[:1])[:, -1], PROMPTS[:1]))
        for (one,), chance in first.items():
            ids = torch.cat([PROMPTS[:1], torch.tensor([[one]])], dim=1)
            for (two,), after in _joint(rule(model(ids)[:, -1], ids)).items():
                chances[one, two] = chance * after
    return chances


WARM = Sampling(temperature=2.0, presence_penalty=1.0)


def _many_texts(generate, seed=None):
    """How often each two tokens follow, in 2000 rows of one prompt."""
    torch.manual_seed(4)
    ids, made = PROMPTS[:1].expand(2000, 3), {}
    if seed is not None:
        made["generator"] = torch.Generator().manual_seed(seed)
    said = generate(_model(tie_output=False), ids, 2, WARM, **made)[:, 3:]
    return {"draws": often(outcome(said), _text_chances(WARM))}


def _by_its_generator(generate):
    model = _model(tie_output=False)
    return by_its_generator(lambda g: generate(model, PROMPTS, 4, WARM, generator=g), 3)


def _unended(generate):
    """Nothing ends a row."""
    return generate(_model(tie_output=False), PROMPTS, 6)


def _ended(generate):
    """Both rows have ended after three of seven tokens, and no generator is given."""
    return generate(_model(), torch.tensor([[1], [2]]), 7, end_id=10)


def _read(generate, **named):
    """How many tokens of a row the model reads to say four more."""
    model, lengths = _model(), []
    model.embedding.register_forward_hook(lambda module, given, out: lengths.append(out.size(1)))
    generate(model, PROMPTS, 4, **named)
    return sum(lengths)


def _work(generate):
    return {
        "what is read is kept": _read(generate) <= 7,
        "every context is read, without a cache": _read(generate, use_cache=False) >= 18,
    }


def _behind_padding(generate, prompts, tokens, pads=range(11), **named):
    """Whatever id stands for padding, also one that would be said."""
    out = {}
    for pad in pads:
        ids, mask = pad_left(prompts, pad)
        rule = Sampling(presence_penalty=9.0, top_k=1)
        said = generate(_model(), ids, tokens, rule, mask=mask, **named)
        out[f"padding is {pad}"] = said[:, ids.size(1) :]
    return out


def _float64(generate):
    """What a model in float64 says, and its dtype then."""
    model = _model().double()
    return [generate(model, PROMPTS, 3), model.table.detach()]


def _finely(generate):
    """Scores of a model that differ by a hundred thousandth of themselves."""
    model = _model(tie_output=False)
    with torch.no_grad():
        model.output.weight.copy_(model.output.weight[:1] * (1 + 1e-5 * torch.arange(11)[:, None]))
    return generate(model, torch.arange(11)[:, None], 1)


PARTS = (
    Part(
        "tinytf.metrics.repetition.distinct_ngrams",
        {f"n is {n}": lambda f, n=n: f(TEXT, n) for n in (1, 2, 4, 8)}
        | {"ids are large": lambda f: f(torch.tensor([[2**24, 2**24 + 1, 2**24]]), 1)},
        equivalent={
            "… => return torch.tensor(counts)…": ONE_DEVICE,
            "… => …device=windows.device)…": ONE_DEVICE,
        },
    ),
    Part(
        "tinytf.metrics.repetition.repeated_ngrams",
        {f"n is {n}": lambda f, n=n: f(TEXT, n) for n in (1, 4)}
        | {"nothing is said of n": lambda f: f(TEXT)},
    ),
    Part(
        "tinytf.metrics.repetition.entropy",
        {
            "all are as likely": lambda f: f(torch.zeros(1, 4).double()),
            "some are ruled out": lambda f: f(RULED_OUT.double()),
            "there are 3 rows": lambda f: f(wide(3, 20, seed=1) * 3),
            "there are 2 texts of 3 rows": lambda f: f(wide(2, 3, 5, seed=1)),
            "there is one row and no batch": lambda f: f(wide(5, seed=1)),
            "all of a row are ruled out": lambda f: {
                "it is NaN": f(torch.tensor([[0.0, 1.0], [-math.inf, -math.inf]])).isnan()
            },
            "numbers are in float32": lambda f: dtypes(f(FEW)),
        },
        tolerance=1e-9,
        equivalent={
            "… => …masked_fill(logits == -torch.inf, 1.0)…": "it is multiplied by a 0",
            "… => …masked_fill(log_p == -torch.inf, …": "both are -inf for the same tokens",
        },
    ),
    Part(
        "tinytf.decoding.sampling.sample",
        {
            "there is only one token": lambda f: f(torch.zeros(2, 1)),
            "only one token is possible": lambda f: f(torch.tensor([[-math.inf, 0.0, -math.inf]])),
            "only one of 3000 tokens is possible, in 1000 rows": lambda f: f(
                torch.full((1, 3000), -math.inf).index_fill(1, torch.tensor(7), 0).expand(1000, -1)
            ),
            "two rows are drawn, in 2000 pairs": _sampled(PAIR),
            "4000 rows are drawn at once": _in_one_batch,
            "logits are large, or far below zero": _sampled(LARGE),
            "two generators draw": lambda f: by_its_generator(calling(f, wide(4, 6, seed=1))),
            "numbers are in half precision": lambda f: dtypes(
                f(STEEP.half(), torch.Generator().manual_seed(1))
            ),
            "no generator is given": _sampled_unasked,
        },
        equivalent={
            "if generator is not None: / probs = probs.to(generator.device) => (nothing)": (
                ONE_DEVICE
            ),
            "probs = probs.to(generator.device) => …": "on one device, rounding changes no draw",
            "… => return torch.multinomial(probs, 1, generator=generator)[:, 0]": ONE_DEVICE,
            "… => return torch.multinomial(probs, 1, generator=generator)[:, 0].to()": ONE_DEVICE,
            "… => ….to(probs.device)": ONE_DEVICE,
            "… => …[:, -1]…": "there is one column",
            "… => probs = wide(logits).softmax(dim=1)": TWO_AXES,
            "… => probs = ….softmax(dim=-1)…": "rounding a probability changes no draw",
        },
    ),
    Part(
        "tinytf.decoding.sampling.temperature",
        _rule(0.5, 1.0, 2.0),
    ),
    Part(
        "tinytf.decoding.sampling.top_k",
        _rule(1, 2, 3)
        | {
            "the last place of 2051 goes to one of many": lambda f: f(torch.zeros(1, 2100), 2051),
            "two differ by little, in float64": lambda f: f(CLOSE, 1),
            "two tie, in float64": lambda f: f(CLOSE[:, [0, 2, 2]], 1),
        },
        equivalent={
            "… => last = logits.topk(k)…": "the last axis is where it looks unasked",
        },
    ),
    Part(
        "tinytf.decoding.sampling.top_p",
        _rule(0.5, 0.9, 1)
        | {
            "exactly half is held by two": lambda f: f(torch.zeros(2, 4), 0.5),
            "p is 1, and a token hardly counts": lambda f: f(torch.tensor([[0.0, -99.0]]), 1),
            "3001 of 4096 are just enough": lambda f: f(torch.zeros(1, 4096), 3000.5 / 4096),
            "they are, in half precision": lambda f: f(torch.zeros(1, 4096).half(), 3000.5 / 4096),
            "one of two is just not enough, in float64": lambda f: f(
                torch.zeros(1, 2).double(), 0.5 + 1e-9
            ),
        },
        equivalent={
            "… => return logits": "nobody changes what is returned",
            "… => ranked, order = wide(logits).sort(descending=True, stable=True)": (
                "the last axis is where it looks unasked"
            ),
            "… => enough = (total >= p).roll(1)": "what rolls into a row is overwritten",
            "… => …masked_fill(enough.scatter(…": "every place is written anew",
            "… => …ones_like(enough).scatter(…": "every place is written anew",
        },
    ),
    Part(
        "tinytf.decoding.sampling.min_p",
        _rule(0.1, 0.5, 1.0)
        | {
            "one is just too unlikely": lambda f: f(torch.tensor([[0.0, HALF - 1e-5]]), 0.5),
            "it is, in float64": lambda f: f(
                torch.tensor([[0.0, HALF - 1e-9]], dtype=torch.float64), 0.5
            ),
            "one is too unlikely by half precision's last digit": lambda f: f(
                torch.tensor([[0.0, HALF - 2e-4]]).half(), 0.5
            ),
        },
    ),
    Part(
        "tinytf.decoding.sampling.presence_penalty",
        _penalised(0.5, 2.0),
        tolerance=1e-9,
    ),
    Part(
        "tinytf.decoding.sampling.repetition_penalty",
        _penalised(1.0, 1.5),
        tolerance=1e-9,
        equivalent={
            "… => …where(logits >= 0, …": "a logit of 0 stays 0 either way",
        },
    ),
    Part(
        "tinytf.decoding.sampling.Sampling",
        _settings(),
        tolerance=1e-9,
    ),
    Part(
        "tinytf.decoding.generate.choose",
        {
            "there is no rule": lambda choose: choose(wide(2, 5, seed=1), SAID),
            "there is no rule, and a generator": lambda choose: choose(
                wide(2, 5, seed=1), SAID, None, torch.Generator().manual_seed(1)
            ),
            "tokens tie, and there is no rule": lambda choose: choose(TIES, SAID),
            "two differ by little, in float64": lambda choose: choose(CLOSE, SAID[:1]),
            "there is a rule, and no generator": _chosen_unasked,
            "there is a rule, and the ids' kind counts": lambda choose: dtypes(
                choose(wide(2, 5, seed=1), SAID, Sampling(temperature=2.0))
            ),
            "there is a rule, and two generators draw": lambda choose: by_its_generator(
                calling(_by_rule(choose), wide(2, 5, seed=1))
            ),
            "a rule takes the likeliest": _chosen(Sampling(top_k=1)),
            "a rule looks at what was said": _chosen(Sampling(presence_penalty=2.0)),
        },
        equivalent={
            "… => return logits.argmax(dim=1)": TWO_AXES,
        },
    ),
    Part(
        "tinytf.decoding.generate.generate",
        {
            "no token is asked for": _continued(0),
            "the likeliest four are asked for": _continued(),
            "four are taken by a rule": _continued(presence_penalty=1.0, top_k=1),
            "rows end": _continued(30, presence_penalty=2.0, top_k=1),
            "the window is full": _continued(12, presence_penalty=0.5, top_k=1),
            "the window is full, and half is kept": _continued(
                12, keep=4, presence_penalty=0.5, top_k=1
            ),
            "a prompt stands behind padding": _continued(padded=True),
            "a penalty must not count the padding": _continued(
                padded=True, presence_penalty=5.0, top_k=1
            ),
            "three prompts stand behind padding of any id": lambda f: _behind_padding(
                f, [[1, 5, 2, 3], [7], [6, 6]], 2
            ),
            "the window is full, and padding in it": lambda f: _behind_padding(
                f, [[1, 5, 2, 3, 9, 10, 1], [7, 8]], 4, pads=[0], keep=7
            ),
            "nothing ends a row": _unended,
            "a rule draws without a generator": _many_texts,
            "a generator draws": lambda f: _many_texts(f, 6),
            "two generators draw": _by_its_generator,
            "all rows have ended early": _ended,
            "its work is counted": _work,
            "ids are 32 bits long": lambda f: f(_model(), PROMPTS.int(), 2, end_id=4),
            "the vocabulary has 3001 tokens": lambda f: f(
                _model(3001, tie_output=False), PROMPTS, 4, end_id=4
            ),
            "the model is in float64": _float64,
            "scores differ by little": _finely,
        },
        equivalent={
            "… => … torch.ones(…, dtype=torch.bool)": ONE_DEVICE,
            "… => … torch.ones(…, device=model.device)": ONE_DEVICE,
            "… => hidden = decode(new, cache, padding)": "a padding of None is none",
            "… => hidden = decode(new, cache) if new is None else …": "a padding of None is none",
            "… => …torch.where(mask[:, -1, 0]…": "the last of one is the first",
            "… => …torch.where(mask[:, 0, -1]…": "the last of one is the first",
            "… => logits = model.output(hidden[:, -1])": "what chooses takes any floats",
            "… => if not running.any():": "where nothing ends a row, all run on",
            "… => if keep is not None and (not running.any()):": "it is not None any more",
            "… => if use_cache is not None and (not running.any()):": "it is never None",
        },
    ),
)
