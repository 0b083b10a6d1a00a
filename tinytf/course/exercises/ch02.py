"""Chapter 02: hand a sentence over, look, grade the looks, and who hears whom."""

import math

import torch

from tinytf.course.expect import agrees, expect, gradients, numbers, same, short, tensor
from tinytf.course.grading import Exercise, hint

# 02.1 repair: one vector for a sentence


def my_one_vector(states, mask):
    """Where each reader stopped, as one vector for each sentence: (B, S, 2H) -> (B, 2H).

    The first H numbers of a state are of the reader that goes left to right, the others of the one
    that goes right to left. mask (B, S) is True at words; padding stands at the end, and what the
    states hold there has no meaning. Every sentence has at least one word.
    """
    raise NotImplementedError


def _stopped(states, mask):
    rows = []
    for sentence, shown in zip(states, mask.tolist(), strict=True):
        half, last = states.size(2) // 2, max(i for i, word in enumerate(shown) if word)
        rows.append(torch.cat([sentence[last, :half], sentence[0, half:]]))
    return torch.stack(rows)


def _words(*lengths, width):
    return torch.tensor([[i < length for i in range(width)] for length in lengths])


def _counted(*shape):
    """The numbers 1, 2, 3, ... in this shape: every one says where it came from."""
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)


def _vector_one_sentence(answer):
    """each reader's last state, one sentence without padding"""
    note = "The reader from the right stops at the first word."
    agrees(answer, _stopped, _counted(1, 3, 2), _words(3, width=3), note=note)
    agrees(answer, _stopped, _counted(1, 2, 6), _words(2, width=2), note=note)


def _vector_padding(answer):
    """the reader from the left stops at the last word, not at the padding"""
    note = "Word 1 is the last word; what stands at 2 is padding."
    agrees(answer, _stopped, _counted(1, 3, 2), _words(2, width=3), note=note)
    agrees(answer, _stopped, _counted(1, 4, 2), _words(1, width=4), note="There is one word.")
    states, note = _counted(1, 3, 2), "NaN at 2 is padding, which has no meaning: 0 · NaN is NaN."
    states[:, 2] = math.nan
    agrees(answer, _stopped, states, _words(2, width=3), note=note)


def _vector_batch(answer):
    """every sentence of a batch stops where it ends"""
    note = "Each sentence has a length of its own."
    agrees(answer, _stopped, _counted(2, 3, 2), _words(1, 3, width=3), note=note)
    agrees(answer, _stopped, numbers(3, 5, 4, seed=1), _words(2, 5, 3, width=5), note=note)
    agrees(answer, _stopped, numbers(4, 6, 10, seed=2), _words(1, 4, 5, 2, width=6))


def _vector_dtype(answer):
    """numbers keep their dtype, and gradients go to these states alone"""
    mask = _words(2, 4, 1, width=4)
    agrees(answer, _stopped, numbers(3, 4, 6, seed=3, dtype=torch.float64), mask)
    gradients(answer, _stopped, numbers(3, 4, 6, seed=4), mask)


ONE_VECTOR = Exercise(
    id="02.1",
    title="repair: one vector for a sentence",
    difficulty=2,
    minutes=8,
    statement=(
        "The decoder shall start from where *each reader stopped*. This was somebody's first "
        "version. It has two mistakes; one shows only in a batch.\n\n"
        "```python\n"
        "def my_one_vector(states, mask):\n"
        "    ahead, back = states.chunk(2, dim=-1)\n"
        "    return torch.cat([ahead[:, -1], back[:, -1]], dim=-1)\n"
        "```\n\n"
        "Repair it. `states` is `(B, S, 2H)`, the reader from the left first; `mask` `(B, S)` is "
        "True at words, and padding stands at the end, where a state may hold anything, NaN too."
    ),
    hint="`mask.sum(dim=1) - 1` is the place of each sentence's last word; "
    "`x[torch.arange(len(x)), places]` takes one place from each row.",
    function=my_one_vector,
    tests=(_vector_one_sentence, _vector_padding, _vector_batch, _vector_dtype),
)


# 02.2 Bahdanau's attention


def my_additive_attention(s, states, W, U, v, mask):
    """The context of one decoder step, after Bahdanau et al. 2015: (B, C).

    s is (B, H), states is (B, S, C), W is (A, H), U is (A, C), v is (A,), mask is boolean (B, S),
    True = may be looked at; each row has a True. The score of state h_j is v · tanh(W s + U h_j).
    The context is the average of the states shown, weighted by the softmax of their scores.
    """
    raise NotImplementedError


