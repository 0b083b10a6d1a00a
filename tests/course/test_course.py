"""The teaching machinery: claims, predictions, checks, graduation, progress, setup."""

import inspect
import json
import linecache
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import test_notebooks_form as form
import torch
from test_exercises import EXERCISES

from tinytf.course import ClaimError, GraduationError, check, claim, graduate, predict, progress
from tinytf.course import display as course_display
from tinytf.course.__main__ import main
from tinytf.course.check import _crash
from tinytf.course.claims import holds, number
from tinytf.course.graduate import definition
from tinytf.course.notebooks import Notebook, notebooks

ROOT = Path(__file__).parents[2]

# claims


@pytest.mark.parametrize(
    ("measured", "relation", "bound", "text"),
    [
        (3.1e-8, "<", 1e-6, "3.1e-08 < 1e-06"),
        (0.99996, "<", 1, "0.99996 < 1"),
        (1.0000001, ">", 1.0, "1.0000001 > 1"),
        (5, ">=", 5, "5 ≥ 5"),
        (4, "<=", 5, "4 ≤ 5"),
        (124_439_808, "==", 124_439_808, "124,439,808 = 124,439,808"),
        (True, "==", True, "measured True"),
        ("猫", "==", "猫", "measured 猫"),
        (torch.tensor([[0.31234]]), "in", (0.2, torch.tensor(0.4)), "0.312 in [0.2, 0.4]"),
        (math.inf, ">", 3, "inf > 3"),
    ],
)
def test_a_claim_shows_sentence_number_and_bound(capsys, measured, relation, bound, text):
    claim("03-1", "the sentence", measured, relation, bound)
    shown = capsys.readouterr().out
    assert shown.startswith("✓ 03-1  the sentence")
    assert text in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    ("measured", "relation", "bound"),
    [
        (2.0000001, "<", 2),
        (2, "<", 2),
        (2, ">", 2),
        (3, "<=", 2),
        (1, ">=", 2),
        (1, "==", 2),
        (False, "==", True),
        (1.1, "~=", 1.0),
        (5, "in", (0, 4)),
    ],
)
def test_a_false_claim_fails_with_the_same_content(measured, relation, bound):
    with pytest.raises(ClaimError, match=r"03-1  the sentence\n.*is false") as error:
        claim("03-1", "the sentence", measured, relation, bound)
    assert isinstance(error.value, AssertionError)


@pytest.mark.parametrize("relation", ["<", "<=", ">", ">=", "==", "~=", "in"])
def test_nan_never_holds(relation):
    bound = (0, math.inf) if relation == "in" else 1.0
    nan_bound = (math.nan, math.nan) if relation == "in" else math.nan
    assert not holds(math.nan, relation, bound)
    assert not holds(1.0, relation, nan_bound)
    assert not holds(math.nan, relation, nan_bound)


def test_a_claim_is_about_one_number():
    with pytest.raises(TypeError, match=r"shape \(3,\).*reduce it"):
        claim("x", "s", torch.zeros(3), "==", 0)
    with pytest.raises(TypeError, match="list"):
        claim("x", "s", [1], "==", 1)
    with pytest.raises(ValueError, match="is not one of"):
        claim("x", "s", 1, "=", 1)


def test_tolerance_decides():
    claim("x", "s", 1.05, "~=", 1.0, tolerance=0.1)
    with pytest.raises(ClaimError):
        claim("x", "s", 1.05, "~=", 1.0, tolerance=0.01)


def test_numbers_read_well():
    values = (0.03123, 1234.56, 0.0, 1 / 3, 3.14e-9, 100000.0, 1e12, -0.5, 7)
    wanted = ["0.0312", "1,235", "0", "0.333", "3.14e-09", "100,000", "1e+12", "-0.5", "7"]
    assert [number(value) for value in values] == wanted


def test_markup_is_escaped():
    assert course_display.inline("a < b & `c<d>`") == "a &lt; b &amp; <code>c&lt;d&gt;</code>"


