"""29.3 design the control (★★☆, 10 minutes)

In each sentence, the vector of the adjective will be replaced by that of a *donor*, another
sentence of the batch with another adjective. In the experiment, `it` refers to a different noun in
the donor, so the answer should change. In the control, everything is just as foreign, but `it`
refers to the same noun, so nothing should happen. Write `my_donors(answers, words, control)`, which
finds a donor for each sentence: `answers` (B,) is what its `it` refers to, `words` (B,) is its
adjective. Return the donors' numbers, of shape (B,), and -1 where there is none.

Hint: In detail: the donor is the *next* sentence, going round past the end to the beginning, that
has another adjective and, with control=False, another answer, with control=True the same answer.
All tensors hold integers.

Hint: Two tables of all pairs: `words[:, None] != words` and `answers[:, None] == answers`. Or a
loop: from sentence i try (i + 1) % B, (i + 2) % B, and so on.
"""

import torch

from tinytf_course.expect import agrees, expect, numbers, same
from tinytf_course.words import short


def my_donors(answers, words, control):
    """Find each sentence a donor: the next sentence, going round, that fits; (B,), or -1.

    A donor has another word, and another answer; with `control` another word, and the same answer.
    """
    found = []
    for i in range(len(answers)):
        donor = -1
        for step in range(1, len(answers)):
            j = (i + step) % len(answers)
            if words[j] != words[i] and (answers[j] == answers[i]) == control:
                donor = j
                break
        found.append(donor)
    return torch.tensor(found, dtype=torch.long)


ANSWERS = torch.tensor([0, 0, 1, 0, 1])
WORDS = torch.tensor([7, 7, 3, 8, 4])
_FIVE = f"for answers={short(ANSWERS)}, words={short(WORDS)}"


def _next_that_fits(answers, words, control):
    """Sentence by sentence, walking on from it."""
    count, found = len(answers), []
    for i in range(count):
        donor = -1
        for step in range(1, count):
            j = (i + step) % count
            other_word = int(words[j]) != int(words[i])
            same_answer = int(answers[j]) == int(answers[i])
            if other_word and same_answer == control:
                donor = j
                break
        found.append(donor)
    return torch.tensor(found, dtype=torch.long)


def test_c_experiment(answer):
    """in the experiment, `it` refers to the other noun in the donor"""
    note = "In sentence 0 the answer is 0. The next sentence whose answer is 1 is sentence 2."
    where = f"{_FIVE}, control=False"
    same(answer(ANSWERS, WORDS, False), [2, 2, 3, 4, 0], where, note=note)


def test_c_control(answer):
    """in the control, it refers to the same noun, with another word"""
    note = (
        "Sentence 1 has the same answer as sentence 0, but also the same word, so nothing foreign "
        "would be put in. The next sentence with another word is sentence 3."
    )
    where = f"{_FIVE}, control=True"
    same(answer(ANSWERS, WORDS, True), [3, 3, 4, 0, 2], where, note=note)


def test_c_other_word(answer):
    """with another word in the experiment as well"""
    answers, words = torch.tensor([0, 1, 1]), torch.tensor([5, 5, 6])
    note = "The same word can point to either noun, but a donor must have another word."
    agrees(answer, _next_that_fits, answers, words, False, note=note)


def test_c_none(answer):
    """-1 where no sentence fits"""
    same(
        answer(torch.tensor([0, 0]), torch.tensor([1, 2]), False), [-1, -1],
        "for answers=[0, 0], words=[1, 2], control=False",
    )  # fmt: skip
    agrees(answer, _next_that_fits, torch.tensor([1]), torch.tensor([3]), True)
    agrees(answer, _next_that_fits, torch.tensor([1]), torch.tensor([3]), False)
    for control in (True, False):
        agrees(answer, _next_that_fits, torch.tensor([2, 2, 1]), torch.tensor([4, 4, 4]), control)


def test_c_many(answer):
    """in larger batches, with more than two answers"""
    for seed in range(6):
        count = (9, 14, 5, 11, 2, 3)[seed]
        answers = numbers(count, seed=seed).abs().mul(2).long()
        words = numbers(count, seed=seed + 50).abs().mul(3).long()
        for control in (True, False):
            agrees(answer, _next_that_fits, answers, words, control)
    got = answer(ANSWERS, WORDS, True)
    expect(
        isinstance(got, torch.Tensor),
        f"{_FIVE}, you return {type(got).__name__}, expected a tensor",
    )
    expect(got.dtype == torch.int64, f"{_FIVE}, the dtype is {got.dtype}, expected torch.int64")


def _donors(fits, start=1, around=True):
    def answer(answers, words, control):
        found = []
        for i in range(len(answers)):
            steps = range(start, len(answers)) if around else range(start, len(answers) - i)
            order = [(i + step) % len(answers) for step in steps]
            right = [j for j in order if fits(answers, words, control, i, j)]
            found.append(right[0] if right else -1)
        return torch.tensor(found, dtype=torch.long)

    return answer


def _right(a, w, control, i, j):
    return bool(w[i] != w[j]) and bool(a[i] == a[j]) == control


MISTAKES = r"""
the control takes the same word
    … =>
        return _donors(lambda a, w, c, i, j: (a[i] == a[j]) == c and (c or w[i] != w[j]))(answers, words, control)
    says: nothing foreign 
    With the same adjective, the patch puts in nearly what was there, so the control can't fail.
    The donor must have another adjective.
the experiment takes the same word
    … =>
        return _donors(lambda a, w, c, i, j: (a[i] == a[j]) == c and (not c or w[i] != w[j]))(answers, words, control)
    says: can point to either noun
    The donor must have another adjective in the experiment as well, or experiment and control
    differ in more than one thing.
experiment and control exchanged
    … =>
        return (lambda a, w, c: my_donors(a, w, not c))(answers, words, control)
    says: control=False
    In the experiment the donor's answer differs, and in the control it is the same.
it stops at the end
    … =>
        return _donors(_right, around=False)(answers, words, control)
    says: control=False
    Go round: after the last sentence comes the first.
control ignored
    … =>
        return (lambda a, w, c: my_donors(a, w, False))(answers, words, control)
    says: control=True
    With control=True the answers have to be the same.
"""

HARMLESS = r"""
return torch.tensor(found, … => return torch.tensor(found)
    whole numbers are int64
return … => return torch.tensor(found)
    whole numbers become int64 anyway
… => …len(words)…
    there is one word a sentence
for step … => for step in range(0, …
    a sentence has not another word than itself
for step … => for step in range(len(…
    a sentence has not another word than itself
for step … => …len(answers) + 1):
    a sentence has not another word than itself
"""
