"""What came back: every submitted notebook read, its answers graded anew, a row for each."""

import csv
import datetime
import re
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path

from tinytf.course.grading import exercises
from tinytf.course.notebooks import Notebook, NotebookError, source
from tinytf.course.outline import CHAPTERS
from tinytf.course.release.judge import judged
from tinytf.course.release.submitted import answers_in

__all__ = ["FORGEABLE", "Row", "row_of", "submissions", "write_table"]

FORGEABLE = (
    "What can be forged: predictions and minutes are what the notebook's file says, and a file can "
    "be edited. Exercises and parts were graded here, from the code alone; an answer may still be "
    "somebody else's, or call the package's own definition (the column `calls` names it).",
    "What can be forged: everything. These are the outputs that stand in the files, and a file can "
    "be edited; leave out --saved to have the answers graded.",
)
_ANSWERED = re.compile(r"^([✓→]) (\d\d[a-z]?-\w+)  you said: ")
_PAUSE = 15 * 60  # seconds without a cell after which nobody was at work
_LARGEST = 50 * 2**20  # bytes of a file that is read


@dataclass
class Row:
    """A student's chapter. Counts are of what was found; `of_…` of what there is."""

    student: str
    chapter: str
    file: str
    predicted: int = 0  # predictions committed to
    predicted_right: int = 0
    exercises_passed: int = 0
    of_exercises: int = 0
    passed: str = ""  # which
    parts_built: int = 0
    minutes_at_work: str = ""  # by the times that JupyterLab keeps, where it was told to
    minutes_worth: int = 0  # what the exercises that passed are meant to take
    calls: str = ""  # the package's definitions that answers call
    remarks: str = ""


def submissions(folder):
    """(student, file, why it is skipped or "") of everything in a folder, in order.

    A file in a sub-folder belongs to the student that the first sub-folder is named after, one
    beside them to that of its own name. Hidden files and checkpoints are passed over.
    """
    numbers = {chapter.number for chapter in CHAPTERS}
    for path in sorted(Path(folder).rglob("*")):
        inside = path.relative_to(folder)
        if any(part.startswith((".", "__")) for part in inside.parts) or path.is_dir():
            continue
        student = inside.parts[0] if len(inside.parts) > 1 else path.stem
        why = ""
        if path.is_symlink() or not path.is_file():
            why = "a link, or no plain file"
        elif path.suffix != ".ipynb":
            why = "not a notebook"
        elif path.stat().st_size > _LARGEST:
            why = f"{path.stat().st_size / 2**20:.0f} MB: no chapter is that large"
        elif not (_chapters(path) & numbers):
            why = "no chapter's number in its name"
        yield student, path, why


def _chapters(path):
    """The numbers that a file's name could mean, its own first part or a later one."""
    return set(re.findall(r"(?<!\d)\d\d[a-z]?(?=_)", path.name))


def row_of(student, path, saved=False):
    """The row of one notebook. With `saved`, outputs are believed and nothing is graded.

    Raises NotebookError for a file that is none.
    """
    notebook = Notebook(Path(path))
    known = {chapter.number for chapter in CHAPTERS}
    chapter = next(n for n in re.findall(r"(?<!\d)\d\d[a-z]?(?=_)", path.name) if n in known)
    row = Row(student, chapter, path.name)
    try:
        _read_outputs(row, notebook)
    except (TypeError, AttributeError, ValueError, KeyError) as error:
        raise NotebookError(f"{path.name}: outputs in a form of their own ({error})") from error
    claimed = _claimed(notebook, "check", "id")
    row.of_exercises = sum(id.split(".")[0] == chapter for id in exercises())
    if saved:
        passed = {id for id, status in claimed.items() if status == "passed" and id in exercises()}
        row.parts_built = list(_claimed(notebook, "built", "name").values()).count("passed")
    else:
        passed = _grade(row, notebook, chapter, claimed)
    row.exercises_passed, row.passed = len(passed), " ".join(sorted(passed))
    row.minutes_worth = sum(exercises()[id].minutes for id in passed)
    return row


def _grade(row, notebook, chapter, claimed):
    """The exercises whose answers pass now; fills in what else the judge finds."""
    texts = [source(cell) for cell in notebook.code]
    answers = answers_in(texts, chapter)
    jobs = [answer._asdict() for answer in answers]
    if any("= built(" in text for text in texts):
        jobs.append({"parts": str(notebook.path.resolve())})
    verdicts = judged(jobs)
    if len(jobs) > len(answers):
        row.parts_built = len(verdicts.pop().get("passed", ()))
    graded = dict(zip((answer.id for answer in answers), verdicts, strict=True))
    passed = {id for id, verdict in graded.items() if verdict["status"] == "passed"}
    row.calls = " ".join(sorted({name for a in answers if a.id in passed for name in a.borrows}))
    remarks = [
        f"{id} is said to have passed, and does not: {_first(graded[id]['text'])}"
        for id, status in claimed.items()
        if status == "passed" and id in graded and id not in passed
    ]
    remarks += [f"{id}: {each['why']}" for id, each in graded.items() if each.get("why")]
    remarks += [verdict["text"] for verdict in verdicts if ": your code " in verdict["text"]]
    row.remarks = "; ".join(dict.fromkeys(remarks))
    return passed


def _first(text):
    return text.splitlines()[0] if text else "no verdict"


def _read_outputs(row, notebook):
    """Predictions and minutes, as the file has them."""
    said = {}
    for output in notebook.outputs:
        text = "".join(output.get("data", {}).get("text/plain", ""))
        if found := _ANSWERED.match(text):
            said[found[2]] = found[1] == "✓"
    row.predicted, row.predicted_right = len(said), sum(said.values())
    times = sorted(filter(None, (_ended(cell) for cell in notebook.code)))
    if len(times) > 1:
        gaps = [(b - a).total_seconds() for a, b in pairwise(times)]
        row.minutes_at_work = str(round(sum(gap for gap in gaps if gap < _PAUSE) / 60))


def _ended(cell):
    """When a cell last ended, if JupyterLab was told to record it."""
    kept = cell.get("metadata", {}).get("execution", {}).get("iopub.status.idle")
    return datetime.datetime.fromisoformat(kept) if isinstance(kept, str) else None


def _claimed(notebook, kind, key):
    """{id: status} by the outputs of `check` or `built`."""
    found = {}
    for output in notebook.outputs:
        known = output.get("metadata", {}).get(kind)
        if isinstance(known, dict) and isinstance(known.get(key), str):
            found[known[key]] = known.get("status")
    return found


def write_table(path, rows):
    """The rows as a CSV file; a cell that a spreadsheet would take for a formula gets a quote."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = [field.name for field in fields(Row)]
        writer.writerow(names)
        for row in rows:
            writer.writerow([_harmless(getattr(row, name)) for name in names])


def _harmless(value):
    text = str(value).replace("\n", " ")
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text