def _additive_slowly(s, states, W, U, v, mask):
    """Row by row, over the states that are shown and no others."""
    contexts = []
    for b in range(len(s)):
        shown = [states[b, j] for j in range(states.size(1)) if mask[b, j]]
        query = torch.stack([(row * s[b]).sum() for row in W])
        scores = []
        for state in shown:
            key = torch.stack([(row * state).sum() for row in U])
            scores.append((v * torch.tanh(query + key)).sum())
        top = max(float(score.detach()) for score in scores)
        parts = [torch.exp(score - top) for score in scores]
        contexts.append(sum(p * h for p, h in zip(parts, shown, strict=True)) / sum(parts))
    return torch.stack(contexts)


def _inputs(b, s, h, c, a, seed, scale=1.0):
    """s, states, W, U and v; no two axes need be of one size."""
    return (
        numbers(b, h, seed=seed), numbers(b, s, c, seed=seed + 1),
        numbers(a, h, seed=seed + 2), numbers(a, c, seed=seed + 3),
        numbers(a, seed=seed + 4, scale=scale),
    )  # fmt: skip


def _shown(*rows):
    return torch.tensor([[digit == "1" for digit in row] for row in rows])


_HALF = torch.tensor([[0.5]])
_ONE = torch.ones(1, 1), torch.ones(1, 1), torch.ones(1)


def _context_shape(answer):
    """there is one context per sentence, as wide as a state"""
    where = "for s (2, 3), states (2, 4, 5) and weights of width 6"
    got = tensor(answer(*_inputs(2, 4, 3, 5, 6, seed=1), _shown("1111", "1100")), where)
    expect(got.shape == (2, 5), f"{where}, the shape is {tuple(got.shape)}, expected (2, 5)")


def _context_of_one(answer):
    """a state that is alone is the context; equal scores give the plain average"""
    one = torch.tensor([[[3.0, 7.0]]])
    U = torch.ones(1, 2)
    agrees(answer, one[:, 0], _HALF, one, _ONE[0], U, _ONE[2], _shown("1"),
           note="Its weight is 1.")  # fmt: skip
    states, zero = torch.tensor([[[1.0], [4.0]], [[0.0], [2.0]]]), torch.zeros(1)
    agrees(answer, torch.tensor([[2.5], [1.0]]), torch.tensor([[0.5], [2.0]]), states, *_ONE[:2],
           zero, _shown("11", "11"), note="With v=0 all states count alike.")  # fmt: skip


def _context_score(answer):
    """the score is v · tanh(W s + U h)"""
    states = torch.tensor([[[0.0], [1.0]]])
    note = "The scores are tanh(0.5) and tanh(1.5)."
    agrees(answer, _additive_slowly, _HALF, states, *_ONE, _shown("11"), note=note)
    s = torch.tensor([[1.0, 0.0]])
    W, eye = torch.tensor([[0.1, 0.9], [-0.8, 0.2]]), torch.eye(2)
    states, v = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.tensor([1.0, 2.0])
    agrees(answer, _additive_slowly, s, states, W, eye, v, _shown("11"),
           note="W s is a sum along a row of W.")  # fmt: skip
    agrees(answer, _additive_slowly, s, states, eye, W, v, _shown("11"),
           note="U h is a sum along a row of U.")  # fmt: skip


def _context_hidden(answer):
    """what the mask hides is not heard, and the weights of the rest sum to 1"""
    states = torch.tensor([[[1.0], [100.0]]])
    agrees(answer, torch.tensor([[1.0]]), _HALF, states, *_ONE, _shown("10"),
           note="The state 100 is hidden; the weight of the other is 1.")  # fmt: skip
    loud, note = (
        torch.tensor([[[1e10], [3.0]]]),
        "The state 1e10 is hidden: nothing of it is heard.",
    )
    agrees(answer, torch.tensor([[3.0]]), torch.zeros(1, 1), loud, *_ONE, _shown("01"), note=note)
    for rows in (("0110", "1001"), ("1111", "0001")):
        agrees(answer, _additive_slowly, *_inputs(2, 4, 3, 5, 6, seed=11), _shown(*rows))


def _context_batch(answer):
    """it agrees with a loop over sentences and states"""
    mask = _shown("1110", "1111", "1100")
    agrees(answer, _additive_slowly, *_inputs(3, 4, 2, 5, 6, seed=21), mask)
    square = _inputs(2, 2, 2, 2, 2, seed=31)
    agrees(answer, _additive_slowly, *square, _shown("11", "11"))


