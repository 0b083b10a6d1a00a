"""`python -m tinytf.course claims`, `exercises` and `attack`."""

import argparse
import sys
from pathlib import Path


def main(arguments=None):
    """Run one command and return the exit status."""
    for stream in (sys.stdout, sys.stderr):  # a Windows console may know neither ✓ nor Chinese
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")
    parser = argparse.ArgumentParser(prog="python -m tinytf.course", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    claims = commands.add_parser("claims", help="list what the chapters claim and measured")
    claims.add_argument("--chapter", type=two_digits, help="only this one, such as 03")
    claims.add_argument("--notebooks", type=Path, default=here(), help="folder of the chapters")
    graders = commands.add_parser("exercises", help="grade every reference and wrong answer")
    graders.add_argument("--chapter", type=two_digits, help="only this one, such as 03")
    graders.add_argument("--markdown", action="store_true", help="print them for a chapter")
    attacks = commands.add_parser("attack", help="list the mutants that graders accept")
    attacks.add_argument("names", nargs="*", help="exercises or chapters, such as 04.1 or 04")
    attacks.add_argument("--since", help="chapters whose exercises changed since this git commit")
    attacks.add_argument("--at-most", type=int, help="so many mutants of each exercise, drawn")
    options = parser.parse_args(arguments)
    commands = {"claims": list_claims, "exercises": grade_all, "attack": attack_all}
    return commands[options.command](options)


def two_digits(chapter):
    """`3` as file names have it: `03`."""
    return chapter.zfill(2)


def here():
    """The notebooks in this folder, else those beside an editable install."""
    local = Path("notebooks")
    return local if local.is_dir() else Path(__file__).parents[2] / "notebooks"


def list_claims(options):
    """One line a claim: chapter, id, sentence, what was measured. 1 if there is none."""
    from tinytf.course.notebooks import notebooks

    if not options.notebooks.is_dir():
        print(
            f"no folder {options.notebooks}: say with --notebooks where they are", file=sys.stderr
        )
        return 1
    rows = [
        (notebook.chapter, claim["id"], f"{claim['sentence']} · {claim['measured']}")
        for notebook in notebooks(options.notebooks)
        for claim in notebook.claims()
        if options.chapter in (None, notebook.chapter)
    ]
    for chapter, id, sentence in rows:
        print(f"{chapter}  {id:8} {sentence}")
    print(f"{len(rows)} claims")
    return 0 if rows else 1


def grade_all(options):
    """Grade each exercise's reference and named wrong answers. 1 if a grade is not as it must."""
    from tinytf.course.check import grade
    from tinytf.course.grading import exercises

    chosen = [
        exercise
        for exercise in exercises().values()
        if options.chapter in (None, exercise.id.split(".")[0])
    ]
    if not chosen:
        print(f"chapter {options.chapter} has no exercises", file=sys.stderr)
        return 1
    missed = 0
    for exercise in chosen:
        if options.markdown:
            print(exercise.markdown() + "\n```python\n" + exercise.stub + "```\n")
            continue
        wrong = [item for item in exercise.wrong if grade(exercise, item.answer).mistake is item]
        right = grade(exercise, exercise.reference).passed and len(wrong) == len(exercise.wrong)
        missed += not right
        print(
            f"{'✓' if right else '✗'} {exercise.id}  {exercise.title}: "
            f"{len(exercise.tests)} tests, {len(wrong)} of {len(exercise.wrong)} mistakes named"
        )
    return 1 if missed else 0


def attack_all(options):
    """Grade the mutants of references. 1 if one is accepted that is not known to be right."""
    from tinytf.course.attack import attack, chosen, report
    from tinytf.course.grading import exercises

    try:
        attacked = chosen(list(exercises().values()), options.names, options.since)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    attacks = [attack(each, options.at_most) for each in attacked]
    return 0 if report(attacks) else 1


if __name__ == "__main__":
    sys.exit(main())
