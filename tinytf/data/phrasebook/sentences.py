"""Rules for sentences built on clauses: described, compared, timed, related, denied, wanted, given."""

from itertools import permutations

from tinytf.data.phrasebook import adverbials
from tinytf.data.phrasebook import lexicon as lex
from tinytf.data.phrasebook.synchronous import Grammar

PLACES = tuple("house room garden kitchen park school museum restaurant bridge".split())
COLOURS = "car bike bag hat umbrella flower ball shirt coat door cup".split()
TOO = "big small long short thick heavy expensive tired hungry busy dirty young".split()
OWNED = "car bike bag phone computer book map umbrella coat hat cat dog bird rabbit house".split()
GIFTS = "book map ticket cup bag coat hat umbrella phone flower cake apple orange photo key".split()


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
    "book newspaper letter story film", "car bike", "hat coat shirt bag umbrella", "phone computer",
    "table bed chair box",
)  # fmt: skip


def _sort(noun: str) -> int | str:
    groups = ((*lex.PEOPLE, *lex.KIN), lex.ANIMALS, PLACES, *(group.split() for group in _LIKE))
    return next((i for i, group in enumerate(groups) if noun in group), noun)


def add_time(grammar: Grammar) -> None:
    """Yesterday, every day, now, on monday, at 5 o'clock: time moves in front of the verb."""
    rule = grammar.rule
    for group, weight in (("person", 4), ("animal", 0.7), ("hunter", 0.7), ("grazer", 0.4)):
        clause = f"{{s={group}/past}} {{v=act/timed/{group}}}"
        rule("time", f"{clause} {{t=when/past}}", "{s} {t} {v}", weight)
        rule("time", f"{{t=when/past}} {clause}", "{t} {s} {v}", weight / 2)
    rule(
        "time", "{s=person/past} {v=go/placed/person} {p=where} {t=when/past}", "{s} {t} {p} {v}", 2
    )
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
        rule("time", f"{who} {does} {{t=time/habit}}", "{s} {t} {v}")
        rule("time", f"{who} {{a=adverb}} {does}", "{s} {a} {v}")
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
