"""`python -m tinytf_course attack`: mutants of references, and of parts, that tests accept."""

import sys


def add(commands):
    """Add the command and its options."""
    parser = commands.add_parser("attack")
    parser.add_argument("names", nargs="*", help="exercises, parts or chapters, such as 04.1 or 04")
    parser.add_argument("--parts", action="store_true", help="the stubs of build mode instead")
    parser.add_argument("--since", help="what changed since this git commit")
    parser.add_argument("--at-most", type=int, help="so many mutants of each exercise, drawn")
    return parser


def run(options):
    """Grade the mutants of references. 1 if one is accepted that is not known to be right."""
    from tinytf_course.attack import attack, attack_part, chosen, chosen_parts, report
    from tinytf_course.grading import exercises

    try:
        if options.parts:
            attacked = chosen_parts(options.names, options.since)
            attacks = [attack_part(each, options.at_most) for each in attacked]
        else:
            attacked = chosen(list(exercises().values()), options.names, options.since)
            attacks = [attack(each, options.at_most) for each in attacked]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if report(attacks) else 1
