"""`story`: tell a story, or check whether a text of the storybook's kind makes sense."""

import sys
from pathlib import Path

from tinytf_course.stories import PLOTS, check, tell


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("story", description=__doc__)  # fmt: skip
    parser.add_argument("text", nargs="?", help="a text, a file, or - for what is typed in")
    parser.add_argument("--seed", type=int, default=0, help="of the story to tell")
    parser.add_argument("--plot", choices=PLOTS, help="of the story to tell (default: drawn)")
    return parser


def run(options):
    """Print a story; or a text as far as it makes sense, with its fault marked: 1 if it has one."""
    if options.text is None:
        print(tell(options.seed, options.plot).text)
        return 0
    try:
        text = _given(options.text)
    except (OSError, UnicodeDecodeError) as error:
        print(f"{options.text} can't be read: {error}", file=sys.stderr)
        return 2
    verdict = check(text)
    for number, sentence in enumerate(verdict.sentences[: verdict.sentence + 1]):
        faulty = not verdict.makes_sense and number == verdict.sentence
        print(("✗ " if faulty else "  ") + sentence)
    print(f"✗ {verdict.rule}: {verdict.why}" if verdict.rule else "✓ it makes sense")
    return 1 if verdict.rule else 0


def _given(text):
    if text == "-":
        return sys.stdin.read()
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with a zero in it
        is_file = False
    return Path(text).read_text(encoding="utf-8") if is_file else text
