"""What the panels load: scripts, the style sheet, and weights as scripts.

A page that is opened from a disk may load scripts, but may not fetch a file. So a weights file goes
into a script as text, in base64, with its length and its checksum.
"""

import base64
import json
import shutil
import zlib
from pathlib import Path

from tinytf.apps import translator, writer
from tinytf.viz.explorer import with_ramp
from tinytf_course.phrasebook import FIGURES, PINYIN
from tinytf_course.phrasebook import lexicon as lex

HERE = Path(__file__).parent
WEIGHTS = {"translator": translator.SHIPPED, "storyteller": writer.STORYTELLER}
SCRIPTS = {  # of each kind of panel, in the order in which they are loaded
    kind: ("model.js", "text.js", "phrasebook.js", "apps.js", "parts.js", *own)
    for kind, own in {
        "translator": ("examples.js", "compare.js", "heads.js", "translator.js"),
        "writer": ("writer.js",),
        "film": ("scenes.js", "film.js"),
    }.items()
}
STYLE = "live.css"
MORE = (  # words that the phrasebook's rules hold, and not its lexicon
    "老:old 坐:sit 站:stand 在:at 上:on 里:in 的:of 了:past 过:cross 给:give 是:is 有:have "
    "没有:not 不:not 很:very 太:too 非常:very 因为:because 一:one 一些:some 很多:many 这:this "
    "那:that 昨天:yesterday 今天:today 明天:tomorrow 和:and 比:than 谁:who 什么:what 哪里:where "
    "宽:wide 窄:narrow 深:deep 轻:light 软:soft 硬:hard"
)


def write_assets(folder):
    """Write all that any panel loads into `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in {name for names in SCRIPTS.values() for name in names} - {"phrasebook.js"}:
        shutil.copyfile(HERE / name, folder / name)
    (folder / "phrasebook.js").write_text(phrasebook_script(), encoding="utf-8")
    (folder / STYLE).write_text(style(), encoding="utf-8")
    for name, path in WEIGHTS.items():
        script = weights_script(name, path.read_bytes())
        (folder / f"{name}.weights.js").write_text(script, encoding="utf-8")


def weights_script(name, data):
    """A script that holds the bytes of a weights file."""
    text = base64.b64encode(data).decode()
    facts = f'bytes: {len(data)}, adler32: {zlib.adler32(data)}, base64: "{text}"'
    return f"(tinytf.weights ||= {{}})[{json.dumps(name)}] = {{ {facts} }};\n"


def phrasebook_script():
    """A script with the meanings and sounds of Chinese words, and which digits are dates."""
    facts = {
        "pinyin": PINYIN, "english": english(), "months": list(lex.MONTHS), "figures": FIGURES,
    }  # fmt: skip
    return f"tinytf.phrasebook = {json.dumps(facts, ensure_ascii=False)};\n"


def english():
    """What Chinese words mean, {"他": "he / him / his"}, for most of the phrasebook's words."""
    pairs = [(noun.chinese, noun.singular) for noun in lex.NOUNS.values()]
    pairs += [(chinese, word) for word, (chinese, _) in lex.MASSES.items()]
    pairs += [(verb.chinese, verb.base) for verb in lex.VERBS]
    pairs += [(line.split()[4], line.split()[0]) for line in lex.INTRANSITIVES.strip().splitlines()]
    pairs += [(line.split()[1], line.split()[0]) for line in lex.PREDICATES.strip().splitlines()]
    pairs += [(noun.measure, "measure word") for noun in lex.NOUNS.values() if noun.measure]
    pairs += [pair.split(":") for pair in MORE.split()]
    for words in (
        lex.ADJECTIVES, lex.NUMBERS, lex.CITIES, lex.WEEKDAYS, lex.BARE_OBJECTS, lex.SUBJECTS,
        lex.OBJECTS, lex.POSSESSIVES,
    ):  # fmt: skip
        pairs += [
            (chinese.removesuffix(" 的").removeprefix("很 "), word)
            for word, chinese in words.items()
        ]
    meanings = {}
    for chinese, word in pairs:
        meanings.setdefault(chinese, []).append(word)
    return {chinese: " / ".join(dict.fromkeys(words)) for chinese, words in meanings.items()}


def style():
    """The style sheet, with the explorer's colours for attention weights."""
    return with_ramp((HERE / STYLE).read_text(encoding="utf-8"), ".tinytf-live")
