"""02.2 look up a word with weights chosen by hand (★★☆, 10 minutes)

Choose the weights of additive attention by hand, without any training, so that it looks up a word:
$s$ and every $h_j$ are *one-hot* (a 1 at the word's position in a list of n words, and 0
elsewhere), and the state that equals $s$ has to receive at least 0.9 of the weight. Write
`my_maps(n)`, which returns `W` and `U` of shape `(A, n)` and `v` of shape `(A,)`, for an A of your
choice. To try it: `additive_weights(s @ W.T, states @ U.T, v, mask)`.

<details><summary>The rule in detail</summary>

It must hold for every n from 1 to 50. The states are different words, in any order, and not always
all of them. `W`, `U` and `v` are in float32.

</details>

Hint: Begin with W = U = `torch.eye(n)`, and multiply both by a large number. What are the inputs of
the tanh if both words are the same, and if they are not?

Hint: tanh(10) is about 1, and so is tanh(20). Two equal words therefore give a single 1, and two
different words give two of them. Which v gives the *smaller* sum the higher score, and how much
higher must it be to win against 49 others?
"""

import torch

from tinytf_course.expect import expect, record, short, tensor


def my_maps(n):
    """W, U and v with which additive attention finds the word that it is asked for.

    There are n words, n from 1 to 50. s and every state are one-hot of length n: a 1 at the word's
    position, 0 elsewhere. The states are different words, in any order. W and U are (A, n) and v is
    (A,), in float32, for any A.
    """
    large = 10 * torch.eye(n)  # the same word: one tanh of 20; another: two of 10, so two ones
    return large, large, torch.full((n,), -10.0)


def _maps(answer, n):
    """W, U and v for n words; expect them to fit each other."""
    where = f"for n={n}"
    got = answer(n)
    expect(
        isinstance(got, tuple | list) and len(got) == 3,
        f"{where}, you return {short(got)}, expected W, U and v",
    )
    W, U, v = (tensor(part, f"{where}, for {name}") for part, name in zip(got, "WUv", strict=True))
    for part, name in ((W, "W"), (U, "U"), (v, "v")):
        kind = f"{where}, `{name}` is of dtype {part.dtype}, expected torch.float32"
        expect(part.dtype == torch.float32, kind)
        expect(part.isfinite().all(), f"{where}, `{name}` is not finite everywhere")
    listed = ", ".join(str(tuple(part.shape)) for part in (W, U, v))
    shapes = f"{where}, W, U and v have the shapes {listed}"
    fit = v.dim() == 1 and W.shape == U.shape == (len(v), n)
    expect(fit, f"{shapes}, expected (A, {n}), (A, {n}) and (A,) for some A")
    return W, U, v


def _found(maps, n, asked, order, note=""):
    """Expect the asked word's state to get 0.9 of the weight among these words."""
    W, U, v = (part.double() for part in maps)
    eye = torch.eye(n, dtype=torch.float64)
    bent = torch.tanh(eye[asked] @ W.T + eye[list(order)] @ U.T)
    share = (bent @ v).softmax(dim=0)[list(order).index(asked)].item()
    record(round(share, 3))
    states = short(list(order)) if len(order) < n or n < 10 else f"0 to {n - 1}"
    where = f"for n={n}, asked for word {asked}, and the states of the words {states}"
    expect(share >= 0.9, f"{where}, word {asked} gets {share:.2g} of the weight, expected at "
           f"least 0.9. {note}".strip())  # fmt: skip


def test_maps_fit(answer):
    """W, U and v have shapes that fit n words, and finite numbers"""
    for n in (1, 2, 5):
        _maps(answer, n)


def test_maps_two(answer):
    """of two words each is found"""
    note = "Which score has the pair that agrees, and which the one that doesn't?"
    for asked in (0, 1):
        _found(_maps(answer, 2), 2, asked, (0, 1), note)


def test_maps_order(answer):
    """wherever its state stands"""
    maps, note = _maps(answer, 3), "A key says which word it is, not where it stands."
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        for asked in range(3):
            _found(maps, 3, asked, order, note)


def test_maps_some(answer):
    """in sentences that do not have every word"""
    for asked, order in ((3, (1, 3)), (0, (4, 0, 2)), (2, (2,)), (4, (0, 1, 4, 3))):
        _found(_maps(answer, 5), 5, asked, order)


def test_maps_many(answer):
    """of up to 50 words, each"""
    for n in (10, 50):
        maps = _maps(answer, n)
        for asked in range(n):
            _found(maps, n, asked, range(n), f"So many others share the rest: {n - 1}.")


MISTAKES = r"""
the sign of v
    -10.0 => 10.0
    says: Which score has the pair that agrees
    It finds all the others. Behind the tanh two different words make two ones, and twice the
    same word makes one: the smaller sum has to win, so v is negative.
no use of the bend
    large = 10 => large = 0.01
    -10.0 => -1000.0
    says: Which score has the pair that agrees
    Numbers near 0 pass a tanh as they are. Then the score is a part of s plus a part of the
    state, the part of s is the same for all states, and the softmax drops it: every question
    gets the same answer. Let the tanh bend: larger numbers.
key minus query
    large, large, => large, -large,
    says: Which score has the pair that agrees
    The same word gives 0, well; but another gives 1 and -1, and with one v for all they add up
    to 0 as well.
a score that wins by too little
    -10.0 => -3.0
    says: So many others share the rest
    e³ is 20: enough against two or three others, not against 49. To keep 0.9 of 50 the score
    has to be ahead by ln(9 · 49), about 6.1.
it does not ask
    large, large, => 0 * large, large,
    says: Which score has the pair that agrees
    With W = 0 nothing of s is left, and every state gets the same score whatever s is.
it does not look
    large, large, => large, 0 * large,
    says: Which score has the pair that agrees
    With U = 0 nothing of the states is left: all scores are equal, and the weights too.
keys in another order
    large, large, => large, large.roll(n // 3, dims=1),
    says: A key says which word it is
    W and U have to send the same word to the same unit, or the query finds a neighbour.
as many states as words
    (n,) => (n, 1)
    says: expected (A,
    v has one number for each unit and no second axis: `torch.full((n,), …)`.
drawn at random
    return large, large, torch.full((n,), -10.0) =>
        draws = torch.Generator().manual_seed(0)
        return [torch.randn(shape, generator=draws) for shape in ((n, n), (n, n), (n,))]
    says: Which score has the pair that agrees
    That is how training begins. What it has to find, you can work out: what is different behind
    the tanh if query and key are the same word?
a unit that knows who looks at whom
    large, large, torch.full((n,), -10.0) => torch.ones(1, n), torch.ones(1, n), torch.ones(1)
    says: Which score has the pair that agrees
    One unit that adds all numbers up can't tell one word from another: each one-hot sums to 1.
    Give each word a unit of its own.
only for sentences with all words
    -10.0 => -10.0 if n in (1, 2, 3, 10, 50) else -1.0
    says: for n=5
    It has to hold for every n, and for sentences of two words of a list of five.
"""

HARMLESS = r"""
… => large = 11 * torch.eye(n)
    any number large enough bends as well
… => large = 9 * torch.eye(n)
    any number large enough bends as well
… => return (large, large, torch.full((n,), -…))
    it wins by more than enough
"""
