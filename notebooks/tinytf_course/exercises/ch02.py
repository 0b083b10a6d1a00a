"""Chapter 02: the way to one vector, a look-up by hand, graded maps, and a test of dependence."""

import torch

from tinytf_course.expect import (
    agrees,
    expect,
    numbers,
    record,
    same,
    short,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise

# 02.1 how far is it to the one vector?


def my_steps_to_go(mask):
    """How many words each reader still reads after a word, before it stops: (B, S) -> (B, S, 2).

    mask (B, S) is True at words; padding stands at the end, is not read, and gets 0. Of the two
    whole numbers (int64) the first is of the reader that goes left to right, the second of the one
    that goes right to left. Every sentence has at least one word.
    """
    raise NotImplementedError


def _counted_steps(mask):
    """Reader by reader, word by word: what is still to be read."""
    steps = torch.zeros(*mask.shape, 2, dtype=torch.long)
    for b, shown in enumerate(mask.tolist()):
        words = [i for i, word in enumerate(shown) if word]
        for reader, order in enumerate((words, words[::-1])):
            for read, place in enumerate(order, start=1):
                steps[b, place, reader] = len(order) - read
    return steps


def _words(*lengths, width):
    return torch.tensor([[i < length for i in range(width)] for length in lengths])


def _steps_ends(answer):
    """one sentence without padding: each reader stops at another end"""
    note = "The reader from the right stops at the first word, the other at the last."
    agrees(answer, _counted_steps, _words(2, width=2), note=note)
    agrees(answer, _counted_steps, _words(5, width=5), note=note)


def _steps_one_word(answer):
    """after a sentence's only word nothing is left to read"""
    agrees(answer, torch.tensor([[[0, 0]]]), _words(1, width=1), note="Both stop where they began.")


def _steps_padding(answer):
    """nobody reads padding, and it gets 0 itself"""
    note = "Word 1 is the last word, where the reader from the left stops; 2 is padding."
    agrees(answer, _counted_steps, _words(2, width=3), note=note)
    agrees(answer, _counted_steps, _words(1, width=4), note="There is one word.")


def _steps_batch(answer):
    """every sentence of a batch has a length of its own"""
    note = "Each sentence has a length of its own."
    agrees(answer, _counted_steps, _words(1, 3, width=3), note=note)
    agrees(answer, _counted_steps, _words(2, 5, 3, width=5), note=note)
    agrees(answer, _counted_steps, _words(7, 1, width=9), note=note)


def _steps_elsewhere(answer):
    """the numbers are made where the mask is"""
    travels(answer, _words(2, 4, 1, width=4))


STEPS = Exercise(
    id="02.1",
    title="how far is it to the one vector?",
    difficulty=1,
    minutes=8,
    statement=(
        "How far does information travel before it reaches the one vector of section 1? The vector "
        "consists of the two states at which *each reader has finished*, so what a reader has "
        "learned at a word must survive every word that it reads afterwards. Write "
        "`my_steps_to_go(mask)`, which returns for each word how many words those are: `(B, S)` "
        "to `(B, S, 2)`, whole numbers on the mask's device, the left-to-right reader first. In a "
        "sentence of five words the second word has `3, 1`. `mask` is True at words; padding is "
        "at the end, is not read, and gets `0, 0`."
    ),
    hint="Write down the numbers for a sentence of five words, one line for each reader. "
    "`mask.cumsum(dim=1)` counts the words up to each position, `mask.sum(dim=1)` all of them.",
    function=my_steps_to_go,
    tests=(_steps_ends, _steps_one_word, _steps_padding, _steps_batch, _steps_elsewhere),
)


# 02.2 look up a word with weights chosen by hand


def my_maps(n):
    """W, U and v with which additive attention finds the word that it is asked for.

    There are n words, n from 1 to 50. s and every state are one-hot of length n: a 1 at the word's
    position, 0 elsewhere. The states are different words, in any order. W and U are (A, n) and v is
    (A,), in float32, for any A.
    """
    raise NotImplementedError


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


def _least_found(answer, n, asked, order, note=""):
    """Expect the asked word's state to get 0.9 of the weight among these words."""
    W, U, v = (part.double() for part in _maps(answer, n))
    eye = torch.eye(n, dtype=torch.float64)
    bent = torch.tanh(eye[asked] @ W.T + eye[list(order)] @ U.T)
    weights = (bent @ v).softmax(dim=0)
    share = weights[list(order).index(asked)].item()
    record(round(share, 3))
    where = f"for n={n}, asked for word {asked}, and the states of the words {short(list(order))}"
    expect(share >= 0.9, f"{where}, word {asked} gets {share:.2g} of the weight, expected at "
           f"least 0.9.{note}")  # fmt: skip


def _maps_fit(answer):
    """W, U and v have shapes that fit n words, and finite numbers"""
    for n in (1, 2, 5):
        _maps(answer, n)


def _maps_two(answer):
    """of two words each is found"""
    for asked in (0, 1):
        note = " Which score has the pair that agrees, and which the one that doesn't?"
        _least_found(answer, 2, asked, (0, 1), note)


def _maps_order(answer):
    """wherever its state stands"""
    note = " A key says which word it is, not where it stands."
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        for asked in range(3):
            _least_found(answer, 3, asked, order, note)


def _maps_some(answer):
    """in sentences that do not have every word"""
    for asked, order in ((3, (1, 3)), (0, (4, 0, 2)), (2, (2,)), (4, (0, 1, 4, 3))):
        _least_found(answer, 5, asked, order)


def _maps_many(answer):
    """of up to 50 words, each"""
    for n in (10, 50):
        for asked in range(n):
            note = f" So many others share the rest: {n - 1}."
            _least_found(answer, n, asked, range(n), note)


MAPS = Exercise(
    id="02.2",
    title="look up a word with weights chosen by hand",
    difficulty=2,
    minutes=10,
    statement=(
        "Choose the weights of additive attention by hand, without any training, so that it looks "
        "up a word. There are n words, and $s$ and every $h_j$ are *one-hot*: a 1 at the word's "
        "position in the list of words, and 0 elsewhere. Write `my_maps(n)`, which returns `W` "
        "and `U` of shape `(A, n)` and `v` of shape `(A,)`, in float32 and for an A of your "
        "choice. The states are different words, in any order, and the one that equals $s$ has "
        "to receive at least 0.9 of the weight. This must hold for every n from 1 to 50. To try "
        "it: `additive_weights(s @ W.T, states @ U.T, v, mask)`."
    ),
    hint=(
        "Begin with W = U = `torch.eye(n)`, and multiply both by a large number. What are the "
        "inputs of the tanh if both words are the same, and if they are not?",
        "tanh(10) is about 1, and so is tanh(20). Two equal words therefore give a single 1, and "
        "two different words give two of them. Which v gives the *smaller* sum the higher score, "
        "and how much higher must it be to win against 49 others?",
    ),
    function=my_maps,
    tests=(_maps_fit, _maps_two, _maps_order, _maps_some, _maps_many),
)


# 02.3 where attention looks


def my_alignment_shares(weights, gold):
    """How often the largest weight is on a gold word, beside one, or elsewhere.

    weights is (T, S), gold a list of links (source index, target index). A target word with links
    counts once: "on" if its largest weight is on a linked source word, else "beside" if it is on
    a neighbour of one, else "elsewhere". Returns the three shares (on, beside, elsewhere).
    """
    raise NotImplementedError


def _shares_slowly(weights, gold):
    """Target word by target word; a word without a link is passed over."""
    counts = [0, 0, 0]
    for t, row in enumerate(weights.tolist()):
        linked = [source for source, target in gold if target == t]
        if linked:
            best = row.index(max(row))
            near = min(abs(best - source) for source in linked)
            counts[min(near, 2)] += 1
    return [count / sum(counts) for count in counts]


def _shares(answer, weights, gold, expected=None, note=""):
    where = f"for weights={short(weights)} and gold={gold}"
    if weights.numel() > 12:
        where = f"for a map of {len(weights)} target words and gold={gold}"
    got = answer(weights, gold)
    if isinstance(got, torch.Tensor) and got.dim():
        got = got.tolist()
    expect(
        isinstance(got, tuple | list) and len(got) == 3,
        f"{where}, you return {short(got)}, expected the 3 shares (on, beside, elsewhere)",
    )
    got = torch.stack([tensor(part, where).double() for part in got])
    expected = _shares_slowly(weights, gold) if expected is None else expected
    same(got, torch.tensor(expected, dtype=torch.float64), where, 1e-6, note)


def _row(*weights):
    return torch.tensor([weights])


def _shares_one_word(answer):
    """one word: on its link, one place beside it on either side, or two away"""
    gold = [(2, 0)]
    _shares(answer, _row(0.1, 0.1, 0.5, 0.2, 0.1), gold, [1, 0, 0])
    _shares(answer, _row(0.1, 0.5, 0.1, 0.2, 0.1), gold, [0, 1, 0], "1 is beside 2.")
    _shares(answer, _row(0.1, 0.1, 0.2, 0.5, 0.1), gold, [0, 1, 0], "3 is beside 2.")
    _shares(answer, _row(0.5, 0.1, 0.2, 0.1, 0.1), gold, [0, 0, 1], "0 is two places from 2.")
    _shares(answer, _row(0.1, 0.1, 0.2, 0.1, 0.5), gold, [0, 0, 1], "4 is two places from 2.")


def _shares_edges(answer):
    """there is nothing beside the ends: the last word is not next to the first"""
    _shares(answer, _row(0.1, 0.2, 0.7), [(0, 0)], [0, 0, 1], "2 is not beside 0.")
    _shares(answer, _row(0.7, 0.2, 0.1), [(2, 0)], [0, 0, 1], "0 is not beside 2.")


def _shares_direction(answer):
    """a row is a target word, and a link is (source, target)"""
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]])
    note = "Row t belongs to target word t; links are (source, target)."
    _shares(answer, weights, [(2, 0), (0, 1)], [0.5, 0, 0.5], note)
    weights = torch.tensor([[0.1, 0.1, 0.8, 0], [0.8, 0.1, 0, 0.1], [0.1, 0.2, 0.1, 0.6]])
    _shares(answer, weights, [(2, 0), (0, 1), (1, 2)], [2 / 3, 0, 1 / 3], note)


