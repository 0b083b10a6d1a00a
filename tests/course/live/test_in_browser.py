"""The panels in a browser without a network: typing, clicking, keys, bad input, damaged files."""

import re
from pathlib import Path

import pytest
from live_support import READY, wait_for

from tinytf_course import live

pytestmark = pytest.mark.browser


def test_a_sentence_is_typed_and_taken_apart_by_mouse(opened):
    page = opened("translator")
    page.fill(".sentence", "the dog saw the cat")
    wait_for(page, "狗 看见 了 猫")
    assert page.locator(".token.new, .token.lost").count() == 0
    page.locator("[data-key='place 1']").click()  # swap the positions of the nouns
    assert "“dog” changes places with" in page.locator(".summary").inner_text()
    page.locator("[data-key='place 4']").click()
    wait_for(page, "猫 看见 了 狗")
    assert page.locator(".token.new").count() == page.locator(".token.lost").count() == 2
    assert page.locator(".summary").inner_text().startswith("2 words lost, 2 new. Before: ")
    page.locator("[data-key='undo']").click()
    wait_for(page, "狗 看见 了 猫")
    page.locator("[data-key='one-position']").click()
    assert float(page.locator(".prob").first.inner_text()) < 0.5
    page.locator("[data-key='undo']").click()
    for layer in (0, 1):
        page.locator(f"[data-part='decoder.layers.{layer}.cross_attention']").click()
    wait_for(page, "")  # a decoder that can't look at the source


