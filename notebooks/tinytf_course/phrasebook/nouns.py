"""Rules for noun phrases, times and places: the parts that clauses are made of.

Symbols of a noun such as `cat` (the noun's own name stands in for N):

    bar/N, bars/N      the bare noun, singular and plural, with or without an adjective
    one/N, many/N      a full singular or plural phrase: the cat, two cats, my cats, these cats
    the/N              only `the`; plain/N, plains/N: the, this or my, and no adjective
    it/N               a phrase whose adjective `because it was ...` can not contradict
    ask/N              after "did not" and in yes-no questions, where `a` leaves no trace
    any/N              any cats, which may stand there too, but not after when or can
"""

from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.synchronous import Grammar

_VOWELS = tuple("aeiou")


def article(word: str) -> str:
    """`an` before a vowel, else `a`."""
    return "an" if word.startswith(_VOWELS) else "a"


def linked(chinese: str, english: str) -> str:
    """Every Chinese word linked to one English word: `漂亮 的` -> `漂亮<x> 的<x>`."""
    return " ".join(f"{word}<{english}>" for word in chinese.split())


def add_nouns(grammar: Grammar) -> None:
    """`bar`, `one`, `many`, `the` and `ask` of every noun that takes an article."""
    for noun in lex.NOUNS.values():
        if noun.singular in lex.KIN:
            continue
        _add_bar(grammar, noun, "bar", noun.singular)
        _add_singular(grammar, noun)
        if noun.plural:
            _add_bar(grammar, noun, "bars", noun.plural)
            _add_plural(grammar, noun)


def _add_bar(grammar: Grammar, noun: lex.Noun, bar: str, form: str) -> None:
    n = noun.singular
    grammar.rule(f"{bar}/{n}", form, f"{noun.chinese}<{form}>", 3)
    for adjective in noun.adjectives:
        chinese = linked(lex.attributive(adjective, n), adjective)
        grammar.rule(
            f"{bar}/{n}",
            f"{adjective} {form}",
            f"{chinese} {noun.chinese}<{form}>",
            weight=2 / len(noun.adjectives),
            reserved=(adjective, n) in lex.RESERVED_ADJECTIVES,
        )


def _add_singular(grammar: Grammar, noun: lex.Noun) -> None:
    n, measure = noun.singular, noun.measure
    grammar.rule(f"the/{n}", f"the {{n=bar/{n}}}", "{n}")
    grammar.rule(f"one/{n}", f"{{n=the/{n}}}", "{n}", 4)
    for word, chinese in (("this", "这"), ("that", "那")):
        english = f"{word} {{n=bar/{n}}}"
        grammar.rule(f"one/{n}", english, f"{chinese}<{word}> {measure}<{word}> {{n}}", 0.7)
        grammar.rule(f"ask/{n}", english, f"{chinese}<{word}> {measure}<{word}> {{n}}", 0.7)
    # "a" looks at the next word, so the bare noun and each adjective get their own rule.
    for adjective in ("", *noun.adjectives):
        a = article(adjective or n)
        english = f"{a} {adjective} {n}".replace("  ", " ")
        inner = f"{noun.chinese}<{n}>"
        if adjective:
            inner = f"{linked(lex.attributive(adjective, n), adjective)} {inner}"
        weight = 2 / len(noun.adjectives) if adjective else 3
        reserved = (adjective, n) in lex.RESERVED_ADJECTIVES
        grammar.rule(f"a/{n}", english, f"一<{a}> {measure}<{a}> {inner}", weight, reserved)
        grammar.rule(f"no/{n}", english, inner, weight, reserved)
    grammar.rule(f"one/{n}", f"{{n=a/{n}}}", "{n}", 2.5)
    grammar.rule(f"ask/{n}", f"{{n=no/{n}}}", "{n}", 2)
    grammar.rule(f"ask/{n}", f"{{n=the/{n}}}", "{n}", 3)
    if n in lex.OWNABLE:
        for word, chinese in lex.POSSESSIVES.items():
            english = f"{word} {{n=bar/{n}}}"
            grammar.rule(f"my/{n}", english, f"{chinese}<{word}> 的<{word}> {{n}}")
        grammar.rule(f"one/{n}", f"{{n=my/{n}}}", "{n}", 1.5)
        grammar.rule(f"ask/{n}", f"{{n=my/{n}}}", "{n}", 1.5)