def _shares_neighbours(answer):
    """of several linked words any is a hit, and a hit is nothing else"""
    weights, note = (
        _row(0.1, 0.1, 0.2, 0.6),
        "3 is linked, and a hit is not beside the other link as well.",
    )
    _shares(answer, weights, [(2, 0), (3, 0)], [1, 0, 0], note)
    _shares(answer, _row(0.1, 0.1, 0.6, 0.2), [(0, 0), (3, 0)], [0, 1, 0], "2 is beside 3.")
    _shares(answer, _row(0.1, 0.1, 0.6, 0.2), [(3, 0), (0, 0)], [0, 1, 0], "2 is beside 3.")


def _shares_counted(answer):
    """each linked target word counts once, a word without a link not at all"""
    weights = torch.tensor([[0.9, 0.1], [0.8, 0.2]])
    _shares(answer, weights, [(0, 1)], [1, 0, 0], "Target word 0 has no link: leave it out.")
    _shares(answer, weights, [(0, 0), (1, 0), (1, 1)], [0.5, 0.5, 0],
            "Two target words, though there are three links.")  # fmt: skip


def _shares_mass(answer):
    """the largest weight decides, not how much lies there"""
    _shares(answer, _row(0.3, 0.25, 0.25, 0.2), [(0, 0)], [1, 0, 0],
            "0.3 is little, and the largest.")  # fmt: skip
    close = torch.tensor([[0.4, 0.4 + 1e-10, 0.2]], dtype=torch.float64)
    _shares(answer, close, [(1, 0)], [1, 0, 0], "The second weight is larger by 1e-10.")


