"""Slides: text shortened, code cut, and a chapter's deck measured in a browser."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from browser_support import offline_browser

from tinytf_course.__main__ import main
from tinytf_course.notebooks import Notebook, source

ROOT = Path(__file__).parents[2]
pytest.importorskip("mdit_py_plugins", reason="mdit_py_plugins is not installed")

from tinytf_course.release.teaching import Plan, Step
from tinytf_course.slides import build_slides, code, fitting, prose
from tinytf_course.slides.deck import Deck


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("One is here. Two is not.", "One is here."),
        ("One. Two has **bold** words. Three.", "One. Two has **bold** words."),
        ("Why? Because. And more.", "Why? Because."),
        ("The value `a. B` and $x. Y$ stay. Gone.", "The value `a. B` and $x. Y$ stay."),
        ("One. (Two. Three.) Four.", "One."),
        ("Is it (a. B) so? (It is. Yes.) Gone.", "Is it (a. B) so? (It is. Yes.)"),
        ("*Where? Here. Not this.*", "*Where? Here.*"),
        ("*One. Two.* Three.", "*One.*"),
        ("Smith et al. Wrote it. Gone.", "Smith et al. Wrote it."),
    ],
)
def test_a_paragraph_keeps_what_it_says_first_and_in_bold(text, short):
    assert prose.shortened(text) == short


def test_blocks_and_their_kinds():
    text = "## A\ntext\nmore\n\n* one\n* two\n\n$$\nx\n\ny\n$$\n\n```\na\n\nb\n```\n*caption*"
    found = prose.blocks(text)
    assert [prose.kind(block) for block in found] == [
        "heading", "text", "list", "formula", "code", "caption",
    ]  # fmt: skip
    assert prose.items("1. One. Gone.\n2. Two") == ["1. One.", "2. Two"]


def test_code_is_cut_between_statements_and_nothing_is_lost():
    text = "\n".join(f"def f{i}(x):\n    y = x\n    return y\n" for i in range(9))
    pieces = code.chunks(text)
    assert all(len(piece.splitlines()) <= code.LINES for piece in pieces)
    assert all(piece.startswith("def ") for piece in pieces)
    assert [line for piece in pieces for line in piece.splitlines() if line] == [
        line for line in text.splitlines() if line
    ]
    assert code.chunks("x = 1") == ["x = 1"]


def test_no_line_of_code_is_left_alone():
    text = "\n".join(f"x{i} = {i}" for i in range(code.LINES + 2))
    assert code.chunks(text) == [text]
    more = "\n".join(f"x{i} = {i}" for i in range(code.LINES + code.SPARE + 1))
    assert [piece.count("\n") + 1 for piece in code.chunks(more)] == [code.LINES, code.SPARE + 1]


@pytest.mark.parametrize("number", ["05", "10", "18"])
def test_no_code_of_a_chapter_is_lost_or_too_long(number):
    notebook = Notebook(next((ROOT / "notebooks").glob(f"{number}_*.ipynb")))
    for cell in notebook.code:
        pieces = code.chunks(source(cell))
        joined = [line for piece in pieces for line in piece.splitlines() if line.strip()]
        assert joined == [line for line in source(cell).splitlines() if line.strip()]


def test_long_outputs_say_how_much_is_missing():
    rows = "".join(f"<tr><td>{i}</td></tr>" for i in range(40))
    shown = fitting.cut(f"<table>{rows}</table>")
    assert shown.count("<tr>") == 15
    assert "… 25 more rows" in shown
    assert "… 26 more lines" in fitting.cut("<pre>" + "x\n" * 39 + "x</pre>")
    assert [len(group) for group in fitting.packed([("x", 4)] * 7)] == [2, 2, 2, 1]


def test_a_deck_has_question_answer_notes_and_no_solution(tmp_path):
    asked = "<b>?</b> <code>05-a</code> <b>how?</b><ul><li>one</li></ul>"
    told = '<b style="">→</b> <code>05-a</code> measured: <b>one</b>. Because.'
    show = lambda text: {"data": {"text/html": text}, "metadata": {}}  # noqa: E731
    cells = [
        {"cell_type": "markdown", "source": "# 05 T\n\n**Q?**\n\nAbout 9 minutes.", "metadata": {}},
        {"cell_type": "markdown", "metadata": {},
         "source": "## S\n\nFirst words. Later words.\n\n<details>\nsecret\n</details>"},
        {"cell_type": "code", "metadata": {}, "source": 'predict("05-a", "how?", ["one"])',
         "outputs": [show(asked)]},
        {"cell_type": "code", "metadata": {}, "source": 'predict.answer("05-a", "one")',
         "outputs": [show(told)]},
        {"cell_type": "markdown", "source": "## Further\n\nside road", "metadata": {}},
    ]  # fmt: skip
    path = tmp_path / "05_t.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    slides = Deck(Notebook(path), None).all()
    assert [slide.look for slide in slides] == ["chapter", "section", "question"]
    assert "First words." in slides[1].body
    assert "Later" not in slides[1].body
    assert "secret" not in slides[1].body
    assert "Later words." in slides[1].notes
    before, after = slides[2].body.split('<div class="fragment">')
    assert "measured" not in before
    assert "measured: <b>one</b>" in after


def test_the_installing_cell_is_unseen_and_a_figure_takes_the_words_that_lead_to_it(tmp_path):
    picture = {"output_type": "display_data", "metadata": {},
               "data": {"image/png": "iVBORw0KGgo=", "text/plain": "Three boxes."}}  # fmt: skip
    text = lambda words: {"cell_type": "markdown", "metadata": {}, "source": words}  # noqa: E731
    cells = [
        text("# 05 T"), text("## S"), text("First words stand under the heading."),
        {"cell_type": "code", "metadata": {}, "id": "setup", "source": "raise 1", "outputs": []},
        text("### The whole of it\n\nThe whole computation in one picture, with its numbers:"),
        {"cell_type": "code", "metadata": {}, "id": "it", "source": "draw(it)",
         "outputs": [picture]},
        text("*What does it show? Three boxes.*"),
    ]  # fmt: skip
    path = tmp_path / "05_t.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    slides = Deck(Notebook(path), SimpleNamespace(save=lambda _: ("it.png", 2, 1))).all()
    assert [slide.look for slide in slides] == ["chapter", "section", "figure"]
    lead, rest = slides[2].body.split("<img")
    assert "in one picture" in lead
    assert "Three boxes" in rest
    assert not any("raise 1" in slide.body for slide in slides)


def test_a_lesson_shows_its_steps_without_test_code(tmp_path):
    claimed = {"output_type": "display_data", "metadata": {"claim": {"id": "05-1"}},
               "data": {"text/html": "<div>✓ 05-1 A true sentence</div>"}}  # fmt: skip
    picture = {"output_type": "display_data", "metadata": {},
               "data": {"image/png": "iVBORw0KGgo=", "text/plain": "Boxes."}}  # fmt: skip
    cells = [
        ("title", "# 05 T", None), ("s", "## S\n\nFirst words.", None),
        ("f", "def f(x):\n    return x\n\n\nclaim('05-2', 'so', f(1), '==', 1)", []),
        ("skipped", "## Skipped\n\nNot in the lesson.", None), ("g", "print('unseen')", []),
        ("head", "## H", None), ("shows", "draw(1)", [picture]), ("caption", "*A picture.*", None),
        ("claim-05-1", "claim('05-1', 'A true sentence', 1, '==', 1)", [claimed]),
    ]  # fmt: skip
    path = tmp_path / "05_t.ipynb"
    path.write_text(json.dumps({"cells": [
        {"id": id, "cell_type": "markdown", "source": text, "metadata": {}} if outputs is None else
        {"id": id, "cell_type": "code", "source": text, "outputs": outputs, "metadata": {}}
        for id, text, outputs in cells
    ]}))  # fmt: skip
    steps = [Step(5, "{#s} to {#f}", "Begin & ask."), Step(3, "{#shows} to {#claim-05-1}", "Show.")]
    deck = Deck(Notebook(path), SimpleNamespace(save=lambda _: ("it.png", 2, 1)))
    slides = deck.lesson(Plan(45, steps, ""))
    assert [slide.look for slide in slides] == ["chapter", "section", "code", "figure"]
    shown = " ".join(slide.body + slide.title for slide in slides)
    assert "unseen" not in shown
    assert "Not in the lesson" not in shown
    assert "claim(" not in re.sub(r"<[^>]+>", "", shown)
    assert slides[1].notes.startswith("<p><b>5 minutes.</b> Begin &amp; ask.</p>")
    assert slides[3].notes.startswith("<p><b>3 minutes.</b> Show.</p>")
    assert slides[3].title == "H"
    assert slides[3].body.index("A picture.") < slides[3].body.index("A true sentence")


def test_a_lesson_without_a_plan_is_refused(tmp_path, capsys):
    folder = ["--notebooks", str(ROOT / "notebooks")]
    asked = ["release", "05", "--slides", str(tmp_path / "a"), "--minutes", "45", *folder]
    assert main(asked) == 0
    made = int(re.search(r"(\d+) slides", capsys.readouterr().out)[1])
    assert 20 < made < 60
    assert main(["release", "05", "--notes", str(tmp_path / "b"), "--minutes", "45", *folder]) == 1
    assert "--minutes goes with --slides, not with --notes" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"chapter 05 has no plan for 30 minutes: 45 or 90"):
        build_slides(ROOT / "notebooks", tmp_path / "c", ["05"], 30)


MEASURE = """() => {
  const found = [];
  for (let i = 0; i < Reveal.getTotalSlides(); i += 1) {
    Reveal.slide(i, 0, 99);
    const slide = Reveal.getCurrentSlide(), frame = slide.getBoundingClientRect();
    const head = slide.querySelector("h1, h2"), inner = slide.querySelector(".inner");
    const box = inner.getBoundingClientRect(), top = head.getBoundingClientRect().bottom;
    if (frame.width !== 1280 || frame.height !== 720) found.push(`${i}: ${frame.width}`);
    if (head.scrollWidth > head.clientWidth + 1) found.push(`${i}: heading`);
    if (box.height && box.top < top - 1) found.push(`${i}: ${box.top} above ${top}`);
    for (const node of [inner, ...inner.querySelectorAll("pre, p, td, img, li, svg, button")]) {
      const r = node.getBoundingClientRect();
      if (r.width && r.height && (r.right > frame.right + 1 || r.bottom > frame.bottom + 1
          || r.left < frame.left - 1)) found.push(`${i}: ${node.tagName} ${r.right} ${r.bottom}`);
    }
    const says = inner.textContent.trim() || !slide.matches(".text, .code, .printed");
    if (!says) found.push(`${i}: empty`);
  }
  return [Reveal.getTotalSlides(), found];
}"""


@pytest.mark.browser
@pytest.mark.parametrize("lesson", [[], ["--minutes", "90"]], ids=["whole", "lesson"])
def test_no_slide_is_larger_than_its_frame_and_none_asks_for_a_network(tmp_path, lesson):
    for name in ("sphinx_revealjs", "mathjax"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    arguments = ["release", "05", "--slides", str(tmp_path)]
    arguments += ["--notebooks", str(ROOT / "notebooks"), *lesson]
    assert main(arguments) == 0
    deck = next(tmp_path.glob("05_*.html"))
    loads = re.findall(r'(?:src|<link[^>]*href)="([^"]+)"', deck.read_text(encoding="utf-8"))
    files = [address for address in loads if not address.startswith("data:")]
    assert files
    assert all((tmp_path / address).exists() for address in files)
    with offline_browser(width=1280, height=720) as (page, faults):
        page.goto(deck.as_uri())
        page.wait_for_selector("body[data-ready]")
        number, found = page.evaluate(MEASURE)
        assert number > 40
        assert not found
        page.evaluate(
            "Reveal.slide(Reveal.getSlides().findIndex((s) => s.matches('.question')), 0, -1)"
        )
        answer = page.locator("section.present .fragment")
        answer.wait_for(state="hidden")
        page.keyboard.press("ArrowRight")
        answer.wait_for(state="visible")
        assert not faults, faults[:3]
