"""Chapter 02: merging a pair, an encoder, texts for a test, a lookup's gradient, nearest words."""

import re

import torch
import torch.nn.functional as F

from tinytf.course.expect import (
    agrees,
    expect,
    given,
    gradients,
    numbers,
    record,
    short,
)
from tinytf.course.grading import Exercise, hint


def _ids(got, where):
    """What the answer returned as a list of ints; expect it to be one."""
    got = got.tolist() if isinstance(got, torch.Tensor) else got
    expect(isinstance(got, list | tuple), f"{where}, you return {got!r}, expected a list of ids")
    got = [one.tolist() if isinstance(one, torch.Tensor) else one for one in got]
    whole = all(type(one) is int for one in got)
    expect(whole, f"{where}, you return {short(got)}, expected whole numbers: ids")
    return got


def _gives(answer, arguments, expected, note=""):
    """Expect these ids for these arguments."""
    where = given(answer, arguments)
    got = _ids(answer(*arguments), where)
    note = f" {note}" if note else ""
    expect(got == expected, f"{where}, you get {short(got)}, expected {short(expected)}.{note}")


def _replaced(ids, pair, new_id):
    """Text's own way: `str.replace` on one character an id, from left to right, in one pass."""
    text = "".join(map(chr, ids)).replace("".join(map(chr, pair)), chr(new_id))
    return [ord(one) for one in text]


def _drawn(count, kinds, seed):
    """Ids drawn at random, 1 to `kinds`."""
    draws = torch.Generator().manual_seed(seed)
    return torch.randint(1, kinds + 1, (count,), generator=draws).tolist()


# 02.1 merge a pair


def my_merge_pair(ids, pair, new_id):
    """The ids with new_id wherever the pair stands, from left to right.

    ids is a list of ints, pair a tuple of two; the result is a new list.
    """
    raise NotImplementedError


def _one(answer):
    """a pair becomes one id"""
    _gives(answer, ([1, 2], (1, 2), 9), [9])
    _gives(answer, ([5, 1, 2], (1, 2), 9), [5, 9])


def _equal_ids(answer):
    """equal ids are equal, whichever int objects they are"""
    ids = [int(one) for one in ("1000", "1001", "7")]  # Python makes each of these anew
    note = "Large ints that are equal need not be one object."
    _gives(answer, (ids, (int("1000"), int("1001")), 2000), [2000, 7], note)


def _every(answer):
    """every one of them does"""
    note = "The pair stands there twice."
    _gives(answer, ([1, 2, 5, 1, 2], (1, 2), 9), [9, 5, 9], note)


def _run(answer):
    """three in a row make one pair, and the left one is taken"""
    note = "An id is used up by the merge it is in."
    _gives(answer, ([1, 1, 1], (1, 1), 9), [9, 1], note)


def _runs(answer):
    """longer rows, too"""
    _gives(answer, ([1, 1, 1, 1], (1, 1), 9), [9, 9])
    _gives(answer, ([2, 1, 1, 1, 1, 1], (1, 1), 9), [2, 9, 9, 1])


def _keeps_the_rest(answer):
    """what is no such pair stays, the last id too"""
    _gives(answer, ([2, 1, 3], (1, 2), 9), [2, 1, 3], "Order matters: 2, 1 is another pair.")


def _nothing(answer):
    """no ids, and one, are left as they are"""
    _gives(answer, ([], (1, 2), 9), [])
    _gives(answer, ([1], (1, 1), 9), [1])


def _whole_ids(answer):
    """an id of two digits is one id"""
    _gives(answer, ([11, 2, 1, 2], (1, 2), 9), [11, 2, 9], "11 is not 1.")


def _one_pass(answer):
    """what a merge has made is not merged again"""
    note = "The pair is looked for among the ids given, not in the result."
    _gives(answer, ([1, 2, 2], (1, 2), 1), [1, 2], note)


def _by_replacing(answer):
    """in 200 ids, a pair and a pair of two equal ids"""
    ids = _drawn(200, 3, seed=1)
    for pair in ((1, 2), (3, 3), (2, 1)):
        _gives(answer, (ids, pair, 300), _replaced(ids, pair, 300))


