"""22.2 BART's infilling, with spans of nothing (★★☆, 10 minutes)

Write `my_infill(ids, spans, mask_id)`, which replaces each span of `ids` by one `mask_id` and
returns a list. `spans` holds pairs `(start, length)`, from left to right and in positions of the
original text. A span of length 0 inserts a mask before the token at `start`.

Hint: The rule in detail: spans may touch each other, but they don't overlap.

Hint: Build a new list. For each span, append what lies between the end of the previous span and
this start, and then a mask.
"""

import torch

from tinytf_course.expect import expect
from tinytf_course.words import described, given, short


def whole_numbers(part, where):
    """A list, tuple or tensor of whole numbers as a list of them, or a Mismatch."""
    row = isinstance(part, list | tuple) or (isinstance(part, torch.Tensor) and part.dim() == 1)
    expect(row, f"{where} you return {described(part)}, expected a list of whole numbers")
    found = [x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else x for x in part]
    for x in found:
        whole = isinstance(x, int) and not isinstance(x, bool)
        expect(whole, f"{where} you return a list that holds {short(x)}, expected whole numbers")
    return found


def my_infill(ids, spans, mask_id):
    """Replace each span of ids (N,) by one mask.

    spans is a list of (start, length) from left to right, which do not overlap. A length of 0
    inserts a mask before the token at start. Returns a list of ids.
    """
    out, at = [], 0
    for start, length in spans:
        out += [*ids[at:start].tolist(), mask_id]
        at = start + length
    return out + ids[at:].tolist()


IDS = torch.tensor([11, 12, 13, 14, 15, 16, 17])


def _from_the_right(ids, spans, mask_id):
    """Cut and insert from the last span to the first, so that no position shifts."""
    row = ids.tolist()
    for start, length in reversed(spans):
        del row[start : start + length]
        row.insert(start, mask_id)
    return row


def _infills(answer, ids, spans, mask_id=50, note=""):
    ids = torch.as_tensor(ids)
    where = given(my_infill, (ids, spans, mask_id))
    got = answer(ids, spans, mask_id)
    expect(isinstance(got, list), f"{where}, you return {described(got)}, expected a list")
    got = whole_numbers(got, f"{where},")
    expected = _from_the_right(ids, spans, mask_id)
    words = f"{where}, you get {short(got)}, expected {short(expected)}. {note}"
    expect(got == expected, words.strip())


def test_any_length(answer):
    """a span of any length becomes one mask"""
    _infills(answer, [11, 12, 13], [(1, 1)])
    _infills(answer, [11, 12, 13, 14], [(1, 2)])
    _infills(answer, IDS, [(1, 3), (5, 1)])


def test_empty(answer):
    """a span of length 0 inserts a mask where nothing was dropped"""
    _infills(answer, [11, 12], [(1, 0)])
    _infills(answer, IDS, [(1, 2), (4, 0), (5, 1)])


def test_ends(answer):
    """masks may come first and last"""
    _infills(answer, [11], [(0, 0)])
    _infills(answer, [11], [(1, 0)], note="Position 1 is after the last token.")
    _infills(answer, [11, 12], [(0, 2)], note="All that is left is a mask.")
    _infills(answer, IDS, [(0, 2), (4, 3)])


def test_no_span(answer):
    """without a span the row stays unchanged"""
    _infills(answer, [11, 12], [])


def test_touching(answer):
    """spans that touch get a mask each"""
    _infills(answer, [11, 12], [(0, 1), (1, 1)])
    _infills(answer, IDS, [(1, 2), (3, 0), (3, 1)])
    _infills(answer, [11, 12], [(1, 0), (1, 0)], note="Two masks go in before 12.")


def test_masked_before(answer):
    """the row may already contain masks, and a word may occur twice"""
    _infills(answer, [50, 11, 50, 11], [(1, 1)])
    _infills(answer, [4, 4, 5, 4, 5, 5], [(1, 2), (4, 1)], 5)


