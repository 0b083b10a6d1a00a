"""The tables of chapter 00: cells, links, the outline and the glossary."""

import pytest

from tinytf_course.tables import Link, table


def test_cells_are_escaped_and_linked():
    shown = table(
        ("word", "where"), [("<eos>", Link("03", "03_x.ipynb")), ("`a`", 2)]
    )._repr_html_()
    assert "&lt;eos&gt;" in shown
    assert '<a href="03_x.ipynb">03</a>' in shown
    assert "<code>a</code>" in shown


def test_a_column_without_a_name_has_no_empty_heading():
    shown = table(("", "word"), [(1, "cat")])._repr_html_()
    assert shown.count("<th ") == 1
    assert "<tr><td></td><th " in shown


def test_columns_line_up_in_a_terminal():
    lines = repr(table(("词", "b"), [("猫", "x"), ("diànzi", "y")])).splitlines()
    assert lines == ["词      b", "猫      x", "diànzi  y"]


def test_a_short_row_is_refused():
    with pytest.raises(ValueError, match=r"1 cells for 2 columns: \['猫'\]"):
        table(("a", "b"), [("猫",)])
