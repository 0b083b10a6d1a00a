"""What an exercise is made of, and how to write one: one file each, `exercises/ch05/lookup.py`.

**The docstring** has the number, title, stars and minutes in its first line, then the statement,
then the hints, each of which begins with `Hint:` and says more than the one before:

    05.1 a dictionary that looks up softly (★☆☆, 8 minutes)

    Write `my_lookup(query, keys, values, temperature)`, which returns …

    Hint: A score for each key comes first.

**The reference** is the first function or class of the file, a right answer. The stub (signature,
docstring, `raise NotImplementedError`) and the chapter's folded solution are cut from it: `build`
writes statement, hints, solution and stub into the chapter.

**A test** is a function `test_…(answer)`, in order. The first line of its docstring says what
holds; it raises `Mismatch` (by the words of `expect.py`) with what was found. Expected values come
from torch, from numbers written out, or from an oracle of the test's own, written in another way
than the reference (a loop, float64, `nn.MultiheadAttention`). Smallest input first.

    @hint("Split the last axis first, then swap.")      # shown if this test is the first to fail
    def test_values(answer):
        \"\"\"head h holds slice h of every word\"\"\"
        agrees(answer, _oracle, torch.arange(4.0).reshape(1, 1, 4), 2)   # smallest first
        agrees(answer, _oracle, numbers(2, 3, 8, seed=1), 4)   # B=2, T=3, H=4, D=2: all unequal

    expect(holds, message)              fails with this message
    same(got, expected, where)          tensors, numbers, text, or lists, tuples and dicts of them
    agrees(answer, oracle, *arguments)  calls both; says shape first, then dtype, then values
    gradients(answer, oracle, *args)    to every floating-point input, in float64; names the input
    precise(answer, oracle, *args, dtype=torch.float16)     values and dtype of the result
    refuses(answer, *args, error=ValueError)
    travels(answer, *args)              the result follows its arguments to another device (meta)
    Counted(function)                   a function given to the answer that counts its calls
    with saved() as memory: ...         memory.peak: what autograd held at most
    has_parameters(module, shapes, where)
    numbers(*shape, seed=1)             random numbers without symmetry; scale, shift, dtype
    given(answer, arguments)            "for x=[[1, 2]], num_heads=2"
    record(value)                       more evidence for the name of the mistake

The answer gets copies. That it changes what it was given, or torch's settings, is the last test of
every exercise, written nowhere: `CHANGES = ("cache",)` names arguments that it is asked to change.
`NONE_IS_A_RESULT = True` where None may be right.

**A mistake** is an edit of the reference: what the source holds once, and what stands there
instead. More deeply indented lines below `=>` are several new lines; `…` is the whole body.

    MISTAKES = r\"\"\"
    temperature multiplies
        / temperature => * temperature
        says: Key 0 matches best
        A low temperature has to sharpen: divide by it, so that differences grow.
    \"\"\"

`says` is a fragment of what a failing test says of it, and the rest is why it is wrong. An answer
that fails gets the name of the mistake that explains most of its failing tests (same results, same
words), and none where two do equally, or where half of what the mistake fails or the answer fails
is otherwise: better no name than a wrong one. So a mistake needs a test that it alone fails.

**A machine attacks.** `python -m tinytf_course attack 04.1` (or `04`, nothing, `--since main`)
makes every one-step mutant of the reference and lists what the tests accept. What is accepted and
right stands in `HARMLESS`, with the reason below it; `…` stands for any text:

    HARMLESS = r\"\"\"
    softmax(0) => softmax(-1)
        the scores have one axis
    \"\"\"
"""

import ast
import functools
import importlib
import inspect
import linecache
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tinytf_course.exercise_source import edited, edits, emptied, entries, stub

FOLDER = Path(__file__).with_name("exercises")
_FIRST = re.compile(r'r?"""(\d\d\.\d+) (.+) \((★+)☆*, (\d+) minutes\)')
_HINT = re.compile(r"^Hint: ", re.MULTILINE)


@dataclass(frozen=True)
class WrongAnswer:
    """A mistake people make: how it edits the reference, what a test says of it, and why."""

    name: str
    edits: tuple[tuple[str, str], ...]  # (what the source holds once, what stands there instead)
    message: str  # a fragment of what the failing test says
    why: str
    reference: Callable | None = field(repr=False)
    verdicts: tuple = field(default=(), repr=False, compare=False)  # a student edition's

    @functools.cached_property
    def answer(self):
        """The answer that has the mistake."""
        source = edited(inspect.getsource(self.reference), self.edits)
        scope = dict(vars(sys.modules[self.reference.__module__]))
        file = f"<{self.reference.__name__}: {self.name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), scope)
        return scope[self.reference.__name__]


