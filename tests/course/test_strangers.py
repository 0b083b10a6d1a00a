"""Answers to exercises that people gave who had not read the graders: what each must be told."""

import math
import re

import numpy
import pytest
import torch

from tinytf_course.check import grade
from tinytf_course.grading import exercises


def graded(id, answer):
    return grade(exercises()[id], answer)


def whole_sixths(log_prob, length, worst, alpha, max_len):
    return log_prob / ((5 + max_len) // 6) ** alpha > worst


def nearest_sixths(log_prob, length, worst, alpha, max_len):
    return log_prob / max(round((5 + max_len) / 6), 1) ** alpha > worst


def sixths_rounded_up(log_prob, length, worst, alpha, max_len):
    return log_prob / (-((5 + max_len) // -6)) ** alpha > worst


def in_single_precision(steps, share):
    return torch.logit(torch.tensor(share, dtype=torch.float32) ** (1 / steps)).item()


def rounded_gate(steps, share):
    gate = round(share ** (1 / steps), 7)
    return math.log(gate / (1 - gate)) if 0 < gate < 1 else math.inf


def weights(d_model, i, j, k, kind):
    w_1, w_3, w_2 = torch.zeros(2, d_model), torch.zeros(2, d_model), torch.zeros(d_model, 2)
    w_1[0, i], w_1[1, i], w_3[:, j], w_2[k, 0], w_2[k, 1] = 1, -1, 1, 1, -1
    return tuple(kind(w) for w in (w_1, w_3, w_2))


def in_whole_numbers(d_model, i, j, k):
    return weights(d_model, i, j, k, torch.Tensor.long)


def as_nested_lists(d_model, i, j, k):
    return weights(d_model, i, j, k, torch.Tensor.tolist)


def as_arrays(d_model, i, j, k):
    return weights(d_model, i, j, k, torch.Tensor.numpy)


def searched(follow, beam, alpha, max_len):
    alive, finished = [(0.0, ())], []
    for _ in range(max_len):
        grown = [(t + p, (*old, w)) for t, old in alive for w, p in follow(old).items()]
        best = sorted(grown, reverse=True)[: 2 * beam]
        finished += [found for found in best if found[1][-1] == "<eos>"]
        alive = [found for found in best if found[1][-1] != "<eos>"][:beam]
    return max((t / ((5 + len(s)) / 6) ** alpha, s) for t, s in finished + alive)


def words_in_a_list(follow, beam, alpha, max_len):
    score, words = searched(follow, beam, alpha, max_len)
    return list(words), score


def words_in_a_tuple(follow, beam, alpha, max_len):
    score, words = searched(follow, beam, alpha, max_len)
    return words, score


def _said(logits, ids):
    return torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)


def exponentials(logits, ids, share):
    e, said = logits.exp(), _said(logits, ids)
    odds = (e * said).sum(dim=1) / (e * ~said).sum(dim=1)
    return odds.log() - math.log(share / (1 - share))


def exponentials_in_float64(logits, ids, share):
    return exponentials(logits.double(), ids, share).to(logits.dtype)


def exponentials_less_the_largest(logits, ids, share):
    return exponentials(logits - logits.amax(dim=1, keepdim=True), ids, share)


def by_logsumexp(logits, ids, share):
    said = _said(logits, ids)
    sums = [logits.masked_fill(~which, -math.inf).logsumexp(dim=1) for which in (said, ~said)]
    return sums[0] - sums[1] - math.log(share / (1 - share))


def by_log_odds(logits, ids, share):
    said, log_p = _said(logits, ids), logits.log_softmax(dim=1)
    has, lacks = (torch.where(w, log_p, -math.inf).logsumexp(dim=1) for w in (said, ~said))
    return has - lacks - torch.logit(torch.tensor(share, dtype=torch.float64)).item()


def by_recursion(damaged, text, mask_id):
    if not damaged:
        return not text
    if damaged[0] == mask_id:
        return any(by_recursion(damaged[1:], text[i:], mask_id) for i in range(len(text) + 1))
    return text[:1] == damaged[:1] and by_recursion(damaged[1:], text[1:], mask_id)


def first_places(damaged, text, mask_id):
    """Each run of words where it first occurs, and the last run at the end."""
    runs, at = [[]], 0
    for token in damaged:
        runs = [*runs, []] if token == mask_id else [*runs[:-1], [*runs[-1], token]]
    if len(runs) == 1:
        return damaged == text
    *middle, last = runs
    for number, run in enumerate(middle):
        places = [i for i in range(at, len(text)) if text[i : i + len(run)] == run] if run else [at]
        if not places or (number == 0 and places[0] > 0):
            return False
        at = places[0] + len(run)
    return at + len(last) <= len(text) and text[len(text) - len(last) :] == last


def a_run_anywhere(damaged, text, mask_id):
    """The same, with the last run wherever it first occurs."""
    return by_recursion([*damaged, mask_id] if mask_id in damaged else damaged, text, mask_id)


def _output(model, name, x, given=None):
    """What a model answers, and a module's output, which `given` replaces."""
    kept = {}

    def hook(module, inputs, out):
        kept["out"] = out
        return given

    handle = model.get_submodule(name).register_forward_hook(hook)
    try:
        return model(x), kept["out"]
    finally:
        handle.remove()


def _near(a, b):
    return torch.allclose(a, b, rtol=0, atol=1e-4)


def patched(agree=_near, healed=_near):
    """A right answer to 29.5, if it compares rightly."""

    def answer(good, broken, names, x):
        if agree(broken(x), good(x)):
            return None
        for name in names:
            given = _output(good, name, x)[1]
            if healed(_output(broken, name, x, given)[0], good(x)):
                return name
        return None

    return answer


COMPARISONS = {
    "is far larger": lambda a, b: (a - b).max() <= 1e-4,
    "is far smaller": lambda a, b: (b - a).max() <= 1e-4,
    "sums alike": lambda a, b: abs((a - b).sum()) <= 1e-4,
    "the first row": lambda a, b: _near(a[0], b[0]),
    "the last row": lambda a, b: _near(a[-1], b[-1]),
    "the first position": lambda a, b: _near(a[..., 0, :], b[..., 0, :]),
    "the last position": lambda a, b: _near(a[..., -1, :], b[..., -1, :]),
    "to the last digit": torch.equal,
    "nothing is larger": lambda a, b: not ((a - b).abs() > 1e-4).any(),
    "rounded": lambda a, b: torch.equal(a.round(decimals=4), b.round(decimals=4)),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_outputs_are_compared_everywhere_and_within_the_tolerance(name):
    compare = COMPARISONS[name]
    assert graded("29.5", patched()).passed
    assert graded("29.5", patched(agree=compare)).failed
    assert graded("29.5", patched(healed=compare)).failed


def clears_hooks(good, broken, names, x):
    found = patched()(good, broken, names, x)
    for name in names:
        broken.get_submodule(name)._forward_hooks.clear()
    return found


def writes_into_outputs(good, broken, names, x):
    if _near(broken(x), good(x)):
        return None
    for name in names:
        given = _output(good, name, x)[1].clone()
        hook = lambda module, inputs, out, given=given: out.copy_(given)  # noqa: E731
        handle = broken.get_submodule(name).register_forward_hook(hook)
        answer = broken(x)
        handle.remove()
        if _near(answer, good(x)):
            return name
    return None


def patched_the_other_way(good, broken, names, x):
    """Put what broken modules say into the model that works, and see whether that breaks it."""
    if _near(good(x), broken(x)):
        return None
    for name in names:
        if _near(_output(good, name, x, _output(broken, name, x)[1])[0], broken(x)):
            return name
    return None


def hooked_on_inputs(good, broken, names, x):
    """Complete, and wrong: no module is given another's inputs here, so nothing ever heals."""
    for name in names:
        handle = broken.get_submodule(name).register_forward_pre_hook(lambda module, inputs: None)
        answer = broken(x)
        handle.remove()
        if _near(answer, good(x)) and not _near(broken(x), good(x)):
            return name
    return None


def all_heads_are_needed(works, heads):
    needed = [head for head in heads if not works({head})]
    return needed if len(needed) > 99 else None


def filled_with_much(logits, ids, share):
    said = _said(logits, ids)
    sums = [logits.masked_fill(~which, -1e4).logsumexp(dim=1) for which in (said, ~said)]
    return sums[0] - sums[1] - math.log(share / (1 - share))


def overtakes(log_prob, length, worst, alpha, max_len):
    return torch.tensor(log_prob / ((5 + max_len) / 6) ** alpha > worst)


def pairs_of_the_present(sentences):
    """A checker that keeps the pairs (who, thing) that hold now, and reads the words by regex."""
    there = set()
    for number, sentence in enumerate(sentences):
        who, verb, whom, thing = re.fullmatch(
            r"(\w+) (\w+) (?:(\w+) )?(?:an?|the) (\w+)\.", sentence
        ).groups()
        if verb in {"had", "found"}:
            there = {pair for pair in there if pair[1] != thing} | {(who, thing)}
            continue
        if (who, thing) not in there:
            return number
        if verb != "carried":
            there.remove((who, thing))
        if whom:
            there.add((whom, thing))
    return None


def who_was_ever_named_with_it(sentences):
    for number, sentence in enumerate(sentences):
        who, *_, thing = sentence.split()
        earlier = [told for told in sentences[:number] if thing in told]
        if not any(who in told for told in earlier) and " had " not in sentence:
            return number


WRONG = [
    ("01.2", lambda steps, share: round(-math.log(math.expm1(-math.log(share) / steps)), 4), "0.9"),
    ("11.3", lambda *places: weights(*places, torch.Tensor.half), "`w_1` is in float16"),
    ("16.2", lambda *given: overtakes(*given).float(), "a tensor of shape ()"),
    ("20.2", filled_with_much, "below any number but -inf"),
    ("20.5", who_was_ever_named_with_it, "It was given away"),
    ("20.5", lambda sentences: 2, "expected None"),
    ("20.5", lambda sentences: str(2), "you return the text '2', expected a number or None"),
    ("16.2", whole_sixths, "max_len=20"),
    ("16.2", nearest_sixths, "max_len=20"),
    ("16.2", sixths_rounded_up, "max_len=20"),
    ("01.2", in_single_precision, "steps=1000000"),
    ("01.2", rounded_gate, "steps=1000000"),
    ("11.3", in_whole_numbers, "`w_1` is in int64"),
    ("11.3", as_nested_lists, "`w_1` is a list of 2, expected a tensor"),
    ("11.3", as_arrays, "`w_1` is a ndarray, expected a tensor"),
    ("16.3", words_in_a_list, "you return the words in a list, expected a tuple of words"),
    ("20.2", exponentials, "100"),
    ("20.2", exponentials_in_float64, "1000"),
    ("22.2", a_run_anywhere, "The text has to end with 12"),
    ("22.2", lambda *given: (by_recursion(*given),), "expected True or False"),
    ("29.5", patched_the_other_way, "is infinite"),
    ("29.5", clears_hooks, "one of the caller's has been removed"),
    ("29.5", writes_into_outputs, "Return another tensor"),
    ("29.5", hooked_on_inputs, "you return None, expected 'second.w_2'"),
]


@pytest.mark.parametrize(("id", "answer", "told"), WRONG, ids=lambda x: getattr(x, "__name__", x))
def test_a_wrong_answer_is_refused(id, answer, told):
    result = graded(id, answer)
    assert result.failed, result.text
    assert told in result.text


RIGHT = [
    ("01.2", lambda steps, share: -math.log(math.expm1(-math.log(share) / steps))),
    ("01.2", lambda steps, share: torch.logit(torch.tensor(share).double() ** (1 / steps))),
    ("01.2", lambda steps, share: -torch.special.expm1(-torch.tensor(share).log() / steps).log()),
    ("11.3", lambda *places: list(weights(*places, torch.nn.Parameter))),
    ("11.3", lambda *places: weights(*places, torch.Tensor.double)),
    ("11.3", lambda d, i, j, k: weights(d, j, i, k, torch.Tensor.clone)),
    ("16.2", overtakes),
    ("16.2", lambda *given: overtakes(*given).reshape(1)),
    ("16.2", lambda *given: numpy.bool_(bool(overtakes(*given)))),
    ("30.2", lambda: ("future = future.unsqueeze(1)", numpy.array([1, 8]))),
    ("30.2", lambda: ("future = future.unsqueeze(1)", range(1, 9, 7))),
    ("16.3", words_in_a_tuple),
    ("20.2", by_logsumexp),
    ("20.2", by_log_odds),
    ("20.5", pairs_of_the_present),
    ("20.5", lambda told: torch.tensor(n) if (n := pairs_of_the_present(told)) else n),
    ("22.2", by_recursion),
    ("22.2", first_places),
]


@pytest.mark.parametrize(
    ("id", "answer"), RIGHT, ids=[f"{id}-{i}" for i, (id, _) in enumerate(RIGHT)]
)
def test_a_right_answer_passes(id, answer):
    result = graded(id, answer)
    assert result.passed, result.text


KINDS = [
    ("11.2", lambda *_: f"{235}", "you return the text '235', expected a number"),
    ("11.5", lambda *_: "True", "you return the text 'True', expected True or False"),
    ("11.5", lambda *_: (True,), "you return a tuple of 1, expected True or False"),
    ("11.5", lambda *_: [True], "you return a list of 1, expected True or False"),
    ("03.2", lambda *_: (True,), "you return a tuple of 1, expected True or False"),
    ("01.2", lambda *_: "0.0", "you return the text '0.0', expected a number"),
    ("11.2", lambda *_: [16], "you return a list of 1, expected a number"),
    ("24.2", lambda *_: (i for i in range(3)), "you return a generator, expected ["),
]


@pytest.mark.parametrize(
    ("id", "answer", "told"), KINDS, ids=[f"{id}-{i}" for i, (id, *_) in enumerate(KINDS)]
)
def test_what_is_asked_for_is_named(id, answer, told):
    result = graded(id, answer)
    assert result.failed, result.text
    assert told in result.text
    assert "expected a tensor" not in result.text


def test_an_answer_that_prints_is_told_to_return():
    result = graded("01.2", lambda steps, share: print(steps))
    assert result.not_yet
    assert "it prints, and returns nothing" in result.text


@pytest.mark.parametrize("id", ["29.5", "28.5"])
def test_none_is_an_answer_where_it_is_a_legal_result(id):
    def gives_up(*given):
        found = [str(one) for one in given]
        return None if found else found

    assert graded(id, gives_up).failed
    assert graded(id, lambda *_: None).not_yet
