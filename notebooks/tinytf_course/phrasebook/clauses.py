"""Rules for verb phrases, and for the plain clauses: who did what, and where."""

from tinytf_course.phrasebook import adverbials
from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.nouns import article
from tinytf_course.phrasebook.synchronous import Grammar

_PERSON_OBJECT = ("see", "help", "meet", "know", "like", "love", "hear", "visit")
_POSTURES = (("sat", "坐"), ("lay", "躺"), ("slept", "睡"), ("stood", "站"), ("hid", "躲"))
# who, past, base, Chinese, objects
_ANIMAL_VERBS = (
    ("hunter", "ate", "eat", "吃", "fish meat egg bread"),
    ("grazer", "ate", "eat", "吃", "apple grass bread"),
    ("animal", "drank", "drink", "喝", "water milk"),
    ("hunter", "caught", "catch", "抓住", "mouse bird rabbit fish"),
    ("hunter", "bit", "bite", "咬", "boy man cat rabbit bird driver"),
    ("animal", "saw", "see", "看见", "cat dog bird horse farmer child girl car"),
    ("animal", "heard", "hear", "听见", "cat dog bird child car woman"),
    ("animal", "broke", "break", "打破", "cup window"),
    ("hunter", "found", "find", "找到", "key ball fish hat mouse"),
)
DATED = [
    "buy",
    "sell",
    "visit",
    "meet",
    "find",
    "lose",
    "write",
    "make",
    "borrow",
    "repair",
    "plant",
    "draw",
]
GROUPS = ("person", "animal", "hunter", "grazer")


