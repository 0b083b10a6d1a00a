"""Panels opened in a browser."""

import pytest
from browser_support import offline_browser
from live_support import READY

from tinytf_course import live


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    live.write_assets(folder / "live")
    for kind in live.KINDS:
        (folder / f"{kind}.html").write_text(live.page(kind), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser():
    with offline_browser(width=1000, height=800) as (page, faults):
        yield page, faults


@pytest.fixture
def opened(browser, folder):
    """A function that opens a kind of panel, ready to be used."""
    page, faults = browser

    def open_panel(kind):
        page.set_viewport_size({"width": 1000, "height": 800})
        page.emulate_media(media="screen", color_scheme="light")
        page.goto((folder / f"{kind}.html").as_uri())
        if kind == "writer":
            page.click(".begin")
        page.wait_for_selector(READY)
        return page

    yield open_panel
    assert not faults, faults[:3]
