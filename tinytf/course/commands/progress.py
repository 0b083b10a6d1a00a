"""`progress`: what you predicted, solved and built so far, read from your own copy."""

import re
import sys
from pathlib import Path

from tinytf.course.notebooks import readable

_ANSWERED = re.compile(r"^([✓→]) (\d\d-\w+)  you said: ")


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("progress", help="what you predicted, solved and built so far",
                                 description=__doc__)  # fmt: skip
    parser.add_argument("--to", type=Path, default=Path("mine"), help="folder (default: mine)")
    return parser


def run(options):
    """Print a line for each chapter that was begun, and the sums; 1 where there is no copy."""
    if not options.to.is_dir():
        print(f"no folder {options.to}: `python -m tinytf.course start` makes it", file=sys.stderr)
        return 1
    rows = [row for row in map(counted, readable(options.to)) if row[1:] != ((0, 0),) * 3]
    if not rows:
        print("nothing yet: run some cells and save the notebook")
        return 0
    print(f"{'chapter':<9}{'predicted right':>17}{'exercises solved':>18}{'parts built':>13}")
    for chapter, *counts in rows:
        print(_line(chapter, counts))
    if len(rows) > 1:
        _, *columns = zip(*rows, strict=True)
        print(_line("all", [tuple(map(sum, zip(*pairs, strict=True))) for pairs in columns]))
    return 0


def counted(notebook):
    """(chapter, (right, said), (solved, tried), (passed, asked)) by what the outputs say."""
    predicted, checked, parts = {}, {}, {}
    for output in notebook.outputs:
        known = output.get("metadata", {})
        if check := known.get("check"):
            checked[check["id"]] = check["status"]
        if part := known.get("built"):
            parts[part["name"]] = part["status"]
        text = "".join(output.get("data", {}).get("text/plain", ""))
        if said := _ANSWERED.match(text):
            predicted[said[2]] = said[1] == "✓"
    tried = [status for status in checked.values() if status != "not yet"]
    solved = tried.count("passed"), len(tried)
    built = sum(status == "passed" for status in parts.values()), len(parts)
    return notebook.chapter, (sum(predicted.values()), len(predicted)), solved, built


def _line(name, counts):
    cells = [f"{good} of {whole}" if whole else "" for good, whole in counts]
    return f"{name:<9}{cells[0]:>17}{cells[1]:>18}{cells[2]:>13}"
