"""The Chinese that ships: it covers the course, is drawn without a warning, can be made anew."""

import io
import json
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from fontTools.ttLib import TTFont
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font
from support import warnings_as_errors

from tinytf.viz import font
from tinytf_course import drawings as viz
from tinytf_course.glossary import TERMS
from tinytf_course.phrasebook import Phrasebook

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SHIPPED = set(map(chr, FT2Font(font.FONT).get_charmap()))
SENTENCE = Phrasebook().translate("the animal did not cross the street because it was too wide")


@pytest.fixture
def only_ours(monkeypatch):
    """matplotlib as on a machine without any Chinese font: its own fonts, and then ours."""
    own = Path(matplotlib.get_data_path())
    known = [f for f in font_manager.fontManager.ttflist if own in Path(f.fname).parents]
    assert known
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    font.register.cache_clear()
    with plt.rc_context():
        viz.use_house_style()
        yield
    plt.close("all")
    font.register.cache_clear()


def test_every_character_of_the_phrasebook_is_there():
    words = "".join(Phrasebook().target_words)
    assert {char for char in words if not char.isascii()} <= SHIPPED


def test_every_character_of_the_glossary_is_there():
    chinese = {char for _, term, *_ in TERMS for char in term if font.is_chinese(char)}
    assert len(chinese) > 100
    assert chinese <= SHIPPED


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_character_of_a_notebook_is_there(path):
    """Of its code, which draws figures, and of what it shows; what a model says may be anything."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    shown = [out for cell in code for out in cell["outputs"] if out["output_type"] != "stream"]
    text = json.dumps([[cell["source"] for cell in code], shown], ensure_ascii=False)
    assert {char for char in text if font.is_chinese(char)} <= SHIPPED


def test_every_character_of_the_package_is_there():
    """If this fails, a new one has come in: make the file anew (`tinytf.viz.font` says how)."""
    assert len(font.characters()) > 500
    assert set(font.characters()) <= SHIPPED


def test_the_file_is_small_and_has_its_licence_and_a_name_of_its_own():
    assert font.FONT.stat().st_size < 150_000
    licence = (font.FONT.parent / "OFL.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE" in licence
    names = TTFont(font.FONT)["name"]
    assert names.getDebugName(0) in licence  # the copyright, word for word
    assert "SIL Open Font License" in names.getDebugName(13)
    ours = " ".join(names.getDebugName(number) or "" for number in (1, 3, 4, 6, 16))
    assert font.FAMILY in ours
    assert not {"noto", "source"} & set(ours.lower().split())  # a trademark, a reserved name


def test_a_map_is_drawn_with_chinese_where_no_chinese_font_is_installed(only_ours, caplog):
    labels = viz.labels(SENTENCE.target, SENTENCE.pinyin)
    assert "马路 mǎlù" in labels
    with warnings_as_errors():  # a missing glyph or face warns
        _, ax = plt.subplots()
        ax.set_xticks(range(len(labels)), labels)
        ax.set_title("马路 is bold where it can be")
        ax.text(0, 0, "猫", fontweight="bold")
        for form in ("png", "svg", "pdf"):
            ax.figure.savefig(io.BytesIO(), format=form)
    assert not caplog.records  # where matplotlib says that a face is missing


def test_it_is_our_font_that_draws_the_chinese(only_ours):
    """The ink of 猫 is what the file's own glyph gives, and no box."""
    family = plt.rcParams["font.family"]
    assert family == ["DejaVu Sans", font.FAMILY]
    for weight in ("normal", "bold"):
        properties = font_manager.FontProperties(family=font.FAMILY, weight=weight)
        assert font_manager.findfont(properties, fallback_to_default=False) == str(font.FONT)

    def ink(text, family):
        figure = plt.figure(figsize=(1, 1))
        figure.text(0.1, 0.1, text, fontsize=40, family=family)
        figure.canvas.draw()
        return bytes(figure.canvas.buffer_rgba())

    assert ink("猫", family) == ink("猫", font.FAMILY) != ink("狗", family)
    assert ink("cat", family) == ink("cat", "DejaVu Sans")


def test_it_is_registered_once():
    font.register.cache_clear()
    before = [entry for entry in font_manager.fontManager.ttflist if entry.name == font.FAMILY]
    viz.use_house_style()
    viz.use_house_style()
    after = [entry for entry in font_manager.fontManager.ttflist if entry.name == font.FAMILY]
    assert len(after) <= len(before) + 2  # regular, and the same for bold


def test_a_subset_of_the_subset_can_be_made_the_same_twice(tmp_path):
    one, two = tmp_path / "one.otf", tmp_path / "two.otf"
    for path in (one, two):
        font.subset(font.FONT, path, "猫狗，")
    assert one.read_bytes() == two.read_bytes()
    assert set(map(chr, FT2Font(one).get_charmap())) == set("猫狗，")
    assert FT2Font(one).family_name == font.FAMILY
    font.subset(font.FONT, two)
    assert set(map(chr, FT2Font(two).get_charmap())) == SHIPPED


def test_a_font_without_a_character_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"tinytf-han.otf has no glyph for 𰻞"):
        font.subset(font.FONT, tmp_path / "x.otf", "猫𰻞")


def test_the_command_says_how_to_call_it():
    run = subprocess.run([sys.executable, "-m", "tinytf.viz.font"], capture_output=True, text=True)
    assert run.returncode == 1
    assert "usage: python -m tinytf.viz.font" in run.stderr
