"""Rules for sentences built on clauses: timed, dated, denied, wanted, owned, given."""

# A Chinese character counts as two columns, and a row of words reads best unbroken.
# ruff: noqa: E501

from tinytf_course.phrasebook import adverbials
from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.synchronous import Grammar

OWNED = [
    "car",
    "bike",
    "bag",
    "phone",
    "computer",
    "book",
    "map",
    "umbrella",
    "coat",
    "hat",
    "cat",
    "dog",
    "bird",
    "rabbit",
    "house",
]
GIFTS = [
    "book",
    "map",
    "ticket",
    "cup",
    "bag",
    "coat",
    "hat",
    "umbrella",
    "phone",
    "flower",
    "cake",
    "apple",
    "orange",
    "photo",
    "key",
]


def add_time(grammar: Grammar) -> None:
    """Yesterday, every day, now, on monday, at 5 o'clock: time moves in front of the verb."""
    rule = grammar.rule
    for group, weight in (("person", 4), ("animal", 0.7), ("hunter", 0.7), ("grazer", 0.4)):
        clause = f"{{s={group}/past}} {{v=act/timed/{group}}}"
        rule("time", f"{clause} {{t=when/past}}", "{s} {t} {v}", weight)
        rule("time", f"{{t=when/past}} {clause}", "{t} {s} {v}", weight / 2)
    rule("time", "{s=person/past} {h=happened} {t=when/past}", "{s} {t} {h}", 2)
    rule(
        "time", "{s=person/past} {v=do/past/indoors} {p=where} {t=when/past}", "{s} {t} {p} {v}", 2
    )
    rule(
        "time",
        "{s=person/past} will {v=act/base/person} {t=when/future}",
        "{s} {t} 会<will> {v}",
        2,
    )
    rule(
        "time",
        "{t=when/future} {s=person/past} will {v=act/base/person}",
        "{t} {s} 会<will> {v}",
        1,
    )
    for word, chinese in adverbials.ADVERBS.items():
        rule("adverb", word, f"{chinese}<{word}>")
    for number, form in (("one", "third"), ("many", "habit")):
        who, does = f"{{s=person/{number}}}", f"{{v=act/{form}/person}}"
        rule("time", f"{who} {does} {{t=time/habit}}", "{s} {t} {v}", 2.5)
        rule("time", f"{who} {{a=adverb}} {does}", "{s} {a} {v}", 2.5)
    rule("time", "{s=person/one} is {v=act/ing/person} {t=time/now}", "{s} {t} 正在<is> {v}", 0.6)
    rule("time", "{s=person/are} are {v=act/ing/person} {t=time/now}", "{s} {t} 正在<are> {v}", 0.4)


def add_date(grammar: Grammar) -> None:
    """On 3 march 2021 -> 2021 年 3 月 3 日, year first and before the verb."""
    rule = grammar.rule
    clause = "{s=person/past} {v=act/dated}"
    rule("date", f"{clause} {{d=ago}}", "{s} {d} {v}", 1)
    rule("date", f"{{d=ago}} {clause}", "{d} {s} {v}", 0.7)
    rule("date", f"{clause} {{d=date/full}}", "{s} {d} {v}", 3)
    rule("date", f"{{d=date/full}} {clause}", "{d} {s} {v}", 2)
    rule("date", f"{clause} {{d=date/day}}", "{s} {d} {v}", 0.7)
    rule(
        "date", "{s=person/past} will {v=act/base/person} {d=date/day}", "{s} {d} 会<will> {v}", 0.7
    )
    rule("date", "{s=known/one} was born {d=date/full}", "{s} {d} 出生<born>", 0.7)
    rule("date", "today is {d=day} {y=year}", "今天<today> 是<is> {y} {d}", 0.4)
    rule("date", "today is {d=day}", "今天<today> 是<is> {d}", 0.1)


