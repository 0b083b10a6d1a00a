"""A small table: HTML in a notebook, aligned columns everywhere else."""

import html
import unicodedata

from tinytf_course.display import inline


class Table:
    """What `table` returns; the last line of a cell shows it."""

    def __init__(self, header, rows):
        self.header, self.rows = header, rows

    def __repr__(self):
        rows = [self.header, *self.rows]
        widths = [max(map(_width, column)) for column in zip(*rows)]
        lines = [
            "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths))
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self):
        # JupyterLab aligns to the right by default, which suits numbers and not sentences.
        style = "text-align: left; vertical-align: top"
        names = "".join(
            f'<th scope="col" style="{style}">{inline(c)}</th>' if c else "<td></td>"
            for c in self.header
        )
        body = "".join(
            "<tr>" + "".join(f'<td style="{style}">{_cell(c)}</td>' for c in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


class Link(str):
    """The text of a cell that leads somewhere."""

    def __new__(cls, text, address):
        """Make the text and keep its address."""
        link = super().__new__(cls, text)
        link.address = address
        return link


def table(header, rows):
    """A table of cells as text; `backticks` become code, and a Link leads to its address.

    Raises ValueError for a row that has not one cell for each name in the header.
    """
    header = [str(name) for name in header]
    rows = [[cell if isinstance(cell, Link) else str(cell) for cell in row] for row in rows]
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row has {len(row)} cells for {len(header)} columns: {row}")
    return Table(header, rows)


def _cell(text):
    shown = inline(text)
    return f'<a href="{html.escape(text.address)}">{shown}</a>' if isinstance(text, Link) else shown


def _width(text):
    """Columns that the text takes in a terminal, where a Chinese character takes two."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