def _shares_many(answer):
    """it agrees with a count word by word"""
    for seed, (rows, columns) in enumerate([(5, 7), (9, 6), (12, 12)]):
        weights = numbers(rows, columns, seed=seed, dtype=torch.float64).softmax(dim=-1)
        gold = [
            (source, target)
            for source in range(columns)
            for target in range(rows)
            if (3 * source + 5 * target + seed) % 7 == 0
        ]
        _shares(answer, weights, gold)


SHARES = Exercise(
    id="02.3",
    title="where attention looks",
    difficulty=1,
    minutes=8,
    statement=(
        "Write `my_alignment_shares(weights, gold)`, which grades one attention map. Of the target "
        "words that have a gold link, which share has its largest weight *on* a linked source "
        "word, else *beside* one (one position to the left or right of any), or else *elsewhere*? "
        "`weights` has the shape `(T, S)`, and `gold` is a list of links `(source index, target "
        "index)`. Return the tuple `(on, beside, elsewhere)`."
    ),
    hint="Collect the linked source words of each target word first, then take an argmax for each.",
    function=my_alignment_shares,
    tests=(
        _shares_one_word,
        _shares_edges,
        _shares_direction,
        _shares_neighbours,
        _shares_counted,
        _shares_mass,
        _shares_many,
    ),
)


