"""Rules for relative clauses, which English puts after the noun and Chinese in front of it."""

# A Chinese character counts as two columns, and a row of words reads best unbroken.
# ruff: noqa: E501

from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.synchronous import Grammar


def add_relative(grammar: Grammar) -> None:
    """The cat that the dog saw -> 狗 看见 的 猫: the clause goes in front of its noun."""
    rule = grammar.rule
    rule("maker", "{n=person/the}", "{n}", 3)
    for word, chinese in lex.SUBJECTS.items():
        rule("maker", word, f"{chinese}<{word}>", 0.2)
    _add_relative_nouns(grammar)
    for number, like in (("one", "likes"), ("many", "like")):
        for kind in ("person", "animal", "thing"):
            _add_main(grammar, f"{{s=person/{number}}}", "like", like, "喜欢", kind, 0.5)
    for kind, base, past, chinese in (
        ("person", "meet", "met", "遇见"), ("person", "help", "helped", "帮助"),
        ("person", "see", "saw", "看见"), ("animal", "see", "saw", "看见"),
        ("animal", "find", "found", "找到"), ("animal", "hear", "heard", "听见"),
        ("thing", "find", "found", "找到"), ("thing", "use", "used", "用"),
        ("thing", "see", "saw", "看见"), ("thing", "sell", "sold", "卖"),
    ):  # fmt: skip
        target = f"{chinese} 了<v>"
        _add_main(grammar, "{s=person/past}", base, past, target, kind, 1)
    person, animal, thing = "{n=relative/person}", "{n=relative/animal}", "{n=relative/thing}"
    rule("relative", f"{person} {{v=act/timed/person}} {{t=when/past}}", "{n} {t} {v}", 1)
    rule("relative", f"{person} {{v=act/past/person}}", "{n} {v}", 1)
    rule("relative", f"{animal} {{v=go/timed/animal}} {{t=when/past}}", "{n} {t} {v}", 1)
    for english, chinese, subjects in (
        ("new", "新", (thing,)), ("expensive", "贵", (thing,)), ("old", "旧", (thing,)),
        ("beautiful", "漂亮", (animal,)), ("big", "大", (animal,)), ("clever", "聪明", (animal, person)),
        ("famous", "有名", (person,)), ("happy", "高兴", (person,)), ("tired", "累", (person, animal)),
    ):  # fmt: skip
        adjective = f"{chinese}<{english}>"
        for subject in subjects:
            rule("relative", f"{subject} is {english}", f"{{n}} 很<is> {adjective}", 0.3)
            rule("relative", f"{subject} is very {english}", f"{{n}} 非常<very> {adjective}", 0.3)


def _add_main(
    grammar: Grammar, who: str, base: str, form: str, chinese: str, kind: str, weight: float
) -> None:
    """`who` saw each noun of `kind` that has a relative clause, where the two words may meet."""
    symbol = f"relative/{base}/{kind}"
    if symbol not in grammar.rules:
        for n in (*lex.PEOPLE, *lex.ANIMALS, *lex.GOODS):
            if _kind(n) == kind and f"that/{n}/clause" in grammar.rules:
                reserved = (base, n) in lex.RESERVED_OBJECTS
                grammar.rule(symbol, f"{{n=that/{n}/clause}}", "{n}", 1, reserved)
    verb, *le = chinese.split()
    target = f"{{s}} {verb}<{form}> {f'了<{form}>' if le else ''} {{n}}"
    grammar.rule("relative", f"{who} {form} {{n={symbol}}}", target, weight)


def _add_relative_nouns(grammar: Grammar) -> None:
    rule = grammar.rule
    for verb in lex.VERBS:
        for n in verb.objects:
            if verb.base == "need" or n in lex.KIN or n not in lex.NOUNS or not _kind(n):
                continue
            english = f"{{n=the/{n}}} that {{s=maker}} {verb.past}"
            target = f"{{s}} {verb.chinese}<{verb.past}> 的<that> {{n}}"
            reserved = (verb.base, n) in lex.RESERVED_OBJECTS
            rule(f"that/{n}/clause", english, target, 1, reserved)
    for other in ("cat", "dog", "mouse", "rabbit", "bird"):
        for beast in ("cat", "dog", "horse", "bird"):
            if beast != other:
                for past, zh in (("saw", "看见"), ("heard", "听见")):
                    english = f"{{n=the/{other}}} that {{s=the/{beast}}} {past}"
                    rule(f"that/{other}/clause", english, f"{{s}} {zh}<{past}> 的<that> {{n}}", 0.6)
    for n in lex.PEOPLE:
        symbol = f"that/{n}/clause"
        rule(symbol, f"{{n=the/{n}}} who {{v=do/past/person}}", "{v} 的<who> {n}", 3)
        rule(symbol, f"{{n=the/{n}}} who {{v=do/past/state}}", "{v} 的<who> {n}", 1)
    for n in lex.ANIMALS:
        rule(f"that/{n}/clause", f"{{n=the/{n}}} that {{v=do/past/animal}}", "{v} 的<that> {n}", 2)
    for n in lex.HUNTERS:
        rule(f"that/{n}/clause", f"{{n=the/{n}}} that {{v=do/past/hunter}}", "{v} 的<that> {n}", 3)
    for n in (*lex.PEOPLE, *lex.ANIMALS, *lex.GOODS):
        if f"that/{n}/clause" in grammar.rules:
            rule(f"relative/{_kind(n)}", f"{{n=that/{n}/clause}}", "{n}")


def _kind(noun: str) -> str:
    if noun in lex.ANIMALS:
        return "animal"
    if noun in lex.PEOPLE:
        return "person"
    return "thing" if noun in lex.GOODS else ""
