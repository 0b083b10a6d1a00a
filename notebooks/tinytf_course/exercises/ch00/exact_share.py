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


GOLD = [["狗", "吃", "了", "鱼"], ["两", "只", "黑", "猫"]]
ONE_WRONG = [["狗", "吃", "了", "鱼"], ["两", "只", "白", "猫"]]
SHORT = [["狗", "吃", "了", "鱼"], ["两", "只"]]
LONG = [["狗", "吃", "了", "鱼"], ["两", "只", "黑", "猫", "猫"]]
SWAPPED = [["鱼", "吃", "了", "狗"], ["两", "只", "黑", "猫"]]
TRADED = [["两", "只", "黑", "猫"], ["狗", "吃", "了", "鱼"]]


def _said(sentences):
    return " / ".join(" ".join(map(pinyin, words)) for words in sentences)


def _scores(answer, outputs, expected, note):
    where = f"for outputs “{_said(outputs)}” and gold “{_said(GOLD)}”"
    got = tensor(answer(outputs, GOLD), where)
    expect(got.dtype != torch.bool, f"{where}, you get {short(got)}, expected a share in 0..1")
    same(got, expected, where, note=note)


def test_all_right(answer):
    """all sentences right scores 1"""
    _scores(answer, GOLD, 1.0, "Both are right.")


def test_one_of_two(answer):
    """a sentence with one wrong word is wrong"""
    _scores(answer, ONE_WRONG, 0.5, "One of two sentences is right.")


def test_cut_short(answer):
    """a sentence that stops early is wrong"""
    _scores(answer, SHORT, 0.5, "The second sentence stops too early.")


def test_goes_on(answer):
    """a sentence that goes on is wrong"""
    _scores(answer, LONG, 0.5, "The second sentence has a word too many.")


def test_order_counts(answer):
    """the order of the words counts"""
    _scores(answer, SWAPPED, 0.5, "The fish did not eat the dog.")


def test_its_own_gold(answer):
    """each sentence is compared with its own gold"""
    _scores(answer, TRADED, 0.0, "Each is the translation of the other sentence.")


def test_words_are_words(answer):
    """words are compared one by one, not as one text"""
    gold = [["ab", "c"], ["d"], ["e", "e"], []]
    outputs = [["a", "bc"], ["d"], ["e"], []]
    same(answer(outputs, gold), 0.5, f"for outputs={outputs}, gold={gold}")
    same(answer(gold[:1], gold[:1]), 1.0, "for one sentence that is right")
    note = "A capital makes it another word."
    same(answer([["He"]], [["he"]]), 0.0, "for outputs=[['He']], gold=[['he']]", note=note)


def test_said_twice(answer):
    """sentences count by their place, also where one is said twice"""
    cases = (
        ([["a"], ["a"]], [["b"], ["a"]], 1 / 2),
        ([["a"], ["a"], ["b"]], [["a"], ["a"], ["c"]], 2 / 3),
    )
    for outputs, gold, expected in cases:
        same(answer(outputs, gold), expected, f"for outputs={outputs}, gold={gold}")


MISTAKES = r"""
share of words
    … =>
        pairs = [(a, b) for o, g in zip(outputs, gold) for a, b in zip(o, g)]
        return sum(a == b for a, b in pairs) / sum(map(len, gold))
    says: One of two sentences is right
    A sentence with one wrong word can be a wrong translation. Sharing out the credit by words
    makes a model look better than its sentences are.
compares as far as the shorter one
    … =>
        return sum(all(a == b for a, b in zip(o, g)) for o, g in zip(outputs, gold)) / len(gold)
    says: The second sentence stops too early
    `zip` stops at the shorter list, so a translation that stops too early, or never stops, is
    counted as right.
compares sets of words
    … =>
        return sum(set(o) == set(g) for o, g in zip(outputs, gold)) / len(gold)
    says: The fish did not eat the dog
    The words are all there, and the fish eats the dog. A set forgets order and repetition.
all or nothing
    … =>
        return (
                                  float(
                all(list(o) == list(g) for o, g in zip(outputs, gold, strict=True))
            )
        )
    says: One of two sentences is right
    This asks whether the whole list is right. The score is a share of the sentences.
a count, not a share
    … =>
        return (
                                  sum(
                list(o) == list(g) for o, g in zip(outputs, gold, strict=True)
            )
        )
    says: Both are right
    Divide by the number of sentences, or the score depends on how many were asked.
found anywhere in the gold
    … =>
        return sum(o in gold for o in outputs) / len(gold)
    says: Each is the translation of the other sentence
    `in` asks whether some sentence has this translation. Go through both lists side by side,
    and compare each output with its own gold.
words joined to one text
    … =>
        return (
            sum("".join(o) == "".join(g) for o, g in zip(outputs, gold, strict=True))
            / len(gold)
        )
    says: outputs=[['a', 'bc']
    Joined, `a bc` and `ab c` are the same letters. Sentences are lists of words: compare the
    lists.
looked up by its words
    … =>
        return sum(gold[outputs.index(o)] == o for o in outputs) / len(gold)
    says: outputs=[['a'], ['a']]
    `index` finds the first sentence that reads like this one. Two outputs may be the same and
    have different golds: go through both lists side by side, with `zip`.
equal pairs counted once
    … =>
        pairs = {(tuple(o), tuple(g)) for o, g in zip(outputs, gold)}
        return sum(o == g for o, g in pairs) / len(pairs)
    says: outputs=[['a'], ['a'], ['b']]
    A set, or a dict, keeps one of two equal pairs. Both sentences were asked, and count.
capitals ignored
    … =>
        return (
            sum([w.lower() for w in o] == [w.lower() for w in g] for o, g in zip(outputs, gold))
            / len(gold)
        )
    says: A capital makes it another word
    For the model `He` and `he` are two words, as `cat` and `mat` are. Compare what stands
    there.
"""

HARMLESS = r"""
return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=True))) / len(gold) => return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=True))) / len(outputs)
    there is one gold sentence for each output
return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=True))) / len(gold) => return sum((o == list(g) for o, g in zip(outputs, gold, strict=True))) / len(gold)
    sentences are lists already
return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=True))) / len(gold) => return sum((list(o) == g for o, g in zip(outputs, gold, strict=True))) / len(gold)
    sentences are lists already
return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=True))) / len(gold) => return sum((list(o) == list(g) for o, g in zip(gold, outputs, strict=True))) / len(gold)
    it is equal from both sides
return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=True))) / len(gold) => return sum((list(o) == list(g) for o, g in zip(outputs, gold))) / len(gold)
    there is one gold sentence for each output
return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=True))) / len(gold) => return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=False))) / len(gold)
    there is one gold sentence for each output
"""
