"""Each check of a chapter's form is checked: it passes a good chapter and catches a bad one."""

import inspect
import json

import pytest
import test_notebooks_form as form
from course_support import cell, chapter, said

from tinytf_course.notebooks import Notebook

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
    "no_heading_stands_twice": lambda cells: cells.extend(
        {"cell_type": "markdown", "id": f"twice-{i}", "metadata": {}, "source": "## Twice"}
        for i in range(2)),
    "no_machine_path_in_source": add("open('/tmp/x')"),
    "cells_are_short": add("\n".join(["x = 1"] * 41)),
    "is_small": add("1", {"output_type": "display_data", "data": {"image/png": "A" * 500_000},
                          "metadata": {"alt": "a picture that is too large"}}),
    "every_figure_has_alternative_text": add(
        "1", {"output_type": "display_data", "data": {"image/png": "A" * 500}}),
    "has_claims_predictions_and_checks": drop("claim('03-4'"),
    "every_claim_was_measured": add("claim('03-9', 's', 1, '<', 2)"),
    "every_prediction_is_answered_after_it_is_asked": drop("answer('03-P1'"),
    "exercises_are_those_of_the_registry": drop("Exercise 03.2"),
    "exercises_are_saved_unsolved": add("1", said("✗", check={"id": "03.1", "status": "failed"})),
    "graduates_equal_the_package": add("def attention_weights(q, k, mask=None):\n    return q"),
    "claim_ids_are_unique_within": lambda cells: cells.append(dict(cells[3])),
    "figures_are_not_only_in_widgets": add("1", {"output_type": "display_data", "data": WIDGET}),
}  # fmt: skip


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