@pytest.mark.parametrize("background", [(255, 255, 255), (17, 17, 17)])
@pytest.mark.parametrize("colour", ["GOOD", "BAD", "QUIET"])
def test_colours_read_on_light_and_dark(colour, background):
    colour = getattr(course_display, colour)
    one, other = luminance([int(colour[i : i + 2], 16) for i in (1, 3, 5)]), luminance(background)
    assert (max(one, other) + 0.05) / (min(one, other) + 0.05) > 3.9


def luminance(rgb):
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


# predictions


def test_a_prediction_is_asked_and_answered(capsys):
    predict("t-1", "Which?", ["one", "two"])
    assert capsys.readouterr().out == "? t-1  Which?\n    - one\n    - two\n"
    predict.answer("t-1", "two", because="it is larger.")
    assert capsys.readouterr().out == "→ t-1  measured: two. It is larger.\n"


def test_a_prediction_is_remembered(capsys, monkeypatch):
    from tinytf.course.predict import _choices

    predict("t-2", "Which?", ["one", "two"])
    monkeypatch.setitem(_choices, "t-2", "one")
    predict("t-2", "Which?", ["one", "two"])
    assert predict.choice("t-2") == "one"
    predict.answer("t-2", "two")
    predict.answer("t-2", "one")
    out = capsys.readouterr().out
    assert "→ t-2  you said: one; measured: two" in out
    assert "✓ t-2  you said: one; measured: one" in out
    predict("t-2", "Which?", ["two", "three"])
    assert predict.choice("t-2") is None


def test_a_prediction_is_answered_by_an_option():
    with pytest.raises(ValueError, match="run the cell"):
        predict.answer("t-never", "a")
    predict("t-3", "Which?", [1, 2])
    with pytest.raises(ValueError, match="not one of the options"):
        predict.answer("t-3", 3)
    with pytest.raises(ValueError, match="two or more"):
        predict("t-4", "Which?", ["a", "a"])


