"""The course on one page: a road of core chapters through the Transformer that they build.

The encoder stands on the left and the decoder on the right, both read from the bottom to the top.
The road climbs between them past the parts, in the order of the chapters, and goes on to what
became of the idea. Electives stand beside it. What is done is filled in, and its road is paved.
"""

import textwrap
from base64 import b64encode
from html import escape

from tinytf_course import sofar
from tinytf_course.outline import CHAPTERS, in_hours

BY_NUMBER = {int(chapter.number): chapter for chapter in CHAPTERS}
HUES = {
    "past": "#566579", "tokens": "#566579", "embedding": "#a86400", "attention": "#0d6cb0",
    "cross": "#0b7285", "position": "#c2410c", "norm": "#7a5c3e", "feedforward": "#0a7d5c",
    "encoder": "#1f86c0", "decoder": "#8e4fae", "whole": "#1d4e89", "use": "#b03a6f",
    "write": "#0a7d5c", "family": "#8e4fae", "cost": "#a86400", "inside": "#0b7285",
    "clinic": "#c2410c",
}  # fmt: skip
HALF, HEIGHT = 412, 778  # of each of the two halves
STREET, LEFT, RIGHT, TOWER = 124, 18, 284, 80  # x of the road, x and width of the towers
WALL = 378  # the right side of the house
ROWS = tuple(108 + 136 * row for row in range(5))  # y, in the second half
COLUMNS, BEND = (58, 158, 258, 356), (12, 311)  # x there

# (x, y, height, text, hue, the chapters that build it): what the towers are made of.
PARTS = (
    (LEFT, 576, 32, "English", "tokens", (3,)),
    (LEFT, 538, 32, "embeddings", "embedding", (4,)),
    (LEFT, 500, 32, "positions", "position", (8, 9)),
    (LEFT, 410, 66, "self-\nattention", "attention", (5, 6)),
    (LEFT, 388, 18, "norm", "norm", (10,)),
    (LEFT, 314, 66, "feed-\nforward", "feedforward", (11,)),
    (LEFT, 292, 18, "norm", "norm", (10,)),
    (RIGHT, 576, 32, "Chinese", "tokens", (3,)),
    (RIGHT, 538, 32, "embeddings", "embedding", (4,)),
    (RIGHT, 500, 32, "positions", "position", (8, 9)),
    (RIGHT, 420, 56, "masked self-\nattention", "attention", (5, 6)),
    (RIGHT, 398, 18, "norm", "norm", (10,)),
    (RIGHT, 334, 56, "cross-\nattention", "cross", (7,)),
    (RIGHT, 312, 18, "norm", "norm", (10,)),
    (RIGHT, 248, 56, "feed-\nforward", "feedforward", (11,)),
    (RIGHT, 226, 18, "norm", "norm", (10,)),
    (RIGHT, 142, 34, "next word", "use", (16, 17)),
)
FRAMES = (  # (x, y, height, text, hue, chapter) of what holds parts
    (LEFT - 6, 262, 220, "encoder", "encoder", 12),
    (RIGHT - 6, 196, 286, "decoder", "decoder", 13),
)
_STREET = ("past",) * 3 + ("tokens", "embedding", "attention", "attention", "cross", "position",
                           "position", "norm", "feedforward")  # fmt: skip
