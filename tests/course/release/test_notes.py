"""The teacher's edition: pages whose links lead somewhere, and notes that name what is there."""

import re
import shutil
from pathlib import Path

import pytest

from tinytf_course.__main__ import main
from tinytf_course.release import teaching
from tinytf_course.release.notes import html

FOLDER = Path(__file__).parents[3] / "notebooks"


@pytest.fixture
def chapters(tmp_path):
    """A folder with three of the course's chapters."""
    (tmp_path / "n").mkdir()
    for number in ("05", "06", "24"):
        (path,) = FOLDER.glob(f"{number}_*.ipynb")
        shutil.copy(path, tmp_path / "n")
    return str(tmp_path / "n")


def test_notes_are_written_and_their_links_lead_somewhere(chapters, tmp_path, capsys):
    assert main(["release", "--notes", str(tmp_path / "t"), "--notebooks", chapters]) == 0
    files = {path.name for path in (tmp_path / "t").iterdir()}
    assert {"index.md", "05_scaled_dot_product_attention.md"} <= files
    for name in files:
        text = (tmp_path / "t" / name).read_text(encoding="utf-8")
        links = re.findall(r'\]\(([^)]+)\)|href="([^"]+)"', text)
        for link in {a or b for a, b in links} - {""}:
            assert link in files, (name, link)
    told = capsys.readouterr().out
    assert "notes for 3 chapters" in told
    assert "without notes or notebook: 00, 01" in told


def test_html_has_the_tables():
    pytest.importorskip("mistune")
    made = html({"a.md": "# A & B\n\n| x | y |\n| --- | --- |\n| 1 | [b](b.md) |\n"})
    assert list(made) == ["a.html"]
    assert "<title>A &amp; B</title>" in made["a.html"]
    assert '<td><a href="b.html">b</a></td>' in made["a.html"]


def test_notes_that_name_nothing_stop_it(chapters, tmp_path, capsys, monkeypatch):
    (tmp_path / "ch05.md").write_text(
        teaching.written()["05"].read_text(encoding="utf-8").replace("{05-15}", "{05-99}"),
        encoding="utf-8",
    )
    monkeypatch.setattr(teaching, "FOLDER", tmp_path)
    assert main(["release", "--notes", str(tmp_path / "t"), "--notebooks", chapters]) == 1
    assert "ch05.md: 05-99 is nothing in this chapter" in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


def test_an_edition_without_notes_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(teaching, "FOLDER", tmp_path / "none")
    assert main(["release", "--notes", str(tmp_path / "t"), "--notebooks", str(FOLDER)]) == 1
    assert capsys.readouterr().err == "this edition has no teacher's notes\n"
