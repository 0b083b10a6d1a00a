"""The explorer in a browser: within a laptop's window, readable, worked by the keyboard alone."""

import shutil

import pytest

from tinytf import Translator
from tinytf_course import drawings as viz

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
SENTENCES = [
    "the cat sat on the mat",
    "she wrote the letter on 3 march 2021",
    "the animal did not cross the street because it was too tired",
]
SMALLEST = """() => Math.min(...[...document.querySelectorAll('.tinytf-explorer .app *')]
    .filter((e) => e.offsetParent)
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => parseFloat(getComputedStyle(e).fontSize)))"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine's PATH"),
]


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--no-first-run"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page with the explorer of three sentences, the longest of chapter 00 among them."""
    translator = Translator.load()
    explorer = viz.attention_explorer([translator.explain(one) for one in SENTENCES])
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    body = f"<!doctype html><meta charset=utf-8><body style='margin:8px'>{explorer._repr_html_()}"
    path.write_text(body, encoding="utf-8")
    return path.as_uri()


def opened(browser, address, width=1366, height=768):
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(address)
    page.wait_for_selector(".tinytf-explorer[data-ready='1']")
    return page


@pytest.mark.parametrize("width", [1366, 1024])
def test_no_view_is_taller_than_a_laptop_s_window_or_too_small_to_read(browser, address, width):
    page = opened(browser, address, width)
    for sentence in range(len(SENTENCES)):
        page.locator(".sentence-select").select_option(index=sentence)
        for kind in page.locator(".kind-button").all():
            kind.click()
            height = page.locator(".tinytf-explorer").bounding_box()["height"]
            assert height <= 760, f"{height} pixels: {SENTENCES[sentence]!r}, {kind.inner_text()}"
            assert page.evaluate(SMALLEST) >= 12
    sideways = "document.documentElement.scrollWidth - window.innerWidth"
    assert page.evaluate(sideways) <= 0
    page.close()


def test_a_phone_shows_it_without_scrolling_sideways(browser, address):
    page = opened(browser, address, 390, 844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_the_keyboard_reaches_and_moves_everything(browser, address):
    page = opened(browser, address)
    root = page.locator(".tinytf-explorer")
    changed, stops = set(), []
    for _ in range(8):
        page.keyboard.press("Tab")
        stop = page.evaluate("document.activeElement.className")
        if not root.evaluate("root => root.contains(document.activeElement)"):
            break
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", f"nothing shows that {stop} has the focus"
        stops.append(stop.split()[0])
        before = root.evaluate("root => ({...root.dataset})")
        page.keyboard.press("ArrowDown" if "select" in stop else "ArrowRight")
        if root.evaluate("root => ({...root.dataset})") == before:
            page.keyboard.press("ArrowLeft")  # it stood at the last
        after = root.evaluate("root => ({...root.dataset})")
        changed |= {name for name in after if after[name] != before[name]}
    assert stops == [
        "sentence-select", "kind-button", "layer-button", "head-button", "token", "thumb",
    ]  # fmt: skip
    assert changed >= {"sentence", "kind", "layer", "head", "query"}
    page.close()
