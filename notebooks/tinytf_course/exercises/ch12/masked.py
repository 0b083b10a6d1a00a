"""12.3 hidden, swapped, kept (★★☆, 10 minutes)

Write `my_masked(ids, drawn, fate, words, mask_id)`, which masks a batch of ids by BERT's rule: it
returns the encoder's input and its targets. The random numbers are passed in: `drawn` decides which
words are chosen and `fate` what happens to each, and `words` holds the random replacements.

<details><summary>The rule in detail</summary>

Words are the ids from 3 upwards. A word is chosen if its number in `drawn` is below 0.15. It
becomes `mask_id` if its `fate` is below 0.8, its entry in `words` if `fate` is at least 0.8 but
below 0.9, and stays as it is otherwise. The target is the original id where a word was chosen, and
everywhere else -100, which `F.cross_entropy` ignores.

</details>

Hint: Use `torch.where(condition, words, ids)` and `masked_fill`. The order in which you apply them
matters.
"""

import torch

from tinytf_course.expect import Mismatch, agrees, expect, short, tensor, travels
from tinytf_course.grading import hint


def my_masked(ids, drawn, fate, words, mask_id):
    """The encoder's input and its targets, both (B, S).

    A word (an id from 3 on) is chosen if its number in `drawn` is below 0.15. If its number in
    `fate` is below 0.8 it becomes mask_id, if below 0.9 its word in `words`, otherwise it stays.
    The target is the original id where a word was chosen, and -100 elsewhere.
    """
    chosen = (drawn < 0.15) & (ids >= 3)
    read = torch.where(chosen & (fate < 0.9), words, ids)
    read = read.masked_fill(chosen & (fate < 0.8), mask_id)
    return read, ids.masked_fill(~chosen, -100)


IDS = torch.tensor([[5, 6, 7, 2, 0, 3], [8, 9, 5, 4, 2, 0]])
DRAWN = torch.tensor([[0.1, 0.9, 0.14, 0.05, 0.01, 0.03], [0.02, 0.5, 0.12, 0.15, 0.99, 0.1]])
FATE = torch.tensor([[0.3, 0.1, 0.8, 0.2, 0.86, 0.7], [0.95, 0.85, 0.79, 0.1, 0.5, 0.4]])
WORDS = torch.tensor([[8, 8, 9, 9, 6, 7], [6, 7, 7, 6, 3, 4]])
READ = torch.tensor([[10, 6, 9, 2, 0, 10], [8, 9, 10, 4, 2, 0]])
SAY = torch.tensor([[5, -100, 7, -100, -100, 3], [8, -100, 5, -100, -100, -100]])


def _pair(answer, where, ids=IDS, mask_id=10):
    got = answer(ids, DRAWN, FATE, WORDS, mask_id)
    expect(
        isinstance(got, tuple | list) and len(got) == 2,
        f"{where}, you return a {type(got).__name__}, expected two tensors: input, targets",
    )
    return [tensor(part, where) for part in got]


def _agree(got, expected, ids, what, note):
    """Name one word, with its random numbers, that comes out otherwise than expected."""
    where = f"for ids={ids.tolist()}"
    expect(
        got.shape == expected.shape,
        f"{where}, the shape of the {what} is {tuple(got.shape)}, expected {tuple(expected.shape)}",
    )
    for at in (got != expected).nonzero()[:1].tolist():
        i, drawn, fate, word = (part[tuple(at)].item() for part in (ids, DRAWN, FATE, WORDS))
        raise Mismatch(
            f"for the id {i} with drawn={drawn:.2f}, fate={fate:.2f} and {word} in `words`, "
            f"the {what} is {short(got[tuple(at)])}, expected {short(expected[tuple(at)])}. {note}"
        )


def test_reads(answer):
    """a chosen word is hidden, swapped or kept, by its number in fate"""
    note = "Below 0.8 it is hidden, from there to below 0.9 it is replaced, and then it stays."
    read, _ = _pair(answer, f"for ids={IDS.tolist()}")
    _agree(read, READ, IDS, "input", note)


def test_says(answer):
    """the targets are the chosen words, as they were, and nothing else"""
    note = "The loss counts where a word was chosen: hidden, swapped or kept."
    _, say = _pair(answer, f"for ids={IDS.tolist()}")
    _agree(say, SAY, IDS, "target", note)


def test_no_specials(answer):
    """<pad>, <bos> and <eos> are never chosen"""
    ids = torch.tensor([[1, 2, 2, 0, 0, 1]] * 2)
    read, _ = _pair(answer, f"for ids={ids.tolist()}", ids)
    _agree(read, ids, ids, "input", "0, 1 and 2 are <pad>, <bos> and <eos>.")


def test_other_mask(answer):
    """<mask> has the id that is given"""
    read, _ = _pair(answer, "for mask_id=20", mask_id=20)
    expected = READ.masked_fill(READ == 10, 20)
    _agree(read, expected, IDS, "input", "Here mask_id=20.")


def _word_by_word(ids, drawn, fate, words, mask_id):
    """Each word by itself."""
    read, say = ids.clone(), torch.full_like(ids, -100)
    for at in torch.cartesian_prod(*map(torch.arange, ids.shape)).reshape(-1, 2).tolist():
        at = tuple(at)
        if ids[at].item() in (0, 1, 2) or drawn[at].item() >= 0.15:
            continue
        say[at] = ids[at]
        if fate[at].item() < 0.8:
            read[at] = mask_id
        elif fate[at].item() < 0.9:
            read[at] = words[at]
    return read, say


