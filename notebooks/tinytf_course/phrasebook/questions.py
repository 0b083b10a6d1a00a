"""Rules for questions. Chinese asks in place: the question word stands where its answer would."""

# A Chinese character counts as two columns, and a row of words reads best unbroken.
# ruff: noqa: E501

from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.sentences import OWNED
from tinytf_course.phrasebook.synchronous import Grammar


def add_yes_no(grammar: Grammar) -> None:
    """Did you ...? ... 了 吗 ？ The question auxiliary is what 吗 answers to."""
    rule, end = grammar.rule, "？<?>"
    for group, weight in (("person", 5), ("animal", 1), ("hunter", 1)):
        did = f"did {{s={group}/past}} {{v=act/ask/{group}}}"
        rule("yes-no", f"{did} ?", f"{{s}} {{v}} 了<did> 吗<did> {end}", weight)
        target = f"{{s}} {{t}} {{v}} 了<did> 吗<did> {end}"
        rule("yes-no", f"{did} {{t=time/past}} ?", target, weight / 3)
    for do, number in (("does", "one"), ("do", "many")):
        who = f"{do} {{s=person/{number}}}"
        rule("yes-no", f"{who} {{v=do/ask/state}} ?", f"{{s}} {{v}} 吗<{do}> {end}", 1)
        rule("yes-no", f"{who} have {{o=unowned}} ?", f"{{s}} 有<have> {{o}} 吗<{do}> {end}", 0.7)
        target = f"{{s}} 想<want> {{v}} 吗<{do}> {end}"
        rule("yes-no", f"{who} want to {{v=act/ask/person}} ?", target, 0.7)
    english = "did {s=person/past} {v=do/ask/indoors} {p=where} ?"
    rule("yes-no", english, f"{{s}} {{p}} {{v}} 了<did> 吗<did> {end}", 1.5)
    will = "will {s=person/past} {v=act/ask/person}"
    rule("yes-no", f"{will} ?", f"{{s}} 会<will> {{v}} 吗<will> {end}", 0.7)
    rule("yes-no", f"{will} {{t=time/future}} ?", f"{{s}} {{t}} 会<will> {{v}} 吗<will> {end}", 0.7)
    for can in ("会", "能"):
        target = f"{{s}} {can}<can> {{v}} 吗<can> {end}"
        rule("yes-no", f"can {{s=person/past}} {{v=able/{can}}} ?", target, 0.6)
    for line in lex.PREDICATES.strip().splitlines():
        adjective, chinese = line.split()[:2]
        for be, number in (("is", "one"), ("are", "many")):
            target = f"{{s}} {chinese}<{adjective}> 吗<{be}> {end}"
            rule("yes-no", f"{be} {{s={adjective}/{number}}} {adjective} ?", target, 0.1)
    target = f"{{s}} 是<is> {{j}} 吗<is> {end}"
    rule("yes-no", "is {s=person/one} {j=job/one} ?", target, 0.4)
    rule("yes-no", "is {s=thing/one} {p=spot} ?", f"{{s}} {{p}} 吗<is> {end}", 0.7)
    rule("yes-no", "is this {w=whose} ?", f"这<this> 是<is> {{w}} 吗<is> {end}", 0.4)


def add_wh(grammar: Grammar) -> None:
    """Who, what, where, when, why, whose, how many."""
    rule, end = grammar.rule, "？<?>"
    rule("wh", "who {v=act/past/person} ?", f"谁<who> {{v}} {end}", 2)
    rule("wh", "who {v=act/timed/person} {t=time/past} ?", f"谁<who> {{t}} {{v}} {end}", 1)
    rule("wh", "who will {v=act/ask/person} ?", f"谁<who> 会<will> {{v}} {end}", 0.4)
    for base, chinese in (
        ("eat", "吃"), ("drink", "喝"), ("buy", "买"), ("sell", "卖"), ("read", "读"), ("write", "写"),
        ("find", "找到"), ("lose", "丢"), ("see", "看见"), ("hear", "听见"), ("draw", "画"), ("make", "做"),
    ):  # fmt: skip
        target = f"{chinese}<{base}> 了<{base}> 什么<what> {end}"
        rule("wh", f"what did {{s=person/past}} {base} ?", f"{{s}} {target}", 0.2)
        rule(
            "wh",
            f"what did {{s=person/past}} {base} {{t=time/past}} ?",
            f"{{s}} {{t}} {target}",
            0.1,
        )
        rule(
            "wh", f"what did {{s=person/past}} {base} {{p=where}} ?", f"{{s}} {{p}} {target}", 0.03
        )
    for base, chinese in (("see", "看见"), ("meet", "遇见"), ("help", "帮助"), ("visit", "看望")):
        target = f"{chinese}<{base}> 了<{base}> 谁<who> {end}"
        rule("wh", f"who did {{s=person/past}} {base} ?", f"{{s}} {target}", 0.3)
        rule(
            "wh",
            f"who did {{s=person/past}} {base} {{t=time/past}} ?",
            f"{{s}} {{t}} {target}",
            0.3,
        )
    for word, chinese in (("where", "在<where> 哪里<where>"), ("when", "什么时候<when>")):
        target = f"{{s}} {chinese} {{v}} {end}"
        rule("wh", f"{word} did {{s=person/past}} {{v=do/de/person}} ?", target, 1)
    rule("wh", "when did {s=person/past} {v=went/de} ?", f"{{s}} 什么时候<when> {{v}} {end}", 0.5)
    for base, chinese in (("arrive", "到"), ("leave", "离开"), ("come", "来")):
        rule("went/de", base, f"{chinese}<{base}> 的<{base}>")
    target = f"{{s}} 什么时候<when> 会<will> {{v}} {end}"
    rule("wh", "when will {s=person/past} {v=act/ask/person} ?", target, 1)
    target = f"{{s}} 为什么<why> {{v}} {end}"
    rule("wh", "why did {s=person/past} {v=do/why/person} ?", target, 1)
    target = f"{{s}} 为什么<why> 没有<did,not> {{v}} {end}"
    rule("wh", "why did {s=person/past} not {v=act/ask/person} ?", target, 0.8)
    rule("wh", "where is {s=thing/one} ?", f"{{s}} 在<where> 哪里<where> {end}", 0.5)
    rule("wh", "where are {s=thing/many} ?", f"{{s}} 在<where> 哪里<where> {end}", 0.3)
    rule(
        "wh", "where does {s=person/one} live ?", f"{{s}} 住<live> 在<where> 哪里<where> {end}", 0.2
    )
    for n in OWNED:
        noun = lex.NOUNS[n]
        thing = f"{noun.chinese}<{noun.plural}>"
        many = f"几<how,many> {noun.measure}<many> {thing}"
        for do, number in (("does", "one"), ("do", "many")):
            english = f"how many {noun.plural} {do} {{s=person/{number}}} have ?"
            rule("wh", english, f"{{s}} 有<have> {many} {end}", 0.06)
        english = f"how many {noun.plural} did {{s=person/past}} buy ?"
        reserved = ("buy", n) in lex.RESERVED_OBJECTS
        rule("wh", english, f"{{s}} 买<buy> 了<buy> {many} {end}", 0.06, reserved)
        for word, this in (("this", "这"), ("that", "那")):
            target = f"{this}<{word}> 是<is> 谁<whose> 的<whose> {noun.chinese}<{n}> {end}"
            rule("wh", f"whose {n} is {word} ?", target, 0.03)
