"""Where the panels stand in the site."""

from tinytf_course.live.assets import write_assets
from tinytf_course.live.panels import panel

_FENCE = "`" * 9
# By chapter: the cell before which a panel stands, behind all predictions that it would answer.
BEFORE = {
    "00": ("translator", "own-intro"),
    "05": ("film", "where-q-k-and-v-come-from"),
    "18": ("writer", "loop-text"),
    "20": ("writer", "sense-text"),
    "28": ("translator", "induction-text"),
}


def add(pages, static):
    """Put the panels into chapters' pages, {name: Markdown}, and their files into `static`."""
    write_assets(static / "live")
    for name, text in pages.items():
        kind, cell = BEFORE.get(name[:2], (None, None))
        place = text.find(f'<div class="cell-anchor" id="{cell}">')
        if place >= 0:  # before the fence that the cell's anchor stands in
            place = text.rindex(_FENCE, 0, place)
            shown = f"{_FENCE}{{raw}} html\n{panel(kind)}\n{_FENCE}"
            pages[name] = f"{text[:place]}\n\n{shown}\n\n{text[place:]}"
