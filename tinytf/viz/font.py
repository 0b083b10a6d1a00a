"""The Chinese of figures: a small subset of an open font, which ships with the package.

matplotlib's own font has no Chinese, and what a machine has installed differs from one to the next.
The file beside this one holds the characters that stand anywhere in this package's sources (the
phrasebook's words, their lexicon, the glossary) and their punctuation. After new ones have come in,
make it anew from Noto Sans CJK (Debian: fonts-noto-cjk), which is not kept here:

    python -m tinytf.viz.font NotoSansCJK-Regular.ttc

The SIL Open Font License, fonts/OFL.txt, covers the file. It is a modified version, so it has a
name of its own.
"""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from matplotlib import font_manager

from tinytf.support.handed_in import handed_in

__all__ = ["FAMILY", "FONT", "PUNCTUATION", "characters", "is_chinese", "register", "subset"]

FAMILY = "tinytf Han"
FONT = Path(__file__).parent / "fonts" / "tinytf-han.otf"
PUNCTUATION = "，。？！：；（）、《》"
_FACE = "Noto Sans CJK SC"  # of the faces in one file, the one with mainland China's forms
_UNUSED = ("BASE", "GDEF", "GPOS", "GSUB", "VORG", "vhea", "vmtx")  # vertical and alternate forms
_NAMES = {1: FAMILY, 2: "Regular", 4: FAMILY, 6: "tinytfHan-Regular"}


@cache
def register() -> str:
    """Make the font known to matplotlib, once, and return its family's name.

    It has one weight, which stands in for bold as well: a bold title then has its Latin bold and
    its Chinese plain, where matplotlib would warn of a missing face.
    """
    manager = font_manager.fontManager
    manager.addfont(FONT)
    regular = next(entry for entry in manager.ttflist if entry.name == FAMILY)
    manager.ttflist.append(replace(regular, weight=700))
    return FAMILY


def is_chinese(char: str) -> bool:
    """Whether a character is Chinese: one of Unicode's ideographs and radicals."""
    return "\u2e80" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff" or ord(char) >= 0x20000


def characters() -> str:
    """Every Chinese character of the sources, the package's and the course's, and the punctuation.

    Sorted. Where the course is not installed its characters are missing, so a font is made anew
    with the course beside it.
    """
    trees = {Path(__file__).parents[1], *map(Path, handed_in("sources") or ())}
    files = {path for tree in trees for path in tree.rglob("*.py")}
    sources = (path.read_text(encoding="utf-8") for path in sorted(files))
    found = {char for text in sources for char in text if is_chinese(char) and char.isprintable()}
    return "".join(sorted(found.union(PUNCTUATION)))


def subset(source: str | Path, path: str | Path = FONT, text: str | None = None) -> None:
    """Write a font of these characters alone (default: `characters()`) under our own name.

    `source` is a font or a collection that holds Noto Sans CJK SC. Raises ValueError where it lacks
    one of the characters.
    """
    from fontTools.subset import Options, Subsetter

    text = characters() if text is None else text
    font = _open(Path(source))
    missing = "".join(char for char in text if ord(char) not in font.getBestCmap())
    if missing:
        raise ValueError(f"{source} has no glyph for {missing}")
    options = Options(layout_features=[], hinting=False, notdef_outline=True, name_IDs=[0, 13, 14])
    options.drop_tables += _UNUSED
    subsetter = Subsetter(options)
    subsetter.populate(text=text)
    subsetter.subset(font)
    _rename(font)
    font.recalcTimestamp = False  # the same file whenever it is made
    font.save(path)


def _open(source: Path):
    from fontTools.ttLib import TTCollection, TTFont

    if source.suffix.lower() not in (".ttc", ".otc"):
        return TTFont(source)
    faces = TTCollection(source).fonts
    return next(face for face in faces if face["name"].getDebugName(1) == _FACE)


def _rename(font) -> None:
    """Put our name in every place that had the original's, and keep copyright and licence."""
    for number, name in _NAMES.items():
        font["name"].setName(name, number, 3, 1, 0x409)
    if "CFF " in font:
        cff = font["CFF "].cff
        cff.fontNames = [_NAMES[6]]
        top = cff.topDictIndex[0]
        top.FullName = top.FamilyName = FAMILY
        for group in getattr(top, "FDArray", []):
            group.FontName = _NAMES[6]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tinytf.viz.font NotoSansCJK-Regular.ttc")
    subset(sys.argv[1])
    sys.stdout.write(
        f"{FONT.name}: {len(characters())} characters, {FONT.stat().st_size:,} bytes\n"
    )
