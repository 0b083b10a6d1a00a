"""What may stand in a blank of a phrasebook sentence, and how likely: computed from the grammar.

The grammar draws its sentences by known odds, so the odds of each word at a blank, given all the
other words or only those before it, are a sum over its derivations. No model can do better, on
average, than these: their loss is the floor.
"""

from collections.abc import Sequence

import numpy as np

from tinytf_course.phrasebook import KIND_WEIGHTS, KINDS, Phrasebook
from tinytf_course.phrasebook.synchronous import Grammar, Rule

__all__ = ["Blanks"]


class Blanks:
    """The odds of the words at a blank, as `Phrasebook` draws its training sentences.

    Sentences with a reserved combination are left out, as in training. Two things are neglected:
    sentences that are too long are drawn again, and a word may stand in two derivations of one
    English sentence, which the phrasebook does not have.
    """

    def __init__(self, book: Phrasebook, kinds: Sequence[str] = KINDS) -> None:
        self.words, self.kinds = book.source_words, tuple(kinds)
        self.grammar: Grammar = book.grammar
        self.column = {word: i for i, word in enumerate(self.words)}
        self._ones = np.eye(len(self.words))
        self._tries: dict[str, _Node] = {}
        self._masses: dict[str, float] = {}

    def odds(self, sentence: Sequence[str], blank: int, both: bool = True) -> np.ndarray:
        """Give the probability of each of `words` at index `blank` of a sentence: (V,), sum 1.

        What stands at the blank is not looked at; with `both` false, neither is what follows it.
        Raises ValueError if the grammar has no sentence with these words round the blank.
        """
        words = tuple(sentence)
        if not 0 <= blank < len(words):
            raise ValueError(f"blank={blank} is not among the sentence's 0..{len(words) - 1}")
        reader = _Reader(self, words if both else words[: blank + 1], blank, both)
        total = np.zeros(len(self.words))
        for kind in self.kinds:
            total += KIND_WEIGHTS[kind] * reader.spans(kind, 0).get(len(reader.words), 0.0)
        if not total.sum() > 0:
            around = " ".join((*words[:blank], "___", *(words[blank + 1 :] if both else ())))
            raise ValueError(f"the grammar has no sentence {around!r}")
        return total / total.sum()

    def mass(self, symbol: str) -> float:
        """The share of a symbol's draws that hold no reserved combination."""
        if symbol not in self._masses:
            if symbol in self.grammar.flat:
                self._masses[symbol] = self.trie(symbol).mass
            else:
                rules = self.grammar.rules[symbol]
                kept = sum(r.weight * self.rest(r, 0) for r in rules if not r.reserved)
                self._masses[symbol] = kept / sum(r.weight for r in rules)
        return self._masses[symbol]

    def rest(self, rule: Rule, item: int) -> float:
        """The share of a rule's draws whose items from `item` on hold nothing reserved."""
        share = 1.0
        for slot, _ in rule.english[item:]:
            if slot >= 0:
                share *= self.mass(rule.symbols[slot])
        return share

    def trie(self, symbol: str) -> "_Node":
        """The phrases of a symbol that is written out in full, with their odds, word by word."""
        if symbol not in self._tries:
            root, odds = _Node(), self.grammar.odds[symbol]
            for phrase, low, high in zip(
                self.grammar.flat[symbol], [0.0, *odds], odds, strict=False
            ):
                if not phrase.reserved:
                    root.add(phrase.source, (high - low) / odds[-1])
            self._tries[symbol] = root
        return self._tries[symbol]

    def one(self, word: str) -> np.ndarray:
        """The vector that is 1 at this word and 0 elsewhere."""
        return self._ones[self.column[word]]


class _Node:
    """A place in a trie: the odds of the phrases through it, and of the one that ends there."""

    __slots__ = ("after", "end", "mass")

    def __init__(self) -> None:
        self.mass, self.end, self.after = 0.0, 0.0, {}

    def add(self, words: Sequence[str], odds: float) -> None:
        node = self
        node.mass += odds
        for word in words:
            node = node.after.setdefault(word, _Node())
            node.mass += odds
        node.end += odds


class _Reader:
    """The odds that a symbol read from some start ends here or there.

    They are a number, or a vector (V,) once the blank is in it. Without `both`, the blank is the
    last word, and to end behind it means to end anywhere.
    """

    def __init__(self, blanks: Blanks, words: tuple[str, ...], blank: int, both: bool) -> None:
        self.blanks, self.words, self.blank, self.both = blanks, words, blank, both
        self.memo: dict[tuple[str, int], dict[int, float | np.ndarray]] = {}

    def spans(self, symbol: str, start: int) -> dict[int, float | np.ndarray]:
        key = symbol, start
        if key not in self.memo:
            ends: dict[int, float | np.ndarray] = {}
            flat = symbol in self.blanks.grammar.flat
            if flat:
                self._walk(self.blanks.trie(symbol), start, 1.0, ends)
            else:
                self._expand(symbol, start, ends)
            self.memo[key] = ends
        return self.memo[key]

    def _walk(self, node: _Node, at: int, odds: float | np.ndarray, ends: dict) -> None:
        if node.end:
            ends[at] = ends.get(at, 0.0) + odds * node.end
        if at == len(self.words):
            return
        if at != self.blank:
            if self.words[at] in node.after:
                self._walk(node.after[self.words[at]], at + 1, odds, ends)
            return
        for word, after in node.after.items():
            if self.both:
                self._walk(after, at + 1, self.blanks.one(word), ends)
            else:  # whatever follows
                ends[at + 1] = ends.get(at + 1, 0.0) + self.blanks.one(word) * after.mass

    def _expand(self, symbol: str, start: int, ends: dict) -> None:
        if start == len(self.words):
            return
        grammar = self.blanks.grammar
        rules, total = grammar.rules[symbol], grammar.odds[symbol][-1]
        if start != self.blank:
            rules = grammar.firsts[symbol].get(self.words[start], ())
        for rule in rules:
            if not rule.reserved:
                self._match(rule, 0, start, rule.weight / total, ends)

    def _match(self, rule: Rule, item: int, at: int, odds: float | np.ndarray, ends: dict) -> None:
        covered = not self.both and at == len(self.words)
        if covered or item == len(rule.english):
            share = self.blanks.rest(rule, item) if covered else 1.0
            ends[at] = ends.get(at, 0.0) + odds * share
            return
        slot, word = rule.english[item]
        if slot >= 0:
            for end, part in self.spans(rule.symbols[slot], at).items():
                self._match(rule, item + 1, end, odds * part, ends)
        elif at < len(self.words) and at == self.blank:
            self._match(rule, item + 1, at + 1, odds * self.blanks.one(word[0]), ends)
        elif at < len(self.words) and self.words[at] == word[0]:
            self._match(rule, item + 1, at + 1, odds, ends)
