"""nbgrader's assignments: one a chapter, with its exercises and nothing else to run."""

import ast
import inspect
import sys
from pathlib import Path

from tinytf_course import copies
from tinytf_course.grading import exercises, has_answers
from tinytf_course.outline import CHAPTERS
from tinytf_course.places import is_machinery

__all__ = ["assignment", "nbgrader_course"]

STUB_ENDS = "# Write your answer above: replace what raises NotImplementedError."
_SETUP = ("import math", "import torch", "import torch.nn.functional as F", "from torch import nn")
CONFIG = '''"""nbgrader's settings for a class with tinytf. Written by `release --nbgrader`."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "tinytf"
c.ClearSolutions.code_stub = {"python": "STUB_ENDS"}
# Answers run one by one in processes of their own, never in a kernel: see release/judge.py.
c.Autograde.autograde_preprocessors = [
    "tinytf_course.release.autograde.Judge",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
'''.replace("STUB_ENDS", STUB_ENDS)


def nbgrader_course(folder, notebooks):
    """Write nbgrader's settings and the source of an assignment per chapter with exercises.

    `notebooks` is a list of `Notebook`. Returns {chapter: points}. An assignment that is there is
    written anew; what students handed in and what nbgrader made stays. Raises ValueError where this
    edition has no answers.
    """
    folder = Path(folder)
    if not has_answers():
        raise ValueError("this is a student edition: release from the full course")
    points = {}
    for notebook in notebooks:
        made = assignment(notebook.chapter)
        if made is None:
            continue
        name = notebook.path.stem
        copies.write(folder / "source" / name / f"{name}.ipynb", made)
        found = (cell["metadata"]["nbgrader"].get("points", 0) for cell in made["cells"])
        points[notebook.chapter] = sum(found)
    settings = folder / "nbgrader_config.py"
    if not settings.exists():  # a teacher's changes stay
        settings.write_text(CONFIG, encoding="utf-8")
    return points


def assignment(chapter):
    """The source notebook of a chapter's assignment, solutions within; None without exercises."""
    chosen = [each for id, each in exercises().items() if id.split(".")[0] == chapter]
    if not chosen:
        return None
    title = next(each.title for each in CHAPTERS if each.number == chapter)
    cells = [_markdown("title", _head(chapter, title, chosen)), _setup(chapter, chosen)]
    for exercise in chosen:
        cells += _exercise(exercise)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _head(chapter, title, chosen):
    rows = [f"| {each.id} {each.title} | {each.points} |" for each in chosen]
    total = sum(each.points for each in chosen)
    table = "\n".join(["| exercise | points |", "|---|---|", *rows, f"| **all** | **{total}** |"])
    return (
        f"# {chapter} {title}: exercises\n\nThe exercises of the chapter, to hand in. Write in the "
        "cells that raise `NotImplementedError`; the cell below each tests it as far as that goes "
        "without a solution, and the whole test runs where you hand this in. Each answer is graded "
        f"by itself: only imports and definitions of other cells are there for it.\n\n{table}\n"
    )


def _setup(chapter, chosen):
    """The imports that an answer may need: torch's, and those of the chapter's references."""
    lines = list(_SETUP)
    modules = {sys.modules[each.reference.__module__] for each in chosen}
    used = set().union(*({n.id for n in ast.walk(ast.parse(each.solution))
                          if isinstance(n, ast.Name)} for each in chosen))  # fmt: skip
    for module in modules:
        for node in ast.parse(inspect.getsource(module)).body:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = {alias.asname or alias.name for alias in node.names}
            ours = getattr(node, "module", None) or ""
            text = ast.unparse(node)
            known = text in lines or names & {"F", "nn"}
            if names & used and not known and not is_machinery(ours):
                lines.append(text)
    lines.append("\nfrom tinytf_course import check")
    return _code("setup", "\n".join(lines), locked=True)


def _exercise(exercise):
    """Statement, answer and test of one exercise."""
    name = exercise.id.replace(".", "-")
    text = exercise.markdown().split("<details><summary>Solution")[0]
    answer = f"{exercise.stub}\n\n### BEGIN SOLUTION\n{exercise.solution}### END SOLUTION"
    test = f'assert check("{exercise.id}", {exercise.name}).passed, "see above"'
    points = exercise.points
    return [
        _markdown(f"exercise-{name}", text),
        _code(f"exercise-{name}-answer", answer, solution=True),
        _code(f"exercise-{name}-test", test, locked=True, grade=True, points=points),
    ]


def _markdown(id, text):
    return {"cell_type": "markdown", "id": id, "metadata": _metadata(id, locked=True),
            "source": text.splitlines(keepends=True)}  # fmt: skip


def _code(id, text, **kinds):
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "id": id, "outputs": [],
            "metadata": _metadata(id, **kinds), "source": lines}  # fmt: skip


def _metadata(id, locked=False, solution=False, grade=False, **points):
    return {"nbgrader": {"grade": grade, "grade_id": id, "locked": locked, "schema_version": 3,
                         "solution": solution, "task": False, **points}}  # fmt: skip
