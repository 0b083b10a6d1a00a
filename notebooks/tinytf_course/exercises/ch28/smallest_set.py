"""28.5 which heads back each other up (★★☆, 10 minutes)

Write `my_smallest_set(heads, works)`, which searches for the smallest set of heads that a model
can't do without. `works(removed)` runs the model without the heads in the list `removed` and
returns whether its answer is still right; removing more heads doesn't always do more damage,
because a head may also work against the right answer.

<details><summary>The rule in detail</summary>

Return the smallest set whose removal makes the model fail, as a list in the order of `heads`. Of
several sets of the same size, return the one that `itertools.combinations(heads, size)` gives
first. Return None if the model works whichever heads are removed, and [] if it fails with all of
them in place. `works` expects a list.

</details>

Hint: First try no head, then each alone, then each pair, and so on: the first set that makes the
model fail is the smallest.
"""

from tinytf_course.expect import expect


def my_smallest_set(heads, works):
    """Find the smallest set of `heads` whose removal makes the model fail: a list, or None.

    works(removed) runs the model without the heads of the list `removed`, and returns whether its
    answer is still right.
    """
    from itertools import combinations

    for size in range(len(heads) + 1):
        for removed in combinations(heads, size):
            if not works(list(removed)):
                return list(removed)
    return None


NONE_IS_A_RESULT = True


FOUR = ["0.0", "0.1", "1.0", "1.1"]


def _model(heads, groups, rescued=()):
    """A model that fails where all heads of a group are gone, unless a set of `rescued` is, too."""

    def works(removed):
        where = f"your answer calls works({removed!r})"
        expect(not isinstance(removed, str), f"{where}: pass a list, even for a single head")
        gone = list(removed)
        unknown = [head for head in gone if head not in heads]
        expect(not unknown, f"{where}, but {unknown} are not among the model's heads, {heads}")
        expect(len(set(gone)) == len(gone), f"{where}, which names a head twice")
        lost = any(set(group) <= set(gone) for group in groups)
        return not lost or any(set(group) <= set(gone) for group in rescued)

    return works


def _asked(answer, heads, groups, expected, note="", rescued=()):
    fails = "fails if " + " or ".join(f"all of {list(group)}" for group in groups)
    said = f"for a model with the heads {heads}, which {fails if groups else 'never fails'}"
    said += " are removed" if groups else ", whichever heads are removed"
    said += f", but not if {list(rescued[0])} is removed as well" if rescued else ""
    got = answer(list(heads), _model(heads, groups, rescued))
    expect(got == expected, f"{said}, you return {got!r}, expected {expected!r}. {note}".strip())


def test_b_one(answer):
    """one head that is needed is found"""
    _asked(answer, FOUR, [["0.1"]], ["0.1"])
    _asked(answer, FOUR, [["1.1"]], ["1.1"])


def test_b_pair(answer):
    """two heads that back each other up are found together, and no other head"""
    note = "Each of the two alone can be removed."
    _asked(answer, FOUR, [["0.1", "1.1"]], ["0.1", "1.1"], note)
    _asked(answer, FOUR, [["0.0", "1.0"]], ["0.0", "1.0"], note)


def test_b_many(answer):
    """three and more, up to all"""
    six = [f"1.{h}" for h in range(6)]
    _asked(answer, six, [["1.1", "1.3", "1.4"]], ["1.1", "1.3", "1.4"])
    _asked(answer, FOUR, [FOUR], FOUR)
    _asked(answer, six, [six[1:]], six[1:])
    _asked(answer, ["2.7"], [["2.7"]], ["2.7"])


def test_b_smallest(answer):
    """of several sets, the smallest"""
    note = "A set of three makes the model fail, too, but the set of two is smaller."
    _asked(answer, FOUR, [["0.0", "0.1", "1.0"], ["1.0", "1.1"]], ["1.0", "1.1"], note)
    five = ["a", "b", "c", "d", "e"]
    _asked(answer, five, [["a", "b", "c"], ["b", "d", "e"], ["c", "e"]], ["c", "e"], note)


def test_b_ties(answer):
    """of several of one size, the first in the order of the list"""
    note = "In the order of `itertools.combinations`, sets with the first head come first."
    _asked(answer, FOUR, [["0.1", "1.0"], ["0.0", "1.1"]], ["0.0", "1.1"], note)
    _asked(answer, ["z", "y", "x", "a"], [["y", "a"], ["y", "x"]], ["y", "x"], note)


def test_b_back_again(answer):
    """even if the answer is right again when still more heads are removed"""
    note = "Head 1.1 works against the right answer, so without it the others are enough again."
    _asked(answer, FOUR, [["0.0", "1.0"]], ["0.0", "1.0"], note, rescued=[["1.1"]])
    _asked(answer, FOUR, [["0.1"]], ["0.1"], note, rescued=[["1.1"]])


def test_b_none(answer):
    """None if the model works without all of them, and [] if it fails with all"""
    _asked(answer, FOUR, [], None)
    _asked(answer, [], [], None)
    note = "The model fails with all heads in place, so the smallest set is empty."
    _asked(answer, FOUR, [[]], [], note)


MISTAKES = r"""
each head alone
    range(len(heads) + 1) => range(2)
    says: Each of the two alone can be removed
    Removing one head at a time finds nothing if two do the same work.
all heads that are needed alone
    … =>
        return [head for head in heads if not works([head])] or None
    says: Each of the two alone can be removed
    Removing one head at a time finds nothing if two do the same work.
one after another
    combinations(heads, size): => [heads[:size]]:
    says: expected ['0.1']
    The set then contains the heads before the needed one, which need not be removed.
all removed, then some put back
    … =>
        gone = list(heads)
        if works(gone):
            return None
        for head in heads:
            fewer = [other for other in gone if other != head]
            if not works(fewer):
                gone = fewer
        return gone
    says: works against the right answer
    What is left can't be made smaller, but it need not be the smallest; and where a head works
    against the right answer, the model may work without all.
the whole model is never tried
    range(len(heads) + 1) => range(1, len(heads) + 1)
    says: fails with all heads in place
    Size 0 comes first: a model that fails with all heads in place needs no removal.
the largest first
    range(len(heads) + 1) => range(len(heads), -1, -1)
    says: the set of two is smaller
    Large sets break the model as well. Begin with the small ones to find the smallest.
the set of all heads is left out
    range(len(heads) + 1) => range(len(heads))
    says: expected ['0.0', '0.1', '1.0', '1.1']
    range(n) ends before n, but the set of all heads must be tried as well.
"""

HARMLESS = r"""
return None => (nothing)
    a function that comes to its end returns None
for size in … => …+ 1 + 1…
    there is no set of more heads than there are
for size in … => …+ 2…
    there is no set of more heads than there are
if not … => …works(removed)…
    a tuple names the same heads
"""