LANDS = (  # of the second half: a name, its hue, and its chapters by column
    ("Make it translate", "use", (15, 16, 17)),
    ("Let it write", "write", (20, 19, 18)),
    ("Its families, and today", "family", (21, 22, 23)),
    ("What it costs", "cost", (None, 27, 26)),
    ("What goes on inside", "inside", (28, 29, 30)),
)
# {chapter: (x, y, hue)} in the first half and in the second.
FIRST = {
    number: (STREET, 592 - 44 * (number - 3) + 12 * (number < 3), hue)
    for number, hue in enumerate(_STREET)
} | {12: (50, 212, "encoder"), 13: (186, 108, "decoder"), 14: (WALL, 108, "whole")}
SECOND = {
    number: (x, y, hue)
    for y, (_, hue, numbers) in zip(ROWS, LANDS, strict=True)
    for x, number in zip(COLUMNS, numbers, strict=False)
    if number is not None
} | {24: (COLUMNS[3], ROWS[2], "position"), 25: (COLUMNS[3], ROWS[3], "position")}
_BENDS = {  # what the road passes on its way to a chapter, in its half
    12: ((STREET, 212),), 13: ((50, 108),),
    18: ((BEND[1], ROWS[0]), (BEND[1], ROWS[1])), 21: ((BEND[0], ROWS[1]), (BEND[0], ROWS[2])),
    26: ((BEND[1], ROWS[2]), (BEND[1], ROWS[3])), 28: ((BEND[0], ROWS[3]), (BEND[0], ROWS[4])),
}  # fmt: skip
# Where a title stands: from the chapter's place, its left or middle.
_TITLES = {12: (22, -32, "start"), 13: (0, 32, "middle"), 14: (-20, -30, "end")}
_STYLE = """
.course-map{font-family:system-ui,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
.course-map .paper{fill:#fff}.course-map .house{fill:#eef3f9;stroke:#b9c6d6}
.course-map text{fill:#1d2733;font-size:12px}
.course-map .faint{fill:#5a6572;font-size:11px}.course-map .name{font-weight:600}
.course-map .halo{paint-order:stroke;stroke:#eef3f9;stroke-width:3px;stroke-linejoin:round}
.course-map .road{fill:none;stroke:#d3dae3;stroke-width:15;stroke-linecap:round}
.course-map .dash{fill:none;stroke:#fff;stroke-width:1.6;stroke-dasharray:6 6}
.course-map .done.road{stroke:#3a4655}.course-map .done.dash{stroke:#ffd75e}
.course-map .aside{fill:none;stroke:#8d99a8;stroke-width:3;stroke-dasharray:1 7;
stroke-linecap:round}
.course-map .stop{fill:#fff;stroke:currentColor;stroke-width:3}
.course-map .done .stop,.course-map .here{fill:currentColor}
.course-map .here{fill-opacity:.28}.course-map .title{font-size:22px;font-weight:700}
.course-map .number{font-size:12.5px;font-weight:700;text-anchor:middle}
.course-map .part{fill:currentColor;fill-opacity:.13;stroke:currentColor}
.course-map .frame{fill:none;stroke:currentColor;stroke-width:1.6;stroke-dasharray:5 4}
.course-map .land{fill:currentColor;fill-opacity:.08}.course-map .tinted{fill:currentColor}
.course-map .done .part{fill-opacity:1}.course-map .done .on{fill:#fff}
.course-map a:hover .stop,.course-map a:focus .stop{stroke-width:5}
.course-map a:hover .name{text-decoration:underline}.course-map a{text-decoration:none}
"""
_DARK = """
.course-map .paper{fill:#14181f}.course-map .house{fill:#1b222c;stroke:#3b4757}
.course-map text{fill:#e8edf3}.course-map .faint{fill:#a9b4c1}
.course-map .halo{stroke:#1b222c}.course-map .road{stroke:#333d4a}
.course-map .dash{stroke:#14181f}.course-map .done.road{stroke:#93a1b3}
.course-map .done.dash{stroke:#14181f}.course-map .stop{fill:#14181f}
.course-map .part{fill-opacity:.3}.course-map .done .part{fill-opacity:1}
.course-map .done .stop{fill:currentColor}.course-map text.tinted{fill:#cfd8e3}
"""


def course_map(chapter, done=None):
    """Show the map in a notebook, with `chapter` (a number) marked.

    `done` are the numbers of the chapters that are filled in: by default those whose exercises of
    the core your copies beside this one show as solved, or, where there are no copies, all chapters
    before this one.
    """
    from IPython.display import display

    done = sofar.done_in(".", chapter) if done is None else done
    words = spoken_map(chapter, done)
    display({"text/html": as_image(draw_map(chapter, done), words), "text/plain": words}, raw=True)


def as_image(svg, words):
    """HTML of a drawing: a notebook that is not trusted would hide its SVG."""
    data = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
    return f'<img src="{data}" alt="{escape(words)}" width="900"/>'


