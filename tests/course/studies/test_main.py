"""`python -m tinytf_course.studies NAME` finds every study and remakes the table of that name."""

import json

import pytest

from tinytf_course.studies import __main__ as command


def test_a_table_is_written_where_it_is_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "available", lambda: {"one": lambda: [{"x": 1}]})
    monkeypatch.setattr("sys.argv", ["studies", "one", "--folder", str(tmp_path)])
    command.main()
    assert json.loads((tmp_path / "one.json").read_text())["rows"] == [{"x": 1}]
    monkeypatch.setattr("sys.argv", ["studies", "two"])
    with pytest.raises(SystemExit):
        command.main()
    assert "invalid choice: 'two'" in capsys.readouterr().err