@dataclass(frozen=True)
class Exercise:
    """A function to write: what is asked, the stub, and the tests."""

    id: str
    title: str
    difficulty: int  # 1 to 3
    minutes: int
    statement: str
    # folded in the chapter, one after another; a failing check shows only its test's own
    hints: tuple[str, ...]
    function: Callable  # has the name and the parameters of the function to write
    stub: str  # its signature and docstring
    tests: tuple[Callable, ...]
    changes: tuple[str, ...] = ()  # arguments that the answer is asked to change
    none_is_a_result: bool = False  # None may be the right answer to a test
    elsewhere: int = 0  # tests that a student edition leaves to the teacher's side
    reference: Callable | None = None  # a right answer; none in an edition for students
    wrong: tuple[WrongAnswer, ...] = ()
    equivalent: dict[str, str] = field(default_factory=dict, hash=False)  # harmless mutants

    @property
    def name(self):
        """The name of the function to write."""
        return self.function.__name__

    @property
    def solution(self):
        """The source of the reference."""
        return inspect.getsource(self.reference) if self.reference else ""

    @property
    def stars(self):
        """The difficulty: ★★☆."""
        return "★" * self.difficulty + "☆" * (3 - self.difficulty)

    @property
    def points(self):
        """What it counts in a class: twice its difficulty."""
        return 2 * self.difficulty

    def markdown(self):
        """Statement, folded hints and folded solution, as the chapter prints them."""
        from tinytf_course.outline import CHAPTERS  # no `check` waits for what it imports

        elective = " · elective" * any(self.id in chapter.pieces for chapter in CHAPTERS)
        text = (
            f"### Exercise {self.id} · {self.title}\n\n"
            f"{self.stars} · about {self.minutes} minutes{elective}\n\n{self.statement}\n\n"
        )
        folded = list(zip(("Hint", "Second hint", "Third hint"), self.hints, strict=False))
        if self.solution:
            folded.append(("Solution", f"```python\n{self.solution}```"))
        return text + "".join(
            f"<details><summary>{name}</summary>\n\n{words}\n\n</details>\n"
            for name, words in folded
        )


def hint(words):
    """Give a test a hint, shown when it is the first to fail and the mistake has no name."""

    def give(test):
        test.hint = words
        return test

    return give


def find(id):
    """The exercise of this id; its file alone is loaded. KeyError names those that exist."""
    known = files()
    if id not in known:
        raise KeyError(f"no exercise {id!r}; there are {', '.join(known)}")
    return _read(known[id])


@functools.cache
def files():
    """The file of each exercise by id, in order."""
    found = {}
    for path in FOLDER.glob("ch*/*.py"):
        with path.open(encoding="utf-8") as opened:
            first = opened.readline()
        if first.strip() and not path.name.startswith("_"):
            found[_first(first, path)[1]] = path
    return dict(sorted(found.items(), key=lambda pair: [int(x) for x in pair[0].split(".")]))


def exercises():
    """Every exercise by id, in order."""
    return {id: _read(path) for id, path in files().items()}


def without_answers(id):
    """The exercise of this id, of a file whose reference is a stub: no right answer is loaded."""
    path = files()[id]
    tree = emptied(ast.parse(path.read_text(encoding="utf-8")))
    module = types.ModuleType(f"tinytf_course.exercises.{path.parent.name}.{path.stem}")
    exec(compile(tree, str(path), "exec"), vars(module))
    return replace(exercise_of(module, path), reference=None)


def has_answers():
    """Whether this edition holds references and mistakes: students' do not."""
    return FOLDER.with_name("release").exists()


@functools.cache
def _read(path):
    """The exercise of a file."""
    module = importlib.import_module(f"tinytf_course.exercises.{path.parent.name}.{path.stem}")
    exercise = exercise_of(module, path)
    if not has_answers():
        return _stored(exercise, module.__name__)
    wrong = tuple(mistakes(module.MISTAKES, exercise.reference))
    return replace(exercise, stub=stub(exercise.solution), wrong=wrong)


def _stored(exercise, module):
    """The exercise as a student edition has it: its reference is a stub."""
    from tinytf_course.stored import stored

    wrong = stored(module, "mistakes")
    wrong = tuple(WrongAnswer(edits=(), message="", reference=None, **each) for each in wrong)
    return replace(exercise, stub=exercise.solution, reference=None, wrong=wrong)


def exercise_of(module, path):
    """The exercise of a file, without stub and mistakes."""
    text = inspect.cleandoc(module.__doc__)
    first, _, rest = text.partition("\n")
    _, id, title, stars, minutes = _first(f'"""{first}', path)
    statement, *hints = _HINT.split(rest)
    own = [x for x in vars(module).values() if getattr(x, "__module__", "") == module.__name__]
    reference = next(x for x in own if not x.__name__.startswith("_"))
    return Exercise(
        id=id,
        title=title,
        difficulty=len(stars),
        minutes=int(minutes),
        statement=statement.strip(),
        hints=tuple(each.strip() for each in hints),
        function=reference,
        stub="",
        tests=tuple(x for x in own if x.__name__.startswith("test_")),
        changes=getattr(module, "CHANGES", ()),
        none_is_a_result=getattr(module, "NONE_IS_A_RESULT", False),
        elsewhere=getattr(module, "ELSEWHERE", 0),
        reference=reference,
        equivalent=dict(entries(getattr(module, "HARMLESS", ""))),
    )


def _first(line, path):
    """The parts of a file's first line. Raises ValueError if it is another."""
    found = _FIRST.match(line)
    if not found:
        form = "05.1 title (★☆☆, 8 minutes)"
        raise ValueError(f"{path.name} begins with {line.strip()!r}, not with {form!r}")
    return found[0], *found.groups()


def mistakes(text, reference):
    """The mistakes that a text describes. Raises ValueError for one that is not whole."""
    for name, lines in entries(text, whole=False):
        says = next((i for i, line in enumerate(lines) if line.startswith("says:")), None)
        if not says or says + 1 == len(lines):
            raise ValueError(f"the mistake {name!r} needs edits, a line `says: …` and a reason")
        why = " ".join(" ".join(lines[says + 1 :]).split())
        changed, message = tuple(edits(lines[:says])), lines[says][5:].strip()
        yield WrongAnswer(name, changed, message, why, reference)
