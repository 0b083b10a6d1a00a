"""What is read of a chapter for its notes: a small notebook that says everything."""

import json

from tinytf_course.notebooks import Notebook
from tinytf_course.release.facts import facts


def cell(id, source, *outputs, kind=None):
    kind = kind or ("markdown" if source.startswith("#") else "code")
    return {"cell_type": kind, "id": id, "metadata": {}, "source": source, "outputs": [*outputs]}


def shown(text, **metadata):
    return {"data": {"text/plain": text}, "metadata": metadata}


def test_facts(tmp_path):
    claim = {"id": "05-1", "sentence": "they differ by", "measured": "1 < 2"}
    asked = "? 05-a  Which is it?\n    - this\n    - that: measured"
    cells = [
        cell("title", "# 05 Scaled"),
        cell("ask", "predict('05-a', 'Which is it?', ['this', 'that: measured'])", shown(asked)),
        cell("end", "[The end of what was asked.]\n\n## A part", kind="markdown"),
        cell("tell", "x", shown("→ 05-a  you said: this; measured: that: measured. It is.")),
        cell("exercise-05-1", "### Exercise 05.1"),
        cell("exercise-05-1-answer", "y"),
        cell("claim", "claim('05-1', 'they differ by', 1, '<', 2)", shown("✓", claim=claim)),
    ]
    path = tmp_path / "05_small.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    its = facts(Notebook(path))
    assert its.chapter.title == "Scaled dot-product attention"
    assert its.predictions == {
        "05-a": ("Which is it?", ["this", "that: measured"], "that: measured. It is.")
    }
    assert its.claims == {"05-1": "they differ by"}
    assert its.sections["ask"] == ("05 Scaled", "05 Scaled")
    assert its.sections["end"] == ("05 Scaled", "A part")
    assert its.sections["tell"] == ("A part", "A part")
    assert (
        its.sections["exercise-05-1"][0]
        == its.sections["exercise-05-1-answer"][1]
        == "Exercise 05.1"
    )
    assert "05.3" in its.exercises
    known = ("05-1", "05-a", "05.3", "#tell")
    assert all(map(its.knows, known))
    assert not any(map(its.knows, ("05-2", "05-b", "05.9", "#05-1", "tell")))