def add_negation(grammar: Grammar) -> None:
    """没有 for what did not happen, 不 for what is not so; 没有 for what is not owned."""
    rule = grammar.rule
    for group, weight in (("person", 4), ("animal", 1), ("hunter", 1), ("grazer", 0.5)):
        not_done = f"{{s={group}/past}} did not {{v=act/ask/{group}}}"
        rule("negation", not_done, "{s} 没有<did,not> {v}", weight)
        rule("negation", f"{not_done} {{t=time/past}}", "{s} {t} 没有<did,not> {v}", weight / 3)
    english = "{s=person/past} did not {v=do/ask/indoors} {p=where}"
    rule("negation", english, "{s} 没有<did,not> {p} {v}", 1)
    for do, number in (("does", "one"), ("do", "many")):
        english = f"{{s=person/{number}}} {do} not {{v=do/ask/state}}"
        rule("negation", english, f"{{s}} 不<{do},not> {{v}}", 1)
        english = f"{{s=person/{number}}} {do} not have {{o=unowned}}"
        rule("negation", english, f"{{s}} 没有<{do},not,have> {{o}}", 0.7)
    rule("negation", "{s=person/past} will not {v=act/ask/person}", "{s} 不<not> 会<will> {v}", 1)
    rule("negation", "{s=known/one} is not {j=job/one}", "{s} 不<not> 是<is> {j}", 0.4)
    rule("negation", "{s=known/are} are not {j=job/many}", "{s} 不<not> 是<are> {j}", 0.3)
    rule("negation", "{s=thing/one} is not {p=spot}", "{s} 不<not> {p}", 0.6)
    rule("negation", "{s=thing/many} are not {p=spot}", "{s} 不<not> {p}", 0.4)


def add_modal(grammar: Grammar) -> None:
    """Want to 想, can 会 for a skill and 能 for the rest, must 必须, should 应该."""
    rule = grammar.rule
    for number, want in (("one", "wants"), ("many", "want")):
        who = f"{{s=person/{number}}}"
        rule("modal", f"{who} {want} to {{v=act/base/person}}", f"{{s}} 想<{want}> {{v}}")
        placed = f"{who} {want} to {{v=do/base/indoors}} {{p=where}}"
        rule("modal", placed, f"{{s}} 想<{want}> {{p}} {{v}}", 1)
        does = "does" if number == "one" else "do"
        english = f"{who} {does} not want to {{v=act/ask/person}}"
        rule("modal", english, f"{{s}} 不<{does},not> 想<want> {{v}}", 0.5)
    rule("modal", "{s=person/past} wanted to {v=act/base/person}", "{s} 想<wanted> {v}", 0.7)
    for can in ("会", "能"):
        rule("modal", f"{{s=person/past}} can {{v=able/{can}}}", f"{{s}} {can}<can> {{v}}")
        rule(
            "modal",
            f"{{s=person/past}} can not {{v=able/{can}}}",
            f"{{s}} 不<not> {can}<can> {{v}}",
            0.4,
        )
    for word, chinese in (("must", "必须"), ("should", "应该")):
        target = f"{chinese}<{word}> {{v}}"
        rule("modal", f"{{s=person/past}} {word} {{v=act/base/person}}", f"{{s}} {target}")
        english = f"{{s=person/past}} {word} {{v=act/base/person}} {{t=time/future}}"
        rule("modal", english, f"{{s}} {{t}} {target}", 0.4)


def add_possession(grammar: Grammar) -> None:
    """Has two dogs, my mother 's book."""
    rule = grammar.rule
    for n in OWNED:
        rule("owned", f"{{n=a/{n}}}", "{n}")
        rule("owned", f"{{n=count/{n}}}", "{n}")
        rule("unowned", f"{{n=no/{n}}}", "{n}")
        rule("belonging", f"{{n=bar/{n}}}", "{n}")
    for n in ("brother", "sister", "son", "daughter"):
        rule("owned", f"{{n=a/{n}}}", "{n}")
        rule("owned", f"{{n=count/{n}}}", "{n}")
        rule("unowned", f"{{n=no/{n}}}", "{n}")
    rule("possession", "{s=person/one} has {o=owned}", "{s} 有<has> {o}", 1.5)
    rule("possession", "{s=person/many} have {o=owned}", "{s} 有<have> {o}", 1)
    rule("whose", "{k=person/the} 's {n=belonging}", "{k} 的<'s> {n}")
    for word, this in (("this", "这"), ("that", "那")):
        rule("possession", f"{word} is {{w=whose}}", f"{this}<{word}> 是<is> {{w}}", 0.6)
        rule(
            "possession", f"{word} is not {{w=whose}}", f"{this}<{word}> 不<not> 是<is> {{w}}", 0.3
        )
    for base, past, chinese in (
        ("find", "found", "找到"), ("borrow", "borrowed", "借"), ("see", "saw", "看见"), ("lose", "lost", "丢"),
    ):  # fmt: skip
        for n in OWNED:
            if base in ("borrow", "lose") and n in (*lex.ANIMALS, "house"):
                continue
            target = f"{{s}} {chinese}<{past}> 了<{past}> {{k}} 的<'s> {{n}}"
            reserved = (base, n) in lex.RESERVED_OBJECTS
            english = f"{{s=person/past}} {past} {{k=person/the}} 's {{n=bar/{n}}}"
            rule("possession", english, target, 0.5 / len(OWNED), reserved)
    for adjective, chinese in (("new", "新"), ("big", "大"), ("beautiful", "漂亮"), ("old", "旧")):
        for n in ("car", "bike", "bag", "house", "phone", "coat"):
            english = f"{{k=person/the}} 's {n} is {adjective}"
            target = f"{{k}} 的<'s> {lex.NOUNS[n].chinese}<{n}> 很<is> {chinese}<{adjective}>"
            rule("possession", english, target, 0.05)


