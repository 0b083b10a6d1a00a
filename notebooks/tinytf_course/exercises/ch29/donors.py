"""29.3 design the control (★★☆, 10 minutes)

In each sentence, the vector of the adjective will be replaced by that of a *donor*, another
sentence of the batch. In the experiment, another adjective makes `it` refer to another noun, so the
answer should change; in the control, what is put in should be just as foreign, but nothing should
happen. Write `my_donors(answers, words, control)`, which finds a donor for each sentence: `answers`
(B,) is what its `it` refers to, and `words` (B,) is its adjective.

<details><summary>The rule in detail</summary>

Of the sentences that can be the donor, take the *next*, going round past the end to the beginning.
Return the donors' numbers, of shape (B,), and -1 where there is none. All tensors hold integers.

</details>

Hint: Experiment and control should differ in one thing only. Which of `answers` and `words` has to
differ between a sentence and its donor in the experiment, and which in the control?

Hint: The donor always has another adjective. With control=False it has another answer, and with
control=True the same answer.

Hint: Two tables of all pairs: `words[:, None] != words` and `answers[:, None] == answers`. Or a
loop: from sentence i try (i + 1) % B, (i + 2) % B, and so on.
"""

import torch

from tinytf_course.expect import agrees, expect, numbers, same
from tinytf_course.words import short


def my_donors(answers, words, control):
    """Find each sentence a donor: the next sentence, going round, that fits; (B,), or -1."""
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
    """By two tables of all pairs."""
    same_answer, other_word = answers[:, None] == answers, words[:, None] != words
    fits = other_word & (same_answer if control else ~same_answer)
    here = torch.arange(len(words))
    steps = ((here - here[:, None]) % len(words)).masked_fill(~fits, len(words))
    return torch.where(fits.any(dim=1), steps.argmin(dim=1), -1)


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
    got = answer(torch.tensor([0, 0]), torch.tensor([1, 2]), False)
    same(got, [-1, -1], "for answers=[0, 0], words=[1, 2], control=False")
    for control in (True, False):
        agrees(answer, _next_that_fits, torch.tensor([1]), torch.tensor([3]), control)
        agrees(answer, _next_that_fits, torch.tensor([2, 2, 1]), torch.tensor([4, 4, 4]), control)


def test_c_many(answer):
    """in larger batches, with more than two answers"""
    for seed, count in enumerate((9, 14, 5, 11, 2, 3)):
        answers = numbers(count, seed=seed).abs().mul(2).long()
        words = numbers(count, seed=seed + 50).abs().mul(3).long()
        for control in (True, False):
            agrees(answer, _next_that_fits, answers, words, control)
    got = answer(ANSWERS, WORDS, True)
    same(got, torch.tensor([3, 3, 4, 0, 2]), f"{_FIVE}, control=True", dtype=True)
    words = f"you return {type(got).__name__}, expected a tensor"
    expect(isinstance(got, torch.Tensor), f"{_FIVE}, {words}")


MISTAKES = r"""
the control takes the same word
    words[j] != words[i] and => (control or words[j] != words[i]) and
    says: nothing foreign would be put in
    With the same adjective, the patch puts in nearly what was there, so the control can't fail.
    The donor must have another adjective.
the experiment takes the same word
    words[j] != words[i] and => (not control or words[j] != words[i]) and
    says: can point to either noun
    The donor must have another adjective in the experiment as well, or experiment and control
    differ in more than one thing.
words are not compared
    words[j] != words[i] and =>
    says: nothing foreign would be put in
    A donor with the same adjective puts in nearly what was there. It must have another one, in
    the experiment and in the control.
experiment and control exchanged
    == control => != control
    says: control=False
    In the experiment the donor's answer differs, and in the control it is the same.
it stops at the end
    range(1, len(answers)): => range(1, len(answers) - i):
    says: control=False
    Go round: after the last sentence comes the first.
control ignored
    (answers[j] == answers[i]) == control => answers[j] != answers[i]
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