def test_buttons_record_the_choice(monkeypatch):
    import importlib

    shown = []
    module = importlib.import_module("tinytf.course.predict")
    monkeypatch.setattr(module, "live", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: shown.append(bundle))
    predict("t-5", "Which?", ["one", "two"])
    (bundle,) = shown
    assert {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"} <= set(bundle)
    from ipywidgets.widgets.widget import _instances

    view = bundle["application/vnd.jupyter.widget-view+json"]
    row = _instances[view["model_id"]].children[1]
    row.children[1].click()
    assert predict.choice("t-5") == "two"
    assert [button.button_style for button in row.children] == ["", "primary"]


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


# graduation


def here(n: int, eps: float = 1e-5) -> float:
    """Another docstring."""
    if n < 1:
        raise ValueError(f"n={n}")
    assert eps > 0
    check_nothing(n)
    scale: float = 2.0
    return scale * n + eps


def check_nothing(n):
    return n


def test_docstrings_annotations_and_validation_do_not_count():
    wanted = "def here(n, eps=1e-05):\n    scale = 2.0\n    return scale * n + eps"
    assert definition(here) == wanted


def test_graduate_accepts_the_package_itself(capsys):
    from tinytf.attention import MultiHeadAttention, attention_weights

    graduate(attention_weights, "tinytf.attention")
    graduate(MultiHeadAttention, "tinytf.attention")
    graduate(attention_weights, "tinytf.attention.attention_weights")
    assert capsys.readouterr().out.count("graduates") == 3


def test_graduate_shows_the_difference():
    def attention_weights(q, k, mask=None):
        return (q @ k.transpose(-2, -1)).softmax(-1)

    with pytest.raises(GraduationError, match=r"(?s)differ:.*-    return .*\+    scores = "):
        graduate(attention_weights, "tinytf.attention")
    with pytest.raises(AttributeError):
        graduate(here, "tinytf.attention")


# progress


def test_progress_leaves_one_line(capsys):
    bar = progress(range(3), "training")
    for i in bar:
        bar.set_postfix_str(f"loss {i}")
    assert bar.summary() == "training: 3 of 3, loss 2"
    with progress(total=9, desc="stopping") as bar:
        bar.update(4)
    assert bar.summary() == "stopping: 4 of 9"
    reading = progress(iter("ab"), "reading")
    assert list(reading) == ["a", "b"]
    assert reading.summary() == "reading: 2"
    assert capsys.readouterr().out == ""


# notebooks: the kernel, nbval, and the checks on a chapter's form

CELLS = [
    "from tinytf.course import check, claim, graduate, predict, progress\nimport os, torch",
    'predict("03-P1", "Which axis sums to 1?", ["keys", "queries"])',
    'claim("03-1", "rows of `softmax` sum to 1", torch.ones(3).softmax(0).sum(), "~=", 1)',
    'predict.answer("03-P1", "keys", because="so it is.")',
    'for step in (bar := progress(range(40), "training")):\n    bar.set_postfix_str("loss 0")',
    'def noam(step, d_model, warmup): ...\ncheck("10.3", noam)',
    "class Plain:\n    size: int = 3\nfrom tinytf.course.graduate import definition\n"
    'print(definition(Plain))  # NBVAL_CHECK_OUTPUT\nassert "size = 3" in definition(Plain)',
    "from ipywidgets import interact\ninteract(lambda t: None, t=(0, 3));",
    'print(os.environ.get("TINYTF_DEVICE"), os.environ.get("OMP_NUM_THREADS"))',
]


@pytest.fixture(scope="module")
def executed():
    import nbclient
    import nbformat

    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    saved = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(saved, timeout=120, kernel_name="python3").execute()
    return saved


def test_saved_outputs_are_tidy(executed):
    for cell in executed.cells:
        assert len(cell.outputs) <= 1
        assert all(output.get("name") != "stderr" for output in cell.outputs)
    shown = [cell.outputs[0] if cell.outputs else None for cell in executed.cells]
    assert shown[1].data["text/plain"].startswith("? 03-P1")
    assert "application/vnd.jupyter.widget-view+json" not in shown[1].data
    assert shown[2].metadata["claim"]["id"] == "03-1"
    assert "<code>softmax</code>" in shown[2].data["text/html"]
    assert shown[4].data == {"text/plain": "training: 40 of 40, loss 0"}
    assert "not yet" in shown[5].data["text/plain"]


def test_a_live_bar_and_live_buttons_leave_one_output_each():
    import nbclient
    import nbformat

    class WithFrontEnd(nbclient.NotebookClient):
        async def async_start_new_kernel_client(self):
            started = await super().async_start_new_kernel_client()
            self.kc.allow_stdin = True
            return started

    slow = "import time\nfor _ in progress(range(6), 'training'):\n    time.sleep(0.1)"
    cells = [nbformat.v4.new_code_cell(cell) for cell in (CELLS[0], slow, CELLS[1])]
    saved = nbformat.v4.new_notebook(cells=cells)
    WithFrontEnd(saved, timeout=120, kernel_name="python3").execute()
    (bar,), (buttons,) = saved.cells[1].outputs, saved.cells[2].outputs
    assert bar.data == {"text/plain": "training: 6 of 6"}
    assert "application/vnd.jupyter.widget-view+json" in buttons.data
    assert "<li>queries</li>" in buttons.data["text/html"]


@pytest.mark.parametrize("claimed", [1, 2], ids=["true claim", "false claim"])
def test_nbval_runs_a_chapter_on_the_device_and_fails_on_a_false_claim(executed, tmp_path, claimed):
    saved = json.loads(json.dumps(executed))
    saved["cells"][2]["source"] = CELLS[2].replace('"~=", 1', f'"~=", {claimed}')
    saved["cells"].append(
        dict(saved["cells"][-1], source='assert os.environ["TINYTF_DEVICE"] == "cpu"')
    )
    (tmp_path / "03_it.ipynb").write_text(json.dumps(saved))
    options = (
        "-p tinytf.course.pytest_plugin --nbval-lax --nbval-current-env "
        "--nbval-cell-timeout 300 -n 2 --dist loadscope"
    )
    run = run_pytest(tmp_path, *options.split(), "--device", "cpu")
    assert run.returncode == claimed - 1, run.stdout + run.stderr
    failed = "1 failed" in run.stdout and "ClaimError: ✗ 03-1" in run.stdout
    assert failed == (claimed == 2), run.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_an_absent_device_is_an_error(tmp_path):
    run = run_pytest(tmp_path, "-p", "tinytf.course.pytest_plugin", "--device", "cuda")
    assert run.returncode == 4
    assert "--device cuda: this machine has no cuda device" in run.stdout + run.stderr


def run_pytest(folder, *options):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment = {k: v for k, v in environment.items() if not k.startswith("PYTEST_")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def cell(source, *outputs, kind="code"):
    made = {"cell_type": kind, "metadata": {}, "source": source}
    return made | {"execution_count": 0, "outputs": list(outputs)} if kind == "code" else made


def said(text, **metadata):
    return {"output_type": "display_data", "metadata": metadata, "data": {"text/plain": text}}


def chapter():
    """The cells of a chapter 03 whose form is right."""
    import inspect

    from tinytf.attention import attention_weights

    cells = [cell(inspect.getsource(attention_weights))]
    cells.append(cell("graduate(attention_weights, 'tinytf.attention')"))
    for i in range(5):
        record = {"id": f"03-{i}", "sentence": "s", "measured": "1 < 2"}
        cells.append(cell(f"claim('03-{i}', 's', 1, '<', 2)", said("✓", claim=record)))
    for i in range(2):
        cells.append(cell(f"predict('03-P{i}', 'q', ['a', 'b'])"))
        cells.append(cell(f"predict.answer('03-P{i}', 'a')"))
    for exercise in (e for e in EXERCISES if e.id.startswith("03.")):
        name = exercise.name
        if name != "attention_weights":
            cells.append(cell(f"def {name}(): ..."))
        cells.append(cell(f"Exercise {exercise.id}", kind="markdown"))
        status = {"id": exercise.id, "status": "not yet"}
        cells.append(cell(f"check('{exercise.id}', {name})", said("…", check=status)))
    return cells


PER_CHAPTER = [
    value
    for name, value in vars(form).items()
    if name.startswith("test_") and "chapter" not in name
]
PER_CHAPTER = [test for test in PER_CHAPTER if "notebook" in inspect.signature(test).parameters]


def verdicts(folder, cells, name="03_attention.ipynb"):
    """The names of the form tests that the chapter fails."""
    runs = [made for made in cells if made["cell_type"] == "code"]
    for count, made in enumerate(runs, start=1):
        made["execution_count"] = count if made["execution_count"] is not None else None
    (folder / name).write_text(json.dumps({"cells": cells}))
    failed = set()
    for test in PER_CHAPTER:
        try:
            test(Notebook(folder / name))
        except AssertionError:
            failed.add(test.__name__.removeprefix("test_"))
    return failed


def change(number, **fields):
    return lambda cells: cells[number].update(fields)


def add(*arguments):
    return lambda cells: cells.append(cell(*arguments))


def drop(word):
    def remove(cells):
        cells[:] = [made for made in cells if word not in made["source"]]

    return remove


WIDGET = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "interactive"}
BAD_FORMS = {
    "is_executed_in_order": change(3, execution_count=None),
    "no_saved_errors_warnings_or_paths": add("1", said("see /home/someone/x.py")),
    "no_machine_path_in_source": add("open('/tmp/x')"),
    "cells_are_short": add("\n".join(["x = 1"] * 31)),
    "is_small": add("1", {"output_type": "display_data", "data": {"image/png": "A" * 500_000}}),
    "has_claims_predictions_and_checks": drop("claim('03-4'"),
    "every_claim_was_measured": add("claim('03-9', 's', 1, '<', 2)"),
    "every_prediction_is_answered_after_it_is_asked": drop("answer('03-P1'"),
    "exercises_are_those_of_the_registry": drop("Exercise 03.2"),
    "exercises_are_saved_unsolved": add("1", said("✗", check={"id": "03.1", "status": "failed"})),
    "graduates_equal_the_package": add("def attention_weights(q, k, mask=None):\n    return q"),
    "claim_ids_are_unique_within": lambda cells: cells.append(dict(cells[3])),
    "figures_are_not_only_in_widgets": add("1", {"output_type": "display_data", "data": WIDGET}),
}


def test_a_good_chapter_passes_every_form_check(tmp_path):
    assert not verdicts(tmp_path, chapter())
    assert "name" in verdicts(tmp_path, chapter(), "3 attention.ipynb")


@pytest.mark.parametrize("rule", BAD_FORMS)
def test_a_bad_form_is_caught(rule, tmp_path):
    cells = chapter()
    BAD_FORMS[rule](cells)
    assert verdicts(tmp_path, cells) == {rule}


def test_every_form_check_is_checked():
    names = {test.__name__.removeprefix("test_") for test in PER_CHAPTER}
    assert names == {"name", *BAD_FORMS}


@pytest.mark.parametrize(
    "output",
    [
        {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []},
        {"output_type": "stream", "name": "stderr", "text": ["hm"]},
        said("x.py:3: UserWarning: careful"),
    ],
    ids=["error", "stderr", "warning"],
)
def test_bad_outputs_are_caught(output, tmp_path):
    cells = [*chapter(), cell("1", output)]
    assert verdicts(tmp_path, cells) == {"no_saved_errors_warnings_or_paths"}


def test_claims_are_listed(tmp_path, capsys):
    cells = [*chapter(), cell("claim('03-9', 'late', 1, '<', 2)")]
    (tmp_path / "03_a.ipynb").write_text(json.dumps({"cells": cells}))
    assert len(notebooks(tmp_path)[0].claims()) == 6
    assert main(["claims", "--notebooks", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "03  03-0     s · 1 < 2" in shown
    assert "late · not run" in shown
    assert "6 claims" in shown
    assert main(["claims", "--notebooks", str(tmp_path), "--chapter", "04"]) == 1


def test_exercises_are_listed(capsys):
    assert main(["exercises", "--chapter", "03"]) == 0
    assert "✓ 03.1" in capsys.readouterr().out
    assert main(["exercises", "--chapter", "03", "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "<details><summary>Solution" in shown
    assert "raise NotImplementedError" in shown


def test_setup_seeds_everything_and_returns_the_device(monkeypatch):
    import random

    import numpy

    from tinytf.course import setup

    monkeypatch.setenv("TINYTF_DEVICE", "cpu")
    draws = []
    for seed in (3, 3, 4):
        assert setup(seed).type == "cpu"
        draws.append((random.random(), numpy.random.rand(), torch.rand(()).item()))
    assert draws[0] == draws[1] != draws[2]


def test_claims_are_found_from_any_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["claims", "--chapter", "3"]) == 0
    assert "\n03  " in "\n" + capsys.readouterr().out
    assert main(["claims", "--notebooks", str(tmp_path / "none")]) == 1
    assert "say with --notebooks where they are" in capsys.readouterr().err


def test_a_chapter_without_exercises_is_named(capsys):
    assert main(["exercises", "--chapter", "3", "--markdown"]) == 0
    assert "### Exercise 03.1" in capsys.readouterr().out
    assert main(["exercises", "--chapter", "99"]) == 1
    assert "chapter 99 has no exercises" in capsys.readouterr().err


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