MERGE = Exercise(
    id="02.1",
    title="merge a pair",
    difficulty=1,
    minutes=6,
    statement=(
        "Counting is done; now the pair is to be replaced. Write `my_merge_pair(ids, pair, "
        "new_id)`: a new list in which `new_id` stands wherever the two ids of `pair` stood next "
        "to each other, taken from left to right. An id belongs to one merge only: of `a a a` the "
        "pair `a a` takes the first two."
    ),
    hint="A `for` loop can't skip the second id of a pair. Which loop lets you move the index?",
    function=my_merge_pair,
    tests=(
        _one,
        _every,
        _run,
        _runs,
        _keeps_the_rest,
        _nothing,
        _whole_ids,
        _equal_ids,
        _one_pass,
        _by_replacing,
    ),
)


# 02.2 repair the encoder


def my_encode(ids, merges):
    """The ids after all merges, in the order in which they were learned.

    ids is a list of ints; merges is a dict from pair to new id, and the new ids rise in the order
    of learning.
    """
    raise NotImplementedError


def _by_rank(ids, merges):
    """Merge after merge, each by `str.replace`."""
    for new_id, pair in sorted((new_id, pair) for pair, new_id in merges.items()):
        ids = _replaced(ids, pair, new_id)
    return list(ids)


def _ladder(answer):
    """a merge can use what an earlier one made"""
    _gives(answer, ([1, 2, 3], {(1, 2): 10, (10, 3): 11}), [11], "10 is what (1, 2) became.")


def _ranked(answer):
    """the merge learned first goes first, wherever it stands"""
    note = "10 was learned before 11."
    _gives(answer, ([1, 2, 3], {(2, 3): 10, (1, 2): 11}), [1, 10], note)


def _shuffled(answer):
    """whatever the order of the dict"""
    note = "The ids tell the order, not the dict."
    _gives(answer, ([1, 2, 3], {(1, 2): 11, (2, 3): 10}), [1, 10], note)


def _deep(answer):
    """a longer token that training would not have made here is not made"""
    merges = {(2, 3): 10, (1, 2): 11, (11, 4): 12, (10, 4): 13}
    _gives(answer, ([1, 2, 3, 4], merges), [1, 13], "(2, 3) came first, so (1, 2) never meets.")


def _ids_in_order(answer):
    """pairs are taken by rank, not by the order of their ids"""
    _gives(answer, ([3, 1, 2], {(3, 1): 10, (1, 2): 11}), [10, 2], "10 was learned first.")


def _again(answer):
    """a pair that stands there three times is merged three times"""
    note = "Each (1, 2) is a 10."
    _gives(answer, ([1, 2, 1, 2, 5, 1, 2], {(1, 2): 10}), [10, 10, 5, 10], note)


def _left_to_right(answer):
    """a row of equal ids is merged from the left"""
    _gives(answer, ([1, 1, 1], {(1, 1): 10}), [10, 1])
    _gives(answer, ([1] * 7, {(1, 1): 10, (10, 10): 11}), [11, 10, 1])


def _as_it_is(answer):
    """where nothing is known, nothing is merged"""
    _gives(answer, ([], {(1, 2): 10}), [])
    _gives(answer, ([5], {(1, 2): 10}), [5])
    _gives(answer, ([2, 1, 3], {(1, 2): 10}), [2, 1, 3])


def _learned(answer):
    """200 ids and twelve merges, as training would have done it"""
    pairs = [(1, 2), (2, 3), (3, 3), (10, 1), (11, 12), (2, 2), (13, 3), (10, 10), (1, 11),
             (15, 1), (12, 12), (3, 1)]  # fmt: skip
    merges = {pair: 10 + i for i, pair in enumerate(pairs)}
    ids = _drawn(200, 3, seed=2)
    _gives(answer, (ids, merges), _by_rank(ids, merges))


ENCODE = Exercise(
    id="02.2",
    title="repair the encoder",
    difficulty=2,
    minutes=10,
    statement=(
        "`hasty_encode`, above, merges whatever known pair stands furthest to the left. Repair it: "
        "write `my_encode(ids, merges)`, which merges as training did. `merges` maps a pair to its "
        "new id; a smaller new id was learned earlier, and the dict may be in any order. You may "
        "call `merge_pair`."
    ),
    hint="Of the known pairs that stand in the ids now, which one did training merge first? Merge "
    "it everywhere, then look again: there are new pairs.",
    function=my_encode,
    tests=(
        _ladder,
        _ranked,
        _shuffled,
        _deep,
        _ids_in_order,
        _again,
        _left_to_right,
        _as_it_is,
        _learned,
    ),
)


