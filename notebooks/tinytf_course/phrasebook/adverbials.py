"""Rules for when and where. In Chinese both stand before the verb, time first.

time/past, time/future, time/habit, time/now    yesterday, next week, every day, now
date                                            on 3 march 2021, in may 2010
where                                           at the school, in the park: where things happen
spot/on, spot/in, spot/near ...                 on the mat, under the table: where things are
"""

# Tables read best as running text, one row a line.
# ruff: noqa: C408, E501, SIM905

from collections.abc import Sequence

from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.synchronous import Grammar

_TIMES = dict(
    past="yesterday=昨天 | last night=昨晚<last,night> | last week=上周<last,week> | "
    "last month=上个月<last,month> | last year=去年<last,year> | this morning=今天<this> 早上<morning> | "
    "yesterday morning=昨天 早上<morning> | yesterday afternoon=昨天 下午<afternoon>",
    future="tomorrow=明天 | next week=下周<next,week> | next month=下个月<next,month> | "
    "next year=明年<next,year> | this evening=今天<this> 晚上<evening> | "
    "tomorrow morning=明天 早上<morning> | tomorrow afternoon=明天 下午<afternoon>",
    habit="every day=每天<every,day> | every morning=每天<every> 早上<morning> | "
    "every evening=每天<every> 晚上<evening> | every week=每周<every,week>",
    now="now=现在",
)
ADVERBS = dict(often="经常", always="总是", sometimes="有时候", usually="通常")
SPOTS = (  # what stands on, in, under ... what
    ("on", "上<on>", "mat bed table chair box wall"),
    ("in", "里<in>", "room house garden kitchen car box bag"),
    ("under", "下面<under>", "table bed chair tree bridge"),
    ("beside", "旁边<beside>", "door window tree river house bed table wall"),
    ("behind", "后面<behind>", "door tree house car wall box"),
    ("in front of", "前面<front>", "door house school shop car"),
)
THINGS = "book key cup hat ball letter phone umbrella knife cat dog bag map shirt".split()
IN_PLACES = "park garden library museum restaurant room kitchen".split()
AT_PLACES = "school hospital shop station".split()
DOINGS = dict(  # where what is done alone is done; nobody swims in a library
    sleep="room garden park station hospital",
    run="park garden school",
    cry="park garden room kitchen school hospital station",
    laugh="park garden room kitchen school restaurant",
    swim="river",
    work="park garden library museum restaurant room kitchen school hospital shop station",
    dance="park garden room kitchen school restaurant",
    play="park garden room kitchen school library",
)
DESTINATIONS = (
    "park school hospital shop library museum restaurant station".split()
)  # fmt: skip
RIDES = dict(car="坐 车", bus="坐 公共汽车", train="坐 火车", plane="坐 飞机", bike="骑 自行车")


def digits_that_count(words: Sequence[str]) -> list[int]:
    """Where digits stand that are no part of a date or an hour; no rule has digits there.

    A date's day is before a month and an hour before `o'clock`; a year is after a month or `in`.
    """
    places = []
    for i, (before, word, after) in enumerate(zip(("", *words), words, (*words[1:], ""))):
        dated = after in (*lex.MONTHS, "o'clock")
        year = len(word) == 4 and before in (*lex.MONTHS, "in")
        if word.isdigit() and not dated and not year:
            places.append(i)
    return places


