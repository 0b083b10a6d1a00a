"""24.2 their words in our order (★☆☆, 8 minutes)

Write `my_order(size, pad, eos)`, which lists Marian's ids in the order of our embedding table.
Marian's table has `size` rows, and ours has one more: row 0 is Marian's `<pad>`, row 1, the start,
is its `<pad>` again, row 2 is its `<eos>`, and all other words follow in Marian's order.

Hint: Write down the first three ids, then every other id that is not among them yet.
"""

from tinytf_course.expect import agrees


def my_order(size, pad, eos):
    """Return the list of Marian's ids in the order of our table: size + 1 integers.

    size is the number of Marian's words; pad and eos are its ids of <pad> and <eos>, which can be
    anything from 0 to size - 1.
    """
    first = [pad, pad, eos]
    return first + [i for i in range(size) if i not in first]


def _ordered(size, pad, eos):
    return [pad, pad, eos] + [i for i in range(size) if i not in (pad, eos)]


def test_at_the_end(answer):
    """<eos> is Marian's first word and <pad> its last, as in the public models"""
    agrees(answer, _ordered, 4, 3, 0)
    agrees(answer, _ordered, 9, 8, 0)


def test_at_the_front(answer):
    """<pad> and <eos> are Marian's first words"""
    agrees(answer, _ordered, 5, 0, 1)
    agrees(answer, _ordered, 5, 1, 0)


def test_anywhere(answer):
    """<pad> and <eos> are anywhere in the table"""
    for size in (2, 3, 5):
        for pad in range(size):
            for eos in range(size):
                if pad != eos:
                    agrees(answer, _ordered, size, pad, eos)


MISTAKES = r"""
no <pad> at all
    … =>
        return [i for i in my_order(size, pad, eos) if i != pad]
    says: the shape is (3,), expected (5,)
    Marian's <pad> is in our table twice: as <pad> and as the start.
the start left out
    … =>
        return my_order(size, pad, eos)[1:]
    says: the shape is (4,), expected (5,)
    Our row 1 is the start, a copy of Marian's <pad>, so there are size + 1 rows.
<eos> before the start
    … =>
        return [pad, eos, pad, *my_order(size, pad, eos)[3:]]
    says: you get [3, 0, 3, 1, 2]
    Our row 1 is the start, and <eos> is row 2.
<eos> taken to be 0 and <pad> the last
    … =>
        return my_order(size, size - 1, 0)
    says: you get [4, 4, 0, 1, 2, 3]
    `pad` and `eos` are arguments, and can be any two ids.
<pad> and <eos> twice
    … =>
        return [pad, pad, eos, *range(size)]
    says: the shape is (7,), expected (5,)
    After the first three, only the words that are not among them follow.
words after <eos> only
    … =>
        return [pad, pad, eos, *(i for i in range(eos + 1, size) if i != pad)]
    says: for size=3, pad=0, eos=2, the shape is (3,)
    <eos> can be anywhere, even after other words.
the other direction
    … =>
        return [my_order(size, pad, eos).index(i) for i in range(size)]
    says: the shape is (4,), expected (5,)
    These are our ids of Marian's words. The task asks for Marian's ids of ours.
"""