# 02.3 texts that find a fault


def my_texts():
    """A dict {fault: text}: a short text for each fault, which that tokenizer does not give back.

    The faults: "ends", "spaces", "lines", "capitals", "bytes", "special".
    """
    raise NotImplementedError


# fault -> what such a tokenizer gives back of a text after encoding and decoding
FAULTS = {
    "ends": str.strip,
    "spaces": lambda text: re.sub(" +", " ", text),
    "lines": lambda text: text.replace("\r\n", "\n"),
    "capitals": str.lower,
    "bytes": lambda text: "".join(chr(byte) if byte < 128 else "�" for byte in text.encode()),
    "special": lambda text: text.replace("<|endoftext|>", ""),
}
_FAULTY = "for the tokenizer of the fault {fault!r} and your text {text!r}"


def _texts(answer):
    """What the answer returned; expect a text for each fault."""
    texts = answer()
    expect(isinstance(texts, dict), f"you return {texts!r}, expected a dict {{fault: text}}")
    missing = [fault for fault in FAULTS if fault not in texts]
    expect(not missing, f"there is no text for {', '.join(map(repr, missing))}")
    extra = [fault for fault in texts if fault not in FAULTS]
    expect(not extra, f"{', '.join(map(repr, extra))} is not one of the faults")
    return texts


def _are_texts(answer):
    """there is a text for each of the six faults, of at most 40 characters"""
    for fault, text in _texts(answer).items():
        kind = f"the text for {fault!r} is {text!r}"
        expect(isinstance(text, str), f"{kind}, expected a string")
        expect(len(text) <= 40, f"the text for {fault!r} has {len(text)} characters, at most 40")
        try:
            text.encode()
        except UnicodeEncodeError:
            expect(False, f"{kind}: half a surrogate pair, which no UTF-8 can say")


def _finds(fault):
    """A test that the text finds its own fault, and no other tokenizer stumbles over it."""

    def finds(answer):
        text = _texts(answer)[fault]
        expect(isinstance(text, str), f"the text for {fault!r} is {text!r}, expected a string")
        back = FAULTS[fault](text)
        record([fault, back == text])
        where = _FAULTY.format(fault=fault, text=text)
        expect(back != text, f"{where}, what comes back is the same: the fault is not found")
        for other, returns in FAULTS.items():
            alone = other == fault or returns(text) == text
            record([other, alone])
            expect(alone, f"for your text {text!r} the tokenizer of the fault {other!r} fails, "
                   f"too: if it fails, one would not know that it is {fault!r}")  # fmt: skip

    finds.__doc__ = f"the text for {fault!r} finds this fault, and no other"
    return finds


TEXTS = Exercise(
    id="02.3",
    title="texts that find a fault",
    difficulty=2,
    minutes=8,
    statement=(
        "A tokenizer has to give every text back. Here are six that don't, each with one fault: "
        "`ends` drops white space at both ends, tabs and line ends too; `spaces` makes one space "
        "of several, and leaves tabs alone; `lines` turns "
        "the line end `\\r\\n` into `\\n`; `capitals` makes all letters small; `bytes` decodes one "
        "byte at a time, so that a character of several bytes becomes �s; `special` takes the "
        "characters `<|endoftext|>` for a special token, which decoding leaves out. Design the "
        "test: write `my_texts()`, which returns a dict with a text of at most 40 characters for "
        "each fault, such that this tokenizer fails on it and the five others do not. Then a text "
        "that fails says which fault it is."
    ),
    hint="A text for `spaces` must not begin or end with one. Which characters take more than one "
    "byte, and are not capitals?",
    function=my_texts,
    tests=(_are_texts, *map(_finds, FAULTS)),
)


# 02.4 the gradient of a lookup


def my_lookup_gradient(ids, grad, vocab_size):
    """The gradient of the loss in the table (V, C), from that in the vectors looked up.

    ids is (B, T), grad (B, T, C): how the loss changes with each number that the lookup gave. The
    result has the dtype of grad.
    """
    raise NotImplementedError


