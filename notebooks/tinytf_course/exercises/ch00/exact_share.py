"""00.2 the share that is exact (★☆☆, 5 minutes)

Write `exact_share(outputs, gold)`: the share of sentences that are right in every word, in order,
to the end. Both arguments are lists of sentences, each a list of words.

Hint: Python compares lists element by element, length included.
"""

import torch

from tinytf_course.expect import expect, same, short, tensor
from tinytf_course.phrasebook import pinyin


def exact_share(outputs, gold):
    """The share of sentences translated exactly: every word right, in order, and no word more.

    outputs and gold are lists of sentences, each a list of words. Returns a share in 0..1.
    """
    return sum(list(o) == list(g) for o, g in zip(outputs, gold, strict=True)) / len(gold)


FISH, CATS = ["狗", "吃", "了", "鱼"], ["两", "只", "黑", "猫"]


def _scores(answer, outputs, gold, expected, note=""):
    said = [" / ".join(" ".join(map(pinyin, words)) for words in each) for each in (outputs, gold)]
    where = f"for outputs “{said[0]}” and gold “{said[1]}”"
    got = tensor(answer(outputs, gold), where)
    expect(got.dtype != torch.bool, f"{where}, you get {short(got)}, expected a share in 0..1")
    same(got, expected, where, note=note)


def test_all_right(answer):
    """all sentences right scores 1"""
    _scores(answer, [FISH], [FISH], 1.0)
    _scores(answer, [FISH, CATS], [FISH, CATS], 1.0, "Both are right.")


def test_one_of_two(answer):
    """a sentence with one wrong word is wrong"""
    white = ["两", "只", "白", "猫"]
    _scores(answer, [FISH, white], [FISH, CATS], 0.5, "One of two sentences is right.")


def test_cut_short(answer):
    """a sentence that stops early is wrong"""
    _scores(answer, [FISH[:2]], [FISH], 0.0, "The sentence stops too early.")


def test_goes_on(answer):
    """a sentence that goes on is wrong"""
    _scores(answer, [[*FISH, "鱼"]], [FISH], 0.0, "The sentence has a word too many.")


def test_order_counts(answer):
    """the order of the words counts"""
    _scores(answer, [["鱼", "吃", "了", "狗"]], [FISH], 0.0, "The fish did not eat the dog.")


def test_its_own_gold(answer):
    """each sentence is compared with its own gold"""
    note = "Each is the translation of the other sentence."
    _scores(answer, [CATS, FISH], [FISH, CATS], 0.0, note)


def test_words_are_words(answer):
    """words are compared one by one, not as one text"""
    same(answer([["a", "bc"]], [["ab", "c"]]), 0.0, "for outputs=[['a', 'bc']], gold=[['ab', 'c']]")


def test_capitals_count(answer):
    """a capital makes it another word"""
    same(answer([["He"]], [["he"]]), 0.0, "for outputs=[['He']], gold=[['he']]")


def test_said_twice(answer):
    """sentences count by their place, also where one occurs twice"""
    for outputs, gold, expected in (("aa", "ba", 1 / 2), ("aab", "aac", 2 / 3)):
        outputs, gold = [[word] for word in outputs], [[word] for word in gold]
        same(answer(outputs, gold), expected, f"for outputs={outputs}, gold={gold}")


MISTAKES = r"""
share of words
    list(o) == list(g) for o, g in zip(outputs, gold, strict=True) =>
        a == b for o, g in zip(outputs, gold) for a, b in zip(o, g)
    len(gold) => sum(map(len, gold))
    says: One of two sentences is right
    A sentence with one wrong word can be a wrong translation. Sharing out the credit by words
    makes a model look better than its sentences are.
compares as far as the shorter one
    list(o) == list(g) => all(a == b for a, b in zip(o, g))
    says: The sentence stops too early
    `zip` stops at the shorter list, so a translation that stops too early, or never stops, is
    counted as right.
compares sets of words
    list(o) == list(g) => set(o) == set(g)
    says: The fish did not eat the dog
    The words are all there, and the fish eats the dog. A set forgets order and repetition.
all or nothing
    sum( => all(
    / len(gold) => * 1.0
    says: One of two sentences is right
    This is 1 only if the whole list is right. The score is a share of the sentences.
a count, not a share
     / len(gold) =>
    says: Both are right
    Divide by the number of sentences, or the score depends on how many there are.
found anywhere in the gold
    list(o) == list(g) for o, g in zip(outputs, gold, strict=True) => o in gold for o in outputs
    says: Each is the translation of the other sentence
    `in` finds a translation that belongs to another sentence, too. Go through both lists side
    by side, and compare each output with its own gold.
words joined to one text
    list(o) == list(g) => "".join(o) == "".join(g)
    says: outputs=[['a', 'bc']
    Joined, `a bc` and `ab c` are the same letters. Sentences are lists of words: compare the
    lists.
looked up by its words
    list(o) == list(g) for o, g in zip(outputs, gold, strict=True) =>
        gold[outputs.index(o)] == o for o in outputs
    says: outputs=[['a'], ['a']]
    `index` finds the first output with these words. Two outputs may be the same and have
    different golds: go through both lists side by side, with `zip`.
equal pairs counted once
    return =>
        pairs = {(tuple(o), tuple(g)) for o, g in zip(outputs, gold)}
        return
    zip(outputs, gold, strict=True) => pairs
    / len(gold) => / len(pairs)
    says: outputs=[['a'], ['a'], ['b']]
    A set, or a dict, keeps one of two equal pairs. Each of the two sentences counts.
capitals ignored
    list(o) == list(g) => [w.lower() for w in o] == [w.lower() for w in g]
    says: for outputs=[['He']]
    For the model `He` and `he` are two words, as `cat` and `mat` are. Compare the words as they
    are.
"""

HARMLESS = r"""
… => …(o == list(g)…
    sentences are lists already
… => …(list(o) == g …
    sentences are lists already
… => …in zip(gold, outputs, strict=True)…
    it is equal from both sides
… => …zip(outputs, gold))…
    there is one gold sentence for each output
… => …strict=False…
    there is one gold sentence for each output
… => …/ len(outputs)
    there is one gold sentence for each output
"""
