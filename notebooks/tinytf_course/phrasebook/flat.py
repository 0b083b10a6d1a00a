"""A symbol of the grammar with few phrases, all of them written out.

Their English sides are written at once, for a sentence's split hangs on them; Chinese and links of
a phrase when it is first asked for.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from typing import TYPE_CHECKING

from tinytf_course.phrasebook.rule import Phrase, Rule

if TYPE_CHECKING:
    from tinytf_course.phrasebook.synchronous import Grammar


class Phrases(Sequence):
    """The phrases of a small symbol: all their English sides, the rest when one is asked for.

    Raises ValueError where one English side has two readings.
    """

    def __init__(self, symbol: str, rules: list[Rule], grammar: "Grammar"):
        self.rules = rules
        self.parts = [[grammar.flat[part] for part in rule.symbols] for rule in rules]
        sizes = []
        for parts in self.parts:
            size = 1
            for part in parts:
                size *= len(part)
            sizes.append(size)
        self.starts = [0, *accumulate(sizes)]
        self._made: dict[int, Phrase] = {}
        odds: dict[tuple[str, ...], float] = {}  # by English side
        self.choices: list[int] = []  # of each phrase: which of all rules' combinations it is
        total = sum(rule.weight for rule in rules)
        number = 0
        for rule, parts in zip(rules, self.parts, strict=True):
            sides = [part.sources for part in parts]
            chances = [grammar.chances(part) for part in rule.symbols]
            for source, chance in _written(rule, sides, chances, rule.weight / total):
                if source not in odds:
                    odds[source] = chance
                    self.choices.append(number)
                else:
                    self._same_reading(symbol, source, number, odds)
                    odds[source] += chance
                number += 1
        self.sources, self.odds = list(odds), list(accumulate(odds.values()))

    def _same_reading(self, symbol: str, source: tuple[str, ...], number: int, odds: dict) -> None:
        first = self.choices[list(odds).index(source)]
        if self._choice(first) != self._choice(number):
            raise ValueError(f"{symbol}: two readings of {' '.join(source)!r}")

    def __len__(self) -> int:
        return len(self.choices)

    def __getitem__(self, index: int) -> Phrase:
        if index not in self._made:
            self._made[index] = self._choice(self.choices[index])
        return self._made[index]

    def _choice(self, number: int) -> Phrase:
        """The phrase of one of all rules' combinations, counted as `product` counts them."""
        at = bisect(self.starts, number) - 1
        number -= self.starts[at]
        chosen = []
        for part in reversed(self.parts[at]):
            number, index = divmod(number, len(part))
            chosen.append(part[index])
        return self.rules[at].build(chosen[::-1])


def _written(
    rule: Rule, sides: list[list[tuple[str, ...]]], chances: list[list[float]], weight: float
) -> Iterator[tuple[tuple[str, ...], float]]:
    """The English side and the chance of every combination of a rule's parts."""
    for chosen, odds in zip(product(*sides), product(*chances), strict=True):
        chance = weight
        for p in odds:
            chance *= p
        yield rule.source(chosen), chance
