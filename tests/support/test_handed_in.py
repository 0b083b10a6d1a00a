"""What the course hands in is found, loaded late, and missed in one sentence."""

import sys
import tomllib

import pytest

from tinytf.support import handed_in as module
from tinytf.support.handed_in import NotHandedIn, hand_in, handed_in, needed
from tinytf_course.places import ROOT  # and with it what the course hands in


@pytest.fixture
def places(monkeypatch):
    """Nothing handed in, and nothing installed that would be."""
    monkeypatch.setattr(module, "_PLACES", {})
    monkeypatch.setattr(module, "_installed", dict)


def test_what_is_handed_in_is_loaded_when_it_is_used(places, monkeypatch, tmp_path):
    (tmp_path / "late_one.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    hand_in("number", "late_one:value")
    assert "late_one" not in sys.modules
    assert handed_in("number") == needed("number") == 7
    hand_in("number", "late_one")
    assert handed_in("number").value == 7


def test_what_nobody_brings_is_missed_in_one_sentence(places, monkeypatch):
    assert handed_in("phrasebook") is None
    with pytest.raises(NotHandedIn, match=r"the phrasebook is part of the course.*pip install -e"):
        needed("phrasebook")
    monkeypatch.setattr(module, "_installed", lambda: {"phrasebook": "no_such_course.book"})
    assert handed_in("phrasebook") is None


def test_an_error_inside_what_was_handed_in_is_not_hidden(places, monkeypatch, tmp_path):
    (tmp_path / "broken_one.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    hand_in("phrasebook", "broken_one")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        handed_in("phrasebook")


def test_what_an_installed_course_says_is_what_it_hands_in_when_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["tinytf"] == module._PLACES
    assert all(handed_in(name) is not None for name in module._PLACES)
