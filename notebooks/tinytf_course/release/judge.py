"""Grade answers of strangers, each in a worker's process, which is killed if it does not end.

It is that of `check` (`tinytf_course.worker`), with less around it: the answer works in a folder
that is deleted, its output goes nowhere, and of its notebook it sees its own statements.
"""

import os
import shutil
import tempfile

from tinytf_course.check import result_of
from tinytf_course.grading import find
from tinytf_course.worker import tried

__all__ = ["judged"]

TO_BUILD = 120.0  # for all parts of a chapter
_NOT_BEGUN = ("still to be written", "it returns nothing so far")


def judged(jobs):
    """A verdict for each job, in order: a dict with `status`, passed, failed or not yet, `text`.

    `why` says in a word or two why an answer got nothing; it is empty where nothing was written.
    A job is a dict: `id`, `name` and `statements` of an answer, or `parts`, the path of a notebook
    whose build-mode parts are to be tested (its verdict has the `passed` names), with `beside`, the
    notebooks that its parts may rest on. Raises RuntimeError where no process can be started.
    """
    return [_parts(job) if job.get("parts") else _answer(job) for job in jobs]


def _answer(job):
    """The verdict on an answer."""
    if not job["statements"]:
        words = job.get("problem") or "there is no answer"
        return {"status": "not yet", "text": words, "why": words}
    exercise = find(job["id"])
    answer = {"statements": job["statements"], "name": job["name"]}
    given = {"exercise": exercise.id, "answers": [answer], "until_wrong": False, "lines": 0}
    ((verdicts, reason),) = tried(exercise, {**given, "alone": True})
    result = result_of(exercise, verdicts, reason)
    return {"status": result.status, "text": result.text, "why": _why(result, verdicts)}


def _why(result, verdicts):
    """Why a result is no pass, in a word or two; empty for a pass and a stub as it was."""
    if not result.failed:
        return "" if result.reason in _NOT_BEGUN else result.reason
    if result.endless:
        return "endless"
    if verdicts[-1].code is not None:
        return "killed from outside" if verdicts[-1].code == -9 else "ended its process"
    return "raises an error" if result.crashed else "wrong"


def _parts(job):
    """The build-mode parts of a notebook that pass, each resting on those beside it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            for path in {job["parts"], *job.get("beside", ())}:  # and no others'
                shutil.copyfile(path, os.path.join(folder, os.path.basename(path)))
        except OSError as error:
            text = f"its notebook can't be read: {error.strerror}"
            return {"status": "failed", "text": text, "why": text}
        parts = os.path.join(folder, os.path.basename(job["parts"]))
        given = {"parts": parts, "folder": folder, "answers": [None], "lines": 0, "alone": True}
        ((verdicts, passed),) = tried(None, given, 2 * TO_BUILD)
    return {"status": "", "text": verdicts[-1].found if verdicts else "", "passed": passed or []}
