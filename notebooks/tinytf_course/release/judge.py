"""Grade answers of strangers, each in a process of its own that is killed if it does not end.

`judged(jobs)` has one process more, which loads torch and the exercises once and forks
for every answer (elsewhere than on Linux it starts a new Python for each: slower,
the same verdicts). The answer's process writes nowhere but into a folder that is deleted, its
output goes nowhere, and it hands back one verdict. What can be forged: code that finds the pipe to
its judge by looking into Python's own frames can write a verdict of its own. Whoever does that has
left text in the notebook to be read.
"""

import contextlib
import functools
import json
import linecache
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["judged"]

TO_DEFINE = 4.0  # seconds for the statements of the answer's cell
TO_GRADE = 8.0  # as `check` gives
TO_BUILD = 120.0  # for all parts of a chapter
TO_KILL = 15.0  # for all of it, where nothing inside Python can stop it
_FILE_SIZE = 16 * 2**20
_ENDS = {  # in words, by the exit code
    None: ("it did not end", "endless"),
    -9: ("its process was killed from outside, as when memory is short", "killed from outside"),
}
_NOT_BEGUN = ("still to be written", "it returns nothing so far")


def judged(jobs):
    """A verdict for each job, in order: a dict with `status`, passed, failed or not yet, `text`.

    `why` says in a word or two why an answer got nothing; it is empty where nothing was written.
    A job is a dict: `id`, `name` and `statements` of an answer, or `parts`, the path of a notebook
    whose build-mode parts are to be tested (its verdict has the `passed` names), with `beside`, the
    notebooks that its parts may rest on. The judge's process stays for the next call. Raises
    RuntimeError if it does not answer.
    """
    if not jobs:
        return []
    judge = _judge()
    try:
        judge.stdin.write(json.dumps(jobs) + "\n")
        judge.stdin.flush()
        return json.loads(judge.stdout.readline())
    except (ValueError, OSError):
        judge.kill()
        _judge.cache_clear()
        raise RuntimeError("the judge did not answer: does the course itself run here?") from None


@functools.cache
def _judge():
    """The judge's process. It ends when this one does, since its input does."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8",
                   "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "tinytf_course.release.judge"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env=environment, encoding="utf-8",
    )  # fmt: skip


def main():
    """Judge the jobs of each line of stdin, one process each; print a line of verdicts."""
    from tinytf_course.check import _load_meta_device
    from tinytf_course.grading import exercises

    _load_meta_device(), exercises()  # before the forks, once for all
    for line in sys.stdin:
        print(json.dumps([_alone(job) for job in json.loads(line)]), flush=True)


def _alone(job):
    """The verdict of one job, from a process of its own."""
    if not job.get("parts") and not job["statements"]:
        words = job.get("problem") or "there is no answer"
        return {"status": "not yet", "text": words, "why": words}
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    mine, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        try:
            job = _alone_in(folder, job) if job.get("parts") else job
        except OSError as error:
            return {"status": "failed", "text": f"its notebook can't be read: {error.strerror}"}
        process = context.Process(target=_child, args=(job, folder, theirs), daemon=True)
        process.start()
        theirs.close()
        verdict, late = None, False
        with contextlib.suppress(Exception):  # it ended, or sent what is no verdict
            late = not mine.poll(TO_KILL + TO_BUILD * bool(job.get("parts")))
            verdict = None if late else _read(json.loads(mine.recv_bytes(2**20)))
        if verdict is None and not late:
            process.join(1)  # for how it ended
        ended = process.exitcode  # None: it runs on
        process.kill()
        process.join()
    if verdict is None:
        words, why = _ENDS.get(ended, ("it ended its own process", "ended its process"))
        verdict = {"status": "failed", "text": f"{words}, and no verdict came of it", "why": why}
    return verdict


def _alone_in(folder, job):
    """The job on copies in `folder` of the notebook and of those beside it, and of no others."""
    for path in {job["parts"], *job.get("beside", ())}:
        shutil.copyfile(path, os.path.join(folder, os.path.basename(path)))
    return {"parts": os.path.join(folder, os.path.basename(job["parts"]))}


def _read(verdict):
    """A verdict, if it has the form of one: what came may be an answer's own. Else an error."""
    if not all(isinstance(verdict[key], str) for key in ("status", "text")):
        raise ValueError("no verdict")
    if not all(isinstance(name, str) for name in verdict.get("passed", [])):
        raise ValueError("no names")
    return verdict


def _child(job, folder, pipe):
    """Judge one job in this process and send the verdict."""
    _settle(folder)
    from tinytf_course.release.guard import shut

    shut(folder)
    verdict = _parts(Path(job["parts"])) if job.get("parts") else _verdict(job)
    pipe.send_bytes(json.dumps(verdict).encode())


def _parts(path):
    """The build-mode parts of a notebook that pass, each resting on those beside it."""
    from tinytf_course.contain import contained
    from tinytf_course.yours import _written

    done = contained(lambda: sorted(_written(path)), TO_BUILD)
    return {"status": "", "text": str(done.error or ""), "passed": done.value or []}


def _settle(folder):
    """No output, no input, small files, and a folder that is thrown away."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    os.chdir(folder)
    os.environ.update(HOME=folder, TMPDIR=folder, MPLCONFIGDIR=folder)
    tempfile.tempdir, sys.dont_write_bytecode = folder, True
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_SIZE, _FILE_SIZE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _verdict(job):
    """Define the answer, grade it, and grade the grader."""
    from tinytf_course.check import Outlet, find, grade
    from tinytf_course.contain import TooLong, contained
    from tinytf_course.release.guard import Untouched

    exercise, names = find(job["id"]), {"__name__": "__main__"}
    untouched, faults = Untouched(), []
    with Outlet(lines=0):
        done = contained(lambda: _define(job["statements"], names), TO_DEFINE)
    faults += [words for words in done.changed if words.startswith("replaces")]
    answer = names.get(job["name"])
    if answer is None:
        words = f"its cell ends with {type(done.error).__name__}" if done.error else "no answer"
        why = "endless" if isinstance(done.error, TooLong) else "its cell fails"
        return {"status": "not yet", "text": words, "why": why}
    result = grade(exercise, answer, TO_GRADE) if not untouched.changed() else None
    if changed := untouched.changed():
        faults.append(f"changes the course's own {changed}")
    elif result.passed and (forged := _forged(exercise, grade)):
        faults.append(forged)
    if faults:
        text = f"✗ {exercise.id}  {exercise.title}: your code {'; '.join(faults[:3])}"
        return {"status": "failed", "text": text}
    return {"status": result.status, "text": result.text, "why": _why(result)}


def _why(result):
    """Why a result is no pass, in a word or two; empty for a pass and a stub as it was."""
    if not result.failed:
        return "" if result.reason in _NOT_BEGUN else result.reason
    if result.endless:
        return "endless"
    return "raises an error" if result.crashed else "wrong"


def _define(statements, names):
    """Run statements one by one; one that fails does not keep the next from running."""
    for number, text in enumerate(statements):
        file = f"<answer, statement {number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        with contextlib.suppress(Exception, SystemExit):
            exec(compile(text, file, "exec"), names)


def _forged(exercise, grade):
    """What the grader now wrongly accepts, in words; an empty string if it still grades."""
    wrong = [
        lambda *_, **__: None,
        *(each.answer for each in exercise.wrong[:3]),
    ]
    if any(grade(exercise, answer, TO_GRADE, until_wrong=True).passed for answer in wrong):
        return "makes the grader accept wrong answers"
    return ""


if __name__ == "__main__":
    main()
