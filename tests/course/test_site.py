"""The web edition: what its pages hold, and two chapters of it in a browser without a network."""

import base64
import json
import re
import struct
from pathlib import Path

import pytest
from browser_support import offline_browser

from tinytf_course import online
from tinytf_course.__main__ import main
from tinytf_course.glossary import TERMS
from tinytf_course.notebooks import Notebook
from tinytf_course.site import MissingPackage, assets, chapter, folds, outputs, pages, terms

ROOT = Path(__file__).parents[2]
FIVE = "05_scaled_dot_product_attention"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", 300, 200) + b"rest"


def code(text, *shown, id="c"):
    """A code cell and its outputs."""
    return {"cell_type": "code", "id": id, "metadata": {}, "source": text, "outputs": list(shown)}


def html(text, **metadata):
    """An output that is HTML."""
    return {"output_type": "display_data", "data": {"text/html": text}, "metadata": metadata}


def saved(folder, *cells):
    """A notebook of these cells."""
    path = folder / "05_scaled_dot_product_attention.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    return Notebook(path)


def test_a_picture_becomes_a_file_with_its_alt_text_and_size(tmp_path):
    output = {
        "data": {"image/png": base64.b64encode(PNG).decode(), "text/plain": "<Figure>"},
        "metadata": {"image/png": {"alt": 'A "map" < 2'}},
    }
    shown = outputs.to_html(output, outputs.Pictures(tmp_path / "05", "figures/05"))
    file = re.search(r'src="figures/05/(\w+\.png)" width="300" height="200"', shown)[1]
    assert (tmp_path / "05" / file).read_bytes() == PNG
    assert 'alt="A &quot;map&quot; &lt; 2"' in shown
    assert 'class="figure" tabindex="0"' in shown  # the keyboard can scroll it on a phone


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ({"text": ["a < b\n", "\x1b[31mc\x1b[0m\n"]}, ">a &lt; b\nc</pre>"),
        ({"text": "\n"}, ""),
        ({"traceback": ["Error: x<y"]}, "Error: x&lt;y"),
        (html('<a href="03_tokens.ipynb">03</a>'), '<a href="03_tokens.html">03</a>'),
        (
            {"data": {"image/svg+xml": ["<svg/>"], "text/plain": "A < B"}},
            '<img src="data:image/svg+xml;base64,PHN2Zy8+" alt="A &lt; B">',
        ),
        (
            {"data": {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "k = 1"}},
            "k = 1",
        ),
    ],
)
def test_other_outputs(output, shown):
    made = outputs.to_html(output, None)
    assert shown in made
    assert bool(made) == bool(shown)


def test_results_between_a_question_and_its_answer_wait(tmp_path):
    cells = [
        code("x = 1"),
        code('predict("05-a", "how?", ["one", "two"])'),
        {"cell_type": "markdown", "source": "words"},
        code("print(x)"),
        code('predict.answer("05-a", "one")'),
        code("print(x)"),
    ]
    assert folds.pending(cells) == [[], [], ["05-a"], ["05-a"], ["05-a"], []]
    far = [cells[1], *[code("x")] * 30, cells[4]]
    assert sum(map(bool, folds.pending(far))) == 21  # the answer and the twenty before it
    assert folds.pending([cells[4]]) == [[]]


def test_options_become_buttons_and_results_fold():
    asked = '<b>?</b> <code>05-a</code> <b>how?</b><ul style="m"><li>one</li><li>two</li></ul>'
    shown = folds.as_buttons(asked, ["05-a"])
    assert shown.count('<button type="button" data-predict="05-a">') == 2
    assert folds.as_buttons(asked, ["05-b"]) == asked
    assert 'data-until="05-a 05-b"' in folds.fold("<p>0.9</p>", ["05-a", "05-b"])
    assert folds.fold("<p>0.9</p>", []) == "<p>0.9</p>"


def test_the_first_use_of_a_term_is_linked_once_and_not_in_code():
    seen = set()
    kept = "# Softmax\n\n`softmax` of [softmax](x) and $softmax$\n\n```\nsoftmax\n```"
    text = f"{kept}\nA softmax, a softmax."
    linked = terms.link_terms(text, 5, seen)
    assert linked.count("<a ") == 1
    assert linked.endswith(">softmax</a>, a softmax.")
    assert "softmax" in seen
    assert "<a " not in terms.link_terms("a softmax", 5, seen)
    assert "<a " in terms.link_terms("a softmax", 0, set())
    assert "<a " in terms.link_terms("a key", 5, set())
    assert "<a " not in terms.link_terms("a key", 4, set())  # nothing but a word before 05


