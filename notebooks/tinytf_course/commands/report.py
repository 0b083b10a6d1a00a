"""`report`: what the chapters ask of a reader, counted."""

import sys

from tinytf_course.commands import add_folder, two_digits
from tinytf_course.notebooks import readable, source
from tinytf_course.outline import CHAPTERS
from tinytf_course.reading import SHORT, borrowed, roads
from tinytf_course.tables import table

_HEADER = (
    "", "road", "words", "lines", "words/line", f"≤{SHORT} lines", "claims", "predict",
    "exercises", "drawn", "computed", "borrowed", "stated", "honest",
)  # fmt: skip


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("report")
    parser.add_argument("chapters", nargs="*", type=two_digits, metavar="NN", help="such as 03")
    add_folder(parser)
    return parser


def run(options):
    """A row for the main road, one for the side roads; for named chapters also what is borrowed.

    1 if there is no such chapter. `tinytf_course.reading` says how it is counted.
    """
    everything = list(readable(options.notebooks))
    chosen = [n for n in everything if not options.chapters or n.chapter in options.chapters]
    if not chosen:
        print("no such chapter", file=sys.stderr)
        return 1
    rows = [row for notebook in chosen for row in _rows(notebook, everything)]
    print(table(_HEADER, rows))
    if options.chapters:
        for notebook in chosen:
            _details(notebook, everything)
    return 0


def _rows(notebook, everything):
    stated = {chapter.number: chapter.minutes for chapter in CHAPTERS}.get(notebook.chapter)
    main, side = roads(notebook)
    taken = len(borrowed(notebook, everything))
    yield _row(notebook.chapter, "main", main, taken, stated or "?")
    if side.words or side.lines:
        yield _row("", "side", side, "", "")


def _row(chapter, name, road, taken, stated):
    return (
        chapter, name, road.words, road.lines, f"{road.density:.1f}", f"{road.short:.0%}",
        len(road.claims), len(road.predictions), len(road.exercises), road.drawn, road.computed,
        taken, stated, road.minutes,
    )  # fmt: skip


def _details(notebook, everything):
    for name, chapter in borrowed(notebook, everything).items():
        print(f"{notebook.chapter}: borrows {name}, built in {chapter}")
    for cell in notebook.code:
        length = len(source(cell).splitlines())
        if length > SHORT:
            print(f"{notebook.chapter}: {length} lines in {cell.get('id', 'a cell')}")
