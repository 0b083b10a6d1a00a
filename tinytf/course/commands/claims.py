"""`claims`: what the chapters claim, and what was measured."""

from tinytf.course.commands import add_folder, two_digits
from tinytf.course.notebooks import readable


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("claims")
    parser.add_argument("--chapter", type=two_digits, help="only this one, such as 03")
    add_folder(parser)
    return parser


def run(options):
    """One line a claim: chapter, id, sentence, what was measured. 1 if there is none."""
    rows = [
        (notebook.chapter, claim["id"], f"{claim['sentence']} · {claim['measured']}")
        for notebook in readable(options.notebooks, options.chapter and {options.chapter})
        for claim in notebook.claims()
    ]
    for chapter, id, sentence in rows:
        print(f"{chapter}  {id:8} {sentence}")
    print(f"{len(rows)} claims")
    return 0 if rows else 1
