"""The tables of chapter 00: cells, links, the outline and the glossary."""

import pytest

from tinytf.course.glossary import TERMS, glossary
from tinytf.course.outline import CHAPTERS, outline
from tinytf.course.tables import Link, table


def test_cells_are_escaped_and_linked():
    shown = table(
        ("word", "where"), [("<eos>", Link("03", "03_x.ipynb")), ("`a`", 2)]
    )._repr_html_()
    assert "&lt;eos&gt;" in shown
    assert '<a href="03_x.ipynb">03</a>' in shown
    assert "<code>a</code>" in shown


def test_columns_line_up_in_a_terminal():
    lines = repr(table(("词", "b"), [("猫", "x"), ("diànzi", "y")])).splitlines()
    assert lines == ["词      b", "猫      x", "diànzi  y"]


def test_a_short_row_is_refused():
    with pytest.raises(ValueError, match=r"1 cells for 2 columns: \['猫'\]"):
        table(("a", "b"), [("猫",)])


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


def test_glossary():
    assert len({english for english, *_ in TERMS}) == len(TERMS) >= 30
    assert all(f"{chapter:02d}" in {number for number, *_ in CHAPTERS} for *_, chapter in TERMS)
    assert {row[0] for row in glossary("NORM").rows} == {
        "RMSNorm",
        "batch normalisation",
        "layer normalisation",
        "pre-norm, post-norm",
    }
    assert [row[0] for row in glossary("查询").rows][:1] == ["query"]
    with pytest.raises(KeyError, match="no term contains 'tractor'"):
        glossary("tractor")
