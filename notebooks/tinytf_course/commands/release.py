"""`release`: editions of the chapters for a class."""

import importlib.util
import sys
from pathlib import Path

from tinytf_course.commands import add_folder, two_digits
from tinytf_course.notebooks import readable


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("release", description=__doc__)  # fmt: skip
    parser.add_argument("chapters", nargs="*", type=two_digits, metavar="NN",
                        help="only these, such as 05")  # fmt: skip
    parser.add_argument("--minutes", type=int, choices=(45, 90), help="of a lesson, for --slides: "
                        "only what the teacher's plan for it walks through")  # fmt: skip
    kinds = parser.add_mutually_exclusive_group(required=True)
    for kind, (_, words) in KINDS.items():
        kinds.add_argument(f"--{kind}", type=Path, metavar="DIR", help=words)
    add_folder(parser)
    return parser


def run(options):
    """Make the edition that was asked for; 1 where it can't be made."""
    if importlib.util.find_spec("tinytf_course.release") is None:
        print("this is a student edition: release from the full course", file=sys.stderr)
        return 1
    chosen = list(readable(options.notebooks, options.chapters))
    if not chosen:
        print(f"no such chapter in {options.notebooks}", file=sys.stderr)
        return 1
    kind = next(kind for kind in KINDS if getattr(options, kind) is not None)
    if options.minutes and kind != "slides":
        print(f"--minutes goes with --slides, not with --{kind}", file=sys.stderr)
        return 1
    lesson = {"minutes": options.minutes} if options.minutes else {}
    try:
        print(KINDS[kind][0](getattr(options, kind), chosen, **lesson))
    except (ImportError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def students(folder, notebooks):
    """Make the student edition; return what was made, in words."""
    from tinytf_course.release.students import student_edition

    chapters, there, tests = student_edition(folder, notebooks)
    others = "; the others run where an exercise is handed in (`collect`, or nbgrader)"
    return (
        f"{folder}: {chapters} chapters and the package, without answers\n"
        f"students can run {there} of {tests} tests of exercises{others * (there < tests)}\n"
        "the package's own definitions are in it: they are what the chapters build, and some "
        "exercises can be answered by calling one (`collect` names who did)"
    )


def nbgrader(folder, notebooks):
    """Make nbgrader's course folder; return what was made, in words."""
    from tinytf_course.release.assignments import nbgrader_course

    points = nbgrader_course(folder, notebooks)
    lines = [f"{folder}: {len(points)} assignments, {sum(points.values())} points"]
    lines += [f"  chapter {chapter}: {number} points" for chapter, number in points.items()]
    return "\n".join([*lines, f"next: cd {folder} && nbgrader generate_assignment --create NAME"])


def slides(folder, notebooks, minutes=None):
    """Write a deck of slides for each chapter; return how many slides each has."""
    from tinytf_course.slides import build_slides

    chapters = [notebook.chapter for notebook in notebooks]
    made = build_slides(notebooks[0].path.parent, folder, chapters, minutes)
    lines = [f"{folder / name}: {number} slides" for name, number in made.items()]
    return "\n".join([*lines, f"{sum(made.values())} slides; S shows the speaker's notes"])


def notes(folder, notebooks):
    """Write the teacher's notes, quizzes and syllabi; return what was made, in words."""
    from tinytf_course.release.notes import teachers_edition

    number, without = teachers_edition(folder, notebooks)
    missing = f"\n  without notes or notebook: {', '.join(without)}" if without else ""
    return f"{folder}: notes for {number} chapters{missing}"


# kind: (what makes it of a folder and a list of notebooks and says so, help)
KINDS = {
    "students": (students, "the student edition: no solutions, no importable references"),
    "nbgrader": (nbgrader, "a course for nbgrader: an assignment per chapter"),
    "slides": (slides, "a deck of slides per chapter, complete without a network"),
    "notes": (notes, "the teacher's notes: plans, misconceptions, quizzes with keys, syllabi"),
}
