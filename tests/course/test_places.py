"""Where files of the package and the course are, by the names of their modules."""

import pytest

from tinytf_course import places
from tinytf_course.places import COURSE, PACKAGE, file_of, is_machinery, place_of


@pytest.mark.parametrize(
    ("dotted", "file"),
    [
        ("tinytf", PACKAGE / "__init__.py"),
        ("tinytf.masks", PACKAGE / "masks.py"),
        ("tinytf.decoding.search", PACKAGE / "decoding" / "search.py"),
        (places.NAME, COURSE / "__init__.py"),
        (f"{places.NAME}.clinic.ward", COURSE / "clinic" / "ward.py"),
        ("tinytf.nowhere", None),
        ("torch.nn", None),
        ("tinytfx", None),
    ],
)
def test_files_of_modules(dotted, file):
    assert file_of(dotted) == file


def test_places_are_as_the_repository_names_them():
    assert place_of(PACKAGE / "masks.py") == "tinytf/masks.py"
    assert places.ROOT / place_of(COURSE / "check.py") == COURSE / "check.py"


def test_what_a_chapter_teaches_with_is_no_machinery():
    machinery = ["", ".check", ".release.judge", ".exercises.ch05.lookup", ".studiesx"]
    assert all(is_machinery(places.NAME + inside) for inside in machinery)
    content = [f"{places.NAME}.studies", f"{places.NAME}.phrasebook.lexicon", "tinytf.masks", "x"]
    assert not any(map(is_machinery, content))
