"""What is taken out of a built site."""

import re
from pathlib import Path

from tinytf_course.site import slim

PAGE = """<head>
  <script defer src="_static/scripts/fontawesome.js?digest=1"></script>
  <link rel="preload" as="script" href="_static/scripts/fontawesome.js?digest=1" />
  <script src="_static/site.js"></script>
  <script src="_static/searchtools.js"></script>
  <script src="searchindex.js"></script>
</head><i class="fa-solid fa-sun"></i>"""


def test_pages_load_no_icon_font_and_only_the_search_its_index(tmp_path):
    (tmp_path / "_static/scripts").mkdir(parents=True)
    font = tmp_path / "_static/scripts/fontawesome.js"
    font.write_text("icons")
    for name in ("index", "search"):
        (tmp_path / f"{name}.html").write_text(PAGE)
    slim.slim(tmp_path)
    assert not font.exists()
    pages = {name: (tmp_path / f"{name}.html").read_text() for name in ("index", "search")}
    assert all("fontawesome" not in page and "site.js" in page for page in pages.values())
    assert "searchindex" in pages["search"]
    assert "searchindex" not in pages["index"]
    assert "searchtools" not in pages["index"]


def test_a_style_sheet_loses_what_is_for_the_font_alone():
    kept = ".a{x:1}@media (min-width:9px){.b{y:2}}.fade{z:3}.a,.fa-sun{w:4}@font-face{src:url(own)}"
    css = (
        '.fa-sun{--fa:"1"}.fa,.fas,.fa-solid{v:5}@font-face{src:url(../fontawesome/x.woff2)}'
        "@media (min-width:9px){.fa-spin{u:6}}"
    )
    assert slim.without_icons(kept + css) == kept + "@media (min-width:9px){}"


def test_every_icon_that_the_theme_shows_is_drawn():
    css = (Path(slim.__file__).parent / "files/icons.css").read_text()
    drawn = set(re.findall(r"\.(fa-[\w-]+)(?= \{ --icon)", css))
    assert {"fa-sun", "fa-moon", "fa-bars", "fa-magnifying-glass", "fa-chevron-down"} <= drawn
