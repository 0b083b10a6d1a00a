"""nbgrader's preprocessor that takes the place of running a submission: the judge grades it."""

import re

from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade

from tinytf_course.release.judge import judged
from tinytf_course.release.submitted import answers_in

__all__ = ["Judge"]

_CHECK = re.compile(r'check\("(\d\d[a-z]?)\.(\d+)", \w+\)')


class Judge(NbGraderPreprocessor):
    """Grade the answers of a notebook one by one; write each verdict below its test's cell.

    Nothing runs in this process or in a kernel. A test's cell is nbgrader's own copy of it, so a
    submission can't say which exercise is tested, nor for how many points.
    """

    def preprocess(self, nb, resources):
        """Fill the outputs of the tests' cells."""
        code = [cell for cell in nb.cells if cell.cell_type == "code"]
        for cell in code:
            cell.outputs, cell.execution_count = [], None
        tests = {}
        for cell in code:
            if is_grade(cell) and (found := _CHECK.search(cell.source)):
                tests[f"{found[1]}.{found[2]}"] = cell
        locked = {id(cell) for cell in code if is_grade(cell)}
        texts = [cell.source for cell in code if id(cell) not in locked]
        chapters = dict.fromkeys(id.split(".")[0] for id in tests)
        answers = [answer for chapter in chapters for answer in answers_in(texts, chapter)]
        answers = [answer for answer in answers if answer.id in tests]
        verdicts = judged([answer._asdict() for answer in answers])
        for answer, verdict in zip(answers, verdicts, strict=True):
            tests[answer.id].outputs = [_output(verdict)]
        for cell in tests.values():
            if not cell.outputs:
                cell.outputs = [_output({"status": "", "text": "there is no such exercise"})]
        return nb, resources


def _output(verdict):
    if verdict["status"] == "passed":
        return new_output("stream", name="stdout", text=verdict["text"] + "\n")
    lines = verdict["text"].splitlines()
    return new_output("error", ename="NotPassed", evalue=lines[0], traceback=lines)
