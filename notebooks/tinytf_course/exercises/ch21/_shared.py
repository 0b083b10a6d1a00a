"""What exercises of chapters 21 and 22 share: lists of whole numbers."""

from tinytf_course.expect import expect
from tinytf_course.tensors import plain
from tinytf_course.words import described


def whole_numbers(part, where):
    """A list, tuple or tensor of whole numbers as a list of them, or a Mismatch."""
    found = plain(part)
    row = isinstance(found, list)
    expect(row, f"{where} you return {described(part)}, expected a list of whole numbers")
    for x in found:
        whole = isinstance(x, int) and not isinstance(x, bool)
        shown = repr(x) if isinstance(x, float) else described(x)
        kind = type(part).__name__.lower()
        expect(whole, f"{where} you return a {kind} that holds {shown}, expected whole numbers")
    return found


def two_lists(got, names, where):
    """A pair of lists of whole numbers, or a Mismatch."""
    pair = isinstance(plain(got), list) and len(got) == 2
    expect(pair, f"{where}, you return {described(got)}, expected two lists: {' and '.join(names)}")
    return [whole_numbers(part, f"{where}, for {name}") for part, name in zip(got, names)]