def test_a_word_is_hidden_and_a_head_switched_off_by_keyboard(opened):
    page = opened("translator")
    page.focus(".sentence")
    page.keyboard.press("Control+a")
    page.keyboard.type("the animal did not cross the street because it was too wide")
    wait_for(page, "动物 没有 过 马路 因为 马路 太 宽 了")
    page.focus("[data-key='hide 11']")
    page.keyboard.press("Enter")
    wait_for(page, "动物 没有 过 马路 因为 动物 太 轻 了")
    assert page.evaluate("document.activeElement.dataset.key") == "hide 11"  # the place is kept
    page.keyboard.press("Enter")
    page.focus("[data-part='encoder.layers.0.self_attention.0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    part = "encoder.layers.0.self_attention.1"
    assert page.evaluate("document.activeElement.dataset.part") == part
    assert page.locator(f"[data-part='{part}']").get_attribute("aria-checked") == "false"
    assert "changed most" in page.locator(".summary").inner_text()
    page.focus("[data-look='decoder.layers.1.cross_attention.1']")
    page.keyboard.press("ArrowRight")
    assert "layer 1, cross-attention, head 2" in page.locator(".reading").inner_text()
    page.focus("[data-key='target 0']")
    page.keyboard.press("ArrowRight")
    assert page.locator("[data-key='target 1']").get_attribute("aria-checked") == "true"
    page.focus("[data-key='temperature']")
    page.keyboard.press("End")
    assert page.locator("output").first.inner_text() == "8"


def test_each_experiment_gives_what_it_says(opened):
    page = opened("translator")
    given = page.evaluate("tinytf.examples.map(({ gives }) => gives)")
    assert len(given) > 5
    for place, words in enumerate(given):
        page.select_option(".experiment", str(place))
        wait_for(page, words)


def test_words_that_changed_are_found_by_the_longest_common_subsequence(opened):
    page = opened("translator")
    row = page.evaluate("tinytf.compare([...'abcd'], [...'xbdde'])")
    assert [(w["word"], w.get("was"), w.get("is")) for w in row] == [
        ("a", 0, None), ("x", None, 0), ("b", 1, 1), ("c", 2, None), ("d", 3, 2), ("d", None, 3),
        ("e", None, 4),
    ]  # fmt: skip


BAD = [
    ("", "the sentence is empty: give at least one word"),
    ("the 😀 sat", "'😀' at position 1"),
    ("<img src=x onerror=alert(1)>", "'<img' at position 0"),
    ("<script>document.title='bad'</script>", "unknown word"),
    ("שלום the cat", "'שלום' at position 0"),
    (" ".join(["cat"] * 500), "the sentence has 500 words, and the model reads at most 63"),
    ("the 3 cats slept", "write 'three'"),
    ("__proto__ constructor", "unknown word '__proto__' at position 0"),
]


@pytest.mark.parametrize(("sentence", "said"), BAD)
def test_what_cannot_be_translated_is_answered_with_a_sentence(opened, sentence, said):
    page = opened("translator")
    title = page.title()
    page.fill(".sentence", sentence)
    page.wait_for_function("!document.querySelector('.problem').textContent === false")
    assert said in page.locator(".problem").inner_text()
    assert page.locator(".app img, .app script").count() == 0
    assert page.title() == title
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    assert page.locator(".results").evaluate("node => node.inert && node.clientHeight > 200")
    assert "Below, dimmed" in page.locator(".problem").inner_text()
    page.fill(".sentence", "the cat sat on the mat")
    wait_for(page, "猫 坐 在 垫子 上")
    assert not page.locator(".results").evaluate("node => node.inert")


def test_a_mistyped_word_is_replaced_by_the_one_that_was_meant(opened):
    page = opened("translator")
    page.fill(".sentence", "the cat sat on the matt")
    page.locator(".problem button").first.click()
    assert page.input_value(".sentence") == "the cat sat on the mat"
    wait_for(page, "猫 坐 在 垫子 上")


def test_every_head_off_leaves_a_page_that_works(opened):
    page = opened("translator")
    page.wait_for_selector("[data-part]")
    parts = page.locator("[data-part]").evaluate_all("nodes => nodes.map(n => n.dataset.part)")
    for part in [part for part in parts if re.search(r"\.\d$", part)]:
        page.locator(f"[data-part='{part}']").click()
    assert page.locator(".head.is-off").count() == 24
    wait_for(page, "")


def test_the_writer_is_led_by_clicks_and_rules(opened):
    page = opened("writer")
    shown = page.locator("[data-token]")
    before = shown.first.inner_text().split("\n")[0]
    page.locator("[data-key='top-k']").fill("2")
    assert page.locator(".next.is-out").count() == 10
    assert "2 of 1,024 tokens are allowed" in page.locator(".tinytf-note").inner_text()
    shown.first.click()
    text = page.input_value("textarea")
    assert text == "One morning, a" + before.replace("␣", " ")
    page.focus("[data-key='one']")
    page.keyboard.press("Enter")
    assert len(page.input_value("textarea")) > len(text)
    page.locator("[data-key='undo']").click()
    assert page.input_value("textarea") == text
    page.locator("[data-key='on']").click()
    page.wait_for_function("document.querySelector('textarea').value.length > 80")
    page.locator("[data-key='on']").click()
    assert page.locator("[data-key='on']").inner_text() == "write on"


@pytest.mark.parametrize(
    "text", ["", "<b>bold</b> & <script>1</script>", "😀 שלום", "word " * 500, "漢"]
)
def test_the_writer_reads_any_text(opened, text):
    page = opened("writer")
    page.fill("textarea", text)
    page.wait_for_function(
        "text => document.querySelector('.tinytf-live').dataset.text === text", arg=text
    )
    assert page.locator("[data-token]").count() == 12
    assert page.locator(".app script, .app textarea ~ b").count() == 0
    cut = "the model reads the last 128" in page.locator(".tinytf-note").inner_text()
    assert cut == (len(text) > 500)


def test_the_film_plays_pauses_steps_and_explains_its_numbers(opened):
    page = opened("film")
    root = page.locator(READY)
    play = page.locator("[data-key='play']")
    page.evaluate("tinytf.film.pause = 50")
    play.click()
    page.wait_for_function("document.querySelector('.tinytf-live').dataset.step === '5'")
    assert play.inner_text() == "play"
    page.locator("[data-key='back']").click()
    assert root.get_attribute("data-step") == "4"
    weights = [float(w) for w in page.locator(".scene tbody td:last-child").all_inner_texts()]
    assert sum(weights) == pytest.approx(1, abs=0.02)
    page.locator(".scene tbody td").nth(2).hover()
    assert re.search(r"[\d.]+ / [\d.]+ [=≈] 0\.\d{4}$", page.locator(".formula").inner_text())
    page.focus("[data-key='step 4']")
    page.keyboard.press("ArrowLeft")
    assert root.get_attribute("data-step") == "3"
    page.focus(".scene tbody td")
    page.keyboard.press("ArrowRight")
    assert "√32" in page.locator(".formula").inner_text()
    page.evaluate("tinytf.film.pause = 60000")
    play.click()
    assert play.inner_text() == "pause"
    play.click()
    assert play.inner_text() == "play"


def test_the_films_weights_are_those_of_the_forward_pass(opened):
    page = opened("film")
    gap = page.evaluate(
        """() => {
            const { film, newRun } = tinytf, { model } = film, [sentence] = film.SENTENCES;
            const { weights } = film.compute(model, sentence, 2), run = newRun();
            model.encode(model.read(sentence), run);
            const seen = run.maps[`${film.LAYER}.self_attention`];
            const gaps = weights.map((row, t) => row.map((w, s) => Math.abs(w - seen[t][2][s])));
            return Math.max(...gaps.flat());
        }"""
    )
    assert gap < 1e-6


def test_paper_gets_the_still_and_the_sites_theme_outranks_the_systems(opened):
    page = opened("film")
    assert not page.locator(".still").is_visible()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".still td").count() == 21
    assert page.locator(".still").is_visible()
    assert not page.locator(".app").is_visible()
    page.emulate_media(media="screen")
    paper = "getComputedStyle(document.querySelector('.tinytf-live')).backgroundColor"
    dark = page.evaluate(paper)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert page.evaluate(paper) == "rgb(255, 255, 255)" != dark


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:100_000]),
    "of another file": lambda path: path.write_text("(tinytf.weights ||= {}).translator = {};"),
    "changed": lambda path: path.write_text(path.read_text().replace("AAAA", "AAAB", 1)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_weights_that_cannot_be_read_are_reported_and_can_be_tried_again(damage, browser, tmp_path):
    live.write_assets(tmp_path / "live")
    (tmp_path / "page.html").write_text(live.page("translator"), encoding="utf-8")
    path = tmp_path / "live" / "translator.weights.js"
    whole = path.read_bytes()
    DAMAGES[damage](path)
    page, faults = browser
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(".tinytf-live[data-state='failed']")
    said = page.locator(".problem").inner_text()
    assert "translator.weights.js could not be loaded" in said or "is damaged" in said
    assert "Copy the whole folder of the site again" in said
    path.write_bytes(whole)
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(READY)
    assert page.evaluate("document.activeElement.dataset.key") == "sentence"
    faults.clear()  # the browser names the missing file, too


@pytest.mark.parametrize("kind", live.KINDS)
def test_a_panel_fits_a_phone_and_names_all_that_can_be_used(opened, kind):
    page = opened(kind)
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    nameless = page.evaluate(
        """() => [...document.querySelectorAll(
                '.app button, .app input, .app select, .app textarea, .app [role]')]
            .filter(node => !(node.getAttribute('aria-label') || node.textContent.trim()
                || node.closest('label')?.textContent.trim())
                && !['alert', 'status'].includes(node.getAttribute('role')))
            .map(node => node.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    small = page.locator(".app button").evaluate_all(
        """buttons => buttons.map(button => button.getBoundingClientRect())
            .filter(({ width, height }) => width && Math.min(width, height) < 24).length"""
    )
    assert small == 0
    keyed = page.locator("[data-key]").evaluate_all("nodes => nodes.map(n => n.dataset.key)")
    if kind != "film":
        assert len(keyed) == len(set(keyed))


CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", live.KINDS)
def test_all_words_can_be_read(opened, kind, scheme):
    page = opened(kind)
    page.emulate_media(color_scheme=scheme)
    if kind == "translator":
        page.select_option(".experiment", "2")
        page.locator("[data-key='hide 3']").click()
    for step in range(6 if kind == "film" else 1):
        if kind == "film":
            page.locator(f"[data-key='step {step}']").click()
        assert page.evaluate(CONTRAST) == []
