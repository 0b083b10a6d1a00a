"""Read a chapter's teacher's notes: `course/notes/ch05.md` has a fixed form, told here.

    # 05
    ## Aims                     3 to 5 points: what a student can do afterwards
    ## What goes wrong          3 to 5 misconceptions, each
        ### its name
        > the sentence that a student says
        See: {05-15} {#leak-test} {05.3}        where it shows that this is wrong
        Ask: what to ask them
        and, if there is more to say, paragraphs
    ## 45 minutes               * MINUTES · CELLS · what happens there
                                Home: {05.1} {05.3}, and words
    ## 90 minutes               the same
    ## Discuss                  3 or 4 of: ### a question, and paragraphs that answer it
    ## Quiz                     5 of: ### a question, and either its options
        + the right one         (one of them, and two or more wrong ones)
        - a wrong one ← the misconception that leads to it
                                or `Answer: ...`, for one of the five at least

What else a chapter says about itself (times, exercises, predictions, what was measured) is taken
from where it stands. Text names it in braces: {05-15} a claim, {05-b} a prediction, {05.3} an
exercise, {#leak-test} a cell. A line that is indented goes on with the one above it.

The notes hold answers: a student edition leaves the folder `course/notes` out, and `written` is
then empty.
"""

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "notes"
NAMED = re.compile(r"\{(#[\w-]+|\d\d[-.]\w+)\}")
_SECTIONS = ("Aims", "What goes wrong", "45 minutes", "90 minutes", "Discuss", "Quiz")


class NotesError(ValueError):
    """Notes that don't have the form."""


class Misconception(NamedTuple):
    """What students get wrong: the sentence they say, where it shows, and what to ask."""

    name: str
    says: str
    see: str
    ask: str
    more: str = ""


class Step(NamedTuple):
    """Minutes of a lesson, the cells walked in them (may be empty), and what happens."""

    minutes: int
    cells: str
    text: str

    @property
    def ends(self):
        """The first and the last of its cells, without #."""
        return [name.removeprefix("#") for name in NAMED.findall(self.cells)]


class Plan(NamedTuple):
    """A lesson of so many minutes, and what is left for home."""

    minutes: int
    steps: list
    home: str


class Question(NamedTuple):
    """A question for the class and its answer."""

    text: str
    answer: str


class Item(NamedTuple):
    """A question of the quiz. `options` are (text, reason); the right one has no reason.

    A short-answer question has no options and an `answer`.
    """

    text: str
    options: list
    answer: str = ""

    @property
    def key(self):
        """The letter of the right option, or None."""
        right = [place for place, (_, reason) in enumerate(self.options) if not reason]
        return "ABCDEFG"[right[0]] if right else None


class Notes(NamedTuple):
    """A chapter's notes."""

    chapter: str
    aims: list
    wrong: list
    plans: list
    discuss: list
    quiz: list
    source: str

    @property
    def named(self):
        """The ids of the claims, predictions, exercises and cells (with #) that they name."""
        return list(dict.fromkeys(NAMED.findall(self.source)))


def written():
    """The notes there are: {number of the chapter: path}."""
    return {path.stem.removeprefix("ch"): path for path in sorted(FOLDER.glob("ch[0-9]*.md"))}


