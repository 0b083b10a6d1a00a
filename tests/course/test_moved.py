"""Imports by old names become imports by the new ones, and nothing else changes."""

import pytest

from tinytf_course.moved import DRAWN, MOVED, rewritten
from tinytf_course.places import file_of


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from tinytf.course import check, claim", "from tinytf_course import check, claim"),
        ("    from tinytf import viz", "    from tinytf_course import drawings as viz"),
        (
            "from tinytf import GPT, viz  # both",
            "from tinytf import GPT\nfrom tinytf_course import drawings as viz  # both",
        ),
        ("from tinytf import studies", "from tinytf_course import studies"),
        ("from tinytf import course", "import tinytf_course as course"),
        (
            "from tinytf.viz.lookup import draw_soft",
            "from tinytf_course.drawings.lookup import draw_soft",
        ),
        (
            "from tinytf.viz import style, lookup",
            "from tinytf.viz import style\nfrom tinytf_course.drawings import lookup",
        ),
        (
            "from tinytf.viz import (\n    CYCLE,\n    group_dots,\n)",
            "from tinytf.viz import CYCLE\nfrom tinytf_course.drawings import group_dots",
        ),
        ("from tinytf.data import phrasebook as b", "from tinytf_course import phrasebook as b"),
        (
            'graduate(f, "tinytf.decoding.exact")',
            'graduate(f, "tinytf_course.lessons.exact")',
        ),
        ("x = 1\nfrom tinytf import GPT\n", "x = 1\nfrom tinytf import GPT\n"),
        ("import tinytf\ntinytf.viz.style", "import tinytf\ntinytf.viz.style"),
    ],
)
def test_code_by_old_names(old, new):
    assert rewritten(old) == new
    assert rewritten(new) == new


def test_all_that_moved_is_where_it_is_said_to_be():
    assert DRAWN
    for old, new in MOVED.items():
        assert file_of(new), new
        assert old == "tinytf.course" or not file_of(old), old


def test_the_drawings_offer_what_moved():
    exec(f"from tinytf_course.drawings import {', '.join(sorted(DRAWN))}", {})
