"""`python -m tinytf.course claims` and `python -m tinytf.course exercises`."""

import argparse
import sys


def main(arguments=None):
    """Run one command and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tinytf.course", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    claims = commands.add_parser("claims", help="list what the chapters claim and measured")
    claims.add_argument("--chapter", help="only this one, such as 03")
    claims.add_argument("--notebooks", default="notebooks", help="folder of the chapters")
    graders = commands.add_parser("exercises", help="grade every reference and wrong answer")
    graders.add_argument("--chapter", help="only this one, such as 03")
    graders.add_argument("--markdown", action="store_true", help="print them for a chapter")
    options = parser.parse_args(arguments)
    return {"claims": list_claims, "exercises": grade_all}[options.command](options)


def list_claims(options):
    """One line a claim: chapter, id, sentence, what was measured. 1 if there is none."""
    from tinytf.course.notebooks import notebooks

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

    missed = 0
    for exercise in exercises().values():
        if options.chapter not in (None, exercise.id.split(".")[0]):
            continue
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


if __name__ == "__main__":
    sys.exit(main())
