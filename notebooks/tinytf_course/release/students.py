"""The student edition: cleared chapters, and exercises whose right answers are taken out."""

import re
import shutil
from pathlib import Path

from tinytf_course import copies
from tinytf_course.grading import exercises, files, find, has_answers
from tinytf_course.places import COURSE, PACKAGE, ROOT, place_of
from tinytf_course.release.recording import recorded
from tinytf_course.stored import store

__all__ = ["LEFT_OUT", "student_edition", "without_answers", "write_exercises"]

# Folders of the course that only the teacher has: quizzes with keys, the judge.
LEFT_OUT = ("notes", "release")
_FOLDED = re.compile(r"<details>\s*<summary>(.*?)</summary>.*?</details>\n?", re.DOTALL)
_GIVES_AWAY = re.compile(r"solution|answer|way to think", re.IGNORECASE)

README = """# tinytf, the edition of your class

Two commands, in this folder:

    pip install -r requirements.txt
    python -m tinytf_course start

`notebooks/` holds the chapters; `start` copies them to `mine/`, which no update touches, and opens
the first. `check` tests your answers to the exercises, and names a mistake where it knows it. No
solution is in this folder: what the tests compare with was stored when it was made. How long a
chapter takes stands in its first cell.
"""


def student_edition(folder, notebooks):
    """Write the edition into `folder`, a new or empty one, from `notebooks` (a list of `Notebook`).

    It is made beside it and takes its name at the end: a call that is stopped leaves no edition.
    Returns (chapters, tests that run there, all tests). Raises ValueError where the folder
    holds something, or where this edition has no answers itself.
    """
    folder = Path(folder).resolve()
    if not has_answers():
        raise ValueError("this is a student edition itself: release from the full course")
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: name a new folder")
    part = folder.with_name(f".{folder.name}.part")  # a call that was killed may have left it
    shutil.rmtree(part, ignore_errors=True)
    try:
        made = _made(part, notebooks)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


def _made(folder, notebooks):
    """Write the edition into a folder that is not there; what `student_edition` returns."""
    for tree in (COURSE, PACKAGE):
        shutil.copytree(tree, folder / place_of(tree), ignore=_left_out(COURSE), dirs_exist_ok=True)
    tests = write_exercises(folder / place_of(COURSE))
    for notebook in notebooks:
        fresh = copies.fresh_copy(without_answers(copies.read(notebook.path)))
        copies.write(folder / "notebooks" / notebook.path.name, fresh)
    (folder / "README.md").write_text(README, encoding="utf-8")
    for name in ("pyproject.toml", "setup.py", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    (folder / "requirements.txt").write_text("-e .[course]\n", encoding="utf-8")
    return len(notebooks), tests, sum(len(each.tests) for each in exercises().values())


def write_exercises(folder):
    """Write every exercise's file without its answers; return how many tests they have."""
    tests = 0
    for id, path in files().items():
        text, held, left_out = recorded(find(id), path)
        file = folder / path.relative_to(COURSE)
        file.write_text(text, encoding="utf-8")
        for kind, value in held.items():
            store(file, kind, value)
        tests += len(find(id).tests) - left_out
    return tests


def without_answers(notebook):
    """A chapter whose folded solutions and model answers are taken out; hints stay.

    Where the fold's summary is itself the question, the question stays.
    """
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = _FOLDED.sub(_unfolded, "".join(cell["source"]))
            cell["source"] = text.rstrip("\n").splitlines(keepends=True)
    return notebook


def _unfolded(found):
    summary = found[1].strip()
    if summary == "Hint":
        return found[0]
    return "" if _GIVES_AWAY.search(summary) else f"**{summary}**\n"


def _left_out(course):
    """What `copytree` is not to copy."""
    away = {course / name for name in LEFT_OUT}

    def ignore(folder, names):
        here = Path(folder)
        return {name for name in names if name == "__pycache__" or here / name in away}

    return ignore
