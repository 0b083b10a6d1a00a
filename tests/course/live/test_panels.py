"""The HTML of the panels."""

import re

import pytest

from tinytf_course import live
from tinytf_course.live import assets


@pytest.mark.parametrize("kind", live.KINDS)
def test_a_panel_loads_what_is_written_and_nothing_from_elsewhere(kind):
    shown = live.panel(kind, "here")
    loads = re.findall(r'(?:src|href)="([^"]*)"', shown)
    assert loads == [f"here/{name}" for name in (assets.STYLE, *assets.SCRIPTS[kind])]
    assert f'data-kind="{kind}"' in shown
    assert "with scripts switched on" in shown  # what is seen where none runs


def test_a_page_holds_one_panel():
    page = live.page("film")
    assert page.count("<section") == 1
    assert '<html lang="en">' in page
