"""What the panels keep and say while a reader changes things: notes, menus, pending text, focus."""

import pytest
from live_support import wait_for

pytestmark = pytest.mark.browser

HEAD = "decoder.layers.1.cross_attention.1"  # the one that is looked at first
TEMPERATURE = "[data-key='temperature']"
FOCUS = "document.activeElement.dataset.key"


def said(page, place):
    return page.locator(place).inner_text()


def named(page):
    """The entry that the menu of experiments shows."""
    return page.locator(".experiment option:checked").inner_text()


def switch_off(page, part):
    page.locator(f"[data-part='{part}']").click()


CHANGES = {
    "a head": lambda page: switch_off(page, HEAD),
    "a word": lambda page: page.locator("[data-key='hide 1']").click(),
    "a swap": lambda page: [page.locator(f"[data-key='place {i}']").click() for i in (1, 2)],
    "one position": lambda page: page.locator("[data-key='one-position']").click(),
    "temperature": lambda page: page.locator(TEMPERATURE).fill("1"),
    "text": lambda page: page.fill(".sentence", "the cat sat"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_ends_an_experiments_note_and_its_name_in_the_menu(opened, change):
    page = opened("translator")
    assert said(page, ".about").startswith("Choose a Chinese word")
    assert said(page, ".app").count("Nothing is changed") == 1
    CHANGES[change](page)
    page.wait_for_function("!document.querySelector('.about').textContent")
    assert named(page) == "your own sentence"
    page.select_option(".experiment", "0")  # it can be chosen again
    assert said(page, ".about").startswith("Choose a Chinese word")
    assert named(page).startswith("1. ")
    assert page.locator("[data-key='undo']").is_disabled()


def test_a_new_sentence_keeps_the_switches_and_the_temperature(opened):
    page = opened("translator")
    switch_off(page, HEAD)
    page.locator(TEMPERATURE).fill("1")
    page.locator("[data-key='hide 1']").click()
    page.fill(".sentence", "the dog saw the bird")
    page.get_by_text("bird", exact=True).wait_for()
    assert page.locator(f"[data-part='{HEAD}']").get_attribute("aria-checked") == "false"
    assert page.input_value(TEMPERATURE) == "1"
    assert page.locator(".is-hidden").count() == 0


def test_text_that_waits_is_read_before_a_change_and_dropped_by_an_experiment(opened):
    page = opened("translator")
    before_it_is_read = """([text, act]) => {
        const input = document.querySelector(".sentence");
        input.value = text;
        input.dispatchEvent(new Event("input"));
        const choice = document.querySelector(".experiment");
        if (act) document.querySelector(act).click();
        else { choice.value = "1"; choice.dispatchEvent(new Event("change")); }
    }"""
    page.evaluate(before_it_is_read, ["the dog saw the bird", "[data-key='hide 1']"])
    assert "show" in page.locator(".is-hidden").inner_text()
    assert page.locator("[data-word='source 4']").inner_text() == "bird"
    page.evaluate(before_it_is_read, ["the cat", None])
    page.wait_for_timeout(200)
    assert page.input_value(".sentence") == "the dog saw the cat"
    wait_for(page, "猫 看见 了 狗")


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("The dog saw the Cat.", "the dog saw the cat"),
        ("the dog saw the cat .", "the dog saw the cat"),
    ],
)
def test_capitals_and_a_full_stop_are_read_without_a_word(opened, typed, read):
    page = opened("translator")
    page.fill(".sentence", typed)
    wait_for(page, "狗 看见 了 猫")
    assert said(page, ".read-as") == f"Read as “{read}”."
    assert page.input_value(".sentence") == typed
    page.fill(".sentence", "The catt")  # which can't be read
    page.locator(".problem button").first.wait_for()
    assert said(page, ".read-as") == ""


def test_a_chinese_word_is_given_in_english(opened):
    page = opened("translator")
    assert page.locator("[data-key='target 0']").get_attribute("title") == "cat"
    assert "“cat”, it looks at" in said(page, ".reading")


def test_what_is_off_draws_nothing(opened):
    page = opened("translator")
    ribbons = page.locator(".ribbons path")
    assert ribbons.count() > 0
    switch_off(page, HEAD)
    assert ribbons.count() == 0
    assert "it is off and looks at nothing" in said(page, ".reading")
    weights = "nodes => nodes.map(node => node.style.getPropertyValue('--weight'))"
    assert set(page.locator("[data-word^='source']").evaluate_all(weights)) == {"0"}
    hatch = "node => getComputedStyle(node).backgroundImage"
    assert "gradient" in page.locator(f"[data-look='{HEAD}']").evaluate(hatch)
    switch_off(page, HEAD.rpartition(".")[0])
    names = page.locator(f"[data-part^='{HEAD.rpartition('.')[0]}.']").all_inner_texts()
    assert names == ["0 off", "1 off", "2 off", "3 off"]


def test_a_swap_that_is_half_made_is_ended_by_escape_and_by_other_changes(opened):
    page = opened("translator")
    for other in (
        "Escape",
        "[data-key='hide 2']",
        "[data-look='encoder.layers.0.self_attention.0']",
    ):
        page.locator("[data-key='place 1']").click()
        assert "“cat” changes places with" in said(page, ".summary")
        page.locator(other).click() if "=" in other else page.keyboard.press(other)
        assert "changes places with" not in said(page, ".summary")


def test_the_films_focus_stays_at_its_ends_and_on_a_number(opened):
    page = opened("film")
    for _ in range(6):
        page.focus("[data-key='next']")
        page.keyboard.press("Enter")
    assert page.evaluate(FOCUS) == "next"
    page.evaluate("tinytf.film.pause = 60000")
    page.locator("[data-key='play']").click()
    page.focus(".scene tbody td")
    assert said(page, "[data-key='play']") == "play"


def test_the_writers_focus_is_never_lost(opened):
    page = opened("writer")
    assert page.evaluate(FOCUS) == "text"  # where the button that loads it was pressed
    page.focus("[data-token]:enabled")
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUS).startswith("token ")
    page.focus("[data-key='undo']")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUS) == "undo"
    assert page.input_value("textarea") == "One morning, a"


@pytest.mark.parametrize("width", [640, 700, 800, 880])
def test_the_films_numbers_fit_their_scene(opened, width):
    page = opened("film")
    page.set_viewport_size({"width": width, "height": 800})
    for step in range(6):
        page.locator(f"[data-key='step {step}']").click()
        page.wait_for_function(
            """() => {
                const { clientWidth, scrollWidth } = document.querySelector(".scene");
                return scrollWidth <= clientWidth;
            }""",
            timeout=2000,
        )


def test_a_vertical_step_out_of_the_maps_is_ignored_and_a_pressed_switch_is_the_tab_stop(opened):
    page = opened("translator")
    page.focus("[data-look='encoder.layers.0.self_attention.1']")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(FOCUS) == "look encoder.layers.0.self_attention.1"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(FOCUS) == "look encoder.layers.1.self_attention.1"
    switch_off(page, HEAD)
    stops = "nodes => nodes.filter(node => node.tabIndex === 0).map(node => node.dataset.part)"
    assert page.locator("[data-part]").evaluate_all(stops) == [HEAD]
