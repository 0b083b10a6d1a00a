"""Core and electives: what the outline names is there, and nothing in the core needs it."""

import ast
import json
import re
import symtable
from pathlib import Path

import pytest

from tinytf_course.electives import electives, marked
from tinytf_course.grading import exercises
from tinytf_course.notebooks import Notebook, calls_in, notebooks, source
from tinytf_course.outline import CHAPTERS, Chapter

FOLDER = Path(__file__).parents[2] / "notebooks"
BY_NUMBER = {chapter.number: chapter for chapter in CHAPTERS}
ALL = list(notebooks(FOLDER))


# Boxes: an elective builds them, and the core says in a sentence what they do, and imports them.
BOXES = {
    "GRUCell", "TextBlocks", "TiedOutput", "attend", "fused_attention", "half_split_order",
    "padding_so_far", "token_positions", "written_out",
}  # fmt: skip


def markdown(id, text):
    return {"cell_type": "markdown", "id": id, "metadata": {}, "source": text}


def code(id, text):
    return {"cell_type": "code", "id": id, "metadata": {}, "source": text, "outputs": []}


def code_of(notebook, chapter):
    """(cell, tree, whether it is core) of the code cells."""
    names = electives(notebook.cells, chapter)
    core = {c["id"]: not (chapter.elective or name) for c, name in zip(notebook.cells, names)}
    for cell, tree in zip(notebook.code, notebook.trees, strict=True):
        yield cell, tree, core[cell["id"]]


def binds_and_uses(tree):
    """The names that a cell binds, and those that it, or a function in it, takes from outside."""

    def taken(table):
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from taken(child)

    table = symtable.symtable(ast.unparse(tree), "a cell", "exec")
    bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    return bound, set(taken(table)) - bound


def needed(notebook, chapter):
    """{core cell: the names that it takes from an elective} of a notebook."""
    found, last = {}, {}  # {name: whether the core bound it last}
    for cell, tree, core in code_of(notebook, chapter):
        bound, used = binds_and_uses(tree)
        if core and (names := {name for name in used if not last.get(name, True)}):
            found[cell["id"]] = names
        last |= dict.fromkeys(bound, core)
    return found


def built_beside(all_notebooks):
    """(chapter, name) of what the core imports from tinytf though only an elective has built it."""
    built, graduated = {}, set()  # {name: whether a cell of the core defines it}
    for notebook in all_notebooks:
        for _, tree, core in code_of(notebook, BY_NUMBER[notebook.chapter]):
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    built[node.name] = built.get(node.name, False) or core
                elif core and isinstance(node, ast.ImportFrom) and "tinytf" in (node.module or ""):
                    for name in {alias.name for alias in node.names} & graduated:
                        if not built.get(name, True):
                            yield notebook.chapter, name
            graduated |= {ast.unparse(call.args[0]) for call in calls_in(tree, "graduate")}


@pytest.mark.parametrize("notebook", ALL, ids=lambda n: n.path.stem)
def test_no_cell_of_the_core_needs_a_name_from_an_elective(notebook):
    found = needed(notebook, BY_NUMBER[notebook.chapter])
    assert not found, "let the elective be core, or those cells be none"


def test_the_core_imports_nothing_that_an_elective_builds():
    assert {(chapter, name) for chapter, name in built_beside(ALL) if name not in BOXES} == set()


def test_a_core_chapter_needs_core_chapters_alone():
    for chapter in CHAPTERS:
        needs = {BY_NUMBER[number] for number in re.findall(r"\b\d\d\b", chapter.needs or "")}
        assert chapter.elective or not any(need.elective for need in needs), chapter.number


@pytest.mark.parametrize("notebook", ALL, ids=lambda n: n.path.stem)
def test_a_chapter_of_the_core_has_an_exercise_there(notebook):
    """So that it can be done, as the course map shows it."""
    names = electives(notebook.cells, BY_NUMBER[notebook.chapter])
    core = [cell for cell, name in zip(notebook.cells, names, strict=True) if not name]
    assert any(source(cell).startswith("### Exercise ") for cell in core)


def test_the_core_takes_28_hours_at_most():
    assert 24 <= round(sum(chapter.core for chapter in CHAPTERS) / 60) <= 28


@pytest.mark.parametrize("notebook", ALL, ids=lambda n: n.path.stem)
def test_electives_have_their_minutes_where_they_begin(notebook):
    chapter = BY_NUMBER[notebook.chapter]
    begun = marked(notebook.cells, chapter)
    for cell in notebook.cells:
        text = source(cell)
        assert begun.get(cell["id"], text) == text, "python -m tinytf_course build"
        if asked := re.match(r"### Exercise (\S+)", text):
            begun[asked[1]] = text
            exercise = exercises()[asked[1]]
            assert chapter.pieces.get(asked[1], exercise.minutes) == exercise.minutes, asked[1]
            assert exercise.markdown().splitlines()[2] in text.splitlines(), asked[1]
    assert set(chapter.pieces) <= set(begun), "the outline names what is not there"


@pytest.fixture
def small(tmp_path):
    """A chapter with an elective section, an elective exercise and three pieces under Further."""

    def write(*more):
        cells = [
            markdown("title", "# 01 T"),
            code("one", "x = 1"),
            markdown("gates", "## Gates"),
            code("two", "def gate(x):\n    return x\n\n\ny = 1"),
            markdown("deep", "### Deep"),
            markdown("next", "## Next"),
            markdown("exercise-01-9", "### Exercise 01.2 · it"),
            code("exercise-01-9-answer", "mine = 1"),
            code("three", "z = 1"),
            markdown("further", "## Further\n\n### Deeper"),
            markdown("more", "### More · 3 minutes"),
            markdown("most", "### Most (about 10 minutes, and a network)"),
            markdown("end", "## End"),
            *more,
        ]
        (tmp_path / "01_t.ipynb").write_text(json.dumps({"cells": cells}))
        return Notebook(tmp_path / "01_t.ipynb")

    return write


CHAPTER = Chapter("01", "T", "Q?", 9, electives="gates 5, 01.2 8, further 1, more 4, most 9")


def test_what_belongs_to_an_elective(small):
    cells = small().cells
    found = electives(cells, CHAPTER)
    assert {c["id"]: name for c, name in zip(cells, found, strict=True) if name} == {
        "gates": "gates", "two": "gates", "deep": "gates",
        "exercise-01-9": "01.2", "exercise-01-9-answer": "01.2",
        "further": "further", "more": "more", "most": "most",
    }  # fmt: skip
    assert electives(cells, CHAPTER._replace(electives=""))[-2] == "Further"


def test_headings_get_their_minutes(small):
    made = marked(small().cells, CHAPTER)
    assert {id: text for id, text in made.items() if "minute" in text} == {
        "gates": "## Gates (elective, 5 minutes)",
        "further": "## Further\n\n### Deeper (1 minute)",
        "more": "### More (4 minutes)",
        "most": "### Most (9 minutes, and a network)",
    }
    for cell in (cells := small().cells):
        cell["source"] = made.get(cell["id"], cell["source"])
    assert marked(cells, CHAPTER) == made
    assert marked(cells, CHAPTER._replace(electives=""))["gates"] == "## Gates"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gate(1)", {"gate"}),
        ("def f():\n    return [y for _ in z]", {"y"}),
        ("w = mine + x", {"mine"}),
        ("y = z\ny + x", None),
        ("[y for y in range(z)]", None),
    ],
)
def test_a_name_from_an_elective_is_found(small, text, names):
    assert needed(small(code("four", text)), CHAPTER).get("four") == names