def add_plain(grammar: Grammar) -> None:
    """`plain`, `plains` and `it` for nouns that something is said about."""
    for noun in lex.NOUNS.values():
        n, measure = noun.singular, noun.measure
        if n in lex.KIN:
            grammar.rule(f"plain/{n}", f"{{k=own/{n}}}", "{k}")
            continue
        bare = f"{noun.chinese}<{n}>"
        fillings = [(n, bare, 3.0)]
        for adjective in noun.adjectives:
            if adjective in lex.NEUTRAL:
                target = f"{linked(lex.attributive(adjective, n), adjective)} {bare}"
                fillings.append((f"{adjective} {n}", target, 1.0))
        for english, chinese, weight in fillings:
            reserved = (english.split()[0], n) in lex.RESERVED_ADJECTIVES
            for symbol in ("plain", "it") if english == n else ("it",):
                grammar.rule(f"{symbol}/{n}", f"the {english}", chinese, weight * 4, reserved)
                for word, this in (("this", "这"), ("that", "那")):
                    target = f"{this}<{word}> {measure}<{word}> {chinese}"
                    if symbol == "plain":
                        grammar.rule(f"{word}/{n}", f"{word} {english}", target)
                    grammar.rule(f"{symbol}/{n}", f"{word} {english}", target, weight, reserved)
                if n in lex.OWNABLE:
                    for word, whose in lex.POSSESSIVES.items():
                        target = f"{whose}<{word}> 的<{word}> {chinese}"
                        grammar.rule(
                            f"{symbol}/{n}", f"{word} {english}", target, weight / 3, reserved
                        )
        if noun.plural:
            form = noun.plural
            end = "们" if n in lex.PEOPLE else ""
            grammar.rule(f"plains/{n}", f"the {form}", f"{noun.chinese}{end}<{form}>", 2)
            for word, these in (("these", "这些"), ("those", "那些")):
                target = f"{these}<{word}> {noun.chinese}<{form}>"
                grammar.rule(f"plains/{n}", f"{word} {form}", target)


def _add_plural(grammar: Grammar, noun: lex.Noun) -> None:
    n, measure = noun.singular, noun.measure
    people = n in lex.PEOPLE
    bars = f"{{n=bars/{n}}}"
    for word, chinese in lex.NUMBERS.items():
        reserved = (word, noun.plural) in lex.RESERVED_NUMBERS
        english, target = f"{word} {bars}", f"{chinese}<{word}> {measure}<{word}> {{n}}"
        grammar.rule(f"count/{n}", english, target, 1, reserved)
    grammar.rule(f"many/{n}", f"{{n=count/{n}}}", "{n}", 3)
    if people:  # 们 marks the plural of people who are known
        grammar.rule(f"many/{n}", f"the {noun.plural}", f"{noun.chinese}们<{noun.plural}>", 2)
    else:
        grammar.rule(f"many/{n}", f"the {bars}", "{n}", 1.5)
    for word, chinese in (("these", "这些"), ("those", "那些"), ("some", "一些"), ("many", "很多")):
        grammar.rule(f"many/{n}", f"{word} {bars}", f"{chinese}<{word}> {{n}}", 0.5)
        if word in ("some", "many"):
            grammar.rule(f"lots/{n}", f"{word} {bars}", f"{chinese}<{word}> {{n}}")
        else:
            grammar.rule(f"ask/{n}", f"{word} {bars}", f"{chinese}<{word}> {{n}}", 0.4)
    grammar.rule(f"any/{n}", f"any {bars}", "{n}")


def add_masses(grammar: Grammar) -> None:
    """Water, a cup of tea, some hot noodles: nouns that only a helping can count."""
    for n, (chinese, adjectives) in lex.MASSES.items():
        grammar.rule(f"bar/{n}", n, f"{chinese}<{n}>", 3)
        for adjective in adjectives.split():
            target = f"{linked(lex.attributive(adjective, n), adjective)} {chinese}<{n}>"
            grammar.rule(f"bar/{n}", f"{adjective} {n}", target, 2 / len(adjectives.split()))
        grammar.rule(f"the/{n}", f"the {{n=bar/{n}}}", "{n}")
        grammar.rule(f"it/{n}", f"the {n}", f"{chinese}<{n}>")
        grammar.rule(f"one/{n}", f"{{n=the/{n}}}", "{n}", 2)
        grammar.rule(f"one/{n}", f"some {{n=bar/{n}}}", "一些<some> {n}", 1)
        grammar.rule(f"ask/{n}", f"{{n=the/{n}}}", "{n}", 1.5)
        grammar.rule(f"any/{n}", f"any {{n=bar/{n}}}", "{n}")
    for line in lex.HELPINGS.strip().splitlines():
        one, many, measure, *masses = line.split()
        for n in masses:
            english = f"a {one} of {{n=bar/{n}}}"
            grammar.rule(f"a/{n}", english, f"一<a> {measure}<{one}> {{n}}", 2)
            for word, number in lex.NUMBERS.items():
                if word in ("two", "three", "four", "five"):
                    english = f"{word} {many} of {{n=bar/{n}}}"
                    target = f"{number}<{word}> {measure}<{many}> {{n}}"
                    grammar.rule(f"a/{n}", english, target, 0.5)
    for n in lex.MASSES:
        if f"a/{n}" in grammar.rules:
            grammar.rule(f"one/{n}", f"{{n=a/{n}}}", "{n}", 2)
    for n, chinese in lex.BARE_OBJECTS.items():
        for symbol in ("one", "ask"):
            the = "the " if n in ("piano", "guitar") else ""
            grammar.rule(f"{symbol}/{n}", the + n, f"{chinese}<{n}>")