def add_verb_phrases(grammar: Grammar) -> None:
    """`do/FORM/GROUP`: past (with 了), base, ask (after did), third, de (V 的 O), ing."""
    for index, verb in enumerate(lex.VERBS):
        group = "state" if verb.state else "person"
        obj, ask = f"object/{index}", f"asked/{index}"
        _add_objects(grammar, verb.base, verb.objects, obj, ask)
        zh, plain = verb.chinese, f"plainly/{index}"
        le = "" if verb.state else f"了<{verb.past}> "
        gr = grammar.rule
        gr(f"do/past/{group}", f"{verb.past} {{o={obj}}}", f"{zh}<{verb.past}> {le}{{o}}")
        gr(f"do/ask/{group}", f"{verb.base} {{o={ask}}}", f"{zh}<{verb.base}> {{o}}")
        gr(f"do/why/{group}", f"{verb.base} {{o={plain}}}", f"{zh}<{verb.base}> {{o}}")
        if verb.base in ("read", "write", "meet", "find", "lose", "see", "watch", "draw", "sing"):
            past = f"{verb.past} {{o={obj}}}", f"{zh}<{verb.past}> {le}{{o}}"
            gr("do/past/indoors", *past)
            gr("do/base/indoors", f"{verb.base} {{o={obj}}}", f"{zh}<{verb.base}> {{o}}")
            gr("do/ask/indoors", f"{verb.base} {{o={ask}}}", f"{zh}<{verb.base}> {{o}}")
        if verb.base in DATED:
            gr("act/dated", f"{verb.past} {{o={obj}}}", f"{zh}<{verb.past}> {le}{{o}}")
        if not verb.state:
            de = f"{zh}<{verb.base}> 的<{verb.base}> {{o}}"
            gr("do/de/person", f"{verb.base} {{o={plain}}}", de)
        if verb.third:
            gr(f"do/third/{group}", f"{verb.third} {{o={obj}}}", f"{zh}<{verb.third}> {{o}}")
            gr(f"do/habit/{group}", f"{verb.base} {{o={obj}}}", f"{zh}<{verb.base}> {{o}}")
        if verb.can:
            base = f"{verb.base} {{o={obj}}}", f"{zh}<{verb.base}> {{o}}"
            if not verb.state:
                if verb.base not in ("see", "hear"):  # nobody plans to
                    gr("do/base/person", *base)
                able = f"{verb.base} {{o={plain}}}" if verb.can == "会" else base[0]
                gr(f"able/{verb.can}", able, base[1])
        if verb.base in lex.GERUNDS and not verb.state:
            ing = lex.GERUNDS[verb.base]
            gr("do/ing/person", f"{ing} {{o={obj}}}", f"{zh}<{ing}> {{o}}")
    for index, (group, past, base, zh, objects) in enumerate(_ANIMAL_VERBS):
        obj, ask = f"object/a{index}", f"asked/a{index}"
        _add_objects(grammar, base, tuple(objects.split()), obj, ask)
        grammar.rule(f"do/past/{group}", f"{past} {{o={obj}}}", f"{zh}<{past}> 了<{past}> {{o}}")
        grammar.rule(f"do/ask/{group}", f"{base} {{o={ask}}}", f"{zh}<{base}> {{o}}")
    for base, third, past, ing, zh, can, alone, animals in (
        line.split() for line in lex.INTRANSITIVES.strip().splitlines()
    ):
        for group in ("person", "animal") if animals == "yes" else ("person",):
            if alone == "yes":
                grammar.rule(f"go/past/{group}", past, f"{zh}<{past}> 了<{past}>")
            grammar.rule(f"go/timed/{group}", past, f"{zh}<{past}> 了<{past}>")
            if base in ("arrive", "leave", "come") and group == "person":
                grammar.rule("act/dated", past, f"{zh}<{past}> 了<{past}>", 0.5)
            grammar.rule(f"go/ask/{group}", base, f"{zh}<{base}>")
            if ing != "-":
                grammar.rule(f"go/ing/{group}", ing, f"{zh}<{ing}>")
                if group == "person":
                    grammar.rule("happened", f"{past} {{p=where/{base}}}", f"{{p}} {zh}<{past}>")
        if third != "-" and base not in ("cry", "laugh"):
            grammar.rule("go/third/person", third, f"{zh}<{third}>")
            grammar.rule("go/habit/person", base, f"{zh}<{base}>")
        if can != "-":
            grammar.rule("go/base/person", base, f"{zh}<{base}>")
            if base in ("swim", "run", "dance", "come", "leave", "work"):
                grammar.rule(f"able/{can}", base, f"{zh}<{base}>")
    grammar.rule("go/base/person", "go {g=goal}", "去<go> {g}", 3)
    grammar.rule("go/ask/person", "go {g=goal}", "去<go> {g}", 3)
    grammar.rule("go/habit/person", "go {g=goal/near}", "去<go> {g}", 2)
    grammar.rule("go/third/person", "goes {g=goal/near}", "去<goes> {g}", 2)
    grammar.rule("go/past/person", "went {g=goal}", "去<went> 了<went> {g}", 3)
    grammar.rule("act/dated", "went {g=goal}", "去<went> 了<went> {g}", 2)
    grammar.rule("go/timed/person", "went {g=goal}", "去<went> 了<went> {g}", 3)
    for form in ("past", "timed", "ask", "base", "habit", "third", "ing"):
        for group in GROUPS:
            parts = [f"do/{form}/{group}", f"go/{form}/{group}"]
            for part, weight in zip(parts, (5, 2), strict=True):
                if part in grammar.rules:
                    grammar.rule(f"act/{form}/{group}", f"{{v={part}}}", "{v}", weight)
    for group in GROUPS:
        grammar.rule(f"act/timed/{group}", f"{{v=do/past/{group}}}", "{v}", 5)


def _add_objects(grammar: Grammar, verb: str, objects: tuple[str, ...], obj: str, ask: str) -> None:
    """What the verb can have as object: affirmed (`obj`), asked or denied (`ask`), and no `any`."""
    plain = ask.replace("asked", "plainly")
    for n in objects:
        reserved = (verb, n) in lex.RESERVED_OBJECTS
        grammar.rule(obj, f"{{n=one/{n}}}", "{n}", 3, reserved)
        grammar.rule(plain, f"{{n=ask/{n}}}", "{n}", 1, reserved)
        if f"many/{n}" in grammar.rules:
            grammar.rule(obj, f"{{n=many/{n}}}", "{n}", 2, reserved)
        if f"any/{n}" in grammar.rules:
            grammar.rule(ask, f"{{n=any/{n}}}", "{n}", 0.15, reserved)
    if verb in _PERSON_OBJECT and {"girl", "mother", "doctor"}.intersection(objects):
        grammar.rule(obj, "{n=pronoun/object}", "{n}", len(objects) / 2)
        grammar.rule(plain, "{n=pronoun/object}", "{n}", len(objects) / 6)
    grammar.rule(ask, f"{{n={plain}}}", "{n}", len(objects))