def _autograd(ids, grad, vocab_size):
    """What autograd finds."""
    table = torch.zeros(vocab_size, grad.size(-1), dtype=grad.dtype, requires_grad=True)
    vectors = F.embedding(ids, table)
    return torch.autograd.grad(vectors, table, grad, create_graph=True)[0]


def _added(ids, grad, vocab_size):
    """The same by hand: each token's gradient is added to its row, one after the other."""
    rows = [torch.zeros_like(grad[0, 0]) for _ in range(vocab_size)]
    for sentence, each in zip(ids.tolist(), grad, strict=True):
        for i, one in zip(sentence, each, strict=True):
            rows[i] = rows[i] + one
    return torch.stack(rows)


def _first_row(answer):
    """a token's gradient goes to its row of the table (V, C), the other rows get 0"""
    agrees(answer, _autograd, torch.tensor([[1]]), torch.tensor([[[2.0, 3.0]]]), 3)
    agrees(answer, _autograd, torch.tensor([[2, 0]]), numbers(1, 2, 3, seed=1), 5)


@hint("What happens to `table[ids] += grad` where an id comes twice?")
def _twice(answer):
    """where an id comes twice, the two gradients add up"""
    note = "Row 1 was used twice."
    ids, grad = torch.tensor([[1, 1]]), torch.tensor([[[1.0, 2.0], [10.0, 20.0]]])
    agrees(answer, _autograd, ids, grad, 2, note=note)
    agrees(answer, _autograd, torch.tensor([[1, 0, 1, 1]]), numbers(1, 4, 2, seed=2), 3, note=note)


def _batch(answer):
    """all sentences of a batch count"""
    agrees(answer, _autograd, torch.tensor([[0], [1]]), numbers(2, 1, 3, seed=3), 4)
    ids = torch.tensor([[4, 0, 4, 2], [2, 2, 0, 5], [1, 4, 5, 5]])
    agrees(answer, _autograd, ids, numbers(3, 4, 2, seed=4), 7)


def _turned(answer):
    """grad may lie in memory in any order"""
    ids = torch.tensor([[4, 0, 4, 2], [2, 2, 0, 5], [1, 4, 5, 5]])
    agrees(answer, _autograd, ids, numbers(4, 3, 2, seed=8).transpose(0, 1), 7)
    agrees(answer, _autograd, ids.T, numbers(3, 4, 2, seed=9).transpose(0, 1), 7)


def _in_its_dtype(answer):
    """ids may be int32, and the result has the dtype of grad"""
    ids = torch.tensor([[3, 0, 3], [1, 0, 0]])
    agrees(answer, _autograd, ids.int(), numbers(2, 3, 4, seed=5), 5)
    agrees(answer, _autograd, ids, numbers(2, 3, 4, seed=6, dtype=torch.float64), 5)
    agrees(answer, _autograd, ids, numbers(2, 3, 4, seed=6).half(), 5, tolerance=4e-3)


def _linear(answer):
    """a gradient passes on to grad"""
    gradients(answer, _added, torch.tensor([[1, 0, 1], [2, 2, 1]]), numbers(2, 3, 2, seed=7), 4)


GRADIENT = Exercise(
    id="02.4",
    title="the gradient of a lookup",
    difficulty=2,
    minutes=10,
    statement=(
        "Training needs the way back: how does the loss change with the numbers of the table? "
        "Write `my_lookup_gradient(ids, grad, vocab_size)` without autograd. `ids` is (B, T); "
        "`grad` (B, T, C) says how the loss changes with each number that the lookup gave; the "
        "result is (V, C), in the dtype of `grad`. A row that was not used gets 0; one that was "
        "used several times gets the sum."
    ),
    hint="The lookup is a product, one-hot × table. The gradient of `A @ W` in `W` is "
    "`A.T @ grad`. (Or look up `index_add`.)",
    function=my_lookup_gradient,
    tests=(_first_row, _twice, _batch, _turned, _in_its_dtype, _linear),
)


# 02.5 nearest words


def my_nearest(vectors, query, k):
    """The ids of the k rows with the largest cosine to row `query`, best first, without itself.

    vectors is (V, C), query an int, the result k ids.
    """
    raise NotImplementedError


WORDS = torch.tensor([[1.0, 0.0], [9.0, 4.0], [0.2, 0.02], [0.0, 1.0], [-1.0, 0.1], [1.0, 1.0]])