# 02.4 which output depends on which word


def my_hears(read, x):
    """Say which words each output depends on: boolean (T, T), row t for output t, column s for x_s.

    read maps words (T, C) to outputs (T, D) and can be differentiated. Entry [t, s] is True where
    any number of output t has, at x, a slope in any number of word s, however small.
    """
    raise NotImplementedError


def _hears(answer, read, words, rows, note, shape=(3, 2), scale=1.0):
    expected = torch.tensor([[digit == "1" for digit in row] for row in rows])
    where = f"for {words}, {shape[0]} words"
    x = numbers(*shape, seed=3, scale=scale, dtype=torch.float64)
    agrees(answer, expected, read, x, note=note, where=where)


def _before(x):
    """Each word's neighbour to the left; the first hears nobody."""
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def _hears_itself(answer):
    """a reader of single words: each output hears its own"""
    _hears(answer, torch.tanh, "tanh of each word", ["1"], "It hears itself.", (1, 2))
    _hears(answer, torch.tanh, "tanh of each word", ["100", "010", "001"], "The diagonal.")


def _hears_before(answer):
    """row t is output t, column s is word s"""
    note = "Output 1 hears word 0: row 1, column 0."
    _hears(answer, _before, "a reader that gives the word before", ["000", "100", "010"], note)
    first = lambda x: x[:1].expand(len(x), -1)  # noqa: E731
    _hears(answer, first, "a reader that always gives word 0", ["100", "100", "100"], "Column 0.")


def _hears_sums(answer):
    """a reader whose outputs sum to the same hears all the same"""
    both = lambda x: torch.cat([x, -x], dim=1)  # noqa: E731
    note = "The gradients of x and -x cancel if they are added up: look at each number."
    _hears(answer, both, "a reader that gives [x, -x]", ["10", "01"], note, (2, 1))
    shares = lambda x: x.cumsum(dim=0).softmax(dim=1)  # noqa: E731
    _hears(answer, shares, "a softmax over the sums so far", ["100", "110", "111"], note)


def _hears_numbers(answer):
    """every number of a word counts, and of an output"""
    last = lambda x: torch.cat([x[:, -1:] * 0 + 1, _before(x)[:, -1:]], dim=1)  # noqa: E731
    note = "Only the last number of a word is heard, and only in the last number of an output."
    _hears(answer, last, "a reader of last numbers", ["000", "100", "010"], note, (3, 4))
    gap = lambda x: _before(x)[:, :1] - _before(x)[:, 1:]  # noqa: E731
    note = "One number is added and the other taken away: the word is heard."
    _hears(answer, gap, "a difference of the word before", ["000", "100", "010"], note)