def test_no_link_inside_a_link():
    text = " and ".join(english.split(", ")[0] for english, *_ in TERMS)
    linked = terms.link_terms(text, 99, set())
    assert linked.count("<a ") > 100
    depth = 0
    for tag in re.findall(r"<a |</a>", linked):
        depth += 1 if tag == "<a " else -1
        assert depth in (0, 1)


def test_a_page_hides_the_caption_of_a_folded_figure(tmp_path):
    notebook = saved(
        tmp_path,
        code(
            'predict("05-a", "how?", ["one", "two"])',
            html("<code>05-a</code><ul><li>one</li></ul>"),
        ),
        code("draw()", html("<p>picture</p>")),
        {"cell_type": "markdown", "id": "m", "source": "*It is two.* So\n\nmore"},
        code('predict.answer("05-a", "two")', html("<p>two</p>")),
        {"cell_type": "markdown", "id": "n", "source": "see [03 Tokens](03_tokens.ipynb)"},
    )
    page = chapter.page(notebook, None, {})
    assert page.count('<details class="until"') == 2
    assert '<div class="waits">\n\n*It is two.* So\n\n</div>\n\nmore' in page
    assert '<a href="03_tokens.html">03 Tokens</a>' in page


def test_the_set_up_cell_is_folded_and_its_guard_is_not_shown(tmp_path):
    told = code(f"{online.guard()}{online.MARK}device = setup()", html("<p>map</p>"), id="setup")
    page = chapter.page(saved(tmp_path, told), None, {})
    folded, shown = page.split("</details>")
    assert "<summary>Set-up</summary>" in folded
    assert "device = setup()" in folded
    assert "find_spec" not in page
    assert "<p>map</p>" in shown


def test_claims_lead_to_their_cells(tmp_path):
    claim = {"id": "05-1", "sentence": "a < b in `x`", "measured": "1 < 2"}
    page = pages.claims([saved(tmp_path, code("claim()", html("", claim=claim), id="claim-05-1"))])
    assert 'href="05_scaled_dot_product_attention.html#claim-05-1"' in page
    assert "a &lt; b in <code>x</code>" in page


def test_a_missing_package_is_named_with_what_to_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(assets, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"sphinx-revealjs; run pip install -e"):
        assets.copy_library("reveal.js", tmp_path)
    assert main(["site", str(tmp_path)]) == 1
    assert "not installed: sphinx" in capsys.readouterr().err


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Chapters 00 and 05, built."""
    for name in ("sphinx", "myst_parser", "sphinx_book_theme", "mathjax"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    folder = tmp_path_factory.mktemp("site")
    arguments = ["site", str(folder), "0", "5", "--notebooks", str(ROOT / "notebooks")]
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


OUTSIDE = """root => [...root.querySelectorAll('.app .token, .app button, .app select')]
    .filter(node => !node.closest('.panel')).filter(node => {
        const word = node.getBoundingClientRect(), box = root.getBoundingClientRect();
        return word.left < box.left || word.right > box.right;
    }).map(node => node.innerText)"""


@pytest.mark.browser
@pytest.mark.parametrize(("width", "tallest"), [(1280, 760), (390, 1400)])
def test_the_explorer_of_the_first_page_keeps_its_form_in_the_theme(site, width, tallest):
    with offline_browser(width=width, height=800) as (page, faults):
        page.goto((site / "index.html").as_uri())
        page.wait_for_selector(".tinytf-explorer[data-ready='1']")
        explorer = page.locator(".tinytf-explorer")
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
        assert page.locator("details.until:not([open])").count() > 0  # the other predictions'
        page.goto((site / "index.html").as_uri())
        explorer = page.locator(".tinytf-explorer")
        page.wait_for_selector(".tinytf-explorer[data-ready='1']")
        explorer.locator(".query-token").nth(2).click()
        assert explorer.get_attribute("data-query") == "2"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto((site / "glossary.html").as_uri())
        assert page.locator(".shown").evaluate("box => box.scrollWidth - box.clientWidth") <= 0
        page.goto(f"{(site / 'search.html').as_uri()}?q=softmax")
        page.wait_for_selector("#search-results li a")
        assert "05 Scaled" in page.locator("#search-results").inner_text()
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
