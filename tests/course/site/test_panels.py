"""Panels that move: their states are drawn when a site is built, and a browser shows them."""

import json
import re

import pytest
from browser_support import offline_browser

from tinytf_course.__main__ import main
from tinytf_course.notebooks import Notebook, notebooks
from tinytf_course.places import ROOT
from tinytf_course.site import panels

CELLS = {
    "title": "# 05 A chapter\n\n**What moves?**",
    "draw": "import torch\n\nfrom tinytf import viz\n\ndef draw(height, up):\n"
    "    if height == 4:\n        raise ValueError('4 is too high')\n"
    "    return viz.lines(None, {'y': [0, height if up else -height]})",
    "panel": "viz.explore(draw, height=(1, 4), up=True);",
    "later": "1 / 0",  # behind the last panel: not run
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two chapters, and one panel in the first."""
    folder = tmp_path_factory.mktemp("chapters")
    cells = [
        {"cell_type": "markdown", "id": id, "metadata": {}, "source": text}
        if text.startswith("#")
        else {"cell_type": "code", "id": id, "metadata": {}, "source": text, "outputs": [],
              "execution_count": None}
        for id, text in CELLS.items()
    ]  # fmt: skip
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "05_a_chapter.ipynb").write_text(json.dumps(notebook))
    (folder / "06_without.ipynb").write_text(json.dumps(notebook | {"cells": cells[:1]}))
    return folder


@pytest.fixture(scope="module")
def drawn(folder, tmp_path_factory):
    """Where its panel was drawn, and what is known of it."""
    where = tmp_path_factory.mktemp("panels") / "05"
    return where, panels.draw(Notebook(folder / "05_a_chapter.ipynb"), where)


def test_every_state_has_a_picture_with_alt_text_or_says_why_not(drawn):
    where, found = drawn
    facts = found["panel"]
    assert facts["names"] == ["height", "up"]
    assert facts["values"] == [["1", "2", "3", "4"], ["False", "True"]]
    assert facts["kinds"] == ["slider", "box"]
    assert facts["start"] == [1, 1]
    assert facts["together"]
    states = {tuple(state["at"]): state for state in facts["states"]}
    assert len(states) == 8
    assert states[3, 0]["error"] == states[3, 1]["error"] == "ValueError: 4 is too high"
    shown = [state for state in states.values() if "file" in state]
    assert len({state["file"] for state in shown}) == 6
    assert "from 0 to 3" in states[2, 1]["alt"]
    sizes = [(where / "panel" / state["file"]).stat().st_size for state in shown]
    assert 0 < sum(sizes) < panels.MOST_BYTES


def test_what_was_drawn_is_kept_until_the_chapter_changes(drawn, folder, tmp_path, monkeypatch):
    where, found = drawn
    chapter = Notebook(folder / "05_a_chapter.ipynb")
    monkeypatch.setattr(panels, "_run", None)  # nothing is run
    assert panels.draw(chapter, tmp_path / "a", where) == found
    assert {path.name for path in (tmp_path / "a/panel").iterdir()} == {
        path.name for path in (where / "panel").iterdir()
    }
    changed = tmp_path / "05_a_chapter.ipynb"
    changed.write_text(chapter.path.read_text().replace("(1, 4)", "(1, 5)"))
    told = []
    with pytest.raises(TypeError):  # now it would be
        panels.draw(Notebook(changed), tmp_path / "b", where, told.append)
    assert told == ["05_a_chapter.ipynb: its panels are drawn"]


def test_panels_of_a_chapter_that_does_not_run_stay_still(folder, tmp_path, capsys):
    for name in ("sphinx", "myst_parser", "sphinx_book_theme", "mathjax"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    text = (folder / "05_a_chapter.ipynb").read_text()
    (tmp_path / "05_a_chapter.ipynb").write_text(text.replace("import torch", "import nothing"))
    assert main(["site", str(tmp_path / "site"), "--notebooks", str(tmp_path)]) == 1
    assert "05_a_chapter.ipynb: its panels stay still: cell draw failed" in capsys.readouterr().err
    assert 'class="explored"' not in (tmp_path / "site/05_a_chapter.html").read_text()
    assert not (tmp_path / "site/_static/panels/05").exists()


class Explored:
    """A panel whose pictures take `size` bytes each."""

    def __init__(self, control):
        self.controls, self.handle, self.about = {"k": control}, None, None


def test_a_panel_keeps_to_its_bytes(monkeypatch, tmp_path):
    import ipywidgets

    def state(explored, values):
        return {"file": f"{values['k']}.webp", "alt": ""}, b"x" * 50_000

    monkeypatch.setattr(panels, "_state", state)
    explored = Explored(ipywidgets.IntSlider(10, 0, 20))
    explored.update = lambda: None
    facts = panels._drawn(explored, tmp_path)
    assert len(facts["states"]) * 50_000 <= panels.MOST_BYTES
    assert {"0", "10", "20"} < set(facts["values"][0])
    assert len(list(tmp_path.iterdir())) == len(facts["states"])
    monkeypatch.setattr(panels, "MOST_BYTES", 100_000)
    with pytest.raises(ValueError, match="3 pictures take 150,000 bytes, over 100,000"):
        panels._drawn(explored, tmp_path)


def test_every_panel_of_the_course_is_found():
    for notebook in notebooks(ROOT / "notebooks"):
        calls = len(notebook.calls("viz.explore"))
        assert len(panels.panel_cells(notebook)) == calls, notebook.path.name


@pytest.fixture(scope="module")
def site(folder, drawn, tmp_path_factory):
    """The chapter's site, its panel taken from where it was drawn."""
    for name in ("sphinx", "myst_parser", "sphinx_book_theme", "mathjax"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    site = tmp_path_factory.mktemp("site")
    (site / "_static").mkdir()
    drawn[0].parent.rename(site / "_static/panels")
    (site / "_static/panels/06").mkdir()
    (site / "_static/panels/06/old.webp").write_bytes(b"of the chapter as it was")
    assert main(["site", str(site), "--notebooks", str(folder)]) == 0
    return site


def test_without_scripts_the_first_state_is_a_picture(site):
    page = (site / "05_a_chapter.html").read_text(encoding="utf-8")
    [panel] = re.findall(r'<div class="explored">.*?</script></div>', page, flags=re.S)
    address, alt = re.search(r'<img src="([^"]*)" alt="([^"]*)"', panel).groups()
    assert (site / address).is_file()
    assert "from 0 to 2" in alt


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_panel_moves_by_keyboard(site, width):
    with offline_browser(width=width, height=844) as (page, faults):
        page.goto((site / "05_a_chapter.html").as_uri())
        panel = page.locator(".explored")
        picture = panel.locator("img")
        first, height = picture.get_attribute("src"), panel.bounding_box()["height"]
        slider = page.get_by_label("height")
        assert slider.get_attribute("aria-valuetext") == "2"
        slider.focus()
        page.keyboard.press("ArrowRight")
        assert panel.get_attribute("data-state") == "height = 3, up = True"
        assert picture.get_attribute("src") != first
        assert "from 0 to 3" in picture.get_attribute("alt")
        page.wait_for_function("document.querySelector('.explored img').naturalWidth > 100")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        assert panel.get_attribute("data-state") == "height = 3, up = False"
        slider.focus()
        page.keyboard.press("End")
        assert panel.get_by_text("ValueError: 4 is too high").is_visible()
        assert not picture.is_visible()
        page.keyboard.press("Home")
        assert picture.is_visible()
        assert abs(panel.bounding_box()["height"] - height) < 1  # nothing below it jumps
        larger = panel.get_by_role("button", name="Larger type")
        assert larger.is_visible() == (width < 600)
        if width < 600:  # the whole figure at first, so that one sees what moves
            assert picture.bounding_box()["width"] < width
            larger.click()
            assert picture.bounding_box()["width"] > width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not faults, faults[:3]


def test_a_site_keeps_its_panels_and_no_others(site):
    facts = json.loads((site / "_static/panels/05/panels.json").read_text())
    states = facts["panels"]["panel"]["states"]
    kept = {path.name for path in (site / "_static/panels").rglob("*.webp")}
    assert kept == {state["file"] for state in states if "file" in state}
