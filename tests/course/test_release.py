"""The command `release` makes editions, and says what it can't make."""

import pytest

from tinytf_course.__main__ import main
from tinytf_course.release import assignments, students


def test_an_nbgrader_course_is_written_and_settings_stay(tmp_path, capsys):
    assert main(["release", "--nbgrader", str(tmp_path), "5", "11"]) == 0
    assert "2 assignments, 26 points" in capsys.readouterr().out
    made = sorted(path.stem for path in (tmp_path / "source").rglob("*.ipynb"))
    assert [name.split("_")[0] for name in made] == ["05", "11"]
    (tmp_path / "nbgrader_config.py").write_text("mine")
    assert main(["release", "--nbgrader", str(tmp_path), "05"]) == 0
    assert (tmp_path / "nbgrader_config.py").read_text() == "mine"


def test_one_kind_at_a_time_and_a_chapter_that_exists(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["release", "05"])
    with pytest.raises(SystemExit):
        main(["release", "--students", "a", "--nbgrader", "b"])
    assert main(["release", "--students", str(tmp_path), "77"]) == 1
    assert "no such chapter" in capsys.readouterr().err


def test_an_edition_without_answers_makes_no_other(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(students, "has_answers", lambda: False)
    monkeypatch.setattr(assignments, "has_answers", lambda: False)
    for kind in ("students", "nbgrader"):
        assert main(["release", f"--{kind}", str(tmp_path / "x"), "05"]) == 1
        assert "student edition" in capsys.readouterr().err
