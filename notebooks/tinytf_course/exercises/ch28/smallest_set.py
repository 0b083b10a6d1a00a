"""28.5 which heads back each other up (★★☆, 10 minutes)

Write `my_smallest_set(heads, works)`, which searches for the smallest set of heads that a model
can't do without. `works(removed)` runs the model without the heads in the list `removed` and
returns whether its answer is still right. Return the smallest set whose removal makes the model
fail, as a list in the order of `heads`. Return None if the model works whichever heads are removed,
and [] if it fails with all of them in place.

Removing more heads doesn't always do more damage, because a head may also work against the right
answer.

Hint: First try no head, then each alone, then each pair, and so on: the first set that makes the
model fail is the smallest.

Hint: Of several sets of the same size, return the one that `itertools.combinations(heads, size)`
gives first. `works` expects a list.
"""

import itertools

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
        where = f"your answer asks about {removed!r}"
        expect(not isinstance(removed, str), f"{where}: give a list of heads, with one in it too")
        gone = list(removed)
        unknown = [head for head in gone if head not in heads]
        expect(not unknown, f"{where}, and {unknown} are no heads of this model, {heads}")
        expect(len(set(gone)) == len(gone), f"{where}, which names a head twice")
        lost = any(set(group) <= set(gone) for group in groups)
        return not lost or any(set(group) <= set(gone) for group in rescued)

    return works


def _asked(answer, heads, groups, expected, note="", rescued=()):
    said = f"for a model with the heads {heads}"
    if groups:
        said += ", which fails where " + " or ".join(f"all of {list(g)}" for g in groups) + " are"
    else:
        said += ", which never fails, whatever is"
    said += " removed"
    if rescued:
        said += f", but not where {list(rescued[0])} is, too"
    got = answer(list(heads), _model(heads, groups, rescued))
    note = f" {note}" if note else ""
    expect(got == expected, f"{said}, you return {got!r}, expected {expected!r}.{note}")


def test_b_one(answer):
    """one head that is needed is found"""
    _asked(answer, FOUR, [["0.1"]], ["0.1"])
    _asked(answer, FOUR, [["1.1"]], ["1.1"])


def test_b_pair(answer):
    """two that back each other up are found together, and no other"""
    note = "Each of the two alone can go."
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
    note = "Three would do as well; two are fewer."
    _asked(answer, FOUR, [["0.0", "0.1", "1.0"], ["1.0", "1.1"]], ["1.0", "1.1"], note)
    five = ["a", "b", "c", "d", "e"]
    _asked(answer, five, [["a", "b", "c"], ["b", "d", "e"], ["c", "e"]], ["c", "e"], note)


def test_b_ties(answer):
    """of several of one size, the first in the order of the list"""
    note = "As `itertools.combinations` goes: those with the first head come first."
    _asked(answer, FOUR, [["0.1", "1.0"], ["0.0", "1.1"]], ["0.0", "1.1"], note)
    _asked(answer, ["z", "y", "x", "a"], [["y", "a"], ["y", "x"]], ["y", "x"], note)


def test_b_back_again(answer):
    """even if the answer comes back when still more heads are removed"""
    note = "Head 1.1 speaks against the answer: without it the rest is enough again."
    _asked(answer, FOUR, [["0.0", "1.0"]], ["0.0", "1.0"], note, rescued=[["1.1"]])
    _asked(answer, FOUR, [["0.1"]], ["0.1"], note, rescued=[["1.1"]])


def test_b_none(answer):
    """None if the model works without all of them, and [] if it fails with all"""
    _asked(answer, FOUR, [], None)
    _asked(answer, [], [], None)
    _asked(answer, FOUR, [[]], [], "It fails as it is: no head need go.")


def _by_sizes(sizes):
    def answer(heads, works):
        for size in sizes(len(heads)):
            for removed in itertools.combinations(heads, size):
                if not works(list(removed)):
                    return list(removed)
        return None

    return answer


MISTAKES = r"""
each head alone
    … =>
        return _by_sizes(lambda n: range(min(n, 1) + 1))(heads, works)
    says: Each of the two alone can go
    One at a time finds none where two do the same work.
all that are missed alone
    … =>
        return [head for head in heads if not works([head])] or None
    says: Each of the two alone can go
    One at a time finds none where two do the same work.
one after another
    … =>
        for size in range(len(heads) + 1):
            if not works(heads[:size]):
                return heads[:size]
        return None
    says: expected ['0.1']
    Those that stand before the needed one are in the set, and nobody needs them gone.
all away, and some back
    … =>
        gone = list(heads)
        if works(gone):
            return None
        for head in heads:
            fewer = [other for other in gone if other != head]
            if not works(fewer):
                gone = fewer
        return gone
    says: speaks against the answer
    What is left can't be made smaller, but it need not be the smallest; and where a head speaks
    against the answer, the model may work without all.
never asked as it is
    … =>
        return _by_sizes(lambda n: range(1, n + 1))(heads, works)
    says: It fails as it is
    Size 0 comes first: a model that fails anyway says nothing about its heads.
the largest first
    … =>
        return _by_sizes(lambda n: range(n, -1, -1))(heads, works)
    says: expected
    Sets of many heads break the model, too; the smallest is found from below.
never all of them
    … =>
        return _by_sizes(range)(heads, works)
    says: expected ['0.0', '0.1', '1.0', '1.1']
    range(n) ends before n: the set of all heads is one, too.
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
