"""30.2 name the line (★★☆, 10 minutes)

Program `two` ends far below the entropy of its data, and it runs without an error only for some
lengths T. Write `my_diagnosis()`, without arguments, which returns the line with the mistake as a
string, and a list of all lengths T from 1 to 8 at which the model, with its 8 heads, accepts ids of
shape `(3, T)`. You can find the lengths by trying, but it is better to derive them from the shapes.

Hint: Which line makes the mask, and how many axes does it have after that? How many do the scores
have?

Hint: A mask fits scores of its own shape, or of a shape to which it can be broadcast.

Hint: Broadcasting aligns shapes on the right. Write (B, H, T, T), and the mask's shape below it:
which axis of the scores does the mask's first axis meet?
"""

from collections.abc import Iterable

from tinytf_course.clinic.patients import PATIENTS, source
from tinytf_course.expect import expect
from tinytf_course.grading import hint
from tinytf_course.tensors import plain
from tinytf_course.words import described, short


def my_diagnosis():
    """Return the faulty line of program `two`, and the lengths T at which the program runs.

    Returns (line, lengths): the line as a string, copied from the code (spaces don't matter), and
    the list of those T from 1 to 8 for which ids of shape (3, T) raise no error.
    """
    return "future = future.unsqueeze(1)", [1, 8]


def test_two_parts(answer):
    """it returns a line and a list of lengths"""
    got = answer()
    expect(
        isinstance(got, tuple | list) and len(got) == 2,
        f"you return {short(got)}, expected two things: (line, lengths)",
    )
    line, lengths = got
    expect(isinstance(line, str), f"the line is {described(line)}, expected a string")
    held = isinstance(lengths, Iterable) and not isinstance(lengths, str)
    found = plain(list(lengths)) if held else []
    whole = held and all(type(length) is int for length in found)
    expect(whole, f"the lengths are {lengths!r:.80}, expected a list of whole numbers")
    return line, found


@hint("Which line gives the mask its axes? Count them, and those of `scores`.")
def test_line(answer):
    """it is the line with the mistake"""
    line = "".join(test_two_parts(answer)[0].split("#")[0].split())
    text = source(PATIENTS["mask_meets_heads"])
    squeezed = ["".join(row.split("#")[0].split()) for row in text.splitlines()]
    expect(line and line in squeezed, "this line is not in the program: copy it as it is")
    ill = PATIENTS["mask_meets_heads"].edits[0][1]
    where = f"{test_two_parts(answer)[0].strip()!r} is in the healthy twin as well, and is right"
    expect(line == "".join(ill.split()), f"{where} there")


@hint("Write both shapes under each other, aligned on the right: each pair is equal, or one is 1.")
def test_lengths(answer):
    """it runs at these lengths, and at no other"""
    wrong = sorted(set(test_two_parts(answer)[1]) ^ {1, 8})
    if wrong:
        runs = "runs" if wrong[0] in (1, 8) else "ends in an error"
        shapes = "the scores are (B, 8, T, T), and the mask is (T, 1, T)"
        expect(False, f"at T={wrong[0]} the program {runs}: {shapes}")


MISTAKES = r"""
the triangle blamed
    "future = future.unsqueeze(1)" =>
        "future = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)"
    says: is right there
    `triu` with diagonal 1 is True strictly above the diagonal: the future. The triangle is
    right, but it is broadcast over the wrong axes.
every length runs
    [1, 8] => list(range(1, 9))
    says: at T=2 the program ends in an error
    (T, 1, T) is broadcast against (B, H, T, T): its first axis, T, meets the heads. That works
    only if T is 8, or 1.
only the length of training
    [1, 8] => [8]
    says: at T=1 the program runs
    An axis of length 1 can be broadcast to any length.
the line alone
    "future = future.unsqueeze(1)", [1, 8] => "future = future.unsqueeze(1)"
    says: expected two things
    The lengths are part of the task: `return line, lengths`.
"""

HARMLESS = r"""
… => …[8, 1])
    the order of the lengths is free
"""
