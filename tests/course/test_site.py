"""The web edition: what its pages hold. Two chapters of it are built in `site/test_build.py`."""

import base64
import json
import re
import struct

import pytest

from tinytf_course import online
from tinytf_course.__main__ import main
from tinytf_course.glossary import TERMS
from tinytf_course.notebooks import Notebook
from tinytf_course.site import MissingPackage, assets, chapter, folds, outputs, pages, terms

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
    assert 'data-measured="Measured, after prediction 05-a"' in folds.fold("<p>1</p>", ["05-a"])
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
    assert '<td class="measured">1</td><td>&lt; 2</td>' in page
    assert "## 05 Scaled dot-product attention" in page


@pytest.mark.parametrize(
    ("measured", "columns"),
    [
        ("1.05 in [0.9, 1.15]", ("1.05", "in [0.9, 1.15]")),
        ("2 ≈ 2 (±0.1)", ("2", "≈ 2 (±0.1)")),
        ("True", ("True", "= True")),
        ("float32 bfloat16", ("float32 bfloat16", "= float32 bfloat16")),
        ("not run", ("not run", "")),
    ],
)
def test_a_claim_has_a_column_for_what_it_must_be(tmp_path, measured, columns):
    claim = {"id": "05-1", "sentence": "it is so", "measured": measured}
    page = pages.claims([saved(tmp_path, code("claim()", html("", claim=claim)))])
    assert "<th>measured</th><th>must be</th>" in page
    assert '<td class="measured">{}</td><td>{}</td>'.format(*columns) in page


def test_letters_lead_to_the_first_term_of_each():
    page = pages.glossary([])
    [row] = re.findall(r'<nav class="letters".*?</nav>', page)
    assert '<a href="#term-ablation">A</a>' in row
    assert all(f'id="{first}"' in page for first in re.findall(r'href="#([^"]+)"', row))


def test_a_chapter_can_be_downloaded_and_opens_elsewhere_once_there_is_a_repository(
    tmp_path, monkeypatch
):
    title = "# 05 Attention\n\n**How does a\nword find it?**"
    told = {"cell_type": "markdown", "id": "t", "source": f"{title}\n\nOpen in: [Colab](https://c)"}
    notebook = saved(tmp_path, told, code("x"))
    page = chapter.page(notebook, None, {})
    assert f'<a href="notebooks/{notebook.path.name}" download>Download the notebook</a>' in page
    assert "Open in: " not in page
    assert "Colab" not in page
    assert '"description": "How does a word find it?"' in page
    monkeypatch.setattr(online, "REPOSITORY", "someone/course")
    page = chapter.page(notebook, None, {})
    assert page.count("Colab</a>") == page.count("Kaggle</a>") == page.count("Binder</a>") == 1


def test_the_first_page_says_what_there_is_and_has_the_model(tmp_path):
    claim = {"id": "05-1", "sentence": "it is so", "measured": "1 = 1"}
    cells = [code('check("05.1", f)'), code("claim()", html("", claim=claim))]
    page = pages.index([saved(tmp_path, *cells)], "# tinytf\n\nA course.\n\nMore.\n\n## Start\n")
    order = ["# tinytf", "A course.", 'class="facts"', 'data-kind="translator"', "More."]
    assert [page.index(part) for part in order] == sorted(page.index(part) for part in order)
    for fact in (
        "<b>1</b> chapters",
        "<b>1</b> exercises",
        "<b>1</b> claims, each checked by code",
    ):
        assert fact in page
    assert "## Start" not in page


def test_a_panel_that_moves_stands_for_its_still(tmp_path):
    name = {"data": {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "k = 1"}}
    still = {"data": {"image/png": base64.b64encode(PNG).decode()}}
    cell = code("viz.explore(draw, k=(0, 1))", name, still)
    pictures = outputs.Pictures(tmp_path, "figures")
    assert "k = 1" in chapter.results(cell, [], pictures)
    assert chapter.results(cell, [], pictures, "<p>moves</p>") == "<p>moves</p>"
    assert (
        "moves" in chapter.results(cell, ["05-a"], pictures, "<p>moves</p>").split("</summary>")[1]
    )


def test_a_missing_package_is_named_with_what_to_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(assets, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"sphinx-revealjs; run pip install -e"):
        assets.copy_library("reveal.js", tmp_path)
    assert main(["site", str(tmp_path)]) == 1
    assert "not installed: sphinx" in capsys.readouterr().err