def _by_angle(vectors, query, k):
    """One cosine after the other in float64, sorted."""
    rows = vectors.double().tolist()

    def cosine(i):
        dot = sum(a * b for a, b in zip(rows[i], rows[query], strict=True))
        return dot / (sum(a * a for a in rows[i]) * sum(b * b for b in rows[query])) ** 0.5

    others = [i for i in range(len(rows)) if i != query]
    return sorted(others, key=cosine, reverse=True)[:k]


def _is_nearest(answer, vectors, query, k, note=""):
    _gives(answer, (vectors, query, k), _by_angle(vectors, query, k), note)


def _nearest_two(answer):
    """small angles win, whatever the lengths"""
    _is_nearest(answer, WORDS, 0, 2, "Row 1 is long, row 2 short; the angle counts.")


def _not_itself(answer):
    """a word is not its own neighbour"""
    where = given(answer, (WORDS, 3, 1))
    got = _ids(answer(WORDS, 3, 1), where)
    expect(got != [3], f"{where}, you get {got}: that is the query itself")
    _is_nearest(answer, WORDS, 3, 1)


def _all_in_order(answer):
    """the best comes first, of as many as there are"""
    _is_nearest(answer, WORDS, 0, 5, "Row 4 is opposite.")


def _lengths(answer):
    """neither the length of a row nor that of a column counts"""
    vectors = torch.tensor([[1.0, 1.0], [10.0, 0.0], [1.0, 3.0]])
    _is_nearest(answer, vectors, 0, 2, "The cosines are 0.71 and 0.89.")


def _same_direction(answer):
    """a word that points the very same way is a neighbour, wherever it stands"""
    vectors = torch.tensor([[2.0, 0.0], [0.0, 3.0], [4.0, 0.0], [1.0, 1.0]])
    note = "Rows 0 and 2 point the same way."
    _gives(answer, (vectors, 0, 2), [2, 3], note)
    _gives(answer, (vectors, 2, 2), [0, 3], note)


def _opposite(answer):
    """a word that points the other way is still one of the others"""
    vectors = torch.tensor([[2.0, 0.0], [-1.0, 0.0]])
    note = "Row 1 points the other way."
    _gives(answer, (vectors, 0, 1), [1], note)
    _gives(answer, (vectors, 1, 1), [0])


def _close(answer):
    """words that are almost equally near are told apart, as far as the dtype can"""
    for dtype, near, nearer in ((torch.float32, 0.012, 0.01), (torch.float64, 2e-5, 1e-5)):
        for angles in ((0.0, near, nearer), (0.0, nearer, near)):
            turn = torch.tensor(angles, dtype=dtype)
            lengths = torch.tensor([[1.0], [3.1], [0.7]], dtype=dtype)
            vectors = torch.stack([turn.cos(), turn.sin()], dim=1) * lengths
            note = f"Rows 1 and 2 are turned by {angles[1]:g} and {angles[2]:g}: almost as near."
            _is_nearest(answer, vectors, 0, 2, note)


def _in_a_crowd(answer):
    """of 40 words in 7 dimensions, whatever the size of the numbers, in float64 too"""
    vectors = numbers(40, 7, seed=1, shift=0.3)
    for query, k in ((0, 5), (17, 39), (39, 1)):
        _is_nearest(answer, vectors, query, k)
    for scale in (1e-4, 1e4):
        _is_nearest(answer, numbers(30, 5, seed=2, scale=scale), 11, 4)
    _is_nearest(answer, numbers(6, 9, seed=3, dtype=torch.float64), 2, 5)


NEAREST = Exercise(
    id="02.5",
    title="nearest words",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_nearest(vectors, query, k)`: the ids of the `k` rows of `vectors` with the "
        "largest cosine to the row number `query`, best first, that row left out."
    ),
    hint="A cosine is the dot product of two vectors of length 1. `topk` sorts; which value keeps "
    "the query out?",
    function=my_nearest,
    tests=(
        _nearest_two,
        _not_itself,
        _all_in_order,
        _lengths,
        _same_direction,
        _opposite,
        _close,
        _in_a_crowd,
    ),
)


EXERCISES = (MERGE, ENCODE, TEXTS, GRADIENT, NEAREST)