def add_simple(grammar: Grammar) -> None:
    """Somebody did something, is doing it, likes it, or is a doctor."""
    rule = grammar.rule
    for group, weight in (("person", 6), ("animal", 2), ("hunter", 1.5), ("grazer", 0.7)):
        rule("simple", f"{{s={group}/past}} {{v=act/past/{group}}}", "{s} {v}", weight)
    rule("simple", "{s=person/past} {v=do/past/state}", "{s} {v}", 0.5)
    for be, number in (("is", "one"), ("are", "many")):
        who = f"{{s=person/{number}}}" if be == "is" else "{s=person/are}"
        rule("simple", f"{who} {be} {{v=act/ing/person}}", f"{{s}} 正在<{be}> {{v}}", 1)
        beast = f"{{s=animal/{number}}} {be} {{v=go/ing/animal}}"
        rule("simple", beast, f"{{s}} 正在<{be}> {{v}}", 0.4)
    rule("simple", "i am {v=act/ing/person}", "我<i> 正在<am> {v}", 0.3)
    rule("simple", "{s=person/one} {v=do/third/state}", "{s} {v}", 0.8)
    rule("simple", "{s=person/many} {v=do/habit/state}", "{s} {v}", 0.8)
    rule("simple", "{s=known/one} is {j=job/one}", "{s} 是<is> {j}", 0.5)
    rule("simple", "{s=known/are} are {j=job/many}", "{s} 是<are> {j}", 0.3)
    for n in lex.JOBS:
        noun = lex.NOUNS[n]
        rule("job/one", f"{article(n)} {n}", f"{noun.chinese}<{n}>")
        rule("job/many", noun.plural, f"{noun.chinese}<{noun.plural}>")
    for n in lex.PEOPLE:
        rule("person/are", f"{{n=many/{n}}}", "{n}")
    rule("person/are", "{n=pronoun/are}", "{n}", 5)


def add_place(grammar: Grammar) -> None:
    """Where things are, sit and happen, and where people go, how and with whom."""
    rule = grammar.rule
    for past, zh in _POSTURES:
        keys = (
            ("under", "behind")
            if past == "hid"
            else ("on", "in", "under", "beside", "behind", "front")
        )
        for key in keys:
            group = "pet" if past == "sat" else "animal"
            english = f"{{s={group}/past}} {past} {{p=spot/{key}}}"
            rule("place", english, f"{{s}} {zh}<{past}> {{p}}", 1 / len(keys))
    for past, zh in (("sat", "坐"), ("stood", "站")):
        for key in ("beside", "front"):
            english = f"{{s=person/past}} {past} {{p=spot/{key}}}"
            rule("place", english, f"{{s}} {zh}<{past}> {{p}}", 0.5)
    rule("place", "{s=person/past} {h=happened}", "{s} {h}", 2)
    rule("place", "{s=person/past} {v=do/past/indoors} {p=where}", "{s} {p} {v}", 2)
    for n in adverbials.THINGS:
        rule("thing/one", f"{{n=the/{n}}}", "{n}", 2)
        rule("thing/one", f"{{n=my/{n}}}", "{n}")
        rule("thing/one", f"{{n=this/{n}}}", "{n}", 0.7)
        rule("thing/many", f"{{n=plains/{n}}}", "{n}")
        rule("some/one", f"{{n=a/{n}}}", "{n}")
        rule("some/many", f"{{n=count/{n}}}", "{n}")
        rule("some/many", f"{{n=lots/{n}}}", "{n}", 0.4)
    for person in ("{n=person/the}", "{n=pronoun/object}"):
        rule("company", person, "{n}")
    for be, bar in (("is", "one"), ("are", "many")):
        rule("place", f"{{s=thing/{bar}}} {be} {{p=spot}}", "{s} {p}", 1)
        rule(
            "place", f"there {be} {{s=some/{bar}}} {{p=there}}", f"{{p}} 有<there,{be}> {{s}}", 1.5
        )
    rule(
        "place", "{s=person/past} went {g=goal/near} {r=ride/near}", "{s} {r} 去<went> 了<went> {g}"
    )
    rule("place", "{s=person/past} went {g=goal/far} {r=ride/far}", "{s} {r} 去<went> 了<went> {g}")
    together = "{s} 和<with> {w} 一起<with>"
    rule(
        "place",
        "{s=person/past} went {g=goal} with {w=company}",
        f"{together} 去<went> 了<went> {{g}}",
    )
    rule("place", "{s=person/one} lives {p=city}", "{s} 住<lives> {p}", 0.6)
    rule("place", "{s=person/many} live {p=city}", "{s} 住<live> {p}", 0.6)
