"""What every saved chapter looks like: executed, clean, small, full of claims that hold."""

import ast
import base64
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tinytf_course.grading import exercises
from tinytf_course.graduate import forms, normalised, resolve
from tinytf_course.notebooks import calls_in, notebooks, source, text

# TINYTF_NOTEBOOKS points elsewhere when these checks are themselves checked.
FOLDER = Path(os.environ.get("TINYTF_NOTEBOOKS", Path(__file__).parents[2] / "notebooks"))
NOTEBOOKS = notebooks(FOLDER)
each_chapter = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda n: n.path.stem)

MAX_NOTEBOOK, MAX_IMAGE = 1_000_000, 300_000  # bytes; the explorer alone may take 400 kB
MACHINE_PATH = re.compile(r"(/(?:tmp|home|root|work|Users)/|site-packages|[A-Z]:\\\\)")
WARNING = re.compile(r"\w*Warning:|\bWARNING\b|Traceback \(most recent")


def where(notebook, cell):
    return f"{notebook.path.name}, the cell that begins {source(cell).splitlines()[0]!r}"


def shown(output):
    """All the text that an output shows a reader, whatever its form."""
    forms = [value for kind, value in output.get("data", {}).items() if kind.startswith("text/")]
    forms = ["".join(form) for form in forms]
    return "\n".join([text(output), "".join(output.get("traceback", [])), *forms])


@each_chapter
def test_name(notebook):
    assert re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", notebook.path.name)


@each_chapter
def test_is_executed_in_order(notebook):
    for number, cell in enumerate(notebook.code, start=1):
        assert cell["execution_count"] == number, f"{where(notebook, cell)} is not run in order"


@each_chapter
def test_no_saved_errors_warnings_or_paths(notebook):
    for cell in notebook.code:
        for output in cell["outputs"]:
            here = where(notebook, cell)
            assert output["output_type"] != "error", f"{here} failed"
            assert output.get("name") != "stderr", f"{here} wrote to stderr: {text(output)[:200]}"
            for pattern in (WARNING, MACHINE_PATH):
                found = pattern.search(shown(output))
                assert not found, f"{here} shows {found.group()!r}: {shown(output)[:300]}"


@each_chapter
def test_no_machine_path_in_source(notebook):
    for cell in notebook.cells:
        found = MACHINE_PATH.search(source(cell))
        assert not found, f"{where(notebook, cell)} holds {found.group()!r}"


@each_chapter
def test_no_heading_stands_twice(notebook):
    prose = [source(cell) for cell in notebook.cells if cell["cell_type"] == "markdown"]
    count = Counter(re.findall(r"^##+ .+", "\n".join(prose), re.MULTILINE))
    assert not [heading for heading, times in count.items() if times > 1]


@each_chapter
def test_cells_are_short(notebook):
    shown = [cell for cell in notebook.code if cell.get("id") != "setup"]  # that one is folded
    lengths = {where(notebook, cell): len(source(cell).splitlines()) for cell in shown}
    long = {cell: lines for cell, lines in lengths.items() if lines > 40}
    assert not long, long
    brief = sum(lines <= 12 for lines in lengths.values()) / len(lengths)
    assert brief >= 0.77, f"only {brief:.0%} of the code cells have at most 12 lines"


@each_chapter
def test_is_small(notebook):
    size = notebook.path.stat().st_size
    assert size <= MAX_NOTEBOOK, f"{size:,} bytes"
    for cell in notebook.code:
        for output in cell["outputs"]:
            image = output.get("data", {}).get("image/png")
            if image:
                size = len(base64.b64decode("".join(image)))
                assert size <= MAX_IMAGE, f"{where(notebook, cell)}: an image of {size:,} bytes"


@each_chapter
def test_has_claims_predictions_and_checks(notebook):
    start = notebook.chapter == "00"
    minimum = {"claim": 5, "predict": 0 if start else 2, "check": 0 if start else 2}
    found = {"claim": len(notebook.claims())}
    found |= {name: len(set(notebook.ids(name))) for name in ("predict", "check")}
    assert all(found[name] >= minimum[name] for name in minimum), f"{found}, expected {minimum}"


@each_chapter
def test_every_claim_was_measured(notebook):
    not_run = [claim["id"] for claim in notebook.claims() if claim["measured"] == "not run"]
    assert not not_run