MISTAKES = r"""
a mask for each token
    … =>
        out = ids.tolist()
        for start, length in spans:
            out[start : start + length] = [mask_id] * length
        return out
    says: spans=[(1, 2)], mask_id=50, you get [11, 50, 50, 14], expected [11, 50, 14]
    That is token masking. Infilling hides how many tokens are missing.
empty spans left out
    … =>
        return my_infill(ids, [s for s in spans if s[1]], mask_id)
    says: spans=[(1, 0)], mask_id=50, you get [11, 12], expected [11, 50, 12]
    A span of length 0 inserts a mask: the model must also learn that nothing is missing.
positions shift
    … =>
        out = ids.tolist()
        for start, length in spans:
            out[start : start + length] = [mask_id]
        return out
    says: spans=[(1, 3), (5, 1)], mask_id=50, you get [11, 50, 15, 16, 17, 50]
    Each replacement makes the list shorter, and the next start points too far right. Work from
    the right end, or build a new list.
at least one token a span
    … =>
        return my_infill(ids, [(s, max(n, 1)) for s, n in spans], mask_id)
    says: spans=[(1, 0)], mask_id=50, you get [11, 50], expected [11, 50, 12]
    If the length is 0, no token may be dropped.
a token too many
    … =>
        return my_infill(ids, [(s, n + 1) for s, n in spans], mask_id)
    says: spans=[(1, 1)], mask_id=50, you get [11, 50], expected [11, 50, 13]
    A slice stops before its end: `ids[start : start + length]` are `length` tokens.
gaps closed
    … =>
        return [t for t in my_infill(ids, spans, mask_id) if t != mask_id]
    says: spans=[(1, 1)], mask_id=50, you get [11, 13], expected
    With no mask left the model can't see where something is missing: that is deletion.
masks side by side made one
    … =>
        made = my_infill(ids, spans, mask_id)
        return [t for before, t in zip([None, *made], made) if not before == t == mask_id]
    says: spans=[(0, 1), (1, 1)], mask_id=50, you get [50], expected [50, 50]
    Each span has a mask of its own, even where two of them touch.
the length read as the end
    … =>
        return my_infill(ids, [(start, max(0, end - start)) for start, end in spans], mask_id)
    says: spans=[(1, 1)], mask_id=50, you get [11, 50, 12, 13]
    (1, 3) is the span of three tokens that begins at 1.
the rest forgotten
    … =>
        return my_infill(ids[: sum(spans[-1])], spans, mask_id)
    says: spans=[(1, 1)], mask_id=50, you get [11, 50], expected
    After the last span the text goes on.
no mask at the first position
    … =>
        return my_infill(ids, [s for s in spans if s[0]], mask_id)
    says: spans=[(0, 0)], mask_id=50, you get [11], expected [50, 11]
    A span may begin at position 0: test for the length, not for the start.
no mask after the last token
    … =>
        return my_infill(ids, [s for s in spans if s[0] < len(ids)], mask_id)
    says: spans=[(1, 0)], mask_id=50, you get [11], expected [11, 50]
    A span of length 0 may come after the last token, at position N.
masked first, then runs made one
    … =>
        row = ids.tolist()
        for start, length in spans:
            row[start : start + length] = [mask_id] * length
        return [t for t, before in zip(row, [None, *row]) if not t == before == mask_id]
    says: ids=[11, 12], spans=[(1, 0)]
    That loses empty spans, and joins those that touch.
at least one span expected
    … =>
        return my_infill(ids, spans, mask_id) if spans else []
    says: spans=[], mask_id=50, you get []
    Noise may leave a row alone: without a span all tokens stay.
masks of the row made one with a span's
    … =>
        row = my_infill(ids, spans, mask_id)
        extra = sum(t == mask_id for t in row) - len(spans)
        for _ in range(extra):
            row.remove(mask_id)
        return row
    says: ids=[50, 11, 50, 11]
    The row may contain masks already: work with positions, not with the ids there.
"""

HARMLESS = r"""
… => ….detach()…
    ids carry no gradient
… => out += [*ids[at:start], mask_id]
    a tensor of one whole number is a number, too
"""
