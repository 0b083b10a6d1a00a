"""A synchronous grammar: one derivation writes an English phrase and its Chinese at the same time.

A rule has one English side and one Chinese side that share their slots:

    grammar.rule("clause", "{s=noun} sat on {p=noun}", "{s} 坐<sat> 在<on> {p} 上<on>")

`{s=noun}` is a slot called `s` filled by the symbol `noun`; the Chinese side puts the same filling
where Chinese wants it. `在<on>` is a Chinese word with a gold link to the English word `on`;
`了<v>` links to the last word of slot `v`; `<a,b>` makes two links, `<as.2>` means the second `as`.

Symbols with few phrases are written out in full ("flat") when the grammar is closed: sampling one
is a single bisection, and reading one is a walk down a trie. The rest is expanded rule by rule.
Of a flat symbol the English sides are written at once, Chinese and links of a phrase and the trie
when they are first asked for.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from tinytf_course.phrasebook.flat import Phrases
from tinytf_course.phrasebook.rule import Phrase, Rule

FLAT = 1500  # a symbol with at most this many phrases is written out in full
_END = ""  # the key under which a trie keeps the number of the phrase that ends there


class Grammar:
    """Rules by symbol; `close()` once they are all there, then `draw` and `read`."""

    def __init__(self) -> None:
        self.rules: dict[str, list[Rule]] = {}
        self.flat: dict[str, Phrases] = {}
        self.odds: dict[str, list[float]] = {}  # running totals of the choice at each symbol
        self._tries: dict[str, dict] = {}
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
        for rule in self.rules[symbol]:
            for part in rule.symbols:
                self._flatten(part, sizes)
        self.flat[symbol] = Phrases(symbol, self.rules[symbol], self)
        self.odds[symbol] = self.flat[symbol].odds

    def chances(self, symbol: str) -> list[float]:
        """The chance of each phrase of a symbol that is written out in full."""
        running = self.odds[symbol]
        return [b - a for a, b in zip([0.0, *running], running, strict=False)]

    def trie(self, symbol: str) -> dict:
        """The phrases of a symbol that is written out in full, word by word."""
        if symbol not in self._tries:
            root: dict = {}
            for index, source in enumerate(self.flat[symbol].sources):
                node = root
                for word in source:
                    node = node.setdefault(word, {})
                node[_END] = index
            self._tries[symbol] = root
        return self._tries[symbol]

    def _first(self, symbol: str) -> set[str]:
        if symbol in self.flat:
            return {source[0] for source in self.flat[symbol].sources}
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
        return self.choose(symbol, random).phrase()

    def choose(self, symbol: str, random: Callable[[], float]) -> "Choice":
        """A random phrase of `symbol`, chosen and not yet written."""
        odds = self.odds[symbol]
        index = bisect(odds, random() * odds[-1])
        if symbol in self.flat:
            return Choice(self.flat[symbol], index)
        rule = self.rules[symbol][index]
        return Choice(rule, [self.choose(part, random) for part in rule.symbols])

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


class Choice:
    """A phrase that is chosen and not yet written: its English side costs less than the whole.

    `what` is the number of a phrase of a flat symbol, or a rule's choices, one per slot.
    """

    __slots__ = ("of", "what")

    def __init__(self, of: Rule | Phrases, what: "list[Choice] | int"):
        self.of, self.what = of, what

    def source(self) -> tuple[str, ...]:
        """The English side."""
        if isinstance(self.what, int):
            return self.of.sources[self.what]
        return self.of.source([part.source() for part in self.what])

    def phrase(self) -> Phrase:
        """The whole phrase."""
        if isinstance(self.what, int):
            return self.of[self.what]
        return self.of.build([part.phrase() for part in self.what])


class _Reader:
    """Recursive descent with a memo: each symbol is read at most once at each position."""

    def __init__(self, grammar: Grammar, words: tuple[str, ...]):
        self.grammar, self.words, self.furthest = grammar, words, 0
        self.memo: dict[tuple[str, int], list[tuple[int, Phrase]]] = {}

    def phrases(self, symbol: str, start: int) -> list[tuple[int, Phrase]]:
        """Every (end, phrase) of `symbol` that begins at `start`."""
        key = (symbol, start)
        if key not in self.memo:
            flat = symbol in self.grammar.flat
            self.memo[key] = list(
                self._walk(symbol, start) if flat else self._expand(symbol, start)
            )
        return self.memo[key]

    def _walk(self, symbol: str, start: int) -> Iterator[tuple[int, Phrase]]:
        node, end = self.grammar.trie(symbol), start
        while end < len(self.words) and self.words[end] in node:
            node, end = node[self.words[end]], end + 1
            if _END in node:
                yield end, self.grammar.flat[symbol][node[_END]]
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