@each_chapter
def test_every_prediction_is_answered_after_it_is_asked(notebook):
    asked, answered = notebook.ids("predict"), notebook.ids("predict.answer")
    assert sorted(asked) == sorted(answered)
    for id in asked:
        question, answer = (cell_of(notebook, name, id) for name in ("predict", "predict.answer"))
        assert question < answer, f"{id} is answered in the cell that asks it, or before"


def cell_of(notebook, name, id):
    """The number of the code cell that calls `name` with this id."""
    return next(
        number
        for number, tree in enumerate(notebook.trees)
        if any(getattr(call.args[0], "value", None) == id for call in calls_in(tree, name))
    )


@each_chapter
def test_exercises_are_those_of_the_registry(notebook):
    registered = {id for id in exercises() if id.split(".")[0] == notebook.chapter}
    assert set(notebook.ids("check")) == registered
    prose = "\n".join(source(cell) for cell in notebook.cells if cell["cell_type"] == "markdown")
    for id in registered:
        statement = " ".join(exercises()[id].statement.split())
        assert statement in " ".join(prose.split()), f"the text of exercise {id} is another"
        assert notebook.definition(exercises()[id].name), f"no stub for {id}"


@each_chapter
def test_exercises_are_saved_unsolved(notebook):
    checks = [output.get("metadata", {}).get("check") for output in notebook.outputs]
    status = {check["id"]: check["status"] for check in checks if check}
    assert set(status) == set(notebook.ids("check"))
    assert not {id: found for id, found in status.items() if found == "failed"}


def constant(notebook, name):
    """The value that the notebook's last assignment gives this name at the top of a cell."""
    nodes = [node for tree in notebook.trees for node in tree.body if isinstance(node, ast.Assign)]
    values = [node.value for node in nodes if [ast.unparse(t) for t in node.targets] == [name]]
    assert values, f"{name} graduates but no cell defines it"
    return ast.literal_eval(values[-1])


@each_chapter
def test_graduates_equal_the_package(notebook):
    for call in notebook.calls("graduate"):
        local, target = call.args
        name = local.id if isinstance(local, ast.Name) else ast.unparse(local)
        assert isinstance(target, ast.Constant), f"graduate({name}, …) needs its target written out"
        counterpart = resolve(target.value, name)
        if not callable(counterpart):  # a constant
            assert constant(notebook, name) == counterpart, f"{name} and {target.value}"
            continue
        node = notebook.definition(name)
        assert node is not None, f"{name} graduates but no cell defines it"
        assert normalised(node) in forms(counterpart)[:2], f"{name} and {target.value}"


@each_chapter
def test_every_figure_has_alternative_text(notebook):
    for cell in notebook.code:
        for output in cell["outputs"]:
            if "image/png" in output.get("data", {}):
                known = output.get("metadata", {})
                said = known.get("alt") or known.get("image/png", {}).get("alt") or ""
                assert said.strip(), f"{where(notebook, cell)} shows a figure and says nothing"


def test_claim_ids_are_unique():
    pairs = {
        (claim["id"], notebook.path.name) for notebook in NOTEBOOKS for claim in notebook.claims()
    }
    count = Counter(id for id, _ in pairs)
    assert not [id for id, times in count.items() if times > 1]


@each_chapter
def test_claim_ids_are_unique_within(notebook):
    count = Counter(claim["id"] for claim in notebook.claims())
    assert not [id for id, times in count.items() if times > 1]


@each_chapter
def test_figures_are_not_only_in_widgets(notebook):
    """A cell that shows a control also leaves a figure, or a text, that needs no kernel."""
    for cell in notebook.code:
        kinds = [set(output.get("data", {})) for output in cell["outputs"]]
        widgets = [kind for kind in kinds if any("widget-view" in form for form in kind)]
        still = [kind for kind in kinds if kind & {"image/png", "text/html"}]
        assert not widgets or still, f"{where(notebook, cell)} shows nothing without a kernel"


@pytest.mark.skipif(len(NOTEBOOKS) < 20, reason="not all chapters are written")
def test_every_exercise_has_a_chapter():
    chapters = {notebook.chapter for notebook in NOTEBOOKS}
    assert not [id for id in exercises() if id.split(".")[0] not in chapters]
