"""Rules for what things are like, and for comparing them."""

from itertools import permutations

from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.synchronous import Grammar

PLACES = ("house", "room", "garden", "kitchen", "park", "school", "museum", "restaurant", "bridge")
COLOURS = [
    "car",
    "bike",
    "bag",
    "hat",
    "umbrella",
    "flower",
    "ball",
    "shirt",
    "coat",
    "door",
    "cup",
]
TOO = [
    "big",
    "small",
    "long",
    "short",
    "thick",
    "heavy",
    "expensive",
    "tired",
    "hungry",
    "busy",
    "dirty",
    "young",
]


def _predicates() -> list[tuple[str, str, str, list[str]]]:
    """Adjective, Chinese, comparative, nouns; `more expensive` is one comparative of two words."""
    found = []
    for line in lex.PREDICATES.strip().splitlines():
        adjective, chinese, comparative, *nouns = line.split()
        if comparative == "more":
            comparative, nouns = f"more {nouns[0]}", nouns[1:]
        comparative = "" if comparative == "-" else comparative
        found.append((adjective, chinese, comparative, list(lex.expand(" ".join(nouns)))))
    return found


def add_adjective(grammar: Grammar) -> None:
    """Something is (not, very, too) big; a colour is said with 是 ... 的."""
    rule = grammar.rule
    rows = [(adjective, chinese, nouns) for adjective, chinese, _, nouns in _predicates()]
    for adjective, chinese, nouns in rows:
        people = any(n in lex.PEOPLE or n in lex.KIN for n in nouns)
        for n in nouns:
            rule(f"{adjective}/one", f"{{n=plain/{n}}}", "{n}")
            if f"plains/{n}" in grammar.rules:
                rule(f"{adjective}/many", f"{{n=plains/{n}}}", "{n}")
        if people:
            rule(f"{adjective}/one", "{n=pronoun/one}", "{n}", len(nouns) / 5)
            rule(f"{adjective}/many", "{n=pronoun/are}", "{n}", len(nouns) / 5)
        for number, verbs in (("one", ("is", "was")), ("many", ("are", "were"))):
            who = f"{{s={adjective}/{number}}}"
            for be in verbs:
                rule(
                    "adjective", f"{who} {be} {adjective}", f"{{s}} 很<{be}> {chinese}<{adjective}>"
                )
                rule(
                    "adjective",
                    f"{who} {be} not {adjective}",
                    f"{{s}} 不<not> {chinese}<{adjective}>",
                    0.5,
                )
                for word, zh, end in (("very", "非常", ""), ("too", "太", "了<too>")):
                    if word == "too" and adjective not in TOO:
                        continue
                    target = f"{{s}} {zh}<{word}> {chinese}<{adjective}> {end}"
                    rule("adjective", f"{who} {be} {word} {adjective}", target, 0.7)
        if people:
            rule("adjective", f"i am {adjective}", f"我<i> 很<am> {chinese}<{adjective}>", 0.3)
    for n in COLOURS:
        rule("coloured/one", f"{{n=plain/{n}}}", "{n}")
        rule("coloured/many", f"{{n=plains/{n}}}", "{n}")
    for n in ("cat", "dog", "horse", "cow", "sheep", "rabbit", "bird"):
        rule("furred/one", f"{{n=plain/{n}}}", "{n}")
        rule("furred/many", f"{{n=plains/{n}}}", "{n}")
    for colour, zh in (("black", "黑色"), ("white", "白色"), ("red", "红色"), ("blue", "蓝色")):
        rule("colour", colour, f"{zh}<{colour}> 的<{colour}>")
        if colour in ("black", "white"):
            rule("fur", colour, f"{zh}<{colour}> 的<{colour}>")
    for group, colours, weight in (("coloured", "colour", 6), ("furred", "fur", 3)):
        for be, number in (("is", "one"), ("are", "many")):
            who, what = f"{{s={group}/{number}}}", f"{{c={colours}}}"
            rule("adjective", f"{who} {be} {what}", f"{{s}} 是<{be}> {{c}}", weight)
            target = f"{{s}} 不<not> 是<{be}> {{c}}"
            rule("adjective", f"{who} {be} not {what}", target, weight / 2)


def add_comparison(grammar: Grammar) -> None:
    """A is bigger than B -> A 比 B 大; A is as big as B -> A 和 B 一样 大."""
    for adjective, chinese, comparative, nouns in _predicates():
        if not comparative:
            continue
        adj = f"{chinese}<{comparative.split()[-1]}>"
        rows = []
        for a, b in permutations(nouns, 2):
            if _sort(a) == _sort(b):
                rows.append((f"{{a=plain/{a}}}", f"{{b=plain/{b}}}"))
        for n in nouns:
            if n in lex.KIN or n in lex.PEOPLE:
                rows.append(("{a=pronoun/one}", f"{{b=plain/{n}}}"))
                rows.append((f"{{a=plain/{n}}}", "{b=pronoun/object}"))
            else:
                rows.append((f"{{a=this/{n}}}", f"{{b=that/{n}}}"))
        for a, b in rows:
            weight = 1 / len(rows)
            kind = f"compare/{adjective}"
            grammar.rule(
                kind, f"{a} is {comparative} than {b}", f"{{a}} 比<than> {{b}} {adj}", weight * 3
            )
            english = f"{a} is as {adjective} as {b}"
            target = f"{{a}} 和<as.2> {{b}} 一样<as> {chinese}<{adjective}>"
            grammar.rule(kind, english, target, weight)
            english = f"{a} is not as {adjective} as {b}"
            target = f"{{a}} 没有<not,as,as.2> {{b}} {chinese}<{adjective}>"
            grammar.rule(kind, english, target, weight)
        grammar.rule("comparison", f"{{c=compare/{adjective}}}", "{c}")


_LIKE = (
    "book newspaper",
    "letter story", "car bike", "hat coat shirt bag umbrella", "phone computer",
    "table bed chair box",
)  # fmt: skip


def _sort(noun: str) -> int | str:
    groups = ((*lex.PEOPLE, *lex.KIN), lex.ANIMALS, PLACES, *(group.split() for group in _LIKE))
    return next((i for i, group in enumerate(groups) if noun in group), noun)
