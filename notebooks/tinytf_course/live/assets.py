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
from tinytf_course.phrasebook.lexicon import MONTHS

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
    """A script that holds how Chinese words are said, and which English digits are dates."""
    facts = {"pinyin": PINYIN, "months": list(MONTHS), "figures": FIGURES}
    return f"tinytf.phrasebook = {json.dumps(facts, ensure_ascii=False)};\n"


def style():
    """The style sheet, with the explorer's colours for attention weights."""
    return with_ramp((HERE / STYLE).read_text(encoding="utf-8"), ".tinytf-live")
