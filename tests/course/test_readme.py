"""The README's written regions follow from the course, and nothing else in it moves."""

from pathlib import Path

import pytest

from tinytf_course.__main__ import main
from tinytf_course.drawings.coursemap import spoken_map
from tinytf_course.readme import PAGES, readme_of, refreshed

ROOT = Path(__file__).parents[2]
README = """# It
<!-- hours: how -->
<!-- end of hours -->
<!-- chapters: how -->
old
<!-- end of chapters -->
after
"""
PARTS = """# Package
<!-- parts: how -->
<!-- end of parts -->
"""


@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_up_to_date(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert refreshed(text, ROOT / "notebooks", page) == text, "python -m tinytf_course readme"


def test_the_readme_says_its_picture_of_the_course_in_words():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"![{spoken_map()}](.github/course-map.svg)" in text


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


@pytest.fixture
def course(tmp_path):
    """A README and one notebook beside it."""
    (tmp_path / "README.md").write_text(README)
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "PACKAGE.md").write_text(PARTS)
    (tmp_path / "notebooks").mkdir()
    cells = '[{"cell_type": "code", "metadata": {}, "outputs": [], "source": ["%s"]}]'
    graduation = "graduate(causal_mask, 'tinytf.masks')"
    path = tmp_path / "notebooks" / "05_it.ipynb"
    path.write_text('{"cells": %s}' % (cells % graduation))
    return tmp_path


def test_the_readme_is_written_between_its_comments(course, capsys):
    command = ["readme", "--notebooks", str(course / "notebooks")]
    assert main([*command, "--check"]) == 1
    assert (course / "README.md").read_text() == README
    assert main(command) == 0
    text = (course / "README.md").read_text()
    assert text.startswith("# It\n<!-- hours: how -->\n**It takes** about 1 hours for the core")
    assert (
        "<!-- end of hours -->\n<!-- chapters: how -->\n| | question | core | electives |\n" in text
    )
    assert "| [05 Scaled dot-product attention](notebooks/05_it.ipynb) | How does" in text
    parts = (course / ".github" / "PACKAGE.md").read_text()
    assert "| 05 | `causal_mask` | [tinytf/masks.py](../tinytf/masks.py) |\n<!-- end" in parts
    assert text.endswith("\nafter\n")
    capsys.readouterr()
    assert main([*command, "--check"]) == 0
    assert capsys.readouterr().out == "README.md: unchanged\n"


@pytest.mark.parametrize("lost", ["<!-- hours: how -->", "<!-- end of chapters -->"])
def test_a_readme_without_its_comments_is_an_error(lost, course, capsys):
    (course / "README.md").write_text(README.replace(lost, ""))
    assert main(["readme", "--notebooks", str(course / "notebooks")]) == 1
    assert "README.md needs one <!-- " in capsys.readouterr().err
    (course / "README.md").unlink()
    assert main(["readme", "--notebooks", str(course / "notebooks")]) == 1


def test_the_readme_beside_a_folder(course):
    assert readme_of(course / "notebooks") == (course / "README.md").resolve()
    (course / "README.md").unlink()
    assert readme_of(course / "notebooks") is None
