"""`exercises`: every grader, graded."""

import sys

from tinytf_course.check import grade
from tinytf_course.commands import two_digits
from tinytf_course.grading import exercises


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("exercises")
    parser.add_argument("--chapter", type=two_digits, help="only this one, such as 03")
    parser.add_argument("--markdown", action="store_true", help="print them for a chapter")
    return parser


def run(options):
    """Grade each exercise's reference and named wrong answers. 1 if a grade is not as it must."""
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
