"""The glossary."""

import re
from pathlib import Path

import pytest

from tinytf_course.glossary import TERMS, glossary
from tinytf_course.notebooks import notebooks, source


def test_glossary():
    assert len({english for english, *_ in TERMS}) == len(TERMS) >= 30
    assert [chapter for *_, chapter in TERMS] == sorted(chapter for *_, chapter in TERMS)
    assert {row[0] for row in glossary("NORM").rows} == {
        "RMSNorm",
        "batch normalisation",
        "layer normalisation",
    }
    assert [row[0] for row in glossary("查询").rows][:1] == ["query"]
    with pytest.raises(KeyError, match="no term contains 'tractor'"):
        glossary("tractor")


def test_each_term_is_used_in_the_chapter_that_the_glossary_names():
    prose = {}
    for notebook in notebooks(Path(__file__).parents[2] / "notebooks"):
        markdown = [source(cell) for cell in notebook.cells if cell["cell_type"] == "markdown"]
        prose[int(notebook.chapter)] = re.sub(r"[\s`*]+", " ", " ".join(markdown)).lower()
    for english, *_, chapter in TERMS:
        for term in english.lower().split(", "):
            assert re.search(rf"(?<!\w){re.escape(term)}", prose[chapter]), (term, chapter)
