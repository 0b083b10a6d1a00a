"""27.3 batches by length (★★☆, 10 minutes)

Write `my_batches(lengths, size)`, which divides sentences of the given lengths into batches of
`size` with little padding. Return a list of lists of indices, with every index in exactly one of
them.

<details><summary>The rule in detail</summary>

Little means: no more than if all sentences are sorted by length, in either direction. One batch may
be smaller. The order of the batches doesn't matter, as training shuffles them afterwards.

</details>

Hint: Sort the indices by length, then cut.
"""

import torch

from tinytf_course.expect import expect, numbers
from tinytf_course.words import described, given, short


def my_batches(lengths, size):
    """Put sentences of similar length together; return a list of lists of `size` indices.

    Every index is in exactly one batch; one batch may be smaller. A batch is padded to its longest
    sentence.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[i : i + size] for i in range(0, len(order), size)]


_LENGTHS = [9, 2, 11, 2, 8, 30, 1, 10]


def _listed(answer, lengths, size):
    where = given(my_batches, (lengths, size))
    got = answer(lengths, size)
    message = f"{where}, you return {described(got)}, expected a list of lists"
    expect(isinstance(got, list | tuple), message)
    batches = []
    for batch in got:
        held = isinstance(batch, list | tuple | torch.Tensor)
        expect(held, f"{where}, one batch is {described(batch)}, expected a list of indices")
        for index in batch:
            whole = isinstance(index, int) or (isinstance(index, torch.Tensor) and index.dim() == 0)
            expect(whole and not isinstance(index, bool), f"{where}, a batch holds {index!r}, "
                   "expected an index")  # fmt: skip
        batches.append([int(index) for index in batch])
    return batches, where


_CASES = (
    ([5], 1), ([17, 3], 1), ([17, 3], 2), ([3, 12, 4], 2), ([4, 4, 4], 2), ([6, 2], 5),
    (_LENGTHS, 2), (_LENGTHS, 3), ([12, 9, 8, 5, 3], 2),
    (numbers(50, seed=1).abs().mul(20).long().add(1).tolist(), 7),
    (numbers(3000, seed=2).abs().mul(1000).long().add(1).tolist(), 2),
)  # fmt: skip


def test_once(answer):
    """every sentence is in one batch"""
    for lengths, size in _CASES:
        batches, where = _listed(answer, lengths, size)
        found = sorted(index for batch in batches for index in batch)
        note = f"expected each of 0 to {len(lengths) - 1} once"
        right = found == list(range(len(lengths)))
        expect(right, f"{where}, the batches hold {short(found)}, {note}")


def test_full(answer):
    """all batches but one are full"""
    for lengths, size in _CASES:
        batches, where = _listed(answer, lengths, size)
        found, left = sorted(map(len, batches)), len(lengths) % size
        sizes = [left] * bool(left) + [size] * (len(lengths) // size)
        expect(found == sizes, f"{where}, the batches' sizes are {found}, expected {sizes}")


def _most_padding(lengths, size):
    """The padding of batches cut from the sorted lengths, wherever the smaller batch is cut."""
    ordered, left = sorted(lengths), len(lengths) % size
    found = []
    for start in range(0, len(lengths) - left + 1, size) if left else [0]:
        small, rest = ordered[start : start + left], ordered[:start] + ordered[start + left :]
        batches = [small] * bool(left) + [rest[i : i + size] for i in range(0, len(rest), size)]
        found.append(sum(max(batch) * len(batch) - sum(batch) for batch in batches))
    return max(found)


def test_little(answer):
    """there is no more padding than sorting leaves"""
    for lengths, size in _CASES:
        batches, where = _listed(answer, lengths, size)
        inside = [[lengths[i] for i in b if 0 <= i < len(lengths)] for b in batches]
        pads = sum(max(batch) * len(batch) - sum(batch) for batch in inside if batch)
        most = _most_padding(lengths, size)
        words = f"{where}, {pads} positions are padding, expected at most {most}: put sentences of "
        expect(pads <= most, words + "similar length together")


MISTAKES = r"""
in the order they come
    sorted(range(len(lengths)), key=lambda i: lengths[i]) => list(range(len(lengths)))
    says: positions are padding
    A short sentence next to a long one is mostly padding. Sort first.
sorted within batches
    sorted(range(len(lengths)), key=lambda i: lengths[i]) => list(range(len(lengths)))
    [order[i : i + size] for => [sorted(order[i : i + size], key=lambda j: lengths[j]) for
    says: positions are padding
    The order within a batch does not matter; what matters is which sentences share one.
lengths, not indices
    sorted(range(len(lengths)), key=lambda i: lengths[i]) => sorted(lengths)
    says: the batches hold [5], expected each of 0 to 0 once
    Sorting the lengths loses their indices: sort the indices by length.
the rest left out
    len(order), size) => len(order) - size + 1, size)
    says: size=2, the batches hold [0, 2], expected each of 0 to 2 once
    A sampler that drops the last batch never shows the longest sentences.
sorted as text
    key=lambda i: lengths[i] => key=lambda i: str(lengths[i])
    says: positions are padding
    As text, 10 comes before 2.
a batch for each length
    order[i : i + size] for => [i for i in order if lengths[i] == n] for
    for i in range(0, len(order), size) => for n in sorted(set(lengths))
    says: the batches' sizes are
    No padding at all, but most batches hold one sentence, and the machine waits for work.
a stride through the sorted list
    i : i + size => i :: -(-len(order) // size)
    range(0, len(order), size) => range(-(-len(order) // size))
    says: positions are padding
    A stride through the sorted list puts a short and a long one into every batch.
the first of equals
    sorted(range(len(lengths)), key=lambda i: lengths[i]) =>
        [lengths.index(n) for n in sorted(lengths)]
    says: lengths=[4, 4, 4], size=2, the batches hold [0, 0, 0]
    `index` finds the first sentence of a length, again and again. Sort the indices.
long with short
    return [order =>
        order = [order.pop(-1 if i % 2 else 0) for i in range(len(order))]
        return [order
    says: positions are padding
    Batches of equal work, but each is padded to its longest sentence.
the rest added to the last batch
    return [order => batches = [order
    len(order), size)] =>
        len(order), size)]
        if len(batches) > 1 and len(batches[-1]) < size:
            batches[-2:] = [batches[-2] + batches[-1]]
        return batches
    says: the batches' sizes are [3], expected [1, 2]
    A batch larger than `size` may not fit the memory that `size` was chosen for.
the caller's lengths sorted
    return [order =>
        lengths.sort()
        return [order
    says: your code changes the caller's `lengths[
    `lengths.sort()` changes the caller's list, so its indices no longer match the sentences.
    `sorted` makes a new list.
sorted in windows
    key=lambda i: lengths[i] => key=lambda i: (i // (50 * size), lengths[i])
    says: lengths (a list of 3000)
    Each window of 50 batches is sorted, but its lengths still differ a lot. That is a fine
    compromise for texts that do not fit the memory; here all lengths are known: sort all.
"""

HARMLESS = r"""
… => …range(0, len(lengths), size)]
    there is an index for each length
"""