def _context_large(answer):
    """large scores do no harm"""
    s, states, W, U, _ = _inputs(2, 3, 2, 4, 5, seed=41)
    v = numbers(5, seed=42, scale=400.0)
    note = "The scores go to hundreds: exp of that has no number."
    agrees(answer, _additive_slowly, s, states, W, U, v, _shown("110", "111"), note=note)
    wide = torch.full((1,), 300.0)
    agrees(answer, _additive_slowly, torch.tensor([[9.0]]), torch.tensor([[[1.0], [3.0]]]),
           *_ONE[:2], wide, _shown("11"))  # fmt: skip
    low = torch.full((1,), -300.0)
    agrees(answer, _additive_slowly, torch.tensor([[9.0]]), torch.tensor([[[1.0], [3.0]]]),
           *_ONE[:2], low, _shown("01"), note="All scores are low, and one is shown.")  # fmt: skip
    states = torch.tensor([[[2.0], [-2.0]]])
    agrees(answer, torch.tensor([[-2.0]]), torch.zeros(1, 1), states, *_ONE[:2], wide, _shown("01"),
           note="The hidden score is higher by hundreds: hide it before the softmax.")  # fmt: skip


@hint("Which number is below every score there may be?")
def _context_low(answer):
    """a score that is shown may be far below 0"""
    s, states = torch.tensor([[9.0]]), torch.tensor([[[1.0], [3.0]]])
    for v, fill in ((-2e4, "-10,000"), (-2e10, "-1,000,000,000")):
        agrees(answer, torch.tensor([[3.0]]), s, states, *_ONE[:2], torch.tensor([v]), _shown("01"),
               note=f"{fill} is not low enough to hide.")  # fmt: skip


def _context_gradients(answer):
    """numbers keep their dtype, and gradients reach the state, the words and every weight"""
    inputs, mask = _inputs(2, 4, 3, 5, 6, seed=51), _shown("1111", "1101")
    agrees(answer, _additive_slowly, *(x.double() for x in inputs), mask)
    gradients(answer, _additive_slowly, *inputs, mask)


ADDITIVE = Exercise(
    id="02.2",
    title="Bahdanau's attention",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_additive_attention(s, states, W, U, v, mask)`: the context of one decoder step, "
        "for a batch. The score of state $h_j$ is $v^\\top\\tanh(W s + U h_j)$; the context is the "
        "average of the states, weighted by the softmax of the scores over the states that `mask` "
        "shows. A hidden state counts for nothing, however loud it is."
    ),
    hint="`(s @ W.T)[:, None]` is (B, 1, A) and meets `states @ U.T`, (B, S, A). Hide scores "
    "before the softmax: `.masked_fill(~mask, …)`.",
    function=my_additive_attention,
    tests=(
        _context_shape,
        _context_of_one,
        _context_score,
        _context_hidden,
        _context_batch,
        _context_large,
        _context_low,
        _context_gradients,
    ),
)


# 02.3 where attention looks


def my_alignment_shares(weights, gold):
    """How often attention looks at the gold word, beside it, or elsewhere.

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
        "Write `my_alignment_shares(weights, gold)`: of the target words that have a gold link, "
        "which share has its largest weight *on* a linked source word, else *beside* one (one "
        "place to the left or right of any), or *elsewhere*? `weights` is `(T, S)`; `gold` lists "
        "links `(source index, target index)`; return the tuple `(on, beside, elsewhere)`."
    ),
    hint="Collect the linked source words of each target word first; then one argmax per word.",
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


# 02.4 who hears whom


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
    title="who hears whom",
    difficulty=2,
    minutes=8,
    statement=(
        "Design a check. `read` maps words `(T, C)` to outputs `(T, D)`. Write "
        "`my_hears(read, x)`: a boolean `(T, T)` whose entry `[t, s]` says whether output t "
        "depends on word s, at this `x`: whether it has a slope in it, however small, even where "
        "rounding would hide the change. It has to work for any reader that can be differentiated, "
        "and for any `x`."
    ),
    hint="`torch.autograd.functional.jacobian(read, x)` is (T, D, T, C): how each number that "
    "comes out changes with each that goes in.",
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


EXERCISES = (ONE_VECTOR, ADDITIVE, SHARES, HEARS)
