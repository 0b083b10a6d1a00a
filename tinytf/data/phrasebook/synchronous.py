"""A synchronous grammar: one derivation writes an English phrase and its Chinese at the same time.

A rule has one English side and one Chinese side that share their slots:

    grammar.rule("clause", "{s=noun} sat on {p=noun}", "{s} 坐<sat> 在<on> {p} 上<on>")

`{s=noun}` is a slot called `s` filled by the symbol `noun`; the Chinese side puts the same filling
where Chinese wants it. `在<on>` is a Chinese word with a gold link to the English word `on`;
`了<v>` links to the last word of slot `v`; `<a,b>` makes two links, `<as.2>` means the second `as`.

Symbols with few phrases are written out in full ("flat") when the grammar is closed: sampling one
is a single bisection, and reading one is a walk down a trie. The rest is expanded rule by rule.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, product
from typing import NamedTuple

FLAT = 1500  # a symbol with at most this many phrases is written out in full
_END = ""  # the key under which a trie keeps the phrase that ends there; no token is empty


class Phrase(NamedTuple):
    """English, its Chinese, their links, and whether it holds a reserved combination."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    reserved: bool = False
    antecedent: tuple[int, int, int] | None = None


class Rule:
    """One synchronous rule, compiled so that `build` only concatenates and shifts."""

    def __init__(self, english: str, chinese: str, weight: float, reserved: bool, it: str | None):
        self.weight, self.reserved, self.text = weight, reserved, f"{english} -> {chinese}"
        self.symbols: list[str] = []
        names: dict[str, int] = {}  # slot name -> slot number
        places: dict[str, int] = {}  # English word or slot name -> its item
        self.english: list[tuple[int, tuple[str, ...]]] = []  # (slot number or -1, word)
        for item in english.split():
            if item.startswith("{"):
                name, symbol = item[1:-1].split("=")
                places[name], names[name] = len(self.english), len(self.symbols)
                self.english.append((len(self.symbols), ()))
                self.symbols.append(symbol)
            else:
                repeat = 1
                while (f"{item}.{repeat}" if repeat > 1 else item) in places:
                    repeat += 1
                places[f"{item}.{repeat}" if repeat > 1 else item] = len(self.english)
                self.english.append((-1, (item,)))
        self.chinese: list[tuple[int, tuple[str, ...]]] = []
        self.links: list[tuple[int, int]] = []  # (English item, Chinese item)
        for item in chinese.split():
            if item.startswith("{"):
                self.chinese.append((names[item[1:-1]], ()))
                continue
            word, _, linked = item.partition("<")
            for name in filter(None, linked.rstrip(">").split(",")):
                self.links.append((places[name], len(self.chinese)))
            self.chinese.append((-1, (word,)))
        # `it` names the slot that the word "it" stands for; its copy is the word linked to it.
        self.it = it and (
            places["it"],
            places[it],
            next(zh for en, zh in self.links if en == places["it"]),
        )

    def build(self, parts: list[Phrase]) -> Phrase:
        """The phrase this rule makes of one part per slot."""
        source: tuple[str, ...] = ()
        target: tuple[str, ...] = ()
        reserved = self.reserved
        english_start, chinese_start = [0] * len(parts), [0] * len(parts)
        english_last, chinese_last = [], []
        for slot, word in self.english:
            if slot >= 0:
                english_start[slot] = len(source)
                source += parts[slot].source
                reserved = reserved or parts[slot].reserved
            else:
                source += word
            english_last.append(len(source) - 1)
        for slot, word in self.chinese:
            if slot >= 0:
                chinese_start[slot] = len(target)
                target += parts[slot].target
            else:
                target += word
            chinese_last.append(len(target) - 1)
        links = [(english_last[i], chinese_last[j]) for i, j in self.links]
        antecedent = None
        for part, i, j in zip(parts, english_start, chinese_start, strict=True):
            links += [(i + a, j + b) for a, b in part.links]
            if part.antecedent:
                it, noun, copy = part.antecedent
                antecedent = (i + it, i + noun, j + copy)
        if self.it:
            it, noun, copy = self.it
            antecedent = (english_last[it], english_last[noun], chinese_last[copy])
        return Phrase(source, target, tuple(links), reserved, antecedent)


