"""A browser without a network, for tests of pages that we built."""

import contextlib
import shutil

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@contextlib.contextmanager
def offline_browser(**size):
    """A page that loads local files only, and the list of all that went wrong on it."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine's PATH")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    faults = []

    def only_here(route):
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            faults.append(f"asked for {route.request.url}")
            route.abort()

    with api.sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--no-first-run"]
        )
        page = browser.new_page(viewport=size or {"width": 1280, "height": 720})
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("requestfailed", lambda request: faults.append(f"failed: {request.url}"))
        page.route("**/*", only_here)
        yield page, faults
        browser.close()
