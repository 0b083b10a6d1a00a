"""What an exercise is made of, where its parts stand, and how to write tests that see mistakes.

**Two files a chapter.** `exercises/ch06.py` holds statements, stubs and tests and ends with
`EXERCISES = (...)`. `answers/ch06.py` holds references and mistakes and ends with
`ANSWERS = {"06.1": Answers(...), ...}`. A student edition leaves `answers` out: nothing in
`exercises` may import it. Any module in either folder is found; split a long chapter.

**A stub** is a function with its signature, its docstring and `raise NotImplementedError`; a
reference has the same name and signature.

**A test** is a function of the answer. The first line of its docstring says what holds; it raises
`Mismatch` (by the words of `expect.py`) with what was found. Expected values come from
torch, from numbers written out, or from an oracle of the test's own, written in another way than
the reference (a loop, float64, `nn.MultiheadAttention`). Smallest input first.

    from tinytf_course.expect import agrees, gradients, numbers, precise, refuses

    @hint("Split the last axis first, then swap.")      # shown if this test is the first to fail
    def _values(answer):
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

**Every call is watched.** The answer gets copies; that it changes what it was given, or torch's
settings, or replaces a function of torch is the last test of every exercise, written nowhere:
an argument that the answer is asked to change is named in `Exercise(changes=("cache",))` and passed
as it is. The answer's random numbers are the same in every test. An answer that hangs, exits,
floods or exhausts memory is stopped (`contain.py`).

**A mistake** is an `Answers(wrong=...)` entry: an answer that has it, a fragment of what the
failing test says, and why. Nothing else: `check` runs each once and keeps, test by test, what it
returned and which message it met. An answer that fails has the name of the mistake that explains
most of its failing tests (same results, same words), and none where two do equally, or where
half of what the mistake fails or the answer fails is otherwise: better no name than a wrong one.
So a mistake has a name for everybody if one test isolates it: give that test an input where other
mistakes make no difference.

**A machine attacks.** `python -m tinytf_course attack 04.1` (or `04`, nothing, `--since main`)
mutates the reference in every single step and lists what the tests accept. What is accepted and
right is written down in `Answers(equivalent={"the line as printed": "why it is right"})`, where `…`
in the line stands for any text: `"… => ….detach()…": "ids carry no gradient"`. `equivalent=None`
says that the exercise has not been attacked yet, `{}` that nothing is accepted. Two lines kill most
survivors where numbers are computed: `gradients(...)` every `.detach()`, and `agrees(...)` on
float64 inputs beside float32 ones every `.float()`, `.double()` and `.half()`.
"""

import functools
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Exercise:
    """A function to write: what is asked, the stub, and the tests."""

    id: str
    title: str
    difficulty: int  # 1 to 3
    minutes: int
    statement: str
    # folded in the chapter, several one after another; a failing check shows only its test's own
    hint: str | tuple[str, ...]
    function: Callable  # the stub
    tests: tuple[Callable, ...]
    changes: tuple[str, ...] = ()  # arguments that the answer is asked to change
    elsewhere: int = 0  # tests that a student edition can't run in full: the teacher's side does
    none_is_a_result: bool = False  # None may be the right answer to a test

    @property
    def name(self):
        """The name of the function to write."""
        return self.function.__name__

    @property
    def stub(self):
        """The function's first line and docstring, and nothing more."""
        return getattr(self.function, "written_as", None) or inspect.getsource(self.function)

    @property
    def hints(self):
        """Its hints, each of which says more than the one before."""
        return (self.hint,) if isinstance(self.hint, str) else tuple(self.hint)

    @property
    def answers(self):
        """Reference and mistakes, or None in an edition without them."""
        return answers().get(self.id)

    @property
    def reference(self):
        """A right answer, or None in an edition without answers."""
        return self.answers.reference if self.answers else None

    @property
    def wrong(self):
        """The named mistakes; none in an edition without answers."""
        return self.answers.wrong if self.answers else ()

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
        ) + "".join(
            f"<details><summary>{name}</summary>\n\n{words}\n\n</details>\n"
            for name, words in zip(("Hint", "Second hint", "Third hint"), self.hints, strict=False)
        )
        if not self.solution:
            return text
        code = f"```python\n{self.solution}```"
        return text + f"<details><summary>Solution</summary>\n\n{code}\n\n</details>\n"


@dataclass(frozen=True)
class WrongAnswer:
    """A mistake people make: an answer that has it, and what the grader must say about it."""

    name: str
    answer: Callable
    message: str  # a fragment of what the failing test says
    why: str


@dataclass(frozen=True)
class Answers:
    """What a student edition leaves out: a right answer, the mistakes, the harmless mutants."""

    reference: Callable
    wrong: tuple[WrongAnswer, ...] = ()
    # a mutant's line as `attack` prints it -> why it is right; None: not attacked yet
    equivalent: dict[str, str] | None = field(default=None, hash=False)


def hint(words):
    """Give a test a hint, shown when it is the first to fail and the mistake has no name."""

    def give(test):
        test.hint = words
        return test

    return give


@functools.cache
def exercises():
    """Every exercise by id, in order; in a student edition, those that are stored as cases."""
    if importlib.util.find_spec("tinytf_course.exercises") is None:
        from tinytf_course.cases import stored_exercises

        return stored_exercises(Exercise)
    listed = [each for module in _modules("tinytf_course.exercises") for each in module.EXERCISES]
    return {exercise.id: exercise for exercise in listed}


@functools.cache
def answers():
    """The answers by exercise id; empty where the folder is left out."""
    if importlib.util.find_spec("tinytf_course.answers") is None:
        return {}
    listed = [module.ANSWERS for module in _modules("tinytf_course.answers")]
    return {id: each for answers in listed for id, each in answers.items()}


def reference(id):
    """The reference of an exercise, for a test that has no oracle of its own yet.

    Raises LookupError in an edition without answers.
    """
    if id not in answers():
        raise LookupError(f"exercise {id} cannot be graded without its answer")
    return answers()[id].reference


def _modules(package):
    package = importlib.import_module(package)
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]
