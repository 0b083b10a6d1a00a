"""No wrong name: answers that were told once to have a mistake that they do not have."""

import math
import sys
from types import SimpleNamespace

import pytest
import torch

from tinytf.text.merges import apply_merges
from tinytf_course.check import UNTOUCHED, Verdict, diagnose, grade
from tinytf_course.expect import agrees
from tinytf_course.grading import Exercise, exercises


def searched(follow, beam, alpha, max_len, ends=None, at_first=False):
    """16.3: `ends` is how many of the best may finish; `at_first` stops when one has."""
    alive, finished = [((), 0.0)], []
    for _ in range(max_len):
        grown = [((*old, w), t + p) for old, t in alive for w, p in follow(old).items()]
        grown.sort(key=lambda each: each[1], reverse=True)
        best = grown[: 2 * beam]
        finished += [each for each in (grown if ends == "all" else best) if each[0][-1] == "<eos>"]
        alive = [each for each in best if each[0][-1] != "<eos>"][:beam]
        if at_first and finished:
            alive = []
            break
    scored = [(t / ((5 + len(s)) / 6) ** alpha, s) for s, t in finished + alive]
    score, words = max(scored)
    return words, score


def stops_when_one_has_finished(follow, beam, alpha, max_len):
    return searched(follow, beam, alpha, max_len, at_first=True)


def lets_all_ends_finish(follow, beam, alpha, max_len):
    return searched(follow, beam, alpha, max_len, ends="all")


def divides_both(log_prob, length, worst, alpha, max_len):
    penalty = ((5 + max_len) / 6) ** alpha
    return log_prob / penalty > worst / penalty


def the_power_first(log_prob, length, worst, alpha, max_len):
    return log_prob / ((5 + max_len) / 6**alpha) > worst


def as_bad_as_so_far(log_prob, length, worst, alpha, max_len):
    to_come = log_prob * max_len / max(length, 1)
    return to_come / ((5 + max_len) / 6) ** alpha > worst


def at_most_so_many(logits, p, least=1):
    ranked, order = logits.sort(dim=-1, descending=True)
    probs = ranked.softmax(dim=-1)
    enough = probs.cumsum(dim=-1) - probs >= p
    enough[:, least:] = True
    return logits.masked_fill(torch.zeros_like(enough).scatter(-1, order, enough), -math.inf)


def cut_at_the_last_end_drawn(ids, end_id):
    is_end = ids == end_id
    ended = is_end.cumsum(dim=1) > 0
    steps = int(is_end.any(dim=0).nonzero().max()) + 1 if is_end.any() else ids.size(1)
    return ids.masked_fill(ended, end_id)[:, : steps if is_end.any(dim=1).all() else ids.size(1)]


def with_pairs(merges):
    return {new_id: pair for pair, new_id in merges.items()}


def letters(ids, merges):
    pair_of, found, todo = with_pairs(merges), [], list(reversed(ids))
    while todo:
        one = todo.pop()
        if one in pair_of:
            todo += reversed(pair_of[one])
        else:
            found.append(one)
    return found


def a_tuple_is_no_list(ids, merges):
    return tuple(apply_merges(letters(ids, merges), merges)) == list(ids)


def as_many_as_before(ids, merges):
    return len(apply_merges(letters(ids, merges), merges)) == len(ids)


def each_id_by_itself(ids, merges):
    return all(apply_merges(letters([one], merges), merges) == [one] for one in ids)


def the_latest_merge_first(ids, merges):
    row = letters(ids, merges)
    for pair, new_id in sorted(merges.items(), key=lambda each: -each[1]):
        row = apply_merges(row, {pair: new_id})
    return row == list(ids)


def rounded_down(width, d_ff, multiple_of=1):
    return width == 2 * d_ff // 3 // multiple_of * multiple_of


def four_thirds(width, d_ff, multiple_of=1):
    return width == math.ceil(4 * d_ff / 3 / multiple_of) * multiple_of


def half_of_the_attention(length, d_model, num_heads, d_ff):
    attention = 4 * length * length * d_model // 2
    return 8 * length * d_model**2 + attention + 4 * length * d_model * d_ff


def a_softmax_as_well(length, d_model, num_heads, d_ff):
    attention = 2 * length * length * d_model + 2 * length * length * num_heads
    return 8 * length * d_model**2 + attention + 4 * length * d_model * d_ff


