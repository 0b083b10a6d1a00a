"""Where the panels stand in the site's pages."""

from pathlib import Path

import pytest

from tinytf_course.live import places
from tinytf_course.notebooks import notebooks
from tinytf_course.site.chapter import raw
from tinytf_course.site.folds import pending

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


@pytest.fixture(autouse=True)
def _no_assets(monkeypatch):
    monkeypatch.setattr(places, "write_assets", lambda folder: None)


def test_panels_stand_before_cells_of_their_chapters_and_answer_no_prediction():
    chapters = {notebook.chapter: notebook for notebook in notebooks(NOTEBOOKS)}
    for number, (_, cell) in places.BEFORE.items():
        cells = chapters[number].cells
        place = [each["id"] for each in cells].index(cell)
        assert pending(cells)[place] == []  # no prediction waits that the panel would answer


def test_a_panel_stands_before_its_cell_and_once(tmp_path):
    anchors = [raw(f'<div class="cell-anchor" id="{id}"></div>') for id in ("a", "loop-text", "b")]
    pages = {"18_gpt": "\n\n".join(anchors), "19_pretraining": "\n\n".join(anchors)}
    unchanged = pages["19_pretraining"]
    places.add(pages, tmp_path)
    before, after = pages["18_gpt"].split('data-kind="writer"')
    assert 'id="a"' in before
    assert after.index("```") < after.index('id="loop-text"')
    assert pages["18_gpt"].count("`" * 9) == 8  # each fence is closed
    assert pages["19_pretraining"] == unchanged
