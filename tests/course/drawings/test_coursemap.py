"""The course map has every chapter, marks one, fills in what is done, and is one valid picture."""

import re
import xml.etree.ElementTree as ET

import pytest

from tinytf_course.drawings import coursemap
from tinytf_course.drawings.coursemap import course_map, draw_map, spoken_map
from tinytf_course.outline import CHAPTERS, in_hours

SVG = "{http://www.w3.org/2000/svg}"
COUNT = len(CHAPTERS)


def shapes(svg):
    """(chapters, whether done, its elements) of each shape that stands for chapters."""
    for element in ET.fromstring(svg).iter():
        if names := element.get("data-chapters"):
            numbers = tuple(map(int, names.split()))
            yield numbers, "done" in element.get("class").split(), list(element.iter())


@pytest.mark.parametrize("tall", [False, True])
def test_every_chapter_is_a_stop_with_the_outline_s_title_and_minutes(tall):
    stops = [
        (numbers[0], " ".join(text.text for text in parts if "halo" in text.get("class", "")))
        for numbers, _, parts in shapes(draw_map(tall=tall))
        if any(part.get("class") == "stop" for part in parts)
    ]
    assert sorted(number for number, _ in stops) == list(range(COUNT))
    for number, text in stops:
        chapter = CHAPTERS[number]
        minutes = [f"{chapter.core} min"] * (not chapter.elective)
        minutes += [f"◇ {chapter.beside}"] * (chapter.beside > 0)
        assert text == " ".join([chapter.title, *minutes])


def test_what_is_done_is_filled_in_and_no_more():
    done = {3, 4, 8}
    for numbers, filled, _ in shapes(draw_map(5, done)):
        assert filled == (set(numbers) <= done), numbers


def test_the_road_leads_through_the_core_in_its_order():
    road = re.findall(r'class="road[^"]*" data-chapters="(\d\d)" d="M(\S+) (\S+)', draw_map())
    assert [number for number, *_ in road] == [c.number for c in CHAPTERS if not c.elective]


@pytest.mark.parametrize("chapter", range(COUNT))
def test_one_chapter_is_marked(chapter):
    [marked] = (
        numbers
        for numbers, _, parts in shapes(draw_map(chapter))
        if any(part.get("class") == "here" for part in parts)
    )
    assert marked == (chapter,)


def test_a_chapter_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=f"no chapter {COUNT} on the map; it has 0 to {COUNT - 1}"):
        draw_map(COUNT)


def test_links_lead_to_chapters():
    svg = draw_map(address=lambda number: None if number == 3 else f"{number:02d}_x.html")
    links = {link.get("href") for link in ET.fromstring(svg).iter(f"{SVG}a")}
    assert links == {f"{number:02d}_x.html" for number in range(COUNT) if number != 3}
    assert "<a" not in draw_map()


def test_the_encoder_stands_left_and_data_goes_up():
    places = {(text, numbers): (x, y) for x, y, _, text, _, numbers in coursemap.PARTS}
    left = [x for (text, _), (x, _) in places.items() if text == "English"]
    right = [x for (text, _), (x, _) in places.items() if text in ("Chinese", "cross-\nattention")]
    assert max(left) < min(right)
    assert coursemap.FRAMES[0][3] == "encoder"
    assert coursemap.FRAMES[0][0] < coursemap.FRAMES[1][0]
    assert places["next word", (16, 17)][1] < places["Chinese", (3,)][1]


def test_a_notebook_shows_the_picture_and_the_words(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    course_map(14, done={3})
    assert shown == [
        {
            "text/html": coursemap.as_image(draw_map(14, {3}), spoken_map(14, {3})),
            "text/plain": spoken_map(14, {3}),
        }
    ]
    core, beside = in_hours()
    assert f"A road of {core} hours" in spoken_map()
    assert f"{beside} hours of electives" in spoken_map()
    assert "You are at chapter 14. Done: 3." in spoken_map(14, {3})
