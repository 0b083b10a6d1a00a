"""An exercise's cells in its chapter: statement and stub as its file has them."""

import ast
import re

from nbformat.v4 import new_code_cell, new_markdown_cell

from tinytf_course.grading import exercises, find, has_answers

_HEADING = re.compile(r"### Exercise (\d\d\.\d+) ")
_CLOSING = re.compile(r"## (What you built|Summary)")


def with_exercises(cells, chapter):
    """Write each exercise's statement, hints, solution and stub into its cells.

    Its text is the cell under its heading; its stub stands in the cell that calls `check`, among
    whatever else that cell does. An exercise that the chapter does not have yet comes at the end of
    its core, from where its two cells may be moved.
    """
    if not has_answers():
        return
    asked = []
    for cell in cells:
        if cell["cell_type"] == "markdown" and (found := _HEADING.match(cell["source"])):
            asked.append(find(found[1]))
            cell["source"] = asked[-1].markdown().rstrip("\n")
        elif cell["cell_type"] == "code":
            for exercise in asked:
                if f'check("{exercise.id}"' in cell["source"]:
                    cell["source"] = _with_stub(cell["source"], exercise)
    closing = (i for i, cell in enumerate(cells) if _CLOSING.match(cell["source"]))
    end = next(closing, len(cells))
    for id, exercise in exercises().items():
        if id.startswith(f"{chapter}.") and exercise not in asked:
            cells[end:end] = _new_cells(exercise)
            end += 2


def _new_cells(exercise):
    id = f"exercise-{exercise.id.replace('.', '-')}"
    answer = f'{exercise.stub}\n\ncheck("{exercise.id}", {exercise.name})'
    return [
        new_markdown_cell(exercise.markdown().rstrip("\n"), id=id),
        new_code_cell(answer, id=f"{id}-answer"),
    ]


def _with_stub(source, exercise):
    """The source of a cell in which the function to write is the exercise's stub.

    The function is the one that `check` gets, whatever it was called so far.
    """
    asked = re.search(rf'check\("{exercise.id}", (\w+)\)', source)
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if asked and getattr(node, "name", None) == asked[1]:
            lines[node.lineno - 1 : node.end_lineno] = exercise.stub.splitlines()
            source = "\n".join(lines)
            return source.replace(asked[0], f'check("{exercise.id}", {exercise.name})')
    raise ValueError(f"the cell that checks {exercise.id} does not define what it checks")
