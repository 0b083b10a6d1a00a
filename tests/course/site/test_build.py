"""Two chapters built into a site, and opened in a browser without a network."""

import json
import re
from pathlib import Path

import pytest
from browser_support import offline_browser

from tinytf_course.__main__ import main
from tinytf_course.site.build import _drop_double_anchors

ROOT = Path(__file__).parents[3]
FIVE = "05_scaled_dot_product_attention"
PAGES = ("index", FIVE, "api", "claims", "glossary", "search")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Chapters 00 and 05, built."""
    for name in ("sphinx", "myst_parser", "sphinx_book_theme", "mathjax"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    folder = tmp_path_factory.mktemp("site")
    arguments = ["site", str(folder), "0", "5", "--stills", "--notebooks", str(ROOT / "notebooks")]
    assert main(arguments) == 0  # 1 if Sphinx warned of anything
    return folder


def test_built_pages_load_nothing_from_elsewhere(site):
    loads = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=\"([^\"]*)\"")
    found = 0
    for path in site.rglob("*.html"):
        for address in loads.findall(path.read_text(encoding="utf-8")):
            found += 1
            assert not re.match(r"(?:https?:)?//", address), f"{path.name} loads {address}"
            file = address.split("?")[0].split("#")[0]
            assert file.startswith("data:") or (path.parent / file).exists(), f"{path.name}: {file}"
    assert found > 50


def test_built_pages_say_whose_they_are_and_head_no_column_with_nothing(site):
    for path in site.glob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "Author name not set" not in page
        assert not re.search(r"<th\b[^>]*>\s*</th>", page), path.name


def test_built_pages_have_every_cell_and_alt_text(site):
    for path in (ROOT / "notebooks").glob("0[05]_*.ipynb"):
        page = (site / f"{path.stem}.html").read_text(encoding="utf-8")
        ids = set(re.findall(r'\bid="([^"]+)"', page))
        missing = {cell["id"] for cell in json.loads(path.read_text())["cells"]} - ids
        assert not missing
        pictures = re.findall(r"<img\b[^>]*>", page)
        assert len(pictures) > 5
        assert all(re.search(r'alt="[^"]{20,}"', picture) for picture in pictures)
        glossary = (site / "glossary.html").read_text(encoding="utf-8")
        used = set(re.findall(r'href="glossary.html#([^"]+)"', page))
        assert used
        assert all(f'id="{anchor}"' in glossary for anchor in used)


def test_the_map_leads_from_every_page_to_the_others(site):
    for name, here in (("index", None), ("00_start_here", "00"), (FIVE, "05")):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        [shown] = re.findall(r'<nav class="road-map".*?</nav>', page, flags=re.S)
        assert set(re.findall(r'<a href="([^"]*)"', shown)) == {
            "00_start_here.html",
            f"{FIVE}.html",
        }
        marked = re.findall(r'data-chapters="([^"]*)"[^>]*><circle class="here"', shown)
        assert marked == [here] * 2 * (here is not None)


def test_a_heading_with_the_id_of_its_cell_keeps_it_alone():
    nodes = pytest.importorskip("docutils.nodes", reason="docutils is not installed")
    document = pytest.importorskip("docutils.utils").new_document("page")
    for id in ("one", "two"):  # one after the other
        document += nodes.raw("", f'<div class="cell-anchor" id="{id}"></div>', format="html")
    document += nodes.section(ids=["one", "two"])
    _drop_double_anchors(None, document)
    assert not list(document.findall(nodes.raw))


OUTSIDE = """root => [...root.querySelectorAll('.app .token, .app button, .app select')]
    .filter(node => !node.closest('.panel')).filter(node => {
        const word = node.getBoundingClientRect(), box = root.getBoundingClientRect();
        return word.left < box.left || word.right > box.right;
    }).map(node => node.innerText)"""


@pytest.mark.browser
@pytest.mark.parametrize(("width", "tallest"), [(1280, 760), (390, 1400)])
def test_the_explorer_keeps_its_form_in_the_theme(site, width, tallest):
    with offline_browser(width=width, height=800) as (page, faults):
        page.goto((site / "00_start_here.html").as_uri())
        page.wait_for_selector(".tinytf-explorer[data-ready='1']")
        explorer = page.locator(".tinytf-explorer").first
        for kind in ("key", "query"):
            tokens = explorer.locator(f".{kind}-token")
            tops = tokens.evaluate_all("words => words.map(w => w.getBoundingClientRect().top)")
            assert len(tops) > 4
            lines = sorted({round(top) for top in tops})
            assert len(lines) == 1 or (width < 500 and len(lines) < len(tops) / 2), lines
        assert explorer.evaluate(OUTSIDE) == []
        assert explorer.evaluate("root => root.scrollWidth - root.clientWidth") <= 0
        assert explorer.bounding_box()["height"] <= tallest
        assert not faults, faults[:3]


@pytest.mark.browser
def test_a_prediction_an_explorer_and_a_search_answer_in_a_browser(site):
    with offline_browser(width=390, height=800) as (page, faults):
        page.goto((site / "05_scaled_dot_product_attention.html").as_uri())
        page.wait_for_function("MathJax.startup.promise.then(() => true)")
        assert page.locator("mjx-container").count() > 10
        assert page.locator("mjx-merror").count() == 0
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390
        fold = page.locator('details[data-until="05-b"]').first
        assert fold.get_attribute("open") is None
        button = page.locator('[data-predict="05-b"]').nth(1)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert page.locator('details.until[open]:has-text("05-b measured")').count() == 1
        said = page.locator("details.until[open] > summary").first.inner_text()
        assert said == f"Measured, after prediction 05-b. You chose: {button.inner_text()}"
        assert page.locator("details.until:not([open])").count() > 0  # the other predictions'
        page.goto((site / "00_start_here.html").as_uri())
        explorer = page.locator(".tinytf-explorer").first
        page.wait_for_selector(".tinytf-explorer[data-ready='1']")
        explorer.locator(".query-token").nth(2).click()
        assert explorer.get_attribute("data-query") == "2"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto((site / "glossary.html").as_uri())
        assert page.locator(".shown").evaluate("box => box.scrollWidth - box.clientWidth") <= 0
        page.goto(f"{(site / 'search.html').as_uri()}?q=softmax")
        page.wait_for_selector("#search-results li a")
        assert "05 Scaled" in page.locator("#search-results li a").first.inner_text()
        assert page.get_by_role("link", name="05 Scaled").count() == 1
        assert not faults, faults[:3]


@pytest.mark.browser
@pytest.mark.parametrize(("width", "form"), [(900, "wide"), (390, "tall")])
def test_the_map_is_readable_and_filled_in_when_a_chapter_was_read(site, width, form):
    with offline_browser(width=width, height=800) as (page, faults):
        page.goto((site / f"{FIVE}.html").as_uri())
        shown = page.locator(f".road-map .{form} .course-map")
        assert page.locator(".road-map .course-map:visible").count() == 1
        heights = shown.locator("text").evaluate_all(
            "texts => texts.map(t => parseFloat(getComputedStyle(t).fontSize) * t.getCTM().a)"
        )
        assert min(heights) > 9
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.locator("[data-chapters].done").count() == 0
        page.evaluate("document.querySelectorAll('.cell-anchor').forEach(a => a.scrollIntoView())")
        page.wait_for_selector(f".road-map .{form} a.done[data-chapters='05']", state="attached")
        assert shown.locator("a.done[data-chapters='05 06']").count() == 0
        shown.locator("a[data-chapters='00']").first.click()
        page.wait_for_url("**/00_start_here.html")
        assert page.locator(f".road-map .{form} a.done[data-chapters='05']").count() == 1
        assert not faults, faults[:3]


def loaded(page, address):
    """The bytes of all that a browser loads for a page."""
    sizes = []
    page.on("response", lambda answer: sizes.append(len(answer.body())))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    return sum(sizes)


def test_a_page_loads_no_icon_font_and_its_icons_are_all_drawn(site):
    drawn = (site / "_static/icons.css").read_text(encoding="utf-8")
    shown = set()
    for path in site.glob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "fontawesome" not in page, path.name
        classes = re.findall(r'class="([^"]*\bfa-solid\b[^"]*)"', page)
        shown |= {name for names in classes for name in names.split() if name.startswith("fa-")}
    missing = {name for name in shown if f".{name} {{ --icon" not in drawn}
    assert missing == {"fa-solid", "fa-lg", "fa-fw"}
    assert not list(site.rglob("*fontawesome*"))


def test_built_pages_describe_themselves(site):
    for path in [site / "index.html", site / f"{FIVE}.html", site / "api.html"]:
        page = path.read_text(encoding="utf-8")
        [description] = re.findall(r'<meta content="([^"]*)" name="description"', page)
        assert 20 < len(description) < 200
        for name in ("og:title", "og:description", "og:image"):
            assert f'property="{name}"' in page
        icon = re.search(r'<link rel="icon" href="([^"?]*)', page)[1]
        assert (site / icon).read_text(encoding="utf-8").startswith("<svg")
    assert (site / "_static/preview.png").stat().st_size < 60_000


def test_each_chapter_lies_beside_its_page(site):
    for path in (ROOT / "notebooks").glob("0[05]_*.ipynb"):
        page = (site / f"{path.stem}.html").read_text(encoding="utf-8")
        assert f'href="notebooks/{path.name}"' in page
        assert (site / "notebooks" / path.name).read_bytes() == path.read_bytes()


def test_the_package_has_pages_with_its_definitions(site):
    page = (site / "api.html").read_text(encoding="utf-8")
    assert 'id="tinytf.attention.attention_weights"' in page
    assert f'href="{FIVE}.html"' in page
    assert (site / "api_decoding.html").exists()


@pytest.mark.browser
def test_the_first_page_is_small_and_shows_the_model_in_its_first_screen(site):
    with offline_browser(width=1280, height=720) as (page, faults):
        size = loaded(page, (site / "index.html").as_uri())
        page.wait_for_selector(".tinytf-live .ribbons path")
        assert size < 4_000_000, f"{size:,} bytes"  # 2.9 million of them the model's
        assert page.locator(".facts").bounding_box()["y"] < 400
        assert page.locator(".tinytf-live input").first.bounding_box()["y"] < 600
        assert not faults, faults[:3]


@pytest.mark.browser
def test_the_menu_leads_to_the_chapters_on_a_phone_and_hides_its_list_on_a_desk(site):
    with offline_browser(width=390, height=844) as (page, faults):
        page.goto((site / f"{FIVE}.html").as_uri())
        menu = page.get_by_role("button", name="Chapter list")
        link = page.get_by_role("dialog").get_by_role("link", name="00 Start here")
        menu.click()
        assert link.is_visible()
        page.keyboard.press("Escape")
        link.wait_for(state="hidden")
        menu.click()
        link.click()
        page.wait_for_url("**/00_start_here.html")
        page.set_viewport_size({"width": 1280, "height": 720})
        sidebar = page.locator("#pst-primary-sidebar")
        assert sidebar.is_visible()
        menu.click()
        sidebar.wait_for(state="hidden")
        menu.click()
        sidebar.wait_for(state="visible")
        page.emulate_media(media="print")
        pre = page.locator("pre").first
        assert pre.evaluate("e => getComputedStyle(e).whiteSpace") == "pre-wrap"
        assert not faults, faults[:3]


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", "search"])
def test_the_magnifier_hides_no_letter_of_the_search(site, name):
    with offline_browser(width=390, height=844) as (page, faults):
        page.goto((site / f"{name}.html").as_uri())
        if name == "index":
            page.locator(".search-button:visible").click()
        field = page.locator(".bd-search input:visible")
        icon = page.locator(".bd-search .fa-magnifying-glass:visible").bounding_box()
        text = field.evaluate("i => parseFloat(getComputedStyle(i).paddingLeft)")
        assert field.bounding_box()["x"] + text >= icon["x"] + icon["width"]
        assert not faults, faults[:3]


@pytest.mark.browser
def test_code_is_copied_by_a_button(site):
    with offline_browser(width=1280, height=720) as (page, faults):
        page.goto((site / f"{FIVE}.html").as_uri())
        page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text; }")
        block = page.locator("div.highlight").nth(1)
        button = block.locator("button.copy")
        button.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("window.copied")
        assert page.evaluate("window.copied") == block.locator("pre").inner_text().rstrip()
        assert button.inner_text() == "Copied"
        assert not faults, faults[:3]


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height", "theme"), [(1280, 720, "light"), (390, 844, "dark")])
def test_axe_finds_nothing_serious(site, width, height, theme):
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    with offline_browser(width=width, height=height) as (page, faults):
        page.emulate_media(color_scheme=theme)
        for name in PAGES:
            page.goto((site / f"{name}.html").as_uri())
            page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
            page.wait_for_timeout(300)
            page.evaluate(script)
            found = page.evaluate("axe.run({ preload: false }).then(result => result.violations)")
            serious = [(one["id"], one["nodes"][0]["html"][:120]) for one in found
                       if one["impact"] in ("serious", "critical")]  # fmt: skip
            assert not serious, f"{name}: {serious}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert not faults, faults[:3]