def add_kin(grammar: Grammar) -> None:
    """My mother -> 我 妈妈: close family takes no 的."""
    for kin in lex.KIN:
        chinese = lex.NOUNS[kin].chinese
        for word, whose in lex.POSSESSIVES.items():
            grammar.rule(f"own/{kin}", f"{word} {kin}", f"{whose}<{word}> {chinese}<{kin}>")
        for symbol in ("one", "ask", "the"):
            grammar.rule(f"{symbol}/{kin}", f"{{k=own/{kin}}}", "{k}")
        noun = lex.NOUNS[kin]
        for word, number in lex.NUMBERS.items():
            if noun.plural and word in ("two", "three", "four", "five"):
                target = f"{number}<{word}> 个<{word}> {chinese}<{noun.plural}>"
                grammar.rule(f"count/{kin}", f"{word} {noun.plural}", target)
        if noun.plural:
            grammar.rule(f"kids/{kin}", noun.plural, f"{chinese}<{noun.plural}>")
            a = article(kin)
            grammar.rule(f"a/{kin}", f"{a} {kin}", f"一<{a}> 个<{a}> {chinese}<{kin}>")
            grammar.rule(f"no/{kin}", f"{a} {kin}", f"{chinese}<{kin}>")


def add_subjects(grammar: Grammar) -> None:
    """`person` and `animal` subjects by number; `i/you/we/they` go with plural verbs."""
    for word, chinese in lex.SUBJECTS.items():
        number = "one" if word in ("he", "she") else "many"
        grammar.rule(f"pronoun/{number}", word, f"{chinese}<{word}>")
        if word not in ("i", "he", "she"):
            grammar.rule("pronoun/are", word, f"{chinese}<{word}>")
    for n in lex.KIN:
        grammar.rule("known/one", f"{{n=own/{n}}}", "{n}")
    for n in ("man", "woman", "boy", "girl", "friend"):
        grammar.rule("known/one", f"{{n=plain/{n}}}", "{n}", 0.5)
        grammar.rule("known/are", f"{{n=plains/{n}}}", "{n}")
    grammar.rule("known/one", "{n=pronoun/one}", "{n}", 4)
    grammar.rule("known/are", "{n=pronoun/are}", "{n}", 4)
    for word, chinese in lex.OBJECTS.items():
        grammar.rule("pronoun/object", word, f"{chinese}<{word}>")
    for n in lex.KIN:
        grammar.rule("person/one", f"{{n=own/{n}}}", "{n}")
        grammar.rule("person/the", f"{{n=own/{n}}}", "{n}", 0.6)
    for n in lex.PEOPLE:
        grammar.rule("person/one", f"{{n=one/{n}}}", "{n}")
        grammar.rule("person/many", f"{{n=many/{n}}}", "{n}")
        grammar.rule("person/the", f"{{n=the/{n}}}", "{n}")
    grammar.rule("person/one", "{n=pronoun/one}", "{n}", 4)
    grammar.rule("person/many", "{n=pronoun/many}", "{n}", 8)
    grammar.rule("person/many", "{a=person/the} and {b=person/the}", "{a} 和<and> {b}", 2)
    grammar.rule("person/past", "{n=person/one}", "{n}", 3)
    grammar.rule("person/past", "{n=person/many}", "{n}", 2)
    for group, members in (
        ("animal", lex.ANIMALS), ("hunter", lex.HUNTERS), ("grazer", lex.GRAZERS),
        ("pet", ("cat", "dog", "rabbit", "bird", "mouse", "panda")),
    ):  # fmt: skip
        for n in members:
            grammar.rule(f"{group}/one", f"{{n=one/{n}}}", "{n}")
            grammar.rule(f"{group}/many", f"{{n=many/{n}}}", "{n}")
            grammar.rule(f"{group}/the", f"{{n=the/{n}}}", "{n}")
        grammar.rule(f"{group}/past", f"{{n={group}/one}}", "{n}", 3)
        grammar.rule(f"{group}/past", f"{{n={group}/many}}", "{n}", 2)
