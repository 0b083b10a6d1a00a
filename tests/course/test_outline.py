"""Facts kept once: titles, questions, minutes and order follow from the outline everywhere."""

from pathlib import Path

import pytest

from tinytf.course.__main__ import main
from tinytf.course.notebooks import notebooks, source
from tinytf.course.outline import CHAPTERS, head, outline
from tinytf.course.readme import refreshed
from tinytf.course.tables import Link
from tinytf.viz import coursemap

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
BY_NUMBER = {chapter.number: chapter for chapter in CHAPTERS}
README = """# It
<!-- chapters: how -->
old
<!-- end of chapters -->
between
<!-- parts: how -->
<!-- end of parts -->
after
"""


@pytest.mark.parametrize("notebook", notebooks(FOLDER), ids=lambda n: n.path.stem)
def test_a_notebook_s_head_is_the_outline_s(notebook):
    first = source(notebook.cells[0])
    assert head(first, BY_NUMBER[notebook.chapter]) == first, "python -m tinytf.course build"


def test_every_notebook_has_its_place_and_its_name():
    for notebook in notebooks(FOLDER):
        assert notebook.chapter in BY_NUMBER
    assert [chapter.number for chapter in CHAPTERS] == sorted(BY_NUMBER)


def test_readme_is_up_to_date():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert refreshed(text, FOLDER) == text, "python -m tinytf.course readme"


def test_the_map_has_the_outline_s_chapters():
    drawn = {
        number for *_, numbers in coursemap._ENCLOSING + coursemap._PARTS for number in numbers
    }
    around = {number for number, _ in coursemap._AROUND}
    assert drawn | around == {int(c.number) for c in CHAPTERS if c.number.isdigit()}
    for number, label in coursemap._AROUND:
        title = BY_NUMBER[f"{number:02d}"].title.lower()
        assert label.replace("\n", " ").lower() in title


@pytest.fixture
def course(tmp_path):
    """A README and one notebook beside it."""
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "notebooks").mkdir()
    cells = '[{"cell_type": "code", "metadata": {}, "outputs": [], "source": ["%s"]}]'
    graduation = "graduate(causal_mask, 'tinytf.masks')"
    path = tmp_path / "notebooks" / "03_it.ipynb"
    path.write_text('{"cells": %s}' % (cells % graduation))
    return tmp_path


def test_the_readme_is_written_between_its_comments(course, capsys):
    command = ["readme", "--notebooks", str(course / "notebooks")]
    assert main([*command, "--check"]) == 1
    assert (course / "README.md").read_text() == README
    assert main(command) == 0
    text = (course / "README.md").read_text()
    assert text.startswith("# It\n<!-- chapters: how -->\n| | question | time |\n")
    assert "| [03 Scaled dot-product attention](notebooks/03_it.ipynb) | How does" in text
    assert "\nbetween\n" in text
    assert "| 03 | `causal_mask` | [tinytf/masks.py](tinytf/masks.py) |\n<!-- end of parts" in text
    assert text.endswith("\nafter\n")
    capsys.readouterr()
    assert main([*command, "--check"]) == 0
    assert capsys.readouterr().out == "README.md: unchanged\n"


@pytest.mark.parametrize("lost", ["<!-- parts: how -->", "<!-- end of chapters -->"])
def test_a_readme_without_its_comments_is_an_error(lost, course, capsys):
    (course / "README.md").write_text(README.replace(lost, ""))
    assert main(["readme", "--notebooks", str(course / "notebooks")]) == 1
    assert "README.md needs one <!-- " in capsys.readouterr().err
    (course / "README.md").unlink()
    assert main(["readme", "--notebooks", str(course / "notebooks")]) == 1


def test_a_head_that_lacks_something_is_an_error():
    chapter = BY_NUMBER["03"]
    text = "# 3\n\n**Why?**\n\nAbout 7 minutes."
    assert head(text, chapter).count(chapter.question) == 1
    for part, missing in (("# 3", "# 03"), ("**Why?**", "How does"), ("About 7", "About 75")):
        with pytest.raises(ValueError, match=f"chapter 03 does not say .*{missing}"):
            head(text.replace(part, "x"), chapter)


def test_outline_links_what_is_there(tmp_path):
    for name in ("03_scaled.ipynb", "14b_block.ipynb"):
        (tmp_path / name).write_text("{}")
    rows = outline(tmp_path).rows
    assert len(rows) == len(CHAPTERS) == 20
    assert [row[1].address for row in rows if isinstance(row[1], Link)] == [
        "03_scaled.ipynb",
        "14b_block.ipynb",
    ]
    assert [row[0] for row in rows if not row[3]] == ["03", "14b"]
