"""The outline of the course."""

from tinytf.course.outline import CHAPTERS, outline
from tinytf.course.tables import Link


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
