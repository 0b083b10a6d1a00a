"""What came back: every submitted notebook read, its answers graded anew, a row for each."""

import csv
import datetime
import io
import re
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path

from tinytf.support.files import plain_words, write_atomically
from tinytf_course.grading import exercises
from tinytf_course.notebooks import Notebook
from tinytf_course.outline import CHAPTERS
from tinytf_course.release.judge import judged
from tinytf_course.release.submitted import answers_in
from tinytf_course.saved import LARGEST, printable, source

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
    for path in sorted(Path(folder).rglob("*")):
        inside = path.relative_to(folder)
        if any(part.startswith((".", "__")) for part in inside.parts):
            continue
        student = inside.parts[0] if len(inside.parts) > 1 else path.stem
        try:
            if path.is_symlink() or not path.is_dir():
                yield student, path, _unread(path) or _not_a_chapter(path)
        except OSError as error:
            yield student, path, plain_words(error)


def _unread(path):
    """Why a file is not read at all, or an empty string."""
    if path.is_symlink() or not path.is_file():
        return "a link, or no plain file"
    if path.suffix != ".ipynb":
        return "not a notebook"
    if (size := path.stat().st_size) > LARGEST:
        return f"{size / 2**20:.0f} MB: no chapter is that large"
    return ""


def _not_a_chapter(path):
    numbers = {chapter.number for chapter in CHAPTERS}
    return "" if _chapters(path) & numbers else "no chapter's number in its name"


def _beside(folder, path):
    """The notebooks that a submission's parts may rest on: those in its student's own folder."""
    if path.parent == Path(folder):  # a file per student: those beside it are others'
        return []
    return [each for each in path.parent.glob("*.ipynb") if not _unread(each)]


def _chapters(path):
    """The numbers that a file's name could mean, its own first part or a later one."""
    return set(re.findall(r"(?<!\d)\d\d[a-z]?(?=_)", path.name))


def row_of(student, path, folder, saved=False):
    """The row of one notebook in a folder of submissions.

    With `saved`, outputs are believed and nothing is graded. Raises NotebookError for a file that
    is no notebook.
    """
    notebook = Notebook(Path(path))
    known = {chapter.number for chapter in CHAPTERS}
    chapter = next(n for n in re.findall(r"(?<!\d)\d\d[a-z]?(?=_)", path.name) if n in known)
    row = Row(student, chapter, path.name)
    _read_outputs(row, notebook)
    claimed = _claimed(notebook, "check", "id")
    row.of_exercises = sum(id.split(".")[0] == chapter for id in exercises())
    if saved:
        passed = {id for id, status in claimed.items() if status == "passed" and id in exercises()}
        row.parts_built = list(_claimed(notebook, "built", "name").values()).count("passed")
    else:
        passed = _grade(row, notebook, chapter, claimed, _beside(folder, path))
    row.exercises_passed, row.passed = len(passed), " ".join(sorted(passed))
    row.minutes_worth = sum(exercises()[id].minutes for id in passed)
    return row


def _grade(row, notebook, chapter, claimed, beside):
    """The exercises whose answers pass now; fills in what else the judge finds."""
    texts = [source(cell) for cell in notebook.code]
    answers = answers_in(texts, chapter)
    jobs = [answer._asdict() for answer in answers]
    if any("= built(" in text for text in texts):
        parts = str(notebook.path.resolve())
        jobs.append({"parts": parts, "beside": [str(each.resolve()) for each in beside]})
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
    times = cell.get("metadata", {}).get("execution")
    try:
        ended = datetime.datetime.fromisoformat(times["iopub.status.idle"])
    except (TypeError, KeyError, ValueError):
        return None
    return ended if ended.tzinfo else ended.replace(tzinfo=datetime.UTC)


def _claimed(notebook, kind, key):
    """{id: status} by the outputs of `check` or `built`."""
    return {record[key]: record["status"] for record in notebook.records(kind, key, "status")}


def write_table(path, rows):
    """The rows as a CSV file, whole or not at all; a link in its place goes, unfollowed.

    A cell that a spreadsheet would take for a formula gets a quote.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    names = [field.name for field in fields(Row)]
    writer.writerow(names)
    for row in rows:
        writer.writerow([_harmless(getattr(row, name)) for name in names])
    path = Path(path)
    if path.is_symlink():
        path.unlink()
    write_atomically(path, text.getvalue().encode("utf-8"))


def _harmless(value):
    text = printable(str(value).replace("\n", " "))
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