def add_times(grammar: Grammar) -> None:
    """Time words, weekdays, `three days ago`, `at 5 o'clock in the morning`, and full dates."""
    for tense, rows in _TIMES.items():
        for row in rows.split(" | "):
            english, chinese = row.split("=")
            if "<" not in chinese.split()[0]:  # the first word is then its plain counterpart
                first, _, rest = chinese.partition(" ")
                chinese = f"{first}<{english.split()[0]}> {rest}".strip()
            grammar.rule(f"time/{tense}", english, chinese)
    for word, number in lex.NUMBERS.items():
        for unit, target in (("years", "年<years>"), ("weeks", "个 星期<weeks>")):
            target = target.replace("个 ", f"个<{word}> ")
            grammar.rule("ago", f"{word} {unit} ago", f"{number}<{word}> {target} 前<ago>")
    for word in ("two", "three", "four", "five"):
        number = lex.NUMBERS[word]
        grammar.rule("time/past", f"{word} days ago", f"{number}<{word}> 天<days> 前<ago>", 0.3)
    for day, chinese in lex.WEEKDAYS.items():
        grammar.rule("weekday", f"on {day}", f"{chinese}<{day}>")
    for part, chinese, hours in (
        ("morning", "早上", range(6, 12)),
        ("afternoon", "下午", range(1, 6)),
        ("evening", "晚上", range(6, 12)),
    ):
        for hour in hours:
            target = f"{chinese}<{part}> {hour}<{hour}> 点<o'clock>"
            grammar.rule("clock", f"at {hour} o'clock in the {part}", target, 0.5)
    for hour in range(1, 13):
        grammar.rule("clock", f"at {hour} o'clock", f"{hour}<{hour}> 点<o'clock>")
    grammar.rule("clocked", "{c=clock}", "{c}", 1)
    grammar.rule("clocked", "{c=clock} {w=weekday}", "{w} {c}", 1)
    for n, (month, days) in enumerate(zip(lex.MONTHS, lex.DAYS, strict=True), 1):
        target = f"{n}<{month}> 月<{month}>"
        grammar.rule("month", month, target)
        for day in range(1, days + 1):
            grammar.rule("day", f"{day} {month}", f"{target} {day}<{day}> 日<{day}>")
    for year in lex.YEARS:
        grammar.rule("year", str(year), f"{year}<{year}> 年<{year}>")
    grammar.rule("date/full", "on {d=day} {y=year}", "{y} {d}", 5)
    grammar.rule("date/full", "in {m=month} {y=year}", "{y} {m}", 1)
    grammar.rule("date/full", "in {y=year}", "{y}", 1)
    grammar.rule("date/day", "on {d=day}", "{d}")
    for tense in ("past", "future"):
        grammar.rule(f"when/{tense}", f"{{t=time/{tense}}}", "{t}", 3)
        grammar.rule(f"when/{tense}", "{t=weekday}", "{t}", 1)
        grammar.rule(f"when/{tense}", "{t=clocked}", "{t}", 0.7)


def add_places(grammar: Grammar) -> None:
    """Where things are (`spot/*`), where things happen (`where`), where people go (`goal`)."""
    for english, chinese, nouns in SPOTS:
        key = english.split()[-2 if " of" in english else 0]
        for n in nouns.split():
            spot = f"{english} {{n=the/{n}}}"
            grammar.rule(f"spot/{key}", spot, f"在<{english.split()[0]}> {{n}} {chinese}")
            grammar.rule(f"there/{key}", spot, f"{{n}} {chinese}")
        grammar.rule("spot", f"{{s=spot/{key}}}", "{s}")
        grammar.rule("there", f"{{s=there/{key}}}", "{s}")
    for n in IN_PLACES:
        grammar.rule("where", f"in {{n=the/{n}}}", "在<in> {n} 里<in>")
    for n in AT_PLACES:
        grammar.rule("where", f"at {{n=the/{n}}}", "在<at> {n}")
    for doing, nouns in DOINGS.items():
        for n in nouns.split():
            places = ("at", "在<at> {n}") if n in AT_PLACES else ("in", "在<in> {n} 里<in>")
            grammar.rule(f"where/{doing}", f"{places[0]} {{n=the/{n}}}", places[1])
        grammar.rule(f"where/{doing}", "{p=where/city}", "{p}", 2)
    for city, chinese in lex.CITIES.items():
        grammar.rule("where/city", f"in {city}", f"在<in> {chinese}<{city}>")
        grammar.rule("where", f"in {city}", f"在<in> {chinese}<{city}>", 0.7)
        grammar.rule("goal/far", f"to {city}", f"{chinese}<{city}>")
        grammar.rule("city", f"in {city}", f"在<in> {chinese}<{city}>")
    for n in DESTINATIONS:
        grammar.rule("goal/near", f"to {{n=the/{n}}}", "{n}")
    grammar.rule("goal", "{g=goal/near}", "{g}", 2)
    grammar.rule("goal", "{g=goal/far}", "{g}", 1)
    for ride, chinese in RIDES.items():
        verb, vehicle = chinese.split()
        reach = "far" if ride in ("train", "plane") else "near"
        grammar.rule(f"ride/{reach}", f"by {ride}", f"{verb}<by> {vehicle}<{ride}>")