def add_giving(grammar: Grammar) -> None:
    """Gave him a book -> 给 了 他 一 本 书; sent him a letter -> 给 他 寄 了 一 封 信."""
    rule = grammar.rule
    rule("receiver", "{n=person/the}", "{n}")
    rule("receiver", "{n=pronoun/object}", "{n}", 0.6)
    for gift, nouns in (
        ("gift", GIFTS),
        ("post", ("letter", "photo", "book", "map")),
        ("tale", ("story",)),
    ):
        for n in nouns:
            rule(gift, f"{{n=a/{n}}}", "{n}", 2)
            rule(gift, f"{{n=count/{n}}}", "{n}", 1.5)
            rule(f"definite/{gift}", f"{{n=the/{n}}}", "{n}")
            rule(f"definite/{gift}", f"{{n=my/{n}}}", "{n}")
    who = "{s=person/past}"
    rule("giving", f"{who} gave {{r=receiver}} {{o=gift}}", "{s} 给<gave> 了<gave> {r} {o}", 2)
    rule(
        "giving", f"{who} gave {{o=gift}} to {{r=receiver}}", "{s} 给<gave,to> 了<gave> {r} {o}", 1
    )
    rule(
        "giving",
        f"{who} gave {{r=receiver}} {{o=gift}} {{t=when/past}}",
        "{s} {t} 给<gave> 了<gave> {r} {o}",
        1,
    )
    rule(
        "giving",
        f"{{t=when/past}} {who} gave {{r=receiver}} {{o=gift}}",
        "{t} {s} 给<gave> 了<gave> {r} {o}",
        0.7,
    )
    rule("giving", f"{who} will give {{r=receiver}} {{o=gift}}", "{s} 会<will> 给<give> {r} {o}", 1)
    for past, base, chinese, gift in (
        ("sent", "send", "寄", "post"), ("bought", "buy", "买", "gift"), ("told", "tell", "讲", "tale"),
    ):  # fmt: skip
        did, do = f"{chinese}<{past}> 了<{past}>", f"{chinese}<{base}>"
        rule(
            "giving",
            f"{who} {past} {{r=receiver}} {{o={gift}}}",
            f"{{s}} 给<{past}> {{r}} {did} {{o}}",
            0.8,
        )
        rule(
            "giving",
            f"{who} will {base} {{r=receiver}} {{o={gift}}}",
            f"{{s}} 会<will> 给<{base}> {{r}} {do} {{o}}",
            0.5,
        )
        word = "for" if past == "bought" else "to"
        rule(
            "giving",
            f"{who} {past} {{o={gift}}} {word} {{r=receiver}}",
            f"{{s}} 给<{word}> {{r}} {did} {{o}}",
            0.6,
        )


def add_phrase(grammar: Grammar) -> None:
    """Phrases on their own: two black cats, on 3 march 2021, the cat that the dog saw."""
    rule = grammar.rule
    for n, noun in lex.NOUNS.items():
        for symbol in ("one", "many"):
            if f"{symbol}/{n}" in grammar.rules and (n in lex.KIN or noun.adjectives):
                rule("phrase/noun", f"{{n={symbol}/{n}}}", "{n}")
    rule("phrase", "{n=phrase/noun}", "{n}", 3)
    rule("phrase", "{d=date/full}", "{d}", 1)
    rule("phrase", "{d=spot}", "{d}", 0.5)
    for kind in ("person", "animal", "thing"):
        rule("phrase", f"{{n=relative/{kind}}}", "{n}", 0.7)
