"""Checks show what a grader found, and an answer changes nothing outside."""

import linecache

import pytest
import torch
from test_exercises import EXERCISES

from tinytf.course import check
from tinytf.course.check import _crash

# checks


def test_check_shows_and_returns(capsys):
    exercise = EXERCISES[0]
    result = check(exercise.id, exercise.reference)
    assert result.passed
    assert not result.failed
    assert not result.not_yet
    assert capsys.readouterr().out == f"{result}\n"
    result = check(exercise.id, exercise.wrong[0].answer)
    assert result.failed
    assert exercise.wrong[0].name in capsys.readouterr().out
    with pytest.raises(KeyError, match="there are"):
        check("99.9", print)


def test_a_crash_is_reported_with_its_line():
    result = check("10.3", lambda step, d_model, warmup: [][step])
    assert result.failed
    assert "`result = check(" in result.text
    assert "IndexError: list index out of range" in result.text


def test_other_right_answers_pass():
    """The graders accept what is right, not what is spelt like the reference."""

    def framework_weights(q, k, mask=None):
        eye = torch.eye(k.size(-2)).expand(*k.shape[:-2], -1, -1)
        return torch.nn.functional.scaled_dot_product_attention(q, k, eye, attn_mask=mask)

    def framework_loss(logits, targets, epsilon, pad_id):
        return torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), targets, ignore_index=pad_id, label_smoothing=epsilon
        )

    def sliced(target_ids, bos, eos, pad):
        rows = [[w for w in row if w != pad] for row in target_ids.tolist()]
        longest = max(map(len, rows)) + 2
        rows = [[bos, *row, eos] + [pad] * (longest - 2 - len(row)) for row in rows]
        full = torch.tensor(rows)
        return full[:, :-1], full[:, 1:]

    def counted_first(optimizer, batches, loss_and_tokens):
        total = sum(loss_and_tokens(batch)[1] for batch in batches)
        optimizer.zero_grad()
        for batch in batches:
            (loss_and_tokens(batch)[0] / total).backward()
        optimizer.step()

    assert check("03.1", framework_weights).passed
    assert check("10.1", framework_loss).passed
    assert check("10.2", sliced).passed
    assert check("10.4", counted_first).passed


def test_the_line_that_crashed_is_the_learners_on_windows_too():
    """The grader's own frames are left out, however the machine writes its paths."""
    grader = r"C:\site\tinytf\course\grading.py"
    text = "def call(answer):\n    return answer()\n"
    linecache.cache[grader] = (len(text), None, text.splitlines(keepends=True), grader)
    scope = {}
    exec(compile(text, grader, "exec"), scope)

    def run():
        return scope["call"](lambda: None + 1)

    def deeper():
        return scope["call"](lambda: scope["call"](None))

    for answer, line in ((run, "None + 1"), (deeper, 'scope["call"](None)')):
        with pytest.raises(TypeError) as error:
            answer()
        assert line in _crash(error.value).split("` raises")[0]
    del linecache.cache[grader]