def hidden_with_minus_100(x, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = ((x @ w).unflatten(-1, (num_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = q @ k.mT / math.sqrt(q.size(-1))
    later = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, -100.0).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o


def summed_with_their_signs(function, x):
    x = x.detach().requires_grad_()
    out = function(x)
    for t in range(x.size(1) - 1):
        (grad,) = torch.autograd.grad(
            out[:, t].sum(), x, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        if grad[:, t + 1 :].sum() != 0:
            return True
    return False


def whatever_the_words(answers, words, control):
    found = []
    for i in range(len(answers)):
        turn = [(i + step) % len(answers) for step in range(1, len(answers))]
        fitting = [j for j in turn if (answers[j] == answers[i]) == control]
        found.append(fitting[0] if fitting else -1)
    return torch.tensor(found, dtype=torch.long)


NO_NAME = None
GIVEN = [
    ("16.3", stops_when_one_has_finished, "stops at the first that ends"),
    ("16.3", lets_all_ends_finish, "all that ends is finished"),
    ("16.2", divides_both, "no penalty at all"),  # worst / p < log_prob / p is worst < log_prob
    ("16.2", the_power_first, "the power of 6 alone"),
    ("16.2", as_bad_as_so_far, NO_NAME),
    ("20.1", at_most_so_many, "least taken for the most"),
    ("20.3", cut_at_the_last_end_drawn, NO_NAME),
    ("13.3", lambda function, x: True, NO_NAME),
    ("13.3", summed_with_their_signs, NO_NAME),
    ("03.2", a_tuple_is_no_list, NO_NAME),
    ("03.2", as_many_as_before, NO_NAME),
    ("03.2", each_id_by_itself, NO_NAME),
    ("03.2", the_latest_merge_first, NO_NAME),
    ("11.5", rounded_down, NO_NAME),
    ("11.5", four_thirds, NO_NAME),
    ("26.1", half_of_the_attention, "scores without the weighted sum"),  # the same number
    ("26.1", a_softmax_as_well, NO_NAME),
    ("06.2", hidden_with_minus_100, "hidden with a low number"),
    ("29.3", whatever_the_words, "words are not compared"),
    *((id, lambda *_, value=value, **__: value, NO_NAME)
      for id in ("00.2", "03.1", "15.1", "17.3", "17.4", "20.4", "27.2")
      for value in (0.0, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("id", "answer", "name"), GIVEN, ids=[f"{id}-{n}" for n, (id, *_) in enumerate(GIVEN)]
)
def test_a_name_is_right_or_there_is_none(id, answer, name):
    result = grade(exercises()[id], answer)
    assert result.failed, result.text
    assert (result.mistake.name if result.mistake else None) == name, result.text


# diagnose


def failed(**found):
    """Verdicts of tests that failed, each with its words as the answer's only result."""
    return [Verdict(says, words, (words,)) for says, words in found.items()]


def held(*tests):
    return [Verdict(says, None, ()) for says in tests]


@pytest.fixture
def named(monkeypatch):
    """What the name is, of mistakes that do this in the tests a, b and c, for an answer's."""

    def name(answer, **mistakes):
        asked = SimpleNamespace(
            wrong=tuple(mistakes), tests=tuple("abc"), changes=(), none_is_a_result=False
        )
        check = sys.modules["tinytf_course.check"]
        monkeypatch.setattr(check, "_mistakes", lambda _: list(mistakes.values()))
        return diagnose(asked, answer)

    return name


def test_a_mistake_is_none_that_fails_what_the_answer_passes(named):
    both = failed(a="x", b="y")
    assert named(both, one=both) == "one"
    assert named(both, one=failed(a="x", b="y", c="z")) == "one"  # it was stopped before c
    assert named(both + held("c"), one=failed(a="x", b="y", c="z")) is None
    assert named(both + held("c"), one=both, all=failed(a="x", b="y", c="z")) == "one"
    in_place = [*both, Verdict(UNTOUCHED, "x", ())]
    assert named(both, one=in_place) == "one"
    assert named(both + held("c"), one=in_place) is None  # all was run, and nothing was changed


def test_a_mistake_has_a_test_that_no_other_fails_so(named):
    answer = failed(a="x", b="y", c="w")
    assert named(answer, one=failed(a="x", b="y")) == "one"
    others = {"two": failed(a="x", c="u"), "three": failed(b="y", c="v")}
    assert named(answer, one=failed(a="x", b="y"), **others) is None
    assert named(answer, one=failed(a="x", b="y"), two=others["two"]) == "one"


def test_what_else_fails_speaks_against_a_mistake(named):
    assert named(failed(a="x", b="y", c="z"), one=failed(a="x", b="y")) == "one"
    assert named(failed(a="x", b="y"), one=failed(a="x")) is None
    assert named(failed(a="x", b="y", c="z"), one=failed(a="x", b="y", c="w")) == "one"
    assert named(failed(a="x", b="y", c="z"), one=failed(a="x", b="v", c="w")) is None


def test_true_and_false_have_to_be_the_same_everywhere(named):
    wrong = [Verdict(test, "you get False", (True, False)) for test in "abc"]
    assert named(wrong, one=wrong) == "one"
    assert named(wrong, one=wrong[:2]) is None


def test_a_constant_has_no_name(named):
    def answer(*results):
        calls = frozenset(enumerate(results))
        return [Verdict("a", "x", results, calls=calls)]

    assert named(answer(7, 8), one=answer(7, 8)) == "one"
    assert named(answer(7, 7), one=answer(7, 7)) is None
    assert named(answer(7), one=answer(7)) == "one"  # one call tells nothing
    assert named(answer(None, None), one=answer(None, None)) == "one"  # it changes what it is given


def double(x):
    """Twice x."""
    return 2 * x


def _doubled(answer):
    """numbers are doubled"""
    for x in (1.0, 2.0):
        agrees(answer, 2 * x, x)


def test_what_is_wrong_first_and_never_ends_then_is_told_to_be_wrong():
    def answer(x):
        while x > 1:
            pass
        return 7.0

    doubling = Exercise("99.9", "doubling", 1, 5, "", (), double, "", (_doubled,))
    result = grade(doubling, answer)
    assert result.problems == (("numbers are doubled", "for x=1, you get 7, expected 2."),)