@hint("`below 0.9` leaves 0.9 itself out.")
def test_ends(answer):
    """a number that is 0.15, 0.8 or 0.9 itself is not below it"""
    drawn = torch.tensor([[0.15, 0.15 - 1e-9, 0.1, 0.1, 0.1, 0.1]], dtype=torch.float64)
    fate = torch.tensor([[0.1, 0.1, 0.8, 0.8 - 1e-9, 0.9, 0.9 - 1e-9]], dtype=torch.float64)
    for i in range(6):
        case = [part[:, i : i + 1] for part in (drawn, fate)]
        arguments = torch.tensor([[5]]), *case, torch.tensor([[7]]), 10
        where = f"for ids=[[5]], words=[[7]], drawn={case[0].item()!r}, fate={case[1].item()!r}"
        agrees(answer, _word_by_word, *arguments, where=where)


def test_any_batch(answer):
    """any batch is masked, of any size, and ids stay integers"""
    for seed, shape in enumerate([(1, 1), (3, 1), (1, 7), (4, 9), (3, 40)]):
        made = torch.Generator().manual_seed(seed)
        ids = torch.randint(0, 9, shape, generator=made)
        words = torch.randint(3, 9, shape, generator=made)
        drawn = torch.rand(shape, generator=made) * 0.3
        fate = 0.7 + 0.3 * torch.rand(shape, generator=made)
        where = f"for {shape[0]} sentences of {shape[1]}"
        agrees(answer, _word_by_word, ids, drawn, fate, words, 10, where=where)
    where += ", with mask_id=4, and 4 among the ids"
    agrees(answer, _word_by_word, ids, drawn, fate, words, 4, where=where)


def test_masked_travels(answer):
    """it works on another device"""
    travels(answer, IDS, DRAWN, FATE, WORDS, 10)


MISTAKES = r"""
the batch overwritten
    read = torch.where(chosen & (fate < 0.9), words, ids) =>
        targets, swapped = ids.masked_fill(~chosen, -100), chosen & (fate < 0.9)
        ids[swapped] = words[swapped]
    read = read.masked_fill(chosen & (fate < 0.8), mask_id) => ids[chosen & (fate < 0.8)] = mask_id
    return read, ids.masked_fill(~chosen, -100) => return ids, targets
    says: changes the caller's `ids`
    The next epoch would read a sentence that is hidden already, with <mask> as its target. Work
    on a copy: `ids.clone()`, or `torch.where`.
padding and <eos> chosen
     & (ids >= 3) =>
    says: 0, 1 and 2 are <pad>, <bos> and <eos>
    Then the model learns to fill in padding, and its loss looks better than it is.
a table on the CPU
    ids.masked_fill(~chosen, -100) => torch.where(chosen, ids, torch.full(ids.shape, -100))
    says: on another device than the CPU
    `torch.full(...)` is on the CPU, wherever `ids` is: give it `device=ids.device`, or use
    `masked_fill`, which needs no table.
all chosen words hidden
    chosen & (fate < 0.8) => chosen
    says: Below 0.8 it is hidden
    Then every visible word is right, and the model need not think about visible words at all.
    Once training is over, there are no others.
only the hidden ones count
    ~chosen => read != mask_id
    says: The loss counts where a word was chosen
    Swapped and kept words have to be predicted too: that is why they were chosen.
the swap overwrites the mask
    read = torch.where(chosen & (fate < 0.9), words, ids) =>
    read = read.masked_fill(chosen & (fate < 0.8), mask_id) =>
        read = ids.masked_fill(chosen & (fate < 0.8), mask_id)
        read = torch.where(chosen & (fate < 0.9), words, read)
    says: Below 0.8 it is hidden
    fate < 0.9 holds for the hidden words as well, and the later write wins: nothing is hidden
    any more.
it says what it reads
    ids.masked_fill => read.masked_fill
    says: The loss counts where a word was chosen
    The targets come from the sentence before masking. This model learns to predict <mask>.
every word counts
    ids.masked_fill(~chosen, -100) => ids
    says: The loss counts where a word was chosen
    A word that can be read at its own place teaches copying, and there are six of them for each
    chosen one.
the loss only where something changed
    ~chosen => read == ids
    says: The loss counts where a word was chosen
    `read == ids` holds for the chosen words that stay, and the loss must count them: otherwise
    a word that can be read would never have to be predicted.
0 where nothing is asked
    -100) => 0)
    says: The loss counts where a word was chosen
    `F.cross_entropy` leaves out -100. 0 is <pad>, and the model would learn to predict it.
the two outputs changed round
    return read, ids.masked_fill(~chosen, -100) => return ids.masked_fill(~chosen, -100), read
    says: Below 0.8 it is hidden
    First what the encoder reads, then the targets.
the first word left out
    ids >= 3 => ids > 3
    says: for the id 3 with
    Words are the ids from 3 on: `ids >= 3`.
the ends counted in
    drawn < => drawn <=
    fate < 0.9 => fate <= 0.9
    fate < 0.8 => fate <= 0.8
    says: fate=0.80
    A number that is 0.15 itself is not below 0.15: `<`, not `<=`.
the id of <mask> written out
    (fate < 0.8), mask_id => (fate < 0.8), 10
    says: Here mask_id=20
    Another vocabulary has another <mask>: use `mask_id`.
"""