def spoken_map(chapter=None, done=()):
    """The map in words."""
    core, beside = in_hours()
    here = "" if chapter is None else f" You are at chapter {chapter}."
    there = f" Done: {', '.join(map(str, sorted(done)))}." if done else ""
    return (
        f"A road of {core} hours leads from chapter 0 up between the encoder, on the left, and the "
        "decoder, on the right, past the parts that chapters 3 to 11 build, to the whole "
        "Transformer (14); then through its training, GPT, BERT and the block of today to what it "
        f"costs and what goes on inside (30). {beside} hours of electives stand beside the road."
        f"{here}{there}"
    )


def draw_map(chapter=None, done=(), tall=False, address=None, dark=None):
    """The map as SVG, its halves side by side or, `tall`, one below the other.

    `address` gives a chapter's link, None for none; `dark` is the CSS selector or media query for
    which it takes dark colours. Raises ValueError for a chapter that is not there.
    """
    if chapter is not None and chapter not in BY_NUMBER:
        last = max(BY_NUMBER)
        raise ValueError(f"no chapter {chapter} on the map; it has {min(BY_NUMBER)} to {last}")
    dx, dy = (0, HEIGHT - 30) if tall else (HALF, 0)
    stops = FIRST | {n: (x + dx, y + dy, hue) for n, (x, y, hue) in SECOND.items()}
    width, height = (HALF if tall else 2 * HALF - 8), HEIGHT + dy - 20 * tall
    bends = {n: [(x + dx * (n in SECOND), y + dy * (n in SECOND)) for x, y in way]
             for n, way in _BENDS.items()}  # fmt: skip
    if tall:  # down beside the house, and under it
        lane, low, row = WALL + 20, dy + 30, ROWS[0] + dy
        bends[15] = [(lane, ROWS[0]), (lane, low), (BEND[0], low), (BEND[0], row)]
    draw = _Pen(set(done), address or (lambda number: None))
    style = _STYLE + (f"{dark}{{{_DARK}}}" if dark else "")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="course-map" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(spoken_map(chapter, done))}">',
            f"<style>{style}</style>",
            _rect("paper", 0, 0, width, height, 14),
            *draw.house(),
            *draw.lands(dx, dy),
            *draw.road(stops, bends, (COLUMNS[3] + dx, ROWS[4] + dy)),
            *(draw.stop(n, place, n == chapter) for n, place in stops.items()),
            "</svg>\n",
        ]
    )