class Grammar:
    """Rules by symbol; `close()` once they are all there, then `draw` and `read`."""

    def __init__(self) -> None:
        self.rules: dict[str, list[Rule]] = {}
        self.flat: dict[str, list[Phrase]] = {}
        self.odds: dict[str, list[float]] = {}  # running totals of the choice at each symbol
        self.tries: dict[str, dict] = {}
        self.firsts: dict[str, dict[str, list[Rule]]] = {}  # symbol -> first word -> rules

    def rule(
        self,
        symbol: str,
        english: str,
        chinese: str,
        weight: float = 1.0,
        reserved: bool = False,
        it: str | None = None,
    ) -> None:
        """Add one rule. `reserved` marks a combination of words that training must not show."""
        rule = Rule(english, chinese, weight, reserved, it)
        self.rules.setdefault(symbol, []).append(rule)

    def close(self) -> None:
        """Write out the small symbols and index the rest. Raises KeyError for a missing symbol."""
        sizes: dict[str, int] = {}
        for symbol in list(self.rules):
            self._size(symbol, sizes)
        for symbol in self.rules:
            self._flatten(symbol, sizes)
        for symbol, rules in self.rules.items():
            if symbol not in self.flat:
                self.odds[symbol] = list(accumulate(rule.weight for rule in rules))
        for symbol in self.rules:
            self._first(symbol)

    def _size(self, symbol: str, sizes: dict[str, int]) -> int:
        if symbol not in sizes:
            sizes[symbol] = 0
            for rule in self.rules[symbol]:
                count = 1
                for part in rule.symbols:
                    count *= self._size(part, sizes)
                sizes[symbol] += count
        return sizes[symbol]

    def _flatten(self, symbol: str, sizes: dict[str, int]) -> None:
        if symbol in self.flat or sizes[symbol] > FLAT:
            return
        odds: dict[Phrase, float] = {}
        total = sum(rule.weight for rule in self.rules[symbol])
        for rule in self.rules[symbol]:
            choices = []
            for part in rule.symbols:
                self._flatten(part, sizes)
                running = self.odds[part]
                chances = [b - a for a, b in zip([0.0, *running], running, strict=False)]
                choices.append(list(zip(self.flat[part], chances, strict=True)))
            for chosen in product(*choices):
                phrase = rule.build([part for part, _ in chosen])
                chance = rule.weight / total
                for _, p in chosen:
                    chance *= p
                odds[phrase] = odds.get(phrase, 0.0) + chance
        self.flat[symbol] = list(odds)
        self.odds[symbol] = list(accumulate(odds.values()))
        trie: dict = {}
        for phrase in odds:
            node = trie
            for word in phrase.source:
                node = node.setdefault(word, {})
            if _END in node:
                raise ValueError(f"{symbol}: two readings of {' '.join(phrase.source)!r}")
            node[_END] = phrase
        self.tries[symbol] = trie

    def _first(self, symbol: str) -> set[str]:
        if symbol in self.tries:
            return set(self.tries[symbol])
        if symbol not in self.firsts:
            table: dict[str, list[Rule]] = {}
            for rule in self.rules[symbol]:
                slot, word = rule.english[0]
                for first in word or sorted(self._first(rule.symbols[slot])):
                    table.setdefault(first, []).append(rule)
            self.firsts[symbol] = table
        return set(self.firsts[symbol])

    def draw(self, symbol: str, random: Callable[[], float]) -> Phrase:
        """A random phrase of `symbol`; `random()` gives floats in [0, 1)."""
        odds = self.odds[symbol]
        index = bisect(odds, random() * odds[-1])
        if symbol in self.flat:
            return self.flat[symbol][index]
        rule = self.rules[symbol][index]
        return rule.build([self.draw(part, random) for part in rule.symbols])

    def read(
        self, symbols: Iterable[str], words: tuple[str, ...]
    ) -> tuple[list[tuple[str, Phrase]], int]:
        """All readings of `words`, each with its symbol, and how far the words could be read."""
        reader = _Reader(self, words)
        whole = [
            (symbol, phrase)
            for symbol in symbols
            for end, phrase in reader.phrases(symbol, 0)
            if end == len(words)
        ]
        return whole, reader.furthest

    def words(self) -> tuple[set[str], set[str]]:
        """Every English and every Chinese word that some rule writes."""
        english, chinese = set(), set()
        for rules in self.rules.values():
            for rule in rules:
                english.update(*(word for _, word in rule.english))
                chinese.update(*(word for _, word in rule.chinese))
        return english, chinese


class _Reader:
    """Recursive descent with a memo: each symbol is read at most once at each position."""

    def __init__(self, grammar: Grammar, words: tuple[str, ...]):
        self.grammar, self.words, self.furthest = grammar, words, 0
        self.memo: dict[tuple[str, int], list[tuple[int, Phrase]]] = {}

    def phrases(self, symbol: str, start: int) -> list[tuple[int, Phrase]]:
        """Every (end, phrase) of `symbol` that begins at `start`."""
        key = (symbol, start)
        if key not in self.memo:
            flat = symbol in self.grammar.tries
            self.memo[key] = list(
                self._walk(symbol, start) if flat else self._expand(symbol, start)
            )
        return self.memo[key]

    def _walk(self, symbol: str, start: int) -> Iterator[tuple[int, Phrase]]:
        node, end = self.grammar.tries[symbol], start
        while end < len(self.words) and self.words[end] in node:
            node, end = node[self.words[end]], end + 1
            if _END in node:
                yield end, node[_END]
        self.furthest = max(self.furthest, end)

    def _expand(self, symbol: str, start: int) -> Iterator[tuple[int, Phrase]]:
        if start < len(self.words):
            for rule in self.grammar.firsts[symbol].get(self.words[start], ()):
                yield from self._match(rule, 0, start, [])

    def _match(
        self, rule: Rule, item: int, at: int, parts: list[Phrase]
    ) -> Iterator[tuple[int, Phrase]]:
        if item == len(rule.english):
            yield at, rule.build(parts)
            return
        slot, word = rule.english[item]
        if slot >= 0:
            for end, part in self.phrases(rule.symbols[slot], at):
                yield from self._match(rule, item + 1, end, [*parts, part])
        elif at < len(self.words) and self.words[at] == word[0]:
            self.furthest = max(self.furthest, at + 1)
            yield from self._match(rule, item + 1, at + 1, parts)
