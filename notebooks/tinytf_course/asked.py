"""An exercise's cells in its chapter: statement and stub as its file has them."""

import ast
import re

from tinytf_course.grading import find, has_answers

_HEADING = re.compile(r"### Exercise (\d\d\.\d+) ")


def with_exercises(cells):
    """Write each exercise's statement, hints, solution and stub into its cells.

    Its text is the cell under its heading; its stub stands in the cell that calls `check`, among
    whatever else that cell does.
    """
    asked = []
    for cell in cells if has_answers() else ():
        if cell["cell_type"] == "markdown" and (found := _HEADING.match(cell["source"])):
            asked.append(find(found[1]))
            cell["source"] = asked[-1].markdown().rstrip("\n")
        elif cell["cell_type"] == "code":
            for exercise in asked:
                if f'check("{exercise.id}"' in cell["source"]:
                    cell["source"] = _with_stub(cell["source"], exercise)


def _with_stub(source, exercise):
    """The source of a cell in which the function to write is the exercise's stub."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if getattr(node, "name", None) == exercise.name:
            lines[node.lineno - 1 : node.end_lineno] = exercise.stub.splitlines()
    return "\n".join(lines)