class _Pen:
    """Draws the pieces of a map on which the chapters `done` are filled in and `link` leads on."""

    def __init__(self, done, link):
        self.done, self.link = done, link

    def house(self):
        """The Transformer: two towers of parts in a house, and the memory between them."""
        core, beside = in_hours()
        yield _text(8, 34, "Build the Transformer", "title")
        yield _text(8, 51, f"a road of {core} hours, and {beside} hours of electives", "faint")
        yield _rect("house", 6, 62, WALL - 6, 560, 16)
        for x, y, height, text, hue, chapter in FRAMES:
            shape = _rect("frame", x, y, TOWER + 12, height, 10)
            shape += _text(x + TOWER / 2 + 6, y + 19, text, "name tinted", "middle")
            yield self._linked(shape, hue, (chapter,))
        for x, y, height, text, hue, chapters in PARTS:
            shape = _rect("part", x, y, TOWER, height, 6)
            lines = text.split("\n")
            first = y + height / 2 + 4 - 7 * (len(lines) - 1)
            for place, line in enumerate(lines):
                shape += _text(x + TOWER / 2, first + 14 * place, line, "on", "middle")
            yield self._linked(shape, hue, chapters)
        yield (
            f'<g style="color:{HUES["encoder"]}"><path fill="none" stroke="currentColor" '
            f'stroke-width="2.5" d="M{LEFT + TOWER} 300h10q4 0 4 4v44q0 4 4 4H{RIGHT - 8}"/>'
            f'<path class="tinted" d="M{RIGHT - 10} 346l9 6l-9 6z"/></g>'
        )
        for y, kind, words in ((700, "done", "done"), (728, "open", "to come")):
            yield f'<g class="{kind}" style="color:{HUES["past"]}">{_circle(292, y, 9)}</g>'
            yield _text(308, y + 4, words, "faint")
        yield _text(308, 760, "electives, min", "faint")
        yield _text(286, 760, "◇", "faint")

    def lands(self, dx, dy):
        """What lies beyond the house, a row a land."""
        for y, (name, hue, _) in zip(ROWS, LANDS, strict=True):
            shape = _rect("land", dx + 22, dy + y - 46, 280, 126, 12)
            shape += _text(dx + 34, dy + y - 27, name, "tinted name")
            yield f'<g style="color:{HUES[hue]}">{shape}</g>'

    def road(self, stops, bends, end):
        """The road from stop to stop, paved as far as it is done, and the way to the electives."""
        order = [number for number in sorted(stops) if not BY_NUMBER[number].elective]
        for layer in ("road", "dash"):
            for here, there in zip(order, [*order[1:], None], strict=True):
                arrival = stops[there][:2] if there else end
                way = _bent([stops[here][:2], *bends.get(there, ()), arrival])
                yield f'<path {self._state(here, kind=layer)} d="{way}"/>'
        yield f'<path class="aside" d="{_bent([stops[number][:2] for number in (23, 24, 25)])}"/>'
        x, y = end
        yield (
            f'<g style="color:{HUES["clinic"]}"><path class="tinted" d="M{x - 1.5} {y + 8}v-50'
            f'l30 10l-27 10v30z"/></g>'
        )

    def stop(self, number, place, here):
        """A chapter on the road: its number, its title and its minutes."""
        x, y, hue = place
        chapter, below = BY_NUMBER[number], number in SECOND
        shape = _circle(x, y, 14 + 3 * here)
        if chapter.elective:
            shape = (
                f'<rect class="stop" x="{x - 11}" y="{y - 11}" width="22" height="22" rx="3" '
                f'transform="rotate(45 {x} {y})"/>'
            )
        shape = _circle(x, y, 24, "here") * here + shape
        shape += _text(x, y + 4.5, number, "number on", "middle")
        lines = textwrap.wrap(chapter.title, 13 if below else 18)
        besides = (0, 31, "middle") if below else (21, 4 - 6.5 * len(lines), "start")
        right, down, anchor = _TITLES.get(number, besides)
        times = [f"{chapter.core} min"] * bool(chapter.core)
        times += [f"◇ {chapter.beside}"] * bool(chapter.beside)
        for row, line in enumerate([*lines, " ".join(times)]):
            kind = "name halo" if row < len(lines) else "faint halo"
            shape += _text(x + right, y + down + 13 * row, line, kind, anchor)
        return self._linked(shape, hue, (number,))

    def _state(self, *chapters, kind=""):
        """Attributes that say which chapters a shape stands for, and whether all are done."""
        state = " done" * self.done.issuperset(chapters)
        names = " ".join(BY_NUMBER[number].number for number in chapters)
        return f'class="{kind}{state}" data-chapters="{names}"'

    def _linked(self, shape, hue, chapters):
        """A shape as a link to its first chapter."""
        first = BY_NUMBER[chapters[0]]
        about = f'{self._state(*chapters)} style="color:{HUES[hue]}"'
        if (address := self.link(chapters[0])) is None:
            return f"<g {about}>{shape}</g>"
        name = escape(f"{first.number} {first.title}")
        return f'<a href="{escape(address)}" aria-label="{name}" {about}>{shape}</a>'


def _text(x, y, words, kind, anchor="start"):
    return (
        f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">'
        f"{escape(str(words))}</text>"
    )


def _rect(kind, x, y, width, height, radius):
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>'


def _circle(x, y, radius, kind="stop"):
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{radius}"/>'


def _bent(points, radius=14):
    """A path along points that turns its corners in an arc."""
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for before, (x, y), after in zip(points, points[1:], points[2:], strict=False):
        into, out = (
            [a + max(-radius, min(radius, b - a)) for a, b in zip((x, y), other, strict=True)]
            for other in (before, after)
        )
        path += f"L{into[0]:g} {into[1]:g}Q{x:g} {y:g} {out[0]:g} {out[1]:g}"
    return path + f"L{points[-1][0]:g} {points[-1][1]:g}"
