"""`claims`: what the chapters claim, and what was measured, once or on several seeds."""

import csv
import io

from tinytf_course.claims import number
from tinytf_course.commands import add_folder, two_digits
from tinytf_course.notebooks import readable

COLUMNS = ("chapter", "claim", "relation", "bound", "seeds", "held", "lowest", "highest")


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("claims")
    parser.add_argument("chapters", nargs="*", type=two_digits, metavar="NN", help="such as 03")
    parser.add_argument(
        "--seeds", type=int, default=0, metavar="N",
        help="run the chapters again on N other seeds, and show each claim's margin",
    )  # fmt: skip
    add_folder(parser)
    return parser


def run(options):
    """One line a claim; 1 if there is none, or if one does not hold on another seed."""
    chapters = list(readable(options.notebooks, set(options.chapters)))
    if options.seeds:
        return _on_seeds(chapters, options.seeds)
    rows = [
        (notebook.chapter, claim["id"], claim["sentence"])
        for notebook in chapters
        for claim in notebook.claims()
    ]
    for chapter, id, sentence in rows:
        print(f"{chapter}  {id:8} {sentence}")
    print(f"{len(rows)} claims")
    return 0 if rows else 1


def _on_seeds(chapters, count):
    """Print the margins as CSV, a chapter at a time; 1 if a claim or a cell fails on a seed."""
    from tinytf_course import build, reseeded
    from tinytf_course.progress import progress

    print(",".join(COLUMNS))
    status = 0 if chapters else 1
    for notebook in chapters:
        loaded, runs = build.read(notebook.path.read_text(encoding="utf-8"), notebook.path.name), []
        for seed in progress(range(1, count + 1), desc=notebook.chapter, unit="seed"):
            found, failed = reseeded.measure(loaded, notebook.path.parent, seed)
            runs.append(found)
            for cell in failed:
                print(f"# {notebook.chapter}: cell {cell} fails on seed {seed}", flush=True)
        for margin in reseeded.margins(runs):
            print(_row(notebook.chapter, margin), flush=True)
            status |= margin.held < count
    return status


def _row(chapter, margin):
    """A claim's line: where values can be ordered, the lowest and the highest."""
    written = io.StringIO()
    values = margin.values
    ordered = sorted(values, key=str) if isinstance(values[0], str) else sorted(values)
    ends = [number(ordered[0], 4), number(ordered[-1], 4)]
    facts = (chapter, margin.id, margin.relation, _bound(margin.bound))
    csv.writer(written, lineterminator="").writerow(
        [*facts, len(values), margin.held, *(end.replace(",", "") for end in ends)]
    )
    return written.getvalue()


def _bound(bound):
    if isinstance(bound, tuple | list):
        return " to ".join(map(_bound, bound))
    return number(bound, 6).replace(",", "")