def _hears_weakly(answer):
    """a word is heard however weakly"""
    weak = lambda x: x + 1e-4 * _before(x)  # noqa: E731
    _hears(
        answer, weak, "x plus 0.0001 of the word before", ["100", "110", "011"], "Not 0 is True."
    )
    faint = lambda x: 1e-50 * _before(x)  # noqa: E731
    _hears(answer, faint, "1e-50 of the word before", ["000", "100", "010"], "Not 0 is True.")
    faintest = lambda x: 1e-200 * _before(x)  # noqa: E731
    note = "The square of 1e-200 is 0, and 1e-200 is not."
    _hears(answer, faintest, "1e-200 of the word before", ["000", "100", "010"], note)
    drowned = lambda x: x + 1e-20 * _before(x)  # noqa: E731
    note = "Beside x a change of 1e-20 is rounded away; a slope of 1e-20 is not."
    _hears(answer, drowned, "x plus 1e-20 of the word before", ["100", "110", "011"], note)
    less = lambda x: x - 3 * _before(x)  # noqa: E731
    _hears(answer, less, "x minus 3 times the word before", ["100", "110", "011"], "Below 0, too.")


def _hears_zeros(answer):
    """words that are all 0 are heard, too"""
    note = "At x = 0 the output is 0 as well, and still depends on x."
    _hears(answer, lambda x: x, "x itself, all 0", ["100", "010", "001"], note, scale=0.0)
    _hears(
        answer, torch.tanh, "tanh of words that are all 0", ["10", "01"], note, (2, 3), scale=0.0
    )


def _hears_here(answer):
    """what counts is the slope at this x"""
    far = lambda x: torch.relu(_before(x).abs() - 50)  # noqa: E731
    note = "At this x all numbers are past 50."
    words = "a reader that hears only numbers past 50"
    _hears(answer, far, words, ["000", "100", "010"], note, scale=1e4)
    note = "At this x no number is past 50."
    _hears(answer, far, words, ["000", "000", "000"], note)


def _hears_nothing(answer):
    """a reader that looks at no word is one, too"""
    deaf = lambda x: torch.ones(len(x), 3, dtype=x.dtype)  # noqa: E731
    note = "Its output does not depend on x, and has no way back to it."
    _hears(answer, deaf, "a reader that always gives ones", ["00", "00"], note, (2, 3))


def _hears_wide(answer):
    """an output may have more numbers than a word"""
    wide = lambda x: torch.cat([x * 0 + 1, x * 0, _before(x)], dim=1)  # noqa: E731
    note = "The last numbers of 6 hear the word before."
    _hears(answer, wide, "a reader from 2 numbers to 6", ["000", "100", "010"], note)


def _hears_readers(answer):
    """an RNN hears what came before, a convolution its neighbours, an average all"""
    torch.manual_seed(0)
    rnn = torch.nn.RNN(3, 5, batch_first=True).double()
    lower = ["1000", "1100", "1110", "1111"]
    _hears(answer, lambda x: rnn(x[None])[0][0], "an RNN", lower, "All words so far.", (4, 3))
    conv = torch.nn.Conv1d(2, 6, 3, padding=1).double()
    band = ["11000", "11100", "01110", "00111", "00011"]
    _hears(answer, lambda x: conv(x.T[None])[0].T, "a convolution of three", band,
           "A word and its neighbours.", (5, 2))  # fmt: skip
    mean = lambda x: x.mean(dim=0, keepdim=True).expand(len(x), -1)  # noqa: E731
    _hears(answer, mean, "an average of all words", ["11", "11"], "All words.", (2, 3))


HEARS = Exercise(
    id="02.4",
    title="which output depends on which word",
    difficulty=2,
    minutes=8,
    statement=(
        "Design a check. The function `read` maps words `(T, C)` to outputs `(T, D)`. Write "
        "`my_hears(read, x)`, which returns a boolean `(T, T)` whose entry `[t, s]` says whether "
        "output t depends on word s at this `x`, that is, whether any component of the output has "
        "a derivative other than 0 with respect to any component of the word. However small the "
        "derivative is, it counts, even where rounding would hide the change. The check has to "
        "work for every differentiable `read` and for every `x`."
    ),
    hint="`torch.autograd.functional.jacobian(read, x)` has the shape (T, D, T, C): the derivative "
    "of each component of the output with respect to each component of the input.",
    function=my_hears,
    tests=(
        _hears_itself,
        _hears_before,
        _hears_sums,
        _hears_numbers,
        _hears_weakly,
        _hears_zeros,
        _hears_here,
        _hears_nothing,
        _hears_wide,
        _hears_readers,
    ),
)


EXERCISES = (STEPS, MAPS, SHARES, HEARS)
