"""`patient`: a program with one silent bug, or none, from the mystery ward; or a whole exam."""

import sys
from pathlib import Path

from tinytf_course.clinic.ward import key, mystery, write_examination


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("patient", description=__doc__)  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="which one (default: 0)")
    parser.add_argument("--to", type=Path, help="file (of an exam: folder) to write it to")
    parser.add_argument("--key", action="store_true", help="for teachers: what is wrong with it")
    parser.add_argument(
        "--exam", type=int, metavar="COUNT", help="so many, and their key in another folder"
    )
    return parser


def run(options):
    """Show or write what was asked for; 1 if it can't be."""
    try:
        if options.exam is not None:
            folder = options.to or Path(f"exam_{options.seed}")
            *patients, answers = write_examination(folder, options.seed, options.exam)
            print(f"{len(patients)} patients in {folder / 'handout'}; the key is {answers}")
            return 0
        one = mystery(options.seed)
        text = key(one) if options.key else one.text
        if options.to is None:
            print(text, end="")
        elif options.to.exists():
            raise FileExistsError(f"{options.to} is there: name another file")
        else:
            options.to.write_text(text, encoding="utf-8")
            print(options.to)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
