"""One rule of a synchronous grammar and the phrase it writes: `synchronous.py` explains both."""

from collections.abc import Sequence
from typing import NamedTuple


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

    def source(self, parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """The English side that this rule makes of one English side per slot."""
        source: tuple[str, ...] = ()
        for slot, word in self.english:
            source += parts[slot] if slot >= 0 else word
        return source

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
