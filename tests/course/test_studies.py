"""Tables of studies are written with what repeats them, and read by name."""

import platform

import pytest

from tinytf_course import studies


def test_a_table_says_how_to_repeat_it(tmp_path, monkeypatch):
    rows = [{"words": "猫", "share": 0.5}]
    studies.save("mine", rows, tmp_path)
    monkeypatch.setattr(studies, "FOLDER", tmp_path)
    table = studies.load("mine")
    assert table["rows"] == rows
    assert table["command"] == "python -m tinytf_course.studies mine"
    assert table["versions"]["python"] == platform.python_version()
    with pytest.raises(FileNotFoundError, match="no study 'yours'; there are: mine"):
        studies.load("yours")
