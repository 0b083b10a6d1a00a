"""Facts kept once: titles, questions, minutes and order follow from the outline everywhere."""

from pathlib import Path

import pytest

from tinytf_course.build import head
from tinytf_course.notebooks import notebooks, source
from tinytf_course.outline import CHAPTERS, outline
from tinytf_course.tables import Link

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
BY_NUMBER = {chapter.number: chapter for chapter in CHAPTERS}


@pytest.mark.parametrize("notebook", notebooks(FOLDER), ids=lambda n: n.path.stem)
def test_a_notebook_s_head_is_the_outline_s(notebook):
    first = source(notebook.cells[0])
    assert head(first, BY_NUMBER[notebook.chapter]) == first, "python -m tinytf_course build"


def test_every_notebook_has_its_place_and_its_name():
    for notebook in notebooks(FOLDER):
        assert notebook.chapter in BY_NUMBER
    assert [chapter.number for chapter in CHAPTERS] == sorted(BY_NUMBER)


def test_a_head_that_lacks_something_is_an_error():
    chapter = BY_NUMBER["03"]
    text = "# 3\n\n**Why?**\n\nAbout 7 minutes."
    assert head(text, chapter).count(chapter.question) == 1
    time = f"About {chapter.minutes}"
    for part, missing in (("# 3", "# 03"), ("**Why?**", "How does"), ("About 7", time)):
        with pytest.raises(ValueError, match=f"chapter 03 does not say .*{missing}"):
            head(text.replace(part, "x"), chapter)


def test_outline_links_what_is_there(tmp_path):
    for name in ("03_scaled.ipynb", "23_block.ipynb"):
        (tmp_path / name).write_text("{}")
    rows = outline(tmp_path).rows
    assert len(rows) == len(CHAPTERS)
    assert [row[1].address for row in rows if isinstance(row[1], Link)] == [
        "03_scaled.ipynb",
        "23_block.ipynb",
    ]
    assert [row[0] for row in rows if row[3] != "to come"] == ["03", "23"]
    assert rows[3][3:] == [str(BY_NUMBER["03"].core), str(BY_NUMBER["03"].beside)]