def read(path):
    """The Notes in a file. Raises NotesError if they don't have the form."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except NotesError as error:
        raise NotesError(f"{path.name}: {error}") from error


def parse(text):
    """The Notes of a text. Raises NotesError, which says what is missing and where."""
    title, _, rest = text.partition("\n")
    chapter = title.removeprefix("# ").strip()
    _need(re.fullmatch(r"# \d\d", title.strip()), f"the first line is {title!r}, not # NN")
    found = _parts(rest, "## ")
    _need(tuple(found) == _SECTIONS, f"the sections are {list(found)}, not {list(_SECTIONS)}")
    astray = re.findall(r"\{[#\d][^}]*\}", NAMED.sub("", text))
    _need(not astray, f"in braces, {astray[:1]} is no claim, prediction, exercise or cell")
    aims = _bullets(found["Aims"])
    wrong = [_misconception(*part) for part in _parts(found["What goes wrong"], "### ").items()]
    plans = [_plan(minutes, found[f"{minutes} minutes"]) for minutes in (45, 90)]
    discuss = [Question(name, _flow(body)) for name, body in _parts(found["Discuss"]).items()]
    quiz = [_item(*part) for part in _parts(found["Quiz"]).items()]
    for what, things, least, most in (
        ("aims", aims, 3, 5), ("misconceptions", wrong, 3, 5),
        ("questions to discuss", discuss, 3, 4), ("questions in the quiz", quiz, 5, 5),
    ):  # fmt: skip
        _need(least <= len(things) <= most, f"{len(things)} {what}, not {least} to {most}")
    _need(any(item.answer for item in quiz), "no question of the quiz has a short answer")
    return Notes(chapter, aims, wrong, plans, discuss, quiz, text)


def _misconception(name, body):
    lines = _lines(body)
    fields = {"> ": "", "See: ": "", "Ask: ": ""}
    for line in list(lines):
        for start in fields:
            if line.startswith(start) and not fields[start]:
                fields[start] = line.removeprefix(start)
                lines.remove(line)
                break
    for start, value in fields.items():
        _need(value, f"{name!r} has no line that begins with {start!r}")
    _need(NAMED.search(fields["See: "]), f"{name!r}: nothing in braces shows that it is wrong")
    return Misconception(name, *fields.values(), "\n\n".join(lines))


def _plan(minutes, body):
    lines = _lines(body)
    steps, home = [], ""
    for line in lines:
        if line.startswith("* "):
            parts = line.removeprefix("* ").split(" · ", 2)
            _need(len(parts) == 3 and parts[0].isdigit(), f"no `* MINUTES · CELLS · text`: {line}")
            steps.append(Step(int(parts[0]), *parts[1:]))
        else:
            _need(line.startswith("Home: ") and not home, f"no step and not Home: {line!r}")
            home = line.removeprefix("Home: ")
    total = sum(step.minutes for step in steps)
    _need(total == minutes, f"the plan for {minutes} minutes adds up to {total}")
    _need(home, f"the plan for {minutes} minutes has no line that begins with 'Home: '")
    return Plan(minutes, steps, home)


def _item(text, body):
    lines, options, answer = _lines(body), [], ""
    for line in lines:
        if line.startswith("+ "):
            options.append((line[2:], ""))
        elif line.startswith("- "):
            option, arrow, reason = line[2:].partition(" ← ")
            _need(arrow and reason, f"{line!r} does not say ← which misconception leads to it")
            options.append((option, reason))
        else:
            _need(line.startswith("Answer: "), f"no option and no answer: {line!r}")
            answer = line.removeprefix("Answer: ")
    right = sum(not reason for _, reason in options)
    _need(bool(options) != bool(answer), f"{text!r} has neither options nor an answer, or both")
    _need(answer or (right == 1 and len(options) > 2), f"{text!r}: {right} right of {len(options)}")
    return Item(text, options, answer)


def _parts(text, mark="### "):
    """{heading: what stands under it}."""
    pieces = re.split(rf"^{mark}(.+)$", text, flags=re.M)
    _need(
        not pieces[0].strip(), f"text before the first {mark.strip()}: {pieces[0].strip()[:40]!r}"
    )
    names = [name.strip() for name in pieces[1::2]]
    _need(len(set(names)) == len(names), f"a heading stands twice among {names}")
    return dict(zip(names, pieces[2::2], strict=True))


def _lines(text):
    """The lines that begin something; wrapped ones belong to the line above them."""
    lines, ended = [], True
    for line in text.splitlines():
        starts = re.match(r"[*+-] |> |(See|Ask|Home|Answer): ", line)
        if not line.strip():
            ended = True
        elif ended or starts:
            lines.append(line.strip())
            ended = False
        else:
            lines[-1] += " " + line.strip()
    return lines


def _bullets(text):
    lines = _lines(text)
    for line in lines:
        _need(line.startswith("* "), f"an aim begins with `* `: {line!r}")
    return [line.removeprefix("* ") for line in lines]


def _flow(text):
    return "\n\n".join(_lines(text))


def _need(true, words):
    if not true:
        raise NotesError(words)
