"""What tests of chapters share: the cells of a chapter 03 whose form is right."""

import inspect

from tinytf.attention import attention_weights
from tinytf_course.grading import exercises


def cell(source, *outputs, kind="code"):
    made = {"cell_type": kind, "metadata": {}, "source": source}
    return made | {"execution_count": 0, "outputs": list(outputs)} if kind == "code" else made


def said(text, **metadata):
    return {"output_type": "display_data", "metadata": metadata, "data": {"text/plain": text}}


def chapter():
    """The cells of a chapter 03 whose form is right."""
    cells = [cell(inspect.getsource(attention_weights))]
    cells.append(cell("graduate(attention_weights, 'tinytf.attention')"))
    for i in range(5):
        record = {"id": f"03-{i}", "sentence": "s", "measured": "1 < 2"}
        cells.append(cell(f"claim('03-{i}', 's', 1, '<', 2)", said("✓", claim=record)))
    for i in range(2):
        cells.append(cell(f"predict('03-P{i}', 'q', ['a', 'b'])"))
        cells.append(cell(f"predict.answer('03-P{i}', 'a')"))
    for exercise in (e for e in exercises().values() if e.id.startswith("03.")):
        name = exercise.name
        if name != "attention_weights":
            cells.append(cell(f"def {name}(): ..."))
        told = f"Exercise {exercise.id}\n\n{exercise.statement}"
        cells.append(cell(told, kind="markdown"))
        status = {"id": exercise.id, "status": "not yet"}
        cells.append(cell(f"check('{exercise.id}', {name})", said("…", check=status)))
    return cells
